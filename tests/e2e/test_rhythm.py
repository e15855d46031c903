"""On an overloaded machine: samples come in time, their rates are possible, and the job does not notice.

These tests load the machine on purpose, each for some seconds.
"""

import csv
import os
import resource
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from recorder import BURNERS, TACHO, dump, job_of, run, show, start, until

HOGS, SECONDS = 1000, 8


def test_keeps_its_rhythm_among_hundreds_of_hogs(tmp_path):
    """All of them start and compute at once. Where the system gives a priority, next to no tick is missed."""
    if os.geteuid() != 0:
        pytest.skip("only root is sure to get a priority")
    file = tmp_path / "hogs.tacho"
    done = run("run", "-q", "-o", file, "--", BURNERS / "hogs", HOGS, SECONDS)
    assert done.returncode == 0, done.stderr
    told = show(file)
    ticks = told["ticks"]
    assert ticks["missed"] <= 1, ticks
    assert told["processes"]["peak"] > 50, "that was no crowd"


def curve(file, metric, *options):
    done = run("show", "--series", metric, "--csv", *options, file)
    assert done.returncode == 0, done.stderr
    return [float(row[metric]) for row in csv.DictReader(done.stdout.decode().splitlines()) if row[metric]]


def test_no_curve_exceeds_what_is_possible(tmp_path):
    """One thread at 100 Hz, among others that want its CPU: the kernel books its CPU time late, and we come late as well."""
    busy = ["python3", "-c", "i = 0\nwhile i < 10_000_000: i += 1"]
    file = tmp_path / "one.tacho"
    first = ["nice", "-n", "-15"] if os.geteuid() == 0 else []  # it has a CPU most of the time
    with subprocess.Popen([BURNERS / "hogs", "4", "600"], stdout=subprocess.DEVNULL) as hogs:
        try:
            done = run("run", "-q", "-i", "10ms", "-o", file, "--", *first, *busy)
        finally:
            hogs.terminate()
    assert done.returncode == 0, done.stderr
    for metric, options in ("tree.cores", []), ("proc.cpu.cores", ["--per", "instance"]):
        cores = curve(file, metric, *options)
        assert len(cores) > 10 and max(cores) < 1.001, metric


def threads(pid):
    """By name: policy and nice value of each."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        tid = int(task.name)
        scheduling = (os.sched_getscheduler(tid), os.getpriority(os.PRIO_PROCESS, tid))
        found.setdefault((task / "comm").read_text().strip(), []).append(scheduling)
    return found


def test_only_the_sampling_thread_has_a_priority(tmp_path):
    """Neither the job nor threads that wait for a GPU's driver."""
    if os.geteuid() != 0:
        pytest.skip("only root is sure to get a priority")
    fakes = BURNERS.parent / "fakes"
    (tmp_path / "values").write_text("devices 1\n")
    environment = dict(os.environ, TACHO_NVML=str(fakes / "libnvidia-ml.so.1"), FAKE_NVML=str(tmp_path / "values"))
    with start("run", "-q", "-m", "+gpu", "-o", tmp_path / "one.tacho", "--", "sleep", "100", env=environment) as tacho:
        try:
            until(lambda: os.sched_getscheduler(tacho.pid) == os.SCHED_RR | os.SCHED_RESET_ON_FORK, "a priority")
            ours = {"priority-watch": [(os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, -20)]}
            until(lambda: threads(tacho.pid).items() >= ours.items(), "a thread that watches over it")
            until(lambda: sum(map(len, threads(tacho.pid).values())) > 2, "a thread for the GPU")
            rest = threads(tacho.pid)
            assert rest.pop("priority-watch") == ours["priority-watch"]
            rest["tacho"].remove((os.SCHED_RR | os.SCHED_RESET_ON_FORK, -20))
            for policy, nice in sum(rest.values(), []):
                assert policy in (os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE) and nice >= 0
            children = Path(f"/proc/{tacho.pid}/task/{tacho.pid}/children").read_text().split()
            [job] = [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text() == "sleep\n"]
            assert (os.sched_getscheduler(job), os.getpriority(os.PRIO_PROCESS, job)) == (os.SCHED_OTHER, 0)
        finally:
            tacho.terminate()


NOBODY = 65534


