"""A tacho whose file has rights that its user has not: they are for measuring, and nothing else has them."""

import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest
from recorder import TACHO, children, name, need_mounts, run, show, until

NOBODY = 65534
CAPS = {"dac_override": 1, "dac_read_search": 2, "net_admin": 12, "sys_ptrace": 19, "sys_nice": 23, "perfmon": 38}
GRANTED = ["net_admin", "sys_ptrace", "dac_read_search", "perfmon"]
INTRUDER = Path("tests/fakes/libintruder.so")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="giving capabilities to files needs root")


def mask(names):
    return sum(1 << CAPS[each] for each in names)


def nice(pid):
    return os.getpriority(os.PRIO_PROCESS, pid)


class Place:
    """A folder of root's with a tacho in it, and one of the user's."""

    def __init__(self, folder):
        self.root = Path(folder)
        self.root.chmod(0o755)
        self.tacho = self.root / "tacho"
        shutil.copy(TACHO, self.tacho)
        self.tacho.chmod(0o755)
        self.user = self.root / "user"
        self.user.mkdir()
        os.chown(self.user, NOBODY, NOBODY)
        self.closed = self.root / "closed"
        self.closed.mkdir(mode=0o700)

    def grant(self, names, effective):
        """As setcap(8) does: revision 2 of the attribute."""
        bits = mask(names)
        value = struct.pack("<5I", 0x02000000 | effective, bits & 0xFFFFFFFF, 0, bits >> 32, 0)
        try:
            os.setxattr(self.tacho, "security.capability", value)
        except OSError as error:
            pytest.skip(f"no file capabilities here: {error}")
        status = self.run("run", "-q", "-o", "try.tacho", "--", "true")
        assert status.returncode == 0, status.stderr

    def run(self, *words, **env):
        """By an ordinary user; what he chooses of the environment."""
        return subprocess.run(**self.how(words, env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def start(self, *words, **env):
        return subprocess.Popen(**self.how(words, env), stdout=subprocess.DEVNULL)

    def how(self, words, env):
        whole = {"PATH": os.environ["PATH"], "HOME": str(self.user), **{key: str(env[key]) for key in env}}
        return {
            "args": [self.tacho, *map(str, words)],
            "env": whole,
            "cwd": self.user,
            "stdin": subprocess.DEVNULL,
            "user": NOBODY,
            "group": NOBODY,
            "extra_groups": [],
        }


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        if place.run("--version").returncode != 0:
            pytest.skip(f"an ordinary user cannot run {TACHO}")
        yield place


@pytest.fixture
def intruder(place):
    """The library under every name that is looked for, in a folder of the user's."""
    builds = [Path(TACHO).parent, Path(__file__).resolve().parents[2] / "build"]
    found = [build / INTRUDER for build in builds if (build / INTRUDER).exists()]
    if not found:
        pytest.skip(f"{INTRUDER} was not built")
    for each in ("libnvidia-ml.so.1", "librocm_smi64.so", "libpfm.so.4", "intruder.so"):
        shutil.copy(found[0], place.user / each)
        (place.user / each).chmod(0o755)
    return place.user / "intruder.so"


@pytest.mark.parametrize("effective", [0, 1], ids=["permitted", "effective"])
def test_no_variable_brings_code_to_the_rights(place, intruder, effective):
    place.grant(GRANTED, effective)
    marker = place.user / "marker"
    events = place.user / "events"
    events.mkdir()
    (events / "mine.txt").write_text("nonsense\n")
    config = place.user / ".config" / "tacho"
    config.mkdir(parents=True)
    (config / "config").write_text(f"output = {place.user}/from-config.tacho\ninterval = nonsense\n")
    for helper in ("tacho-report", "tacho-mine", "scontrol"):
        program = place.user / helper
        program.write_text(f"#!/bin/sh\necho {helper} >>{marker}\n")
        program.chmod(0o755)
    env = {
        "INTRUDER": marker,
        "TACHO_NVML": intruder,
        "TACHO_ROCM": intruder,
        "TACHO_EVENTS": events,
        "TACHO_OUTPUT": place.user / "from-variable.tacho",
        "LD_PRELOAD": intruder,
        "LD_AUDIT": intruder,
        "LD_LIBRARY_PATH": place.user,
        "XDG_CONFIG_HOME": place.user / ".config",
        "TMPDIR": place.user,
        "PATH": f"{place.user}:/usr/bin:/bin",
        "GCONV_PATH": place.user,
        "LOCPATH": place.user,
        "SLURM_JOB_ID": "1",
    }
    done = place.run("run", "-q", "-m", "perf,gpu,membw", "-e", "nonsense_event", "--", "/bin/true", **env)
    done = place.run("run", "-q", "-m", "gpu,membw", "-i", "20ms", "--", "/bin/sleep", "0.1", **env)
    assert done.returncode == 0, done.stderr
    assert b"config" not in done.stderr
    for words in (["doctor", "--no-cost"], ["metrics", "--events"], ["mine"], ["attach", "--duration", "50ms", "job:1"]):
        place.run(*words, **env)
    # The job itself loads what its user wants, with what rights the user has: AT_SECURE 0, no capability.
    loaded = marker.read_text().splitlines()
    assert loaded and set(loaded) == {f"0 0 {NOBODY}"}
    made = {path.name for path in place.user.glob("*.tacho")}
    assert not made & {"from-config.tacho", "from-variable.tacho"}, made
    assert len(made) >= 2  # the trial's, and that of sleep under its preset name


def test_a_vendors_library_is_loaded_without_rights(place, intruder):
    """Also one that root installed: it reads an environment that the user chose."""
    need_mounts()
    place.grant(GRANTED, 1)
    library, cache, marker = place.root / "lib", place.root / "ld.so.cache", place.user / "marker"
    library.mkdir()
    shutil.copy(intruder, library / "libnvidia-ml.so.1")
    script = f"""
        ldconfig -C {cache} {library} && mount --bind {cache} /etc/ld.so.cache || exit 77
        mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && touch /dev/nvidiactl || exit 77
        exec "$@"
    """
    user = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    words = ["run", "-q", "-i", "20ms", "-o", "a.tacho", "--", "sh", "-c", f"until [ -s {marker} ]; do sleep 0.01; done"]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *user, place.tacho, *words],
        env={"PATH": os.environ["PATH"], "INTRUDER": str(marker)},
        cwd=place.user,
        stderr=subprocess.PIPE,
    )
    if done.returncode == 77:
        pytest.skip(f"no GPU can be pretended here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert set(marker.read_text().splitlines()) == {f"1 0 {NOBODY}"}


def test_the_job_has_no_rights_and_its_whole_environment(place):
    place.grant(GRANTED, 0)
    words = ["run", "-q", "-o", "a.tacho", "-m", "perf", "--", "/bin/sh", "-c", "grep Cap /proc/$$/status; env"]
    env = {"LD_LIBRARY_PATH": "/nowhere", "TMPDIR": place.user, "MALLOC_TRACE": "x", "EMPTY": "", "A": "b=c"}
    done = place.run(*words, **env)
    lines = done.stdout.decode().splitlines()
    caps = dict(line.split(":\t") for line in lines if line.startswith("Cap"))
    assert {caps[key] for key in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}, caps
    for key, value in env.items():
        assert f"{key}={value}" in lines


def test_the_recorder_holds_its_rights_and_uses_none_between_calls(place):
    granted = [*GRANTED, "sys_nice"]
    place.grant(granted, 1)
    tacho = place.start("run", "-q", "-i", "20ms", "-o", "a.tacho", "--", "/bin/sleep", "60")
    (job,) = until(lambda: [pid for pid in children(tacho.pid) if name(pid) == "sleep"], "the job starts")
    try:
        until(lambda: (place.user / "a.tacho").stat().st_size, "something is recorded")

        def sets():
            lines = Path(f"/proc/{tacho.pid}/status").read_text().splitlines()
            found = dict(line.split(":\t") for line in lines if line.startswith("Cap"))
            return found["CapPrm"], found["CapEff"]

        until(lambda: sets() == (f"{mask(granted):016x}", "0" * 16), "its rights are put away")
        # The kernel's word for real-time is RR, with a flag that children do not inherit it.
        until(lambda: os.sched_getscheduler(tacho.pid) & 0xFF == os.SCHED_RR or nice(tacho.pid) == -20, "it has a priority")
        assert os.sched_getscheduler(job) == os.SCHED_OTHER and nice(job) == 0
    finally:
        os.kill(job, 9)
        tacho.wait()


def test_files_are_opened_as_the_user_may(place):
    """CAP_DAC_OVERRIDE is more than anybody should give, and gives nothing."""
    place.grant([*GRANTED, "dac_override"], 1)
    secret = place.closed / "secret.tacho"
    assert run("run", "-q", "-o", secret, "--", "true").returncode == 0
    readable = place.root / "roots.tacho"
    shutil.copy(secret, readable)
    readable.chmod(0o600)
    before = sorted(place.closed.iterdir())
    done = place.run("run", "-q", "-o", place.closed / "mine.tacho", "--", "/bin/true")
    assert sorted(place.closed.iterdir()) == before
    done = place.run("run", "-q", "-f", "-o", readable, "--", "/bin/true")
    assert readable.read_bytes() == secret.read_bytes(), done.stderr
    for words in (["show"], ["check"], ["debug", "dump"], ["ls"], ["show", "--series", "tree.cores"]):
        for path in (secret, readable):
            done = place.run(*words, path)
            assert not done.stdout or b"denied" in done.stdout, (words, done.stdout)
    assert place.run("ls", place.closed).stdout == b""
    link = place.user / "link.tacho"
    link.symlink_to(place.closed / "through-link.tacho")
    place.run("run", "-q", "-f", "-o", link, "--", "/bin/true")
    assert sorted(place.closed.iterdir()) == before


def test_what_they_are_for(place):
    """Numbers of another user's process are seen with the rights, and not without; its environment never is."""
    job = subprocess.Popen(["sh", "-c", "cat /proc/self/stat; read line"], stdin=subprocess.PIPE, env={"TACHO_RECORDING": "x"})
    attach = ["attach", "-q", "-i", "20ms", "--duration", "200ms", job.pid]
    try:
        assert place.run(*attach, "-o", "without.tacho").returncode == 0
        place.grant(["sys_ptrace", "dac_read_search"], 0)
        assert place.run(*attach, "-o", "with.tacho").returncode == 0
    finally:
        job.stdin.close()
        job.wait()
    told = {}
    for which in ("with", "without"):
        done = run("show", "--csv", "--series", "proc.io.read_chars,proc.fds,proc.mem.pss", place.user / f"{which}.tacho")
        rows = [line.split(",") for line in done.stdout.decode().splitlines()]
        told[which] = {key for row in rows[1:] for key, value in zip(rows[0], row) if value}
    assert not told["without"] & {"proc.io.read_chars", "proc.fds", "proc.mem.pss"}
    assert told["with"] >= {"proc.io.read_chars", "proc.fds", "proc.mem.pss"}, told
    assert show(place.user / "with.tacho")["processes"]["seen"] >= 1


def test_set_uid_is_given_back(place):
    place.tacho.chmod(0o6755)
    script = "grep -E '^(Uid|Gid|CapPrm)' /proc/$$/status; touch by-job"
    done = place.run("run", "-q", "-o", "a.tacho", "--", "/bin/sh", "-c", script)
    assert done.returncode == 0, done.stderr
    found = dict(line.split(":\t") for line in done.stdout.decode().splitlines())
    assert found["Uid"].split() == found["Gid"].split() == [str(NOBODY)] * 4
    assert found["CapPrm"] == "0" * 16
    assert (place.user / "a.tacho").stat().st_uid == (place.user / "by-job").stat().st_uid == NOBODY
    place.run("run", "-q", "-o", place.closed / "a.tacho", "--", "/bin/true")
    assert not list(place.closed.iterdir())
