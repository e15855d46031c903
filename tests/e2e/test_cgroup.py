"""Control groups as the kernel makes them: limits that bind, jobs that run into them, and what the recording says."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from recorder import BURNERS, TACHO, dump, run, show, shown, start, until

FAST = ["-q", "-i", "50ms", "--flush", "100ms"]
MIB = 1 << 20
FILMS = Path(__file__).resolve().parent.parent / "films"


def v1_mount(controller):
    """Where the v1 hierarchy of a controller is mounted, or None."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ")[:3]
        if kind == "cgroup" and controller in options.split(",") and words.split()[3] == "/":
            return Path(words.split()[4])
    return None


class Group:
    """A control group of the test's own; what is left in it at the end is killed."""

    def __init__(self, controller, name, **limits):
        mount = v1_mount(controller)
        if os.geteuid() != 0:
            pytest.skip("needs root")
        if not mount:
            pytest.skip(f"needs a v1 hierarchy with the controller {controller}")
        self.name = f"/{name}"
        self.path = mount / name
        self.path.mkdir()
        self.inner = []
        for file, value in limits.items():
            (self.path / file.replace("_", ".", 1)).write_text(str(value))

    def below(self, name):
        self.inner.append(self.path / name)
        self.inner[-1].mkdir()
        return self.inner[-1]

    def remove(self):
        for path in [*reversed(self.inner), self.path]:
            for pid in (path / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            until(lambda path=path: not (path / "cgroup.procs").read_text(), "a group's processes end")
            until(lambda path=path: self.removed(path), "a group can be removed")

    @staticmethod
    def removed(path):
        try:
            path.rmdir()
        except OSError:
            return False
        return True


@pytest.fixture
def group(request):
    """Makes groups of this name and removes them."""
    made = []

    def make(controller, **limits):
        made.append(Group(controller, f"tacho-test-{os.getpid()}-{len(made)}", **limits))
        return made[-1]

    yield make
    for one in made:
        one.remove()


def enter(*groups, user=None):
    """For preexec_fn: into the groups, and another user's."""

    def enter_now():
        for one in groups:
            path = one if isinstance(one, Path) else one.path
            (path / "cgroup.procs").write_text("0")
        if user:
            os.setgid(user)
            os.setuid(user)

    return enter_now


def groups_of(recording):
    """The instances of the collector by name: what is said of each, and all values that each metric had."""
    records = dump(recording)
    sets = next(r["sets"] for r in records if r["type"] == "schema")
    number = next(i for i, s in enumerate(sets) if s["name"] == "cgroup")
    names = [m["name"] for m in sets[number]["metrics"]]
    by_id = {}
    for r in records:
        if r["type"] == "instance" and r["set"] == number:
            by_id.setdefault(r["id"], {"about": dict(r["pairs"]), "values": {n: [] for n in names}})
        for row in r["rows"] if r["type"] == "tick" else []:
            if row["set"] != number:
                continue
            for i, (name, cell) in enumerate(zip(names, row["cells"])):
                if row["valid"] >> i & 1:
                    by_id[row["id"]]["values"][name].append(cell)
    return {one["about"]["name"]: one for one in by_id.values()}


def job_waiting_for(go, command):
    """A shell that runs COMMAND once the file GO is there."""
    return ["sh", "-c", f"until [ -e {go} ]; do sleep 0.02; done; {command}"]


def run_in(groups, command, recording, tmp_path, then=lambda: None, **kwargs):
    """Records COMMAND, which begins when the recording knows the job's group. Returns how the recorder ended."""
    go = tmp_path / "go"
    tacho = start(
        "run", *FAST, "-o", recording, "--", *job_waiting_for(go, command), preexec_fn=enter(*groups, **kwargs)
    )
    try:
        until(lambda: shown(recording).get("cgroup", {}).get("path"), "a group")
        go.touch()
        then()
        return tacho.wait()
    finally:
        tacho.kill()
        tacho.wait()


def test_a_job_that_is_killed_at_its_limit(tmp_path, group):
    limit = 64 * MIB
    memory = group("memory", memory_limit_in_bytes=limit)
    recording = tmp_path / "run.tacho"
    command = f"echo 1000 >/proc/self/oom_score_adj; exec {BURNERS}/mem private 300 1"
    assert run_in([memory], command, recording, tmp_path) == -signal.SIGKILL
    says = show(recording)
    assert says["cgroup"]["path"] == memory.name
    assert says["cgroup"]["oom_kills"] == 1
    assert limit - MIB <= says["cgroup"]["peak_bytes"] <= limit
    assert says["limits"]["memory_bytes"] == limit
    assert says["limits"]["memory_source"] == f"cgroup {memory.name} memory.limit_in_bytes"
    own = groups_of(recording)[memory.name]
    assert own["about"]["own"] == "1"
    assert own["values"]["cgroup.memory.limit"][-1] == limit
    assert own["values"]["cgroup.memory.max_hits"][-1] > own["values"]["cgroup.memory.max_hits"][0]


def test_a_limit_further_up(tmp_path, group):
    memory = group("memory", memory_limit_in_bytes=512 * MIB)
    inner = memory.below("inner")
    recording = tmp_path / "run.tacho"
    assert run_in([inner], f"exec {BURNERS}/mem private 50 0.2", recording, tmp_path) == 0
    says = show(recording)
    assert says["cgroup"]["path"] == f"{memory.name}/inner"
    assert says["limits"]["memory_bytes"] == 512 * MIB
    assert says["limits"]["memory_source"] == f"cgroup {memory.name} memory.limit_in_bytes"
    found = groups_of(recording)
    assert set(found) == {memory.name, f"{memory.name}/inner"}
    assert "apart" in found[memory.name]["about"]
    assert found[memory.name]["values"]["cgroup.memory.limit"][-1] == 512 * MIB
    assert not found[f"{memory.name}/inner"]["values"]["cgroup.memory.limit"]
    assert found[f"{memory.name}/inner"]["values"]["cgroup.memory.peak"][-1] > 50 * MIB


def test_a_target_has_the_limits_of_its_group(tmp_path, group):
    """Of a control group and of a process within it, those of the group and of what is above it; of others, theirs."""
    memory = group("memory", memory_limit_in_bytes=512 * MIB)
    inner = memory.below("inner")
    recording = tmp_path / "a.tacho"
    within, other = (subprocess.Popen(["sleep", "1000"]) for _ in range(2))
    try:
        (inner / "cgroup.procs").write_text(str(within.pid))
        targets = [f"other={other.pid}", f"within={within.pid}", f"box=cgroup:{memory.name}/inner"]
        recorder = start("attach", *FAST, "-o", recording, *targets)
        until(lambda: len(shown(recording).get("groups", {})) == 3, "all three are recorded")
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait() == 0
    finally:
        for process in (within, other):
            process.kill()
            process.wait()
    says = show(recording)
    for name in ("within", "box"):
        limits = says["groups"][name]["limits"]
        assert limits["memory_bytes"] == 512 * MIB
        assert limits["memory_source"] == f"cgroup {memory.name} memory.limit_in_bytes"
    assert says["groups"]["other"]["limits"]["memory_bytes"] == says["limits"]["memory_bytes"] > 512 * MIB


def test_a_quota(tmp_path, group):
    # So little that it is used up also where many want the CPU.
    cpu, memory = group("cpu", cpu_cfs_quota_us=5000), group("memory")
    recording = tmp_path / "run.tacho"
    assert run_in([cpu, memory], f"exec {BURNERS}/cpu 0.05", recording, tmp_path) == 0
    says = show(recording)
    assert f"the CPU quota of {cpu.name} made" in " ".join(says["notes"])
    assert says["cgroup"]["throttled_s"] > 0
    assert says["limits"]["cpus"] == pytest.approx(0.05)
    assert says["limits"]["cpus_source"] == f"cgroup {cpu.name} cpu.cfs_quota_us"
    own = next(g for g in groups_of(recording).values() if "own" in g["about"])
    assert cpu.name in (own["about"]["name"], own["about"].get("cpu"))
    assert own["values"]["cgroup.cpu.quota"][-1] == 50
    throttled = own["values"]["cgroup.cpu.throttled"]
    assert throttled == sorted(throttled) and throttled[-1] > throttled[0]
    assert own["values"]["cgroup.cpu.throttled_periods"][-1] > 0


def test_a_limit_of_processes(tmp_path, group):
    pids = group("pids", pids_max=12)
    recording = tmp_path / "run.tacho"
    run_in([pids], "i=0; while [ $i -lt 20 ]; do sleep 0.3 & i=$((i+1)); done; wait", recording, tmp_path)
    own = next(g for g in groups_of(recording).values() if "own" in g["about"])
    assert pids.name in (own["about"]["name"], own["about"].get("pids"))
    assert own["values"]["cgroup.pids.limit"][-1] == 12
    assert 0 < max(own["values"]["cgroup.pids.current"]) <= 12
    assert own["values"]["cgroup.pids.max_hits"][-1] > 0


def test_a_set_of_cpus(tmp_path, group):
    cpuset = group("cpuset")
    (cpuset.path / "cpuset.mems").write_text("0")
    (cpuset.path / "cpuset.cpus").write_text("0")
    recording = tmp_path / "run.tacho"
    assert run_in([cpuset], "true", recording, tmp_path) == 0
    says = show(recording)
    assert says["limits"]["cpus"] == 1
    if os.cpu_count() > 1:
        assert says["limits"]["cpus_source"] == f"cpuset {cpuset.name}"


def test_an_affinity(tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    recording = tmp_path / "run.tacho"
    one = min(os.sched_getaffinity(0))
    done = run("run", *FAST, "-o", recording, "--", "true", preexec_fn=lambda: os.sched_setaffinity(0, {one}))
    assert done.returncode == 0, done.stderr
    says = show(recording)
    assert says["limits"]["cpus"] == 1
    assert says["limits"]["cpus_source"] == "affinity"


def test_a_user_without_rights(group):
    memory = group("memory", memory_limit_in_bytes=256 * MIB)
    open_to_all = Path(tempfile.mkdtemp(dir="/tmp"))
    open_to_all.chmod(0o777)
    recording = open_to_all / "run.tacho"
    try:
        subprocess.run([TACHO, "--version"], user=65534, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a binary that every user may run")
    try:
        assert run_in([memory], f"exec {BURNERS}/mem private 40 0.2", recording, open_to_all, user=65534) == 0
        says = show(recording)
    finally:
        shutil.rmtree(open_to_all)
    assert says["cgroup"]["path"] == memory.name
    assert says["cgroup"]["peak_bytes"] > 40 * MIB
    assert says["cgroup"]["oom_kills"] == 0
    assert says["limits"]["memory_bytes"] == 256 * MIB


def test_a_job_that_enters_a_group_later(tmp_path, group):
    memory = group("memory", memory_limit_in_bytes=256 * MIB)
    recording = tmp_path / "run.tacho"
    entered = tmp_path / "entered"
    # Where it is now is asked at every tick at first, then now and then: it stays until that is known.
    command = f"echo 0 >{memory.path}/cgroup.procs; {BURNERS}/mem private 40 0; until [ -e {entered} ]; do sleep 0.02; done"

    def wait_for_it():
        until(lambda: memory.name in groups_of(recording), "the new group is known")
        entered.touch()

    assert run_in([], command, recording, tmp_path, then=wait_for_it) == 0
    own = groups_of(recording)[memory.name]
    assert own["about"]["own"] == "1"
    assert own["values"]["cgroup.memory.peak"][-1] > 40 * MIB


def test_a_film_through_everything(tmp_path):
    recording = tmp_path / "film.tacho"
    done = run("debug", "play", FILMS / "cgroup-moves.txt", recording, "1s", 100)
    assert done.returncode == 0, done.stderr
    found = groups_of(recording)
    assert set(found) == {"/user.slice/session-1.scope", "/user.slice/job.scope"}
    own = found["/user.slice/job.scope"]["values"]
    assert own["cgroup.memory.oom_kill"] == [0, 1]
    assert own["cgroup.memory.peak"][-1] == 64 * MIB
    assert own["cgroup.cpu.throttled"] == [250000000, 500000000]
    assert found["/user.slice/session-1.scope"]["values"]["cgroup.cpu.usage"] == [1100000000, 2200000000]
