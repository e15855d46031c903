"""Jobs of a real SLURM: `tacho attach job` finds all steps of the right one, and nothing else."""

import csv
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import recorder
from cluster import NOBODY, QUICK, Group, Slurm, ends, is_sampled, names, need_mpi, scheduler

USERS = pytest.mark.parametrize("user", [0, NOBODY], ids=["root", "nobody"])


@pytest.fixture(scope="module", params=["none", "v1"])
def slurm_cluster(request):
    """Without and with control groups."""
    need_mpi()
    it = Slurm(request.param)
    yield it
    it.down()


@pytest.fixture
def slurm(slurm_cluster):
    """No test leaves jobs to the next, also when it fails."""
    yield slurm_cluster
    jobs = slurm_cluster.run("head", "squeue", "-h", "-o", "%A").stdout.split()
    if jobs:
        slurm_cluster.cancel(*jobs)


@USERS
def test_all_steps_of_the_right_job(slurm, user):
    """Two jobs at once on one node; each recorder ends with the last process of its own."""
    first, second = slurm.submit("a", user), slurm.submit("b", user)
    slurm.until_started("a", "b")
    of_first, of_second = slurm.out / f"first-{user}.tacho", slurm.out / f"second-{user}.tacho"
    recorder_of_first = slurm.attach("node1", f"job:{first}", of_first, user=user)
    recorder_of_second = slurm.attach("node1", f"job:slurm:{second}", of_second, user=user)
    slurm.run("head", "scancel", first)
    ends(recorder_of_first)
    assert recorder_of_second.poll() is None, "it ended with another job"
    slurm.cancel(second)
    ends(recorder_of_second)
    for tag, job, recording in (("a", first, of_first), ("b", second, of_second)):
        assert names(recording) == slurm.processes(tag)
        assert scheduler(recording) == {"kind": "slurm", "job_id": job, "found_by": slurm.found_by}


def test_other_ways_of_knowing(slurm):
    """A job of somebody else's, and a node without SLURM's tools in the PATH."""
    job = slurm.submit("c")
    slurm.until_started("c")
    foreign, bare = slurm.out / "foreign.tacho", slurm.out / "bare.tacho"
    recorders = [
        slurm.attach("node1", f"job:{job}", foreign, user=NOBODY),
        slurm.attach("node1", f"job:{job}", bare, path="/nowhere"),
    ]
    slurm.cancel(job)
    for process in recorders:
        ends(process)
    assert names(foreign) == names(bare) == slurm.processes("c")
    assert scheduler(foreign)["found_by"] == slurm.found_by
    assert scheduler(bare)["found_by"] == ("cgroup" if slurm.mode == "v1" else "environment")


@USERS
def test_within_the_job_until_it_says_finished(slurm, user):
    """In the background of the batch script, which ends the recording by .ipc-JOBID while much still runs."""
    recording, go = slurm.out / f"within-{user}.tacho", slurm.out / f"go-{user}"
    job = slurm.sbatch(
        "within.sh",
        f"""
            tacho attach -q {' '.join(QUICK)} -o {recording} job &
            recorder=$!
            {slurm.sleeper("d_batch")} &
            sleeper=$!
            srun --overlap --ntasks=1 {slurm.sleeper("d_srun")} &
            until [ -e {go} ]; do sleep 0.1; done
            echo FINISHED >.ipc-$SLURM_JOB_ID
            wait $recorder
            echo $? >{recording}.status
            kill $sleeper %2
        """,
        user,
    )
    slurm.until_running("node1", "d_batch", "d_srun")
    recorder.until(lambda: {"d_batch", "d_srun"} <= set(names(recording)), "the recorder sees both steps")
    go.touch()
    slurm.has_ended(job)
    assert Path(f"{recording}.status").read_text() == "0\n"
    summary = recorder.show(recording)
    assert summary["ended"] == "until-file"
    assert summary["scheduler"] == {"kind": "slurm", "job_id": job, "found_by": slurm.found_by}
    assert set(names(recording)) == {"slurm_script", "d_batch", "d_srun", "srun", "sleep"}


