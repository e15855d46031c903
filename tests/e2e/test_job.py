"""`tacho job`: one recorder on each node of a job, on a real SLURM of four nodes, and by stand-ins for other launchers."""

import csv
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import recorder
from cluster import Slurm, names, need_mpi, processes

QUICK = "-i 100ms --flush 100ms"
LABELS = "--system lab --partition main --env 'gcc 13'"


class Nodes(Slurm):
    """Jobs that record themselves into `runs`."""

    def __init__(self, mode, nodes):
        super().__init__(mode, nodes)
        for program in ("tacho-report", "tacho-export"):
            shutil.copy(Path(recorder.TACHO).parent / program, self.bin)
        self.runs = self.out / "runs"

    def job(self, text, *options):
        """Its id; the script's output is in OUT/ID.out and ID.err. Clusters of this machine share /tmp, and have the same names and ids."""
        (self.directory / "locks").mkdir(exist_ok=True)
        begin = f"export TMPDIR={self.directory}/locks; exec >{self.out}/$SLURM_JOB_ID.out 2>{self.out}/$SLURM_JOB_ID.err"
        script = self.script("job.sh", f"{begin}\n{text}")
        count = re.fullmatch(r"--nodes=(\d)", options[0])
        where = [f"--nodelist=node[1-{count[1]}]"] if count and len(options) < 4 else []  # the first ones, also when some are completing
        words = ["sbatch", "--parsable", "--output=/dev/null", f"--chdir={self.out}", *where, *options, script]
        return self.run("head", *words).stdout.strip()

    def said(self, job):
        return (self.out / f"{job}.out").read_text(), (self.out / f"{job}.err").read_text()

    def recordings(self, job):
        return {path.stem: path for path in (self.runs / job / "nodes").glob("*.tacho")}

    def log(self, job):
        """(level, host, message) of each line."""
        lines = (self.runs / job / "tacho.log").read_text().splitlines()
        form = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \| (\w+) \| (\S+) \| (.*)")
        return [form.fullmatch(line).groups() for line in lines]

    def until_recording(self, job, *nodes):
        def recording():
            log = self.runs / job / "tacho.log"
            return log.exists() and {host for _, host, message in self.log(job) if message == "records"} >= set(nodes)

        recorder.until(recording, f"{nodes} record job {job}")


def children_of(pid):
    """Names of its children."""
    return subprocess.run(["ps", "-o", "comm=", "--ppid", str(pid)], stdout=subprocess.PIPE, text=True).stdout.split()


def run_json(path):
    return json.loads((path / "run.json").read_text())


def are_whole(recordings, *nodes):
    """One recording for each node, each with its end mark and nothing damaged."""
    assert set(recordings) == set(nodes)
    for path in recordings.values():
        assert recorder.check(path)[0] == 0, path


def has_tree(run, job, nodes):
    """What --report, --export and --verbose leave."""
    assert (run / f"job-report-{job}.pdf").read_bytes().startswith(b"%PDF")
    assert "node by node" in (run / "report.html").read_text()
    assert (run / "plots" / "cpu-nodes.png").exists() and (run / "plots" / "cpu-node1.svg").exists()
    summary = json.loads((run / "metrics" / "summary.json").read_text())
    assert [node["host"] for node in summary["nodes"]] == nodes
    assert [path.name for path in sorted((run / "configs").iterdir())] == [f"{i}-{node}.txt" for i, node in enumerate(nodes, 1)]
    with open(run / "exports" / "tree.csv") as table:
        assert {row["host"] for row in csv.DictReader(table)} == set(nodes)
    assert (run / "exports" / "process.parquet").read_bytes().startswith(b"PAR1")


@pytest.fixture(scope="module")
def cluster():
    """With a job that its time limit is going to end: SLURM looks for these twice a minute."""
    it = Nodes("none", 4)
    it.limited = it.job(f"tacho job -d runs {QUICK} -- sleep 1000", "--nodes=2", "--time=1")
    it.until_recording(it.limited, "node1", "node2")
    it.run("head", "scontrol", "update", f"JobId={it.limited}", "EndTime=now")
    yield it
    it.down()


@pytest.fixture
def nodes(cluster):
    yield cluster
    jobs = set(cluster.run("head", "squeue", "-h", "-o", "%A").stdout.split()) - {cluster.limited}
    if jobs:
        cluster.cancel(*jobs)


