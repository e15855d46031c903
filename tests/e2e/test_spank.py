"""`--tacho` of srun, sbatch and salloc: the SPANK plugin in a real SLURM of two nodes."""

import os
import subprocess
from pathlib import Path

import pytest

import recorder
from cluster import NOBODY, Cluster, is_sampled, names
from test_slurm import Slurm

PLUGIN = Path(recorder.TACHO).parent / "packaging" / "slurm" / "spank_tacho.so"
NODES = ("node1", "node2")


class WithPlugin(Slurm):
    def __init__(self, mode):
        if not PLUGIN.exists():
            pytest.skip(f"{PLUGIN} is not built: libslurm-dev is missing")
        self.mode = mode
        Cluster.__init__(self, "slurm-up.sh", "2", mode, "")
        self.plugin()

    def plugin(self, tacho=None):
        """Every launch reads the file anew."""
        path = self.directory / "plugstack.conf"
        path.with_suffix(".new").write_text(f"optional {PLUGIN} tacho={tacho or self.bin / 'tacho'}\n")
        path.with_suffix(".new").rename(path)

    def recordings(self, directory):
        return {path.stem: path for path in (self.out / directory).glob("*/nodes/*.tacho")}

    def until_recorded(self, directory, *hosts):
        """All of them have processes in them."""
        def there():
            found = self.recordings(directory)
            return all(host in found and is_sampled(found[host]) for host in hosts) and found
        return recorder.until(there, f"{hosts} are recorded in {directory}")

    def until_ended(self, recordings):
        """Each has its end, by SIGTERM; the lock is gone, and so are the recorders."""
        for path in recordings.values():
            recorder.until(lambda path=path: recorder.shown(path).get("ended"), f"{path} ends")
            assert recorder.check(path)[0] == 0 and recorder.show(path)["ended"] == "signal"
        recorder.until(lambda: not list(Path("/tmp").glob(".tacho-node[12]-*")), "locks are removed")

    def states(self):
        return self.run("head", "sinfo", "-h", "-N", "-o", "%T").stdout.split()


@pytest.fixture(scope="module", params=["none", "v1"])
def cluster(request):
    it = WithPlugin(request.param)
    yield it
    it.down()


@pytest.fixture
def slurm(cluster, tmp_path):
    """A directory of its own for each test; no job and no drained node is left to the next."""
    cluster.plugin()
    cluster.work = cluster.out / tmp_path.name
    cluster.work.mkdir(mode=0o777)
    cluster.work.chmod(0o777)
    yield cluster
    jobs = cluster.run("head", "squeue", "-h", "-o", "%A").stdout.split()
    if jobs:
        cluster.cancel(*jobs)
    recorder.until(lambda: set(cluster.states()) == {"idle"}, "no node is drained")


def waiting(slurm, name="task"):
    """A step that lasts until the test has seen what it waits for: a command for srun."""
    go = slurm.work / "go"
    return go, f"until [ -e {go} ]; do {slurm.bin / name} 0.1; done; exit 7"


def srun(slurm, *words):
    return ["srun", f"--chdir={slurm.work}", *words]


def ids_of(slurm, node):
    """Of every recorder on that node: user and group ids, all four of each, and the groups."""
    status = slurm.run(node, "sh", "-c", "for p in /proc/[0-9]*; do [ \"$(cat $p/comm 2>/dev/null)\" = tacho ] && cat $p/status; done; :").stdout
    return {key: [line.split()[1:] for line in status.splitlines() if line.startswith(f"{key}:")] for key in ("Uid", "Gid", "Groups", "CapPrm")}


def test_a_job_by_sbatch(slurm):
    """Two steps on two nodes. The words of the user are taken, and those that are none of ours are not."""
    slurm.sleeper("task")
    go, step = waiting(slurm)
    words = f"-d {slurm.work}/runs  -i 100ms -o {slurm.work}/evil --now"
    job = slurm.sbatch("two.sh", f"srun -N2 sh -c '{step}'; rm {go}; touch {slurm.work}/second; srun -N2 sh -c '{step}'; exit 3", NOBODY,
                       tasks=("-N2", f"--tacho={words}"))
    slurm.until_recorded(slurm.work / "runs", *NODES)
    for node in NODES:
        ids = ids_of(slurm, node)
        assert ids["Uid"] and set(map(tuple, ids["Uid"] + ids["Gid"])) == {(str(NOBODY),) * 4}, ids
        assert set(sum(ids["Groups"], [])) <= {str(NOBODY)} and set(sum(ids["CapPrm"], [])) == {"0" * 16}
    go.touch()
    recorder.until((slurm.work / "second").exists, "the second step begins")
    slurm.until_recorded(slurm.work / "runs", *NODES, "node2-2")
    go.touch()
    slurm.has_ended(job)
    found = slurm.recordings(slurm.work / "runs")
    slurm.until_ended(found)
    assert found.keys() == {*NODES, "node2-2"}, "the batch step keeps the first node's recorder"
    assert not (slurm.work / "evil").exists()
    for path in found.values():
        assert os.stat(path).st_uid == NOBODY
        said = recorder.show(path)
        assert said["scheduler"]["job_id"] == job and said["interval_s"] == 0.1
        assert names(path)["task"] > 0
    assert "JobState=FAILED" in slurm.run("head", "scontrol", "show", "job", job).stdout, "its own exit status stays"


