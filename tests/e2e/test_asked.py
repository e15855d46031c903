"""What is not asked for is not opened, not even to see whether it is there.

Every recording says what the machine is and what the job may use, and follows its processes: what that opens is seen with
`-m none`. Against it each choice of metrics may open the files that it is about, and nothing else.
"""

import re
import shutil
import subprocess

import pytest
from recorder import TACHO

# Of the recorder, whatever is recorded: never a source of numbers.
SOURCES = re.compile(
    r"^proc/(net|diskstats|vmstat|pressure|fs|spl)\b|^sys/class/(powercap|hwmon|thermal|power_supply)\b|^sys/cray\b"
    r"|^sys/fs/lustre\b|/thermal_throttle\b|^sys/kernel/debug\b"
)

# A choice, and the one kind of file that it is about.
CHOICES = {
    "process": r"proc/PID/\w+",
    "proc.io.read_bytes": r"proc/PID/io",
    "proc.cpu.user": r"proc/PID/stat",
    "tree": r"$^",
    "self": r"$^",
    "cpu": r"proc/stat",
    "mem.free": r"proc/meminfo",
    "paging": r"proc/vmstat",
    "load": r"proc/(loadavg|stat)",
    "pressure": r"proc/pressure/\w+",
    "net": r"(proc/(PID/)?net/.+|proc/(PID|self)/ns.*|sys/class/net.*|sys/class/infiniband.*)",
    "tcp": r"proc/(PID/)?net/\w+|proc/(PID|self)/ns.*",
    "ib": r"sys/class/(infiniband|cxi|net)\b.*",
    "disk": r"proc/diskstats|sys/(block|class/block|dev/block)\b.*",
    # that of GPUs too, which are looked for by their devices
    "energy": r"sys/(class/(powercap|hwmon|power_supply|drm)|cray)\b.*|sys/devices/.*",
    "sensor": r"sys/class/(hwmon|thermal)\b.*",
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Names of the files that a recorder with this choice of metrics tries to open, its job's not among them."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    if subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("strace may not trace here (ptrace is forbidden)")
    folder = tmp_path_factory.mktemp("asked")

    def opened(words):
        log = folder / "strace"
        command = [TACHO, "run", "-q", "--force", "-i", "50ms", "-m", words, "-o", folder / "a.tacho", "--", "sleep", "0.2"]
        subprocess.run(["strace", "-f", "-e", "trace=open,openat,openat2", "-o", log, *command], check=True)
        lines = log.read_text(errors="replace").splitlines()
        own = lines[0].split()[0]
        names = (re.search(r'"([^"]*)"', line) for line in lines if line.split()[0] == own)
        # The user's settings and our control group have names that differ from test to test.
        changing = re.compile(r".*/tacho/config|tacho-\d+|.*/tacho-\d+/[\w-]+\.lost|.*/tacho/[\w-]+\.lost|")
        names = (name[1] for name in names if name and not changing.fullmatch(name[1]))
        return {re.sub(r"^/?proc/\d+", "proc/PID", name) for name in names}

    return opened


@pytest.fixture(scope="module")
def nothing(trace):
    return trace("none")


def test_nothing_asked_for_is_nothing_opened(nothing):
    assert "proc/self/status" in nothing, "the trace shows nothing"
    assert not [name for name in nothing if SOURCES.search(name)]


@pytest.mark.parametrize("choice", CHOICES)
def test_only_its_own_files(trace, nothing, choice):
    more = trace(f"none,+{choice}") - nothing
    assert not [name for name in more if not re.fullmatch(CHOICES[choice], name)], more


def test_processes_alone_open_nothing_of_the_node(trace, nothing):
    """And the other way round: the node alone opens nothing of processes that is not needed to follow them."""
    more = trace("none,+process") - nothing
    assert {"proc/PID/io", "proc/PID/statm", "proc/PID/schedstat"} <= more
    assert not [name for name in more if name.startswith(("sys/", "proc/net", "/sys/"))]
    node = trace("all,-process") - nothing
    assert {"proc/vmstat", "proc/diskstats"} <= node
    assert not node & {"proc/PID/io", "proc/PID/statm", "proc/PID/schedstat", "proc/PID/smaps_rollup"}