def test_a_command(nodes):
    """All nodes are recorded, one recorder each, whatever the geometry of the job; nothing is printed on standard output and the
    status is the command's."""
    labels = {"system": "lab", "partition": "main", "env": "gcc 13"}
    work = nodes.sleeper("c_work").replace("1000", "0.5")
    job = nodes.job(
        f"tacho job -d runs {QUICK} {LABELS} --name trial -v --report --export csv,parquet -- srun sh -c '{work}; echo ran; exit 3'; echo $? >status",
        "--nodes=3", "--ntasks-per-node=2", "--overcommit",
    )
    nodes.has_ended(job)
    out, err = nodes.said(job)
    assert (nodes.out / "status").read_text() == "3\n"
    assert out == "ran\n" * 6
    assert f"recorded 3 of 3 nodes: tacho show {nodes.runs / job}" in err
    are_whole(nodes.recordings(job), "node1", "node2", "node3")
    for name, path in nodes.recordings(job).items():
        assert names(path)["c_work"] == 2, name
        summary = recorder.show(path)
        assert summary["scheduler"]["job_id"] == job and summary["ended"] in ("attach-end", "until-file")
        assert summary["command"].startswith("srun ")
        # It was there before the command, and did not record itself.
        assert "tacho" not in names(path) and "signal-witness" not in names(path)
    listed = json.loads(recorder.run("ls", "--json", nodes.runs / job / "nodes").stdout)["recordings"]
    assert [one["labels"] for one in listed] == [labels] * 3
    run = run_json(nodes.runs / job)
    assert run["nodes"] == ["node1", "node2", "node3"] and run["launcher"] == "srun" and run["missing"] == []
    assert run["exit_status"] == 3 and run["job"] == job and run["name"] == "trial" and run["labels"] == labels
    assert run["start_wall_ns"] < run["end_wall_ns"]
    for node in run["nodes"]:
        states = [message for _, host, message in nodes.log(job) if host == node]
        assert states == ["the recorder has started", "records", "has ended its recording"]
    has_tree(nodes.runs / job, job, run["nodes"])


def test_clocks_are_measured(nodes):
    """Nodes of this machine have one clock: it is found to be the same, at the beginning and at the end."""
    job = nodes.job(f"tacho job -d runs {QUICK} -- sleep 1", "--nodes=2")
    nodes.has_ended(job)
    for node in ("node1", "node2"):
        points = [json.loads(line) for line in (nodes.runs / job / "clock" / f"{node}.jsonl").read_text().splitlines()]
        assert all(abs(point["offset_ns"]) <= point["bound_ns"] for point in points), points
        assert points[-1]["launcher_ns"] - points[0]["launcher_ns"] > 900_000_000


def test_in_the_background_over_gaps(nodes):
    """`tacho job & …; wait`: steps on other nodes that come after a pause are recorded, and the job ends by itself."""
    first, last = (nodes.sleeper(name).replace("1000", "0.3") for name in ("b_first", "b_last"))
    job = nodes.job(
        f"""
            tacho job -d runs {QUICK} &
            until grep -qs 'node4 | records' runs/$SLURM_JOB_ID/tacho.log; do sleep 0.1; done
            srun --overlap --nodes=1 --ntasks=1 --nodelist=node3 {first}
            sleep 1
            srun --overlap --nodes=1 --ntasks=1 --nodelist=node3 {last}
            wait
            echo $? >status
        """,
        "--nodes=4",
    )
    nodes.has_ended(job)
    assert (nodes.out / "status").read_text() == "0\n" and nodes.said(job) == ("", "")
    recordings = nodes.recordings(job)
    are_whole(recordings, "node1", "node2", "node3", "node4")
    assert names(recordings["node3"]) == {"b_first": 1, "b_last": 1}
    assert not names(recordings["node2"]) and recorder.show(recordings["node2"])["ticks"]["taken"] > 5, "an empty node is recorded as empty"


def test_steps_and_ranks(nodes):
    """Processes are in groups by the step and the rank that started them; ranks of mpirun are MPI's, not those of its daemons."""
    need_mpi()
    work = nodes.sleeper("s_work").replace("1000", "0.5")
    job = nodes.job(
        f"""
            export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
            tacho job -q -d runs {QUICK} -- sh -c 'srun --overlap {work}; mpirun.openmpi -np 4 --map-by ppr:2:node --oversubscribe {work}'
        """,
        "--nodes=2", "--ntasks-per-node=2", "--overcommit",
    )
    nodes.has_ended(job)
    ranks = {"node1": {"rank 0", "rank 1"}, "node2": {"rank 2", "rank 3"}}
    for node, path in nodes.recordings(job).items():
        groups = recorder.show(path)["groups"]
        steps = [name for name in groups if name.startswith("step ")]
        assert set(groups) == {f"job:slurm:{job}", *steps, *ranks[node]}, node
        assert ("step batch" in steps) == (node == "node1")
        assert all(groups[name]["kind"] == name.split()[0] for name in (*steps, *ranks[node]))
        # Two of srun's step; of mpirun's one of each rank, as well.
        assert all(groups[rank]["processes"]["seen"] == 2 for rank in ranks[node])
        work_rows = [row for row in processes(path) if row["name"] == "s_work"]
        assert len(work_rows) == 4 and all("rank" in row["groups"] for row in work_rows)
    assert "balance" in recorder.run("show", nodes.runs / job).stdout.decode()


