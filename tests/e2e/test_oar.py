"""Jobs of a real OAR: `tacho attach job` finds what the right one runs, its oarsh and MPI ranks included."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import recorder
from cluster import QUICK, Cluster, ends, names, need_mpi, scheduler

OARUSER = 3000


class Oar(Cluster):
    def __init__(self):
        super().__init__("oar-up.sh", "2")

    def oarsub(self, name, text, resources="core=1"):
        return self.oarsub_script(self.script(name, text), resources)

    def oarsub_script(self, script, resources):
        words = [self.directory / "oarsub", "-l", f"{resources},walltime=0:10:0", script]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        match = re.search(r"^OAR_JOB_ID=(\d+)$", done.stdout, re.M)
        assert match, done.stdout
        return match[1]

    def submit(self, tag):
        """A job with all ways to start something, which sleeps until it is deleted."""
        return self.oarsub(
            f"{tag}.sh",
            f"""
                {self.sleeper(tag + "_batch")} &
                oarsh node1 {self.sleeper(tag + "_oarsh")} &
                mpirun.openmpi --oversubscribe --host localhost:2 -np 2 {self.sleeper(tag + "_ompi")} &
                mpiexec.mpich -launcher ssh -launcher-exec oarsh -f $OAR_NODEFILE -n 2 {self.sleeper(tag + "_mpich")} &
                wait
            """,
        )

    @staticmethod
    def sleepers(tag):
        return Counter({f"{tag}_batch": 1, f"{tag}_oarsh": 1, f"{tag}_ompi": 2, f"{tag}_mpich": 2})

    def delete(self, *jobs):
        self.run("head", "oardel", *jobs)

    def has_ended(self, *jobs):
        for job in jobs:
            recorder.until(
                lambda: re.search("Terminated|Error", self.run("head", "oarstat", "-s", "-j", job).stdout),
                f"job {job} ends",
            )


@pytest.fixture(scope="module")
def oar():
    need_mpi()
    it = Oar()
    yield it
    it.down()


def test_the_right_job(oar):
    """Two jobs at once on one node, watched by their user and by root; each recorder ends with its own."""
    jobs = {"a": oar.submit("a"), "b": oar.submit("b")}
    oar.until_running("node1", *(name for tag in jobs for name in oar.sleepers(tag).elements()))
    recordings = {tag: oar.out / f"{tag}.tacho" for tag in jobs}
    recorders = {
        "a": oar.attach("node1", f"job:oar:{jobs['a']}", recordings["a"], user=OARUSER),
        "b": oar.attach("node1", f"job:{jobs['b']}", recordings["b"]),
    }
    oar.delete(jobs["a"])
    ends(recorders["a"])
    assert recorders["b"].poll() is None, "it ended with another job"
    oar.delete(jobs["b"])
    ends(recorders["b"])
    rest = Counter({"ssh": 1, "mpirun.openmpi": 1, "mpiexec.mpich": 1, "hydra_pmi_proxy": 1})
    for tag, other, recording in (("a", "b", recordings["a"]), ("b", "a", recordings["b"])):
        # Those of the first sample: to end a job OAR starts tools of its own within it.
        assert names(recording, from_start=True) == oar.sleepers(tag) + rest + Counter({f"{tag}.sh": 1})
        assert not [name for name in names(recording) if name.startswith(f"{other}_")]
        assert scheduler(recording) == {"kind": "oar", "job_id": jobs[tag], "found_by": "cgroup"}


def test_within_the_job_until_it_says_finished(oar):
    recording, go = oar.out / "within.tacho", oar.out / "go"
    job = oar.oarsub(
        "within.sh",
        f"""
            tacho attach -q {' '.join(QUICK)} -o {recording} job &
            recorder=$!
            {oar.sleeper("c_batch")} &
            oarsh node1 {oar.sleeper("c_oarsh")} &
            until [ -e {go} ]; do sleep 0.1; done
            echo FINISHED >.ipc-$OAR_JOB_ID
            wait $recorder
            echo $? >{recording}.status
        """,
    )
    recorder.until(lambda: {"c_batch", "c_oarsh"} <= set(names(recording)), "the recorder sees both")
    go.touch()
    oar.has_ended(job)
    assert Path(f"{recording}.status").read_text() == "0\n"
    summary = recorder.show(recording)
    assert summary["ended"] == "until-file"
    assert summary["scheduler"] == {"kind": "oar", "job_id": job, "found_by": "cgroup"}
    assert {"within.sh", "c_batch", "c_oarsh"} <= set(names(recording))
    assert not {"perl", "sshd", "tacho"} & set(names(recording)), "what OAR wraps a job in, and we, are not of it"


def test_in_the_background(oar):
    """`tacho job & …; wait`: the oarsh that wait for the recorders are not of the job, and it ends by itself."""
    job = oar.oarsub("background.sh", f"""
        tacho job -d runs {' '.join(QUICK)} &
        {oar.sleeper("g_work").replace("1000", "1")}
        wait
        echo $? >background.status
    """, "nodes=2")  # fmt: skip
    oar.has_ended(job)
    assert (oar.out / "background.status").read_text() == "0\n"
    for node in ("node1", "node2"):
        assert recorder.check(oar.out / "runs" / job / "nodes" / f"{node}.tacho")[0] == 0
    assert not {"oarsh", "ssh"} & set(names(oar.out / "runs" / job / "nodes" / "node1.tacho"))


def test_all_nodes(oar):
    """`tacho job`: a recorder on each node by oarsh, and the exit status of the command."""
    work = oar.sleeper("n_work").replace("1000", "0.5")
    job = oar.oarsub(
        "nodes.sh",
        f"""
            tacho job -d runs {' '.join(QUICK)} -- sh -c 'for node in $(uniq $OAR_NODEFILE); do oarsh $node {work} & done; wait; exit 7' \\
                >nodes.out 2>nodes.err
            echo $? >nodes.status
        """,
        "nodes=2",
    )
    oar.has_ended(job)
    assert (oar.out / "nodes.status").read_text() == "7\n", (oar.out / "nodes.err").read_text()
    run = json.loads((oar.out / "runs" / job / "run.json").read_text())
    assert run["nodes"] == ["node1", "node2"] and run["launcher"] == "oarsh" and run["missing"] == []
    for node in run["nodes"]:
        recording = oar.out / "runs" / job / "nodes" / f"{node}.tacho"
        assert recorder.check(recording)[0] == 0 and names(recording)["n_work"] == 1
        assert scheduler(recording)["job_id"] == job and not {"tacho", "sshd"} & set(names(recording))