def test_as_a_step_of_its_own(slurm):
    """`srun --overlap tacho attach job &`: that srun waits for the recorder, and is not of what it records."""
    recording, go = slurm.out / "step.tacho", slurm.out / "go-step"
    job = slurm.sbatch(
        "step.sh",
        f"""
            srun --overlap --ntasks=1 tacho attach -q {' '.join(QUICK)} -o {recording} job &
            {slurm.sleeper("e_batch")} &
            until [ -e {go} ]; do sleep 0.1; done
            echo FINISHED >.ipc-$SLURM_JOB_ID
            wait %1
            kill %2
        """,
    )
    slurm.until_running("node1", "e_batch")
    recorder.until(lambda: "e_batch" in names(recording), "the recorder sees the batch step")
    go.touch()
    slurm.has_ended(job)
    assert recorder.check(recording)[0] == 0
    assert set(names(recording)) == {"slurm_script", "e_batch", "sleep"}
    assert scheduler(recording)["job_id"] == job


@pytest.mark.parametrize("start", ["", "srun --overlap --ntasks=1"], ids=["in the script", "as a step"])
def test_a_script_that_waits_for_us(slurm, start):
    """`tacho attach job & work; wait`: its shell is the last process of the job, and the job ends by itself. Commands that are
    shorter than an interval do not end the recording before."""
    recording = slurm.out / f"waits-{bool(start)}.tacho"
    job = slurm.sbatch(
        "waits.sh",
        f"""
            {start} tacho attach -q {' '.join(QUICK)} -o {recording} job &
            until [ -s {recording} ]; do sleep 0.02; done
            for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.03; done
            cp /bin/sleep {slurm.bin}/w_last; {slurm.bin}/w_last 0.2
            wait
            echo $? >{recording}.status
        """,
    )
    slurm.has_ended(job)
    assert Path(f"{recording}.status").read_text() == "0\n"
    assert recorder.show(recording)["ended"] == "attach-end" and recorder.check(recording)[0] == 0
    assert "w_last" in names(recording)


def test_no_such_job(slurm):
    def refused(*words):
        done = slurm.run("node1", slurm.bin / "tacho", "attach", "--wait", "0", *words, check=False)
        assert done.returncode != 0 and not list(slurm.out.glob("no-*"))
        return done.returncode, done.stderr

    status, err = refused("-o", "no-such.tacho", "job:99999")
    assert status == 1 and "job 99999" in err
    status, err = refused("-o", "no-job.tacho", "job")
    assert status == 1 and "does not run in a batch job" in err
    status, err = refused("-o", "no-id.tacho", "job:7_1")
    assert "'7_1' is not the id of a job" in err


# ---- ranks on two nodes that tell of their phases ----

# With declarations of what it needs of Open MPI; the package with the header is large.
RANK = r"""
#include "tacho_mark.h"
extern char ompi_mpi_comm_world[];
#define WORLD ((void *)ompi_mpi_comm_world)
int MPI_Init(int *, char ***), MPI_Comm_rank(void *, int *), MPI_Barrier(void *), MPI_Finalize(void);
int main(int argc, char **argv)
{
	char data[32];
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(WORLD, &rank);
	snprintf(data, sizeof(data), "rank=%d", rank);
	tacho_phase_begin("compute", data, NULL);
	MPI_Barrier(WORLD);
	tacho_phase_end("compute", NULL);
	tacho_mark("done", data, NULL);
	return MPI_Finalize();
}
"""


@pytest.fixture(scope="module")
def two_nodes():
    need_mpi()
    it = Slurm("none", nodes=2)
    yield it
    it.down()