@pytest.mark.parametrize("how", ["scancel", "finished", "kill"])
def test_the_end_from_outside(nodes, how):
    """Every recording has its end mark when the job is cancelled, says FINISHED, or the launcher gets a signal."""
    job = nodes.job(
        f"tacho job -d runs {QUICK} & echo $! >launcher; srun --overlap {nodes.sleeper('e_work')} & wait %1; echo over >>ended-$SLURM_JOB_ID; wait",
        "--nodes=3", "--ntasks-per-node=1",
    )
    nodes.until_recording(job, "node1", "node2", "node3")
    for node in ("node1", "node2", "node3"):
        recorder.until(lambda: "e_work" in names(nodes.recordings(job)[node]), f"{node} has the work")
    if how == "scancel":
        nodes.run("head", "scancel", job)
        nodes.has_ended(job)
    else:
        if how == "finished":
            (nodes.out / f".ipc-{job}").write_text("FINISHED\n")
        else:
            nodes.run("node1", "kill", (nodes.out / "launcher").read_text().strip())
        recorder.until((nodes.out / f"ended-{job}").exists, "the recorders end, and the work goes on")
        assert run_json(nodes.runs / job)["missing"] == []
        nodes.cancel(job)
    are_whole(nodes.recordings(job), "node1", "node2", "node3")


def test_the_launcher_is_killed(nodes):
    """When the launcher is gone the recorders end by themselves, with their end marks."""
    job = nodes.job(f"tacho job -d runs {QUICK} & echo $! >launcher; {nodes.sleeper('k_work')}", "--nodes=3")
    nodes.until_recording(job, "node1", "node2", "node3")
    nodes.run("node1", "kill", "-KILL", (nodes.out / "launcher").read_text().strip())
    for path in nodes.recordings(job).values():
        recorder.until(lambda: recorder.check(path)[0] == 0, f"{path} ends")
    nodes.cancel(job)
    are_whole(nodes.recordings(job), "node1", "node2", "node3")


def test_srun_is_killed(nodes):
    """It kills its tasks at once: the recorders of other nodes are started again, beside what they had written."""
    job = nodes.job(f"tacho job -q -d runs {QUICK} -- sh -c 'until [ -e go ]; do sleep 0.1; done'", "--nodes=2")
    nodes.until_recording(job, "node1", "node2")
    nodes.run("node1", "pkill", "-f", f"^srun .*/runs/{job} ")
    recorder.until(lambda: "node2-2" in nodes.recordings(job), "it is started again")
    nodes.until_recording(job, "node1", "node2")
    (nodes.out / "go").touch()
    nodes.has_ended(job)
    recordings = nodes.recordings(job)
    assert recorder.show(recordings.pop("node2"))["ended"] is None
    are_whole(recordings, "node1", "node2-2")
    assert run_json(nodes.runs / job)["missing"] == []


def test_once_is_enough(nodes):
    """A second `tacho job` of the same job says so, and runs its command; a later one has a directory of its own."""
    job = nodes.job(
        f"""
            tacho job -q -d runs {QUICK} -- tacho job -d runs -- sh -c 'echo inner; exit 4'
            echo $? >status
            tacho job -q -d runs {QUICK} -- true
        """,
        "--nodes=2",
    )
    nodes.has_ended(job)
    out, err = nodes.said(job)
    assert (nodes.out / "status").read_text() == "4\n" and out == "inner\n"
    assert f"job {job} is being recorded already" in err
    are_whole(nodes.recordings(job), "node1", "node2")
    are_whole(nodes.recordings(f"{job}-2"), "node1", "node2")


def test_the_job_runs_in_any_case(nodes):
    """No place for the run, and a node that cannot write there: the command runs, and what is missing is said."""
    (nodes.out / "file").write_text("")
    job = nodes.job("tacho job -d file/runs -- sh -c 'echo ran; exit 5'; echo $? >status", "--nodes=2")
    nodes.has_ended(job)
    out, err = nodes.said(job)
    assert (nodes.out / "status").read_text() == "5\n" and out == "ran\n" and "the job is not recorded" in err
    nodes.run("node2", "sh", "-c", f"mkdir -p {nodes.runs}; mount --bind {nodes.runs} {nodes.runs}; mount -o remount,ro,bind {nodes.runs}")
    try:
        job = nodes.job(f"tacho job -d runs {QUICK} -- sh -c 'echo ran; exit 6'; echo $? >status", "--nodes=2")
        nodes.has_ended(job)
    finally:
        nodes.run("node2", "umount", nodes.runs)
    out, err = nodes.said(job)
    assert (nodes.out / "status").read_text() == "6\n" and out == "ran\n"
    assert "1 of 2 nodes have not begun to record: node2" in err
    are_whole(nodes.recordings(job), "node1")
    assert [missing["node"] for missing in run_json(nodes.runs / job)["missing"]] == ["node2"]
    assert any("Read-only file system" in message for _, _, message in nodes.log(job))


def test_arrays_and_components(nodes):
    array = nodes.job(f"tacho job -q -d runs {QUICK} -- true", "--nodes=1", "--array=1-2")
    nodes.has_ended(array)
    for task in ("1", "2"):
        run = run_json(nodes.runs / f"{array}_{task}")
        assert (run["array_job"], run["array_task"]) == (array, task) and len(run["nodes"]) == 1
        are_whole(nodes.recordings(f"{array}_{task}"), *run["nodes"])


