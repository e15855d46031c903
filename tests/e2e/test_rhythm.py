"""On an overloaded machine: samples come in time, their rates are possible, and the job does not notice.

These tests load the machine on purpose, each for some seconds.
"""

import contextlib
import csv
import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from cluster import end_leftovers
from recorder import BURNERS, TACHO, children, dump, job_of, run, show, shown, start, state, until

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


def mounts_of(kind):
    """Where hierarchies of this kind are mounted as a whole, and with which options."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words, _, rest = line.partition(" - ")
        found, _, options = rest.split(" ")[:3]
        if found == kind and words.split()[3] == "/":
            yield Path(words.split()[4]), options.split(",")


def mount_of(controller):
    """Where the v1 hierarchy of a controller is mounted; skips the test where there is none."""
    for mount, options in mounts_of("cgroup"):
        if controller in options:
            return mount
    return pytest.skip(f"needs a v1 hierarchy with the controller {controller}")


class Delegated:
    """Groups that belong to an ordinary user, for CPUs first."""

    def __init__(self, version, groups, files):
        self.version, self.groups, self.name = version, list(dict.fromkeys(groups)), groups[0].name
        for group in self.groups:
            group.mkdir()
            for path in (group, *(group / file for file in files)):
                os.chown(path, NOBODY, NOBODY)

    def remove(self):
        for group in self.groups:
            until(lambda group=group: removed(group), "a group can be removed")

    def inner(self):
        return [path for group in self.groups for path in group.iterdir() if path.is_dir()]

    def of(self, pid):
        """The group in which a process competes for CPUs."""
        lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
        return next(path for _, found, path in lines if ("cpu" in found.split(",") if self.version == "v1" else not found))


def has_cpu(mount):
    return "cpu" in (mount / "cgroup.controllers").read_text().split()


@contextlib.contextmanager
def lent_to_v2():
    """The cpu controller, from a hierarchy of v1 without groups, which gets an unused controller in its place."""
    end_leftovers()
    lender, options = next(((mount, options) for mount, options in mounts_of("cgroup") if "cpu" in options), (None, ()))
    if not lender or any(path.is_dir() for path in lender.iterdir()):
        pytest.skip("needs the cpu controller" + (", in whose hierarchy of v1 there are groups" if lender else ""))
    hierarchies = dict(line.split()[:2] for line in Path("/proc/cgroups").read_text().splitlines()[1:])
    bound = [name for name in options if name in hierarchies]
    others = [name for name in bound if name != "cpu"] or [name for name, number in hierarchies.items() if number == "0"][:1]
    if not others:
        pytest.skip("needs the cpu controller, and nothing can take its place on v1")

    def remount(names):
        return subprocess.run(["mount", "-t", "cgroup", "-o", "remount," + ",".join(names), "cgroup", lender], stderr=subprocess.PIPE, check=False)

    for _ in range(100):  # groups that were removed are there for some more moments
        done = remount(others)
        if done.returncode == 0:
            break
        time.sleep(0.05)
    if done.returncode:
        pytest.skip(f"needs the cpu controller, which v1 keeps: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        until(lambda: remount(bound).returncode == 0, "v1 has it again")


@contextlib.contextmanager
def enabled(mount):
    """In the topmost group of v2, for those below it."""
    control = mount / "cgroup.subtree_control"
    before = control.read_text().split()
    control.write_text("+cpu")
    try:
        yield
    finally:
        if "cpu" not in before:
            control.write_text("-cpu")


@pytest.fixture(params=["v1", "v2"])
def delegated(request):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    name = f"tacho-rhythm-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        if request.param == "v1":
            groups = Delegated("v1", [mount_of(controller) / name for controller in ("cpu", "cpuacct")], ["cgroup.procs", "tasks"])
        else:
            mount = next((mount for mount, _ in mounts_of("cgroup2")), None)
            if not mount:
                pytest.skip("needs a v2 hierarchy")
            if not has_cpu(mount):
                stack.enter_context(lent_to_v2())
            stack.enter_context(enabled(mount))
            groups = Delegated("v2", [mount / name], ["cgroup.procs", "cgroup.threads", "cgroup.subtree_control"])
        stack.callback(groups.remove)
        yield groups


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


def as_delegated(delegated, place):
    """For start(): an ordinary user without any priority, in groups of its own. The folder becomes that user's."""
    os.chown(place, NOBODY, NOBODY)

    def enter():
        for group in delegated.groups:
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


@pytest.mark.parametrize("killed", [False, True], ids=["ends", "killed"])
def test_job_and_recorder_compete_as_two(delegated, open_place, killed):
    """Where the cpu controller is delegated and the recorder alone, the job is born in a group of its own; on v2 the recorder
    moves to one beside it. If it is killed the job goes on, and the group that they were in takes processes again."""
    file = open_place / "two.tacho"
    with start("run", "-q", "-o", file, "--", "sleep", "100", **as_delegated(delegated, open_place)) as tacho:
        try:
            job = job_of(tacho, "sleep")
            own = f"/{delegated.name}" + ("" if delegated.version == "v1" else f"/tacho-{tacho.pid}-recorder")
            until(lambda: delegated.of(tacho.pid) == own, "the recorder is where it competes")
            assert delegated.of(job) == f"/{delegated.name}/tacho-{tacho.pid}"
            weight = "cpu.shares" if delegated.version == "v1" else "cpu.weight"
            weights = {(group / weight).read_text() for group in [*delegated.inner(), delegated.groups[0]] if (group / weight).exists()}
            assert len(weights) == 1
            if killed:
                if delegated.version == "v2":  # which has two files open: the group, and what tells that we are dead
                    until(lambda: 2 in [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in children(tacho.pid)], "a witness tidies up")
                tacho.kill()
                until(lambda: can_enter(delegated), "other processes can enter again")
                assert state(job) == "S"
                os.kill(job, signal.SIGKILL)
                return
            os.kill(job, signal.SIGTERM)
            tacho.wait()
        finally:
            tacho.kill()
    assert delegated.inner() == []


def can_enter(delegated):
    try:
        with subprocess.Popen(["sleep", "0"], preexec_fn=lambda: [(group / "cgroup.procs").write_text("0") for group in delegated.groups]):
            return True
    except subprocess.SubprocessError:
        return False


def test_beside_others_the_job_keeps_its_place(delegated, open_place):
    """A group weighs as one process: beside others the job would lose."""
    file = open_place / "one.tacho"
    how = as_delegated(delegated, open_place)
    with subprocess.Popen(["sleep", "100"], **how) as other:
        with start("run", "-q", "-o", file, "--", "sleep", "100", **how) as tacho:
            try:
                job = job_of(tacho, "sleep")
                until(lambda: shown(file), "there is a sample")
                assert delegated.of(tacho.pid) == f"/{delegated.name}"
                if delegated.version == "v1":
                    assert delegated.of(job) == f"/{delegated.name}"
                else:  # the job's group counts, and has no controller
                    assert not (delegated.groups[0] / "cgroup.subtree_control").read_text().strip()
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
    assert ["cpu_group", delegated.version] in sum((record["pairs"] for record in dump(file) if record["type"] == "meta"), [])