def test_ranks_on_two_nodes_speak(two_nodes):
    """Each rank is heard by the recorder beside it; the recordings are one run with the phases of both nodes."""
    compiler = shutil.which("cc") or pytest.skip("needs a C compiler")
    ranks, source = two_nodes.out / "ranks", two_nodes.out / "rank.c"
    source.write_text(RANK)
    header = Path(__file__).resolve().parents[2] / "include"
    subprocess.run([compiler, "-I", header, "-o", two_nodes.bin / "rank", source, "-l:libmpi.so.40"], check=True)
    job = two_nodes.sbatch(
        "ranks.sh",
        f"""
            export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
            mpirun.openmpi -np 4 --map-by ppr:2:node --oversubscribe --mca pml ob1 --mca btl tcp,self \\
                tacho run -q -o {ranks}/ -- rank >{ranks}.log 2>&1
            echo $? >{ranks}.status
            srun tacho run -q -o {ranks}.srun/run.tacho -- echo ran >{ranks}.ran 2>>{ranks}.log
        """,
        tasks=("--nodes=2", "--ntasks-per-node=2", "--overcommit"),
    )
    two_nodes.has_ended(job)
    assert Path(f"{ranks}.status").read_text() == "0\n"
    # All were given one name: each runs, and has its own file.
    assert Path(f"{ranks}.ran").read_text() == "ran\n" * 4
    srun = {file.name for file in Path(f"{ranks}.srun").iterdir()}
    assert len(srun) == 4 and "run.tacho" in srun and srun < {"run.tacho", *(f"run-rank{rank}.tacho" for rank in range(4))}
    files = sorted(ranks.iterdir())
    assert len(files) == 4
    for file in files:
        rank = int(file.stem.rpartition("rank")[2])
        events = recorder.told(file)
        assert recorder.names(events) == [("phase.begin", "compute"), ("phase.end", "compute"), ("mark", "done")]
        assert events[0]["data"] == events[2]["data"] == f"rank={rank}"
    rows = list(csv.DictReader(recorder.run("export", "--to", "csv", "-d", "events", "-o", "-", ranks).stdout.decode().splitlines()))
    assert Counter((row["host"], row["kind"]) for row in rows if row["kind"] in ("phase", "mark")) == {
        (f"node{n}", kind): 2 for n in (1, 2) for kind in ("phase", "mark")
    }
    (phase,) = recorder.show(ranks)["phases"]
    assert phase["name"] == "compute" and phase["processes"] == 4 and phase["ended"]
    assert "compute" in recorder.run("show", ranks).stdout.decode()
    assert recorder.run("report", "-o", two_nodes.out / "r.html", ranks).returncode == 0


# ---- layouts of control groups v2, on processes of ours: no SLURM runs on a machine that has v1 too ----


@pytest.mark.parametrize("group", ["job_{id}", "sXYZ{id}"], ids=["up to 25.11", "from 26.05"])
def test_control_groups_v2(tmp_path, group):
    job = str(4_000_000 + os.getpid())
    scope = "system.slice/slurmstepd.scope/" + group.format(id=job)
    groups, started = [], []
    try:
        for step, environment in (("step_batch", {"SLURM_JOB_ID": job}), ("step_0", {})):
            groups.append(Group("unified", f"{scope}/{step}/user/task_0"))
            started.append(subprocess.Popen(["sleep", "1000"], env=environment))
            groups[-1].add(started[-1].pid)
        stranger = subprocess.Popen(["sleep", "1000"])
        started.append(stranger)
        process = recorder.start("attach", "-q", *QUICK, "-o", tmp_path / "v2.tacho", f"job:{job}")
        recorder.until(lambda: is_sampled(tmp_path / "v2.tacho"), "the job is found")
        for one in started[:2]:
            one.kill()
            one.wait()
        assert process.wait(recorder.PATIENCE_S) == 0
    finally:
        for one in started:
            one.kill()
            one.wait()
        for one in reversed(groups):
            one.remove()
    summary = recorder.show(tmp_path / "v2.tacho")
    assert summary["scheduler"] == {"kind": "slurm", "job_id": job, "found_by": "cgroup"}
    assert summary["processes"]["seen"] == 2