def test_a_heterogeneous_job(nodes):
    """Two components, and a step over both: its parts are on all nodes, and ranks are counted through."""
    one, other = (nodes.sleeper(name).replace("1000", "0.5") for name in ("h_one", "h_other"))
    job = nodes.job(f"tacho job -q -d runs {QUICK} -- srun --nodes=2 --ntasks=2 {one} : --ntasks=1 {other}",
                    "--nodes=2", "--exclusive", ":", "--nodes=1", "--exclusive")  # fmt: skip
    nodes.has_ended(job)
    run, recordings = run_json(nodes.runs / job), nodes.recordings(job)
    are_whole(recordings, *run["nodes"])
    assert len(recordings) == 3 and run["het_job"] == run["job"] == job
    for rank, node in enumerate(run["nodes"]):
        assert names(recordings[node])["h_other" if rank == 2 else "h_one"] == 1
        assert f"rank {rank}" in recorder.show(recordings[node])["groups"]


def test_limits_of_every_node(nodes):
    """They are the job's, not those of the step in which the recorder of the node runs."""
    job = nodes.job(f"tacho job -q -d runs {QUICK} -- true", "--nodes=2", "--ntasks-per-node=2", "--mem-per-cpu=100")
    nodes.has_ended(job)
    machine = os.sysconf("SC_NPROCESSORS_ONLN")
    for node, path in nodes.recordings(job).items():
        limits = recorder.show(path)["limits"]
        assert (limits["cpus"], limits["memory_bytes"]) == (min(machine, 2), 200 << 20), (node, limits)


def test_one_of_several_tasks(nodes):
    """As the job scripts of others start their monitors: a task on each node, in the background. On real nodes the lock of one is not
    seen by the others."""
    apart = nodes.script("apart.sh", f"mkdir -p {nodes.directory}/locks/$SLURMD_NODENAME; echo export TMPDIR={nodes.directory}/locks/$SLURMD_NODENAME")
    work = nodes.sleeper("t_work").replace("1000", "0.5")
    job = nodes.job(
        f"""
            srun -n $SLURM_JOB_NUM_NODES --ntasks-per-node 1 --task-prolog={apart} tacho job -d runs {QUICK} &
            until [ $(grep -cs '| records' runs/$SLURM_JOB_ID/tacho.log) = 3 ]; do sleep 0.1; done
            srun --overlap {work}
            wait
            echo $? >status
        """,
        "--nodes=3", "--ntasks-per-node=1",
    )
    nodes.has_ended(job)
    assert (nodes.out / "status").read_text() == "0\n" and "task 2 starts no recorders" in nodes.said(job)[1]
    assert [path.name for path in nodes.runs.glob(f"{job}*")] == [job]
    are_whole(nodes.recordings(job), "node1", "node2", "node3")
    assert all(names(path)["t_work"] == 1 for path in nodes.recordings(job).values())


def test_a_script_on_another_machine(nodes):
    """`salloc script`: its shell is on none of the nodes, and waits for us in the end."""
    script = nodes.script(
        "beside.sh",
        f"""
            export TMPDIR={nodes.directory}/locks
            tacho job -d runs {QUICK} &
            until [ $(grep -cs '| records' runs/$SLURM_JOB_ID/tacho.log) = 2 ]; do sleep 0.1; done
            srun --overlap {nodes.sleeper("o_work").replace("1000", "0.5")}
            wait
            echo $SLURM_JOB_ID
        """,
    )
    (nodes.directory / "locks").mkdir(exist_ok=True)
    job = nodes.run("head", "salloc", "--nodes=2", "--nodelist=node[1-2]", script).stdout.strip()
    are_whole(nodes.recordings(job), "node1", "node2")
    assert all(names(path)["o_work"] == 1 for path in nodes.recordings(job).values())


def test_a_second_recorder_of_a_node(nodes):
    """It says so and ends well, and the recording is the first one's."""
    job = nodes.job(f"tacho job -q -d runs {QUICK} -- sh -c 'until [ -e enough ]; do sleep 0.1; done'", "--nodes=2")
    nodes.until_recording(job, "node1", "node2")
    where = f"TMPDIR={nodes.directory}/locks"
    second = nodes.run("node2", "env", where, nodes.bin / "tacho", "job", f"--on-node={nodes.runs / job}", f"--job-id=slurm:{job}", "--node-name=node2", "--")
    assert "this job is being recorded on this node already" in second.stdout
    (nodes.out / "enough").touch()
    nodes.has_ended(job)
    are_whole(nodes.recordings(job), "node1", "node2")