def test_steps_side_by_side_share_a_recorder(slurm):
    """The one that began it ends first; the other is recorded to its end."""
    first, second = slurm.work / "first", slurm.work / "second"
    slurm.sleeper("one"), slurm.sleeper("two")
    lines = [f"srun --overlap -N1 -n1 -w node2 sh -c 'until [ -e {go} ]; do {slurm.bin / name} 0.1; done' &"
             for go, name in ((first, "one"), (second, "two"))]
    text = f"{lines[0]}\nuntil [ -e {slurm.work}/both ]; do sleep 0.1; done\n{lines[1]}\nwait"
    job = slurm.sbatch("beside.sh", text, tasks=("-N2", f"--tacho=-d {slurm.work}/runs"))
    recording = slurm.until_recorded(slurm.work / "runs", "node2")["node2"]
    (slurm.work / "both").touch()
    slurm.until_running("node2", "two")
    first.touch()
    recorder.until(lambda: not slurm.run("head", "squeue", "-h", "-s", "-o", "%i", "-j", job).stdout.count(f"{job}.0"), "the first step ends")
    assert not recorder.show(recording)["ended"], "it goes on"
    recorder.until(lambda: names(recording)["two"], "the second step is recorded")
    second.touch()
    slurm.has_ended(job)
    slurm.until_ended({"node2": recording})


@pytest.mark.parametrize("how", ["srun", "salloc"])
def test_other_ways_in(slurm, how):
    slurm.sleeper("task")
    go, step = waiting(slurm)
    option = f"--tacho=-d {slurm.work}/runs"
    words = ["srun", option, "-N2", "sh", "-c", step] if how == "srun" else ["salloc", option, "-N2", "srun", "sh", "-c", step]
    job = subprocess.Popen(slurm.command("head", words, user=NOBODY), cwd=slurm.work, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = slurm.until_recorded(slurm.work / "runs", *NODES)
    go.touch()
    said = job.communicate()[0].decode()
    assert job.returncode == 7 and "error: node" in said, said
    slurm.until_ended(found)


@pytest.mark.parametrize("trouble", ["no tacho", "read-only", "relative", "foreign lock", "not asked for"])
def test_the_job_is_unharmed(slurm, trouble):
    """There is no recording, or none that can be written; the job's output and exit status are its own."""
    option = {"read-only": ["--tacho=-d /proc/runs"], "relative": ["--tacho=-d ../../../../../../proc/x -i"], "not asked for": []}.get(trouble, ["--tacho"])
    lock = []
    if trouble == "no tacho":
        slurm.plugin("/nowhere/tacho")
    if trouble == "foreign lock":  # another user knew the number of the next job
        before = int(slurm.run("head", "sbatch", "--parsable", "--hold", "--wrap=true", "--output=/dev/null").stdout)
        slurm.run("head", "scancel", before)
        lock = [Path(f"/tmp/.tacho-{node}-{NOBODY}-{before + 1}") for node in NODES]
        for path in lock:
            path.touch()
    try:
        done = slurm.run("head", *srun(slurm, *option, "-N2", "sh", "-c", "echo out; exit 5"), user=NOBODY, check=False)
        assert (done.returncode, done.stdout) == (5, "out\nout\n"), done.stderr
    finally:
        for path in lock:
            assert path.exists() and path.stat().st_uid == 0, "it is not ours to remove"
            path.unlink()
    assert not list(slurm.out.glob("*/*/nodes/*")) and not list(slurm.work.glob("**/*.tacho"))
    assert set(slurm.states()) <= {"idle", "mixed", "allocated", "completing"}
