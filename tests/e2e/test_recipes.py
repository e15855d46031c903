"""The recipes of docs/nodes.md, as they stand there: each is a job that runs, on all its nodes."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import recorder
from cluster import Slurm, names, need_mpi
from test_job import SSH
from test_oar import Oar

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "nodes.md").read_text()


def recipes(kind):
    found = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.M | re.S)
    assert found, kind
    return found


def prepare(it):
    """A directory as a user would have it: the program, and tacho in the PATH."""
    for program in ("tacho-report", "tacho-export"):
        shutil.copy(Path(recorder.TACHO).parent / program, it.bin)
    it.sleeper("simulate")
    (it.out / "simulate").write_text(f"#!/bin/sh\n{it.bin}/simulate 1.5\n")
    (it.out / "simulate").chmod(0o755)


def has_all(run, *nodes):
    """A whole recording for each node, with the program in it."""
    told = json.loads((run / "run.json").read_text())
    assert told["missing"] == [] and sorted(told["nodes"]) == sorted(nodes)
    for node in nodes:
        assert recorder.check(run / "nodes" / f"{node}.tacho")[0] == 0
        assert names(run / "nodes" / f"{node}.tacho")["simulate"] > 0, node


@pytest.fixture(scope="module")
def slurm():
    need_mpi()
    it = Slurm("none", nodes=2)
    prepare(it)
    yield it
    it.down()


def test_slurm_and_mpi(slurm):
    for number, text in enumerate(recipes("slurm")):
        script = slurm.out / f"recipe{number}.sh"
        script.write_text(text)
        env = f"PATH={slurm.bin}:/usr/bin:/bin", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
        words = ["env", *env, "sbatch", "--parsable", "--overcommit", f"--output={slurm.out}/recipe{number}.log", f"--chdir={slurm.out}", script]
        job = slurm.run("head", *words).stdout.strip()
        slurm.has_ended(job)
        has_all(slurm.out / "runs" / job, "node1", "node2")
        if "--report" in text:
            assert (slurm.out / "runs" / job / f"job-report-{job}.pdf").exists()


def test_pbs(slurm, tmp_path):
    """By a stand-in for pbs_tmrsh, on nodes of the cluster."""
    (tmp_path / "nodes").write_text("node1\nnode2\n")
    variables = {"PBS_JOBID": f"{os.getpid()}.head", "PBS_NODEFILE": str(tmp_path / "nodes"), "PBS_O_WORKDIR": str(slurm.out)}
    tmrsh = tmp_path / "pbs_tmrsh"
    job = " ".join(f"{name}={value}" for name, value in variables.items())
    tmrsh.write_text(f'#!/bin/sh\nhost=$1\nshift\nexec {slurm.directory}/enter $host env -i PATH=/usr/bin:/bin {job} setsid -w "$@" </dev/null\n')
    tmrsh.chmod(0o755)
    (text,) = recipes("pbs")
    env = {**variables, "PATH": f"{tmp_path}:{slurm.bin}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", text], env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    has_all(slurm.out / "runs" / variables["PBS_JOBID"], "node1", "node2")


def test_ssh(slurm, tmp_path):
    """By a stand-in for ssh, whose nodes are this machine."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    (ssh.parent / "mpiexec").write_text('#!/bin/sh\nexec mpiexec.mpich "$@"\n')
    (ssh.parent / "mpiexec").chmod(0o755)
    shutil.copy(slurm.out / "simulate", tmp_path)
    (tmp_path / "hosts").write_text("n1\nn2\n")
    (text,) = recipes("ssh")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PBS", "OAR"))}
    env = {**clean, "PATH": f"{ssh.parent}:{slurm.bin}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", text], env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    has_all(tmp_path / "runs" / "trial", "n1", "n2")


def test_oar():
    it = Oar()
    try:
        prepare(it)
        (text,) = recipes("oar")
        script = it.out / "recipe.sh"
        script.write_text(text.replace("#!/bin/bash\n", f"#!/bin/bash\nPATH={it.bin}:$PATH; cd {it.out}\n"))
        script.chmod(0o755)
        it.out.chmod(0o1777)
        resources = re.search(r"^#OAR -l (.*),walltime", text, re.M)[1]
        job = it.oarsub_script(script, resources)
        it.has_ended(job)
        has_all(it.out / "runs" / job, "node1", "node2")
    finally:
        it.down()