def test_an_old_srun(nodes):
    """Before 20.11 it had no --overlap."""
    old = nodes.directory / "old"
    old.mkdir(exist_ok=True)
    (old / "srun").write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec echo slurm 20.02.7\necho "$@" >{old}/words\nexec /usr/bin/srun "$@"\n')
    (old / "srun").chmod(0o755)
    job = nodes.job(f"PATH={old}:$PATH tacho job -q -d runs {QUICK} -- true", "--nodes=2")
    nodes.has_ended(job)
    are_whole(nodes.recordings(job), "node1", "node2")
    words = (old / "words").read_text()
    assert "--overlap" not in words and "--ntasks=1 " in words


def test_suspended_and_resumed(nodes):
    job = nodes.job(f"tacho job -q -d runs {QUICK} -- sh -c 'until [ -e resumed ]; do sleep 0.1; done'", "--nodes=2")
    nodes.until_recording(job, "node1", "node2")
    nodes.run("head", "scontrol", "suspend", job)
    recorder.until(lambda: "S" in nodes.run("head", "squeue", "-h", "-o", "%t", "-j", job).stdout, "it is suspended")
    nodes.run("head", "scontrol", "resume", job)
    (nodes.out / "resumed").touch()
    nodes.has_ended(job)
    are_whole(nodes.recordings(job), "node1", "node2")


@pytest.mark.parametrize("program", ["mpirun.openmpi", "mpiexec.mpich"])
def test_by_mpirun(nodes, program):
    """Recorders that have no pipe to the launcher speak by files. A node may call itself by a longer name than the list has."""
    need_mpi()
    nodes.run("node3", "hostname", "node3.lab")
    shims = nodes.directory / program
    shims.mkdir(exist_ok=True)
    (shims / "mpirun").write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    (shims / "mpirun").chmod(0o755)
    job = nodes.job(
        f"""
            export PATH={shims}:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
            tacho job -l mpirun -d runs {QUICK} -- srun --overlap sh -c '{nodes.sleeper("m_work").replace("1000", "0.5")}'
            echo $? >status
        """,
        "--nodes=3",
    )
    nodes.has_ended(job)
    nodes.run("node3", "hostname", "node3")
    assert (nodes.out / "status").read_text() == "0\n", nodes.said(job)
    are_whole(nodes.recordings(job), "node1", "node2", "node3")
    assert all(names(path)["m_work"] == 1 for path in nodes.recordings(job).values())
    assert run_json(nodes.runs / job)["launcher"] == "mpirun"
    assert (nodes.runs / job / "clock" / "node3.jsonl").read_text()


# How each is told where to start something: the stand-in's way to the host, its words for node1 and node2, the job's variables.
BESIDE_SLURM = {
    "pbs_tmrsh": ("pbs", "host=$1; shift", ("node1", "node2"), {"PBS_JOBID": "{id}.head", "PBS_NODEFILE": "{file}", "PBS_ENVIRONMENT": "PBS_BATCH"}),
    "pbsdsh": ("pbs", "host=$(sed -n $(($2 + 1))p {file}); shift 3", ("-n 0 --", "-n 2 --"),
               {"PBS_JOBID": "{id}.head", "PBS_NODEFILE": "{file}", "PBS_ENVIRONMENT": "PBS_BATCH"}),
    "blaunch": ("lsf", "host=$1; shift", ("node1", "node2"), {"LSB_JOBID": "{id}", "LSB_HOSTS": "node1 node1 node2"}),
    "qrsh": ("sge", "host=$2; shift 2", ("-inherit node1", "-inherit node2"), {"JOB_ID": "{id}", "SGE_ROOT": "/opt/sge", "PE_HOSTFILE": "{file}"}),
}  # fmt: skip