def mount_of(controller):
    """Where the v1 hierarchy of a controller is mounted; skips the test where there is none."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ")[:3]
        if kind == "cgroup" and controller in options.split(",") and words.split()[3] == "/":
            return Path(words.split()[4])
    return pytest.skip(f"needs a v1 hierarchy with the controller {controller}")


@pytest.fixture
def delegated():
    """Groups of v1 for CPUs and for their account, which belong to an ordinary user."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    made = list(dict.fromkeys(mount_of(c) / f"tacho-rhythm-{os.getpid()}" for c in ("cpu", "cpuacct")))
    for group in made:
        group.mkdir()
        for path in (group, group / "cgroup.procs", group / "tasks"):
            os.chown(path, NOBODY, NOBODY)
    yield made
    for group in made:
        until(lambda group=group: removed(group), "a group can be removed")


def removed(group):
    """Whether it is, with what is in it; what runs there is killed."""
    try:
        for path in [*group.iterdir(), group]:
            if path.is_dir():
                for pid in (path / "cgroup.procs").read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
                path.rmdir()
    except OSError:
        return False
    return True


def as_delegated(groups, place):
    """For start(): an ordinary user without any priority, in groups of its own. The folder becomes that user's."""
    os.chown(place, NOBODY, NOBODY)

    def enter():
        for group in groups:
            (group / "cgroup.procs").write_text("0")
        for limit in (resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO):
            resource.setrlimit(limit, (0, 0))
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    return {"preexec_fn": enter, "env": dict(os.environ, HOME=str(place)), "cwd": place}


@pytest.fixture
def open_place():
    """A folder that another user can reach, who can run the recorder."""
    try:
        subprocess.run([TACHO, "--version"], user=NOBODY, capture_output=True, check=True)
    except PermissionError:
        pytest.skip("another user cannot reach the executable")
    with tempfile.TemporaryDirectory(prefix="tacho-rhythm-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        yield place


def cpu_group(pid):
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return next(line.split(":", 2)[2] for line in lines if "cpu" in line.split(":")[1].split(","))


def test_job_and_recorder_compete_as_two(delegated, open_place):
    """Where the cpu controller is delegated and the recorder alone, the job is born in a group of its own."""
    file = open_place / "two.tacho"
    with start("run", "-q", "-o", file, "--", "sleep", "100", **as_delegated(delegated, open_place)) as tacho:
        try:
            job = job_of(tacho, "sleep")
            assert cpu_group(tacho.pid) == f"/{delegated[0].name}"
            assert cpu_group(job) == f"/{delegated[0].name}/tacho-{tacho.pid}"
            shares = delegated[0] / f"tacho-{tacho.pid}" / "cpu.shares"
            assert shares.read_text() == (delegated[0].parent / "cpu.shares").read_text()
            os.kill(job, signal.SIGTERM)
            tacho.wait()
        finally:
            tacho.kill()
    assert [path for group in delegated for path in group.iterdir() if path.is_dir()] == []


def test_beside_others_the_job_keeps_its_place(delegated, open_place):
    """A group weighs as one process: beside others the job would lose."""
    file = open_place / "one.tacho"
    how = as_delegated(delegated, open_place)
    with subprocess.Popen(["sleep", "100"], **how) as other:
        with start("run", "-q", "-o", file, "--", "sleep", "100", **how) as tacho:
            try:
                job = job_of(tacho, "sleep")
                assert cpu_group(job) == cpu_group(tacho.pid) == f"/{delegated[0].name}"
            finally:
                tacho.terminate()
        done = subprocess.run([TACHO, "doctor", "--json"], stdout=subprocess.PIPE, check=False, **how)
        assert b"it is not alone in its control group" in done.stdout
        other.kill()


def test_keeps_its_rhythm_without_rights_in_a_group(delegated, open_place):
    """No priority at all, but one of two."""
    file = open_place / "hogs.tacho"
    done = run("run", "-q", "-o", file, "--", BURNERS / "hogs", HOGS, SECONDS, **as_delegated(delegated, open_place))
    assert done.returncode == 0, done.stderr
    told = show(file)
    assert told["ticks"]["missed"] <= 1, told["ticks"]
    assert told["processes"]["peak"] > 50, "that was no crowd"
    assert ["cpu_group", "v1"] in sum((record["pairs"] for record in dump(file) if record["type"] == "meta"), [])