@pytest.mark.parametrize("program", BESIDE_SLURM)
def test_jobs_of_other_systems(nodes, tmp_path, program):
    """By stand-ins for what starts their tasks: these have sessions of their own, the job's variables, and no standard input."""
    scheduler, way, words, wanted = BESIDE_SLURM[program]
    file = tmp_path / "nodes"
    file.write_text("node1\nnode1\nnode2\n" if scheduler == "pbs" else "node1 2 all.q@node1 UNDEFINED\nnode2 1 all.q@node2 UNDEFINED\n")
    number = f"{os.getpid()}{list(BESIDE_SLURM).index(program)}"
    variables = {name: value.format(id=number, file=file) for name, value in wanted.items()}
    job = " ".join(f"{name}='{value}'" for name, value in variables.items())
    path = f"{nodes.bin}:/usr/bin:/bin"
    start = f'exec {nodes.directory}/enter $host env -i PATH={path} {job} setsid -w "$@" </dev/null'
    (tmp_path / program).write_text(f"#!/bin/sh\n{way.format(file=file)}\n{start}\n")
    (tmp_path / program).chmod(0o755)
    work = nodes.sleeper("p_work").replace("1000", "0.5")
    tasks = " ".join(f"{program} {where} {work} &" for where in words)
    done = subprocess.run(
        [nodes.bin / "tacho", "job", "-l", program, "-d", nodes.runs, *QUICK.split(), "--", "sh", "-c", f"{tasks} wait; exit 8"],
        env={**variables, "PATH": f"{tmp_path}:{path}"}, cwd=nodes.out, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert done.returncode == 8 and not done.stdout, done.stderr
    name = f"{number}.head" if scheduler == "pbs" else number
    run = run_json(nodes.runs / name)
    assert run["nodes"] == ["node1", "node2"] and run["launcher"] == program and run["missing"] == [] and run["scheduler"] == scheduler
    are_whole(nodes.recordings(name), "node1", "node2")
    for path in nodes.recordings(name).values():
        assert names(path)["p_work"] == 1 and "tacho" not in names(path)


def test_the_time_limit(nodes):
    """Runs last of those on this cluster. The recorders write their ends between the scheduler's TERM and its KILL."""
    nodes.has_ended(nodes.limited)
    are_whole(nodes.recordings(nodes.limited), "node1", "node2")
    assert all(recorder.show(path)["ended"] == "signal" for path in nodes.recordings(nodes.limited).values())
    assert run_json(nodes.runs / nodes.limited)["missing"] == []


def test_limits_are_the_jobs():
    """What the job was given on the node, not what its first step, or ours, was given."""
    it = Nodes("v1", 2)
    try:
        step = f"srun --overlap --nodes=2 --ntasks=2 --cpus-per-task=1 --mem=100 {it.sleeper('l_work').replace('1000', '0.5')}"
        job = it.job(f"tacho job -q -d runs {QUICK} -- {step}", "--nodes=2", "--ntasks-per-node=2", "--mem=300")
        it.has_ended(job)
        are_whole(it.recordings(job), "node1", "node2")
        for path in it.recordings(job).values():
            told = recorder.show(path)
            assert told["limits"]["cpus"] == 2 and told["limits"]["memory_bytes"] == 300 << 20, told["limits"]
            steps = [group["limits"] for name, group in told["groups"].items() if name.startswith("step ") and name != "step batch"]
            assert [step["cpus"] for step in steps] == [1], "of the step beside them"
            assert told["cgroup"]["path"].endswith(f"/job_{job}"), "its peak is that of all steps"
    finally:
        it.down()


def test_a_node_dies():
    """The others are recorded to the end, and the lost one is named; what it had written stays."""
    it = Nodes("none", 2)
    try:
        job = it.job(f"tacho job -d runs {QUICK} -- sh -c 'until [ -e dead ]; do sleep 0.1; done'; echo $? >status", "--nodes=2", "--no-kill")
        it.until_recording(job, "node1", "node2")
        recorder.until(lambda: recorder.shown(it.recordings(job)["node2"]).get("ticks", {"taken": 0})["taken"] > 3, "node2 has samples")
        it.run("node2", "sh", "-c", "kill -KILL -1")
        (it.out / "dead").touch()
        recorder.until((it.out / "status").exists, "the script goes on")
        assert (it.out / "status").read_text() == "0\n"
        recorder.until(lambda: "missing" in run_json(it.runs / job), "the run is closed")
        assert [missing["node"] for missing in run_json(it.runs / job)["missing"]] == ["node2"]
        assert recorder.check(it.recordings(job)["node1"])[0] == 0
        assert recorder.show(it.recordings(job)["node2"])["ticks"]["taken"] > 3
    finally:
        it.down()


def test_a_node_is_taken_away():
    """Drained, it serves the job to its end. Taken down, the job ends there and everywhere: each recording has its end mark."""
    it = Nodes("none", 2)
    try:
        job = it.job(f"tacho job -d runs {QUICK} -- sh -c 'until [ -e drained ]; do sleep 0.1; done'", "--nodes=2")
        it.until_recording(job, "node1", "node2")
        it.run("head", "scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=test")
        (it.out / "drained").touch()
        it.has_ended(job)
        are_whole(it.recordings(job), "node1", "node2")
        it.run("head", "scontrol", "update", "NodeName=node2", "State=RESUME")
        job = it.job(f"tacho job -d runs {QUICK} -- srun --overlap {it.sleeper('d_work')}", "--nodes=2", "--no-requeue")
        it.until_recording(job, "node1", "node2")
        recorder.until(lambda: all("d_work" in names(path) for path in it.recordings(job).values()), "the work is recorded")
        it.run("head", "scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=test")
        it.has_ended(job)
        recorder.until(lambda: "missing" in run_json(it.runs / job), "the run is closed")
        for path in it.recordings(job).values():
            recorder.until(lambda path=path: recorder.check(path)[0] == 0, f"{path} ends")
        are_whole(it.recordings(job), "node1", "node2")
    finally:
        it.down()


# ---- without a batch system: a stand-in for ssh, whose nodes are this machine ----

SSH = r"""#!/bin/bash
# As ssh: options, a host, one text for the shell there.
while [[ $1 == -* ]]; do [[ $1 == -o ]] && shift; shift; done
host=$1; shift
exec env ${PRELOAD:+LD_PRELOAD=$PRELOAD} HOST=$host sh -c "$*"
"""

# Clocks that are wrong: the node's name says by how much, as in ahead5 or drift50.
CLOCK = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *ts)
{
	const char *host = getenv("HOST"), *base = getenv("BASE_NS");
	int r = (int)syscall(SYS_clock_gettime, id, ts);
	long long ns = ts->tv_sec * 1000000000LL + ts->tv_nsec;

	if (r || id != CLOCK_REALTIME || !host)
		return r;
	if (!strncmp(host, "ahead", 5))
		ns += atoll(host + 5) * 1000000000LL;
	if (!strncmp(host, "drift", 5) && base)
		ns += (ns - atoll(base)) / 1000000 * atoll(host + 5);
	ts->tv_sec = ns / 1000000000LL;
	ts->tv_nsec = ns % 1000000000LL;
	return 0;
}
"""


@pytest.fixture
def by_ssh(tmp_path):
    """Runs a command on these hosts; what `tacho job` did, and the directory of the run."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)

    def run(hosts, *command, interval="100ms", **env):
        (tmp_path / "hosts").write_text("".join(f"{host} slots=4\n" for host in hosts))
        path = {"PATH": f"{ssh.parent}:{os.environ['PATH']}", **env}
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PBS", "OAR"))}
        done = recorder.run(
            "job", "-d", tmp_path / "runs", "-p", "it", "--hostfile", tmp_path / "hosts", *QUICK.split(), "-i", interval, "--", *command,
            env={**clean, **path},
        )
        return done, tmp_path / "runs" / "it"

    return run


def test_many_at_once(by_ssh, tmp_path):
    """256 nodes by ssh, of which so many at once as may be: each has its recording, with its name."""
    hosts = [f"n{number}" for number in range(256)]
    log = tmp_path / "runs" / "it" / "tacho.log"
    done, run = by_ssh(hosts, "sh", "-c", f"until [ $(grep -c '| records$' {log}) = 256 ]; do sleep 0.2; done; echo ran", interval="2s")
    assert done.returncode == 0 and done.stdout == b"ran\n", done.stderr
    assert run_json(run)["missing"] == [] and run_json(run)["launcher"] == "ssh"
    are_whole({path.stem: path for path in (run / "nodes").glob("*")}, *hosts)


@pytest.mark.parametrize("room", ["4k", "24k"], ids=["at once", "later"])
def test_a_full_directory(by_ssh, tmp_path, room):
    """On one node: the job runs, the other node is recorded, and what is missing is said, with the reason."""
    recorder.need_mounts()
    nodes, seen = tmp_path / "runs" / "it" / "nodes", tmp_path / "seen"
    fills = f"mount -t tmpfs -o size={room} none {nodes} && eval \"$0\""
    (tmp_path / "bin" / "ssh").write_text(SSH.replace("exec env", f"[ $host = full ] && exec unshare --mount sh -c '{fills}' \"$*\"\nexec env"))
    grows = f"i=0; until [ -e {seen} ] || [ $i = 500 ]; do i=$((i + 1)); sleep 0.01; done; exit 5"
    done, run = by_ssh(["n1", "full"], "sh", "-c", grows, interval="10ms")
    assert done.returncode == 5 and b"1 of 2 nodes have no whole recording: full" in done.stderr, done.stderr
    assert recorder.check(run / "nodes" / "n1.tacho")[0] == 0
    ((node, why),) = [missing.values() for missing in run_json(run)["missing"]]
    assert node == "full" and ("No space left on device" if room == "4k" else "its recording is incomplete: the disk was full") in why
    assert f"1 of 2 nodes is missing: full ({why})" in " ".join(recorder.run("show", run).stdout.decode().split())


def test_a_node_that_hangs(by_ssh, tmp_path):
    """The command waits for it ten seconds, and runs."""
    (tmp_path / "bin" / "ssh").write_text(SSH.replace("exec env", "[ $host = hangs ] && exec sleep 1000\nexec env"))
    done, run = by_ssh(["n1", "hangs"], "sh", "-c", "echo ran; exit 5")
    assert done.returncode == 5 and done.stdout == b"ran\n" and b"1 of 2 nodes have not begun to record: hangs" in done.stderr
    assert recorder.check(run / "nodes" / "n1.tacho")[0] == 0
    assert [missing["node"] for missing in run_json(run)["missing"]] == ["hangs"]


def test_hostile_hosts(by_ssh):
    """A file of hosts is no way to give options to ssh."""
    done, run = by_ssh(["-oProxyCommand=touch${IFS}owned", "n1"], "echo", "ran")
    assert done.returncode == 0 and done.stdout == b"ran\n"
    assert b"the job is not recorded: the nodes in" in done.stderr and not run.exists()


def test_wrong_clocks_are_found(by_ssh, tmp_path):
    """Clocks ahead by 5 s and an hour, and one that gains 50 ppm since half a day: each within what is said."""
    compiler = shutil.which("cc") or pytest.skip("needs a C compiler")
    source = tmp_path / "clock.c"
    source.write_text(CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "clock.so", source], check=True)
    half_a_day = 43_200_000_000_000
    base = time.time_ns() - half_a_day
    done, run = by_ssh(
        ["n1", "ahead5", "ahead3600", "drift50"], "sleep", "1", PRELOAD=str(tmp_path / "clock.so"), BASE_NS=str(base)
    )
    assert done.returncode == 0, done.stderr
    for host, ahead in (("n1", 0), ("ahead5", 5e9), ("ahead3600", 3600e9), ("drift50", half_a_day * 50e-6)):
        points = [json.loads(line) for line in (run / "clock" / f"{host}.jsonl").read_text().splitlines()]
        assert len(points) > 2
        for point in points:
            assert abs(point["offset_ns"] - ahead) <= point["bound_ns"] + 2e6, (host, point)
        assert min(point["bound_ns"] for point in points) < 1e9
    told = recorder.show(run)
    assert told["wall_s"] < 600, "nodes are put on the launcher's clock"
    clocks = {Path(node["path"]).stem: node["clock"] for node in told["nodes"]}
    for host, ahead in (("n1", 0), ("ahead5", 5), ("ahead3600", 3600), ("drift50", half_a_day * 50e-15)):
        assert abs(clocks[host]["offset_s"] - ahead) <= clocks[host]["bound_s"] + 2e-3, clocks
    assert b"corrected by" in recorder.run("show", run).stdout


def test_told_to_end_before_the_command(by_ssh, tmp_path):
    """A signal while the recorders begin: the command does not run, and tacho ends by the signal."""
    (tmp_path / "bin" / "ssh").write_text("#!/bin/sh\ntouch called; exec sleep 1000\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PBS", "OAR"))}
    (tmp_path / "hosts").write_text("n1\nn2\n")
    process = recorder.start(
        "job", "-q", "-d", "runs", "-p", "it", "--hostfile", "hosts", "--", "touch", "ran",
        env={**clean, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}, cwd=tmp_path,
    )  # fmt: skip
    recorder.until((tmp_path / "called").exists, "the recorders are being started")
    process.terminate()
    assert process.wait(recorder.PATIENCE_S) == -15 and not (tmp_path / "ran").exists()


def test_limits_of_the_command(tmp_path):
    """It has the limit of open files that it would have without us."""
    done = subprocess.run(
        ["sh", "-c", f"ulimit -S -n 100; {recorder.TACHO} job -q -d {tmp_path} -p it -- sh -c 'ulimit -S -n'"], stdout=subprocess.PIPE
    )
    assert done.stdout == b"100\n"


def test_names_of_options(tmp_path):
    """Those of perfmon, whose job scripts need not be changed but for the program."""
    words = ["--save_dir", tmp_path, "--prefix=it", "--launcher", "ssh", "--sampling_freq", "2", "--check_point", "900", "--export", "csv"]
    labels = ["--system", "a", "--partition", "b", "--env", "c", "--name", "d", "--verbose", "--gen_report"]
    done = recorder.run("job", *words, *labels, "--hostfile=/dev/null", "--", "true", cwd=tmp_path)
    assert done.returncode == 0 and b"there is no node in /dev/null" in done.stderr
    done = recorder.run("job", "--save_dir", tmp_path, "-p", "it", "--sampling_freq=2", "--check_point=900", "--gen_report", "--", "true", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (recording,) = (tmp_path / "it" / "nodes").iterdir()
    assert recorder.show(recording)["interval_s"] == 2 and (tmp_path / "it" / "report.html").exists()


def test_a_directory_of_another_user(tmp_path):
    """Names of runs can be foreseen: what others have made there is not used."""
    if os.getuid() != 0:
        pytest.skip("only root can make directories of others")
    (tmp_path / "it").mkdir()
    os.chown(tmp_path / "it", 65534, 65534)
    assert recorder.run("job", "-q", "-d", tmp_path, "-p", "it", "--", "true").returncode == 0
    assert not list((tmp_path / "it").iterdir()) and run_json(tmp_path / "it-2")["exit_status"] == 0


def test_this_machine_alone(tmp_path):
    """In no job it is a run of one node. Signals are the command's, and tacho ends as the command does."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PBS", "OAR"))}
    process = recorder.start("job", "-q", "-d", tmp_path, "-p", "one", *QUICK.split(), "--", "sleep", "1000", env=clean)
    recorder.until(lambda: (tmp_path / "one" / "tacho.log").exists() and "records" in (tmp_path / "one" / "tacho.log").read_text(), "it records")
    recorder.until(lambda: "sleep" in children_of(process.pid), "the command runs")
    recorder.until(lambda: any(names(path) for path in (tmp_path / "one" / "nodes").glob("*")), "it is in the recording")
    process.terminate()
    assert process.wait(recorder.PATIENCE_S) == -15
    (recording,) = (tmp_path / "one" / "nodes").glob("*.tacho")
    assert recorder.check(recording)[0] == 0 and run_json(tmp_path / "one")["exit_status"] == 143
    assert names(recording) == {"sleep": 1}
