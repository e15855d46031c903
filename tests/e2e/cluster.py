"""Real batch systems for the tests: clusters in namespaces of this machine (tests/lab), and jobs on them.

A cluster is brought up by the first test of a module that asks for it, and is gone after the last. Where it cannot
run (no root, packages missing, no control groups v1) the tests skip with what the script says.
"""

import csv
import io
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pytest

import recorder

LAB = Path(__file__).resolve().parents[1] / "lab"
NOBODY = 65534
QUICK = ("--interval", "10Hz", "--flush", "100ms")  # tests wait for what was written


MARK = ".cluster-of-tests"  # of lab.sh; says here which run of the tests it belongs to


def started(pid):
    """When the process began, in the kernel's ticks: its number alone may be another's by now. None: it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def end_leftovers():
    """Ends clusters of runs of the tests that were killed: their control groups are in the way of other tests."""
    for mark in Path("/tmp").glob(f"tacho-*/{MARK}"):
        try:
            owner = mark.read_text().split()
            if mark.lstat().st_uid != os.getuid() or len(owner) != 2 or started(owner[0]) == owner[1]:
                continue
            subprocess.run([LAB / "down.sh", mark.parent], check=True)
            shutil.rmtree(mark.parent)
        except FileNotFoundError:
            continue  # another run of the tests ended it


class Cluster:
    """`bin` has our tacho and `sleep` under many names; jobs may write to `out`. Other users can reach both."""

    def __init__(self, script, *words):
        end_leftovers()
        self.directory = Path(tempfile.mkdtemp(prefix="tacho-", dir="/tmp"))
        (self.directory / MARK).write_text(f"{os.getpid()} {started(os.getpid())}\n")
        try:
            self.up(script, words)
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def up(self, script, words):
        command = [LAB / script, self.directory, *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if done.returncode == 77:
            pytest.skip(done.stdout.strip())
        assert done.returncode == 0, done.stdout
        self.bin, self.out = self.directory / "bin", self.directory / "out"
        self.bin.mkdir()
        self.out.mkdir()
        self.out.chmod(0o1777)
        shutil.copy(recorder.TACHO, self.bin / "tacho")

    def down(self):
        subprocess.run([LAB / "down.sh", self.directory], check=True)
        shutil.rmtree(self.directory)

    def sleeper(self, name):
        """A program that does nothing, for ever, under a name of its own."""
        assert len(name) <= 15, "the kernel keeps no more of a name"
        path = self.bin / name
        if not path.exists():
            path.symlink_to("/bin/sleep")
        return f"{path} 1000"

    def command(self, node, words, user=0, path="/usr/bin:/bin:/usr/sbin:/sbin"):
        """On that node, as that user, in an environment that names no job."""
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        clean = ["env", "-u", "PATH", f"PATH={path}", f"HOME={self.out}", f"PWD={self.out}"]
        return [self.directory / "enter", node, *as_user, *clean, *map(str, words)]

    def run(self, node, *words, check=True, **kwargs):
        done = subprocess.run(
            self.command(node, words, **kwargs), cwd=self.out, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace",
        )
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done

    def script(self, name, text):
        path = self.out / name
        path.write_text(f"#!/bin/bash\ncd {self.out}\nPATH={self.bin}:$PATH\n{text}\n")
        path.chmod(0o755)
        return path

    def until_running(self, node, *names):
        """Waits for processes by their names, as often as they are named."""
        wanted = Counter(names)

        def there():
            running = Counter(self.run(node, "ps", "-e", "-o", "comm=").stdout.split("\n"))
            return all(running[name] >= count for name, count in wanted.items())

        recorder.until(there, f"{dict(wanted)} run on {node}")

    def attach(self, node, target, recording, *options, **kwargs):
        """A recorder on that node, from outside of all jobs, once it has found its processes."""
        words = [self.bin / "tacho", "attach", "-q", *QUICK, "-o", recording, *options, target]
        process = subprocess.Popen(
            self.command(node, words, **kwargs), cwd=self.out, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        recorder.until(lambda: is_sampled(recording) or process.poll() is not None, f"{target} is recorded")
        assert process.poll() is None, process.stderr.read().decode(errors="replace")
        return process


class Slurm(Cluster):
    def __init__(self, mode, nodes=1):
        self.mode = mode
        self.found_by = "cgroup" if mode == "v1" else "scontrol"
        super().__init__("slurm-up.sh", str(nodes), mode)

    def sbatch(self, name, text, user=0, tasks=("--ntasks=1",)):
        script = self.script(name, text)
        words = ["sbatch", "--parsable", *tasks, "--output=/dev/null", f"--chdir={self.out}", script]
        return self.run("head", *words, user=user).stdout.strip()

    def submit(self, tag, user=0):
        """A job with all kinds of steps, which sleep under names of their own until it is cancelled."""
        text = f"""
            {self.sleeper(tag + "_batch")} &
            srun --overlap --ntasks=1 {self.sleeper(tag + "_srun")} &
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \\
                mpirun.openmpi --oversubscribe -np 2 {self.sleeper(tag + "_ompi")} &
            mpiexec.mpich -n 2 {self.sleeper(tag + "_mpich")} &
            wait
        """
        return self.sbatch(f"{tag}.sh", text, user)

    @staticmethod
    def sleepers(tag):
        return Counter({f"{tag}_batch": 1, f"{tag}_srun": 1, f"{tag}_ompi": 2, f"{tag}_mpich": 2})

    def processes(self, tag):
        """All that belongs to such a job. Each srun is two processes; with another one MPICH starts its proxy."""
        rest = {"slurm_script": 1, "srun": 4, "mpirun.openmpi": 1, "mpiexec.mpich": 1, "hydra_pmi_proxy": 1}
        return self.sleepers(tag) + Counter(rest)

    def until_started(self, *tags):
        self.until_running("node1", *(name for tag in tags for name in self.sleepers(tag).elements()))

    def has_ended(self, *jobs):
        """None of these is in the queue any more, nor a part of one."""
        def running():
            queue = self.run("head", "squeue", "-h", "-o", "%A %F %i").stdout.split()
            return any(job in (word.split("_")[0].split("+")[0] for word in queue) for job in jobs)

        recorder.until(lambda: not running(), f"jobs {jobs} end")

    def cancel(self, *jobs):
        self.run("head", "scancel", *jobs)
        self.has_ended(*jobs)


def need_mpi():
    """Both kinds, under Debian's names for them."""
    for program in ("mpirun.openmpi", "mpiexec.mpich"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")


def is_sampled(recording):
    """Has the first sample been written? It holds all processes that were there."""
    return recording.exists() and bool(processes(recording))


def ends(process):
    """Waits for a recorder to end by itself, and well."""
    _, err = process.communicate(timeout=recorder.PATIENCE_S)
    assert process.returncode == 0, err.decode(errors="replace")


def processes(recording):
    """The rows of the recorded processes; none while there is nothing in it yet."""
    done = recorder.run("show", "--processes", "--csv", recording)
    return list(csv.DictReader(io.StringIO(done.stdout.decode(errors="replace"))))


def names(recording, from_start=False):
    """How often each program is among the recorded processes, or among those of the first sample. A process that ended before its
    name could be read has none; on a busy machine a short `sleep` of a script may be one."""
    rows = (row for row in processes(recording) if not from_start or float(row["start_s"]) == 0)
    return Counter(row["name"] for row in rows if row["name"])


def scheduler(recording):
    return recorder.show(recording)["scheduler"]


def own_group(hierarchy):
    """The directory of the control group we are in, or None. `unified` is v2 beside v1, as systemd mounts it."""
    root = Path("/sys/fs/cgroup")
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == hierarchy:
            return root / hierarchy / path.lstrip("/")
        if hierarchy == "unified" and not controllers:
            below = root / "unified" if (root / "unified" / "cgroup.procs").exists() else root
            return below / path.lstrip("/")
    return None


class Group:
    """A control group like those that a batch system makes, with processes of ours in it."""

    def __init__(self, hierarchy, path):
        base = own_group(hierarchy)
        if os.getuid() != 0:
            pytest.skip("only root may make control groups here")
        if base is None or not (base / "cgroup.procs").exists():
            pytest.skip(f"no hierarchy of control groups '{hierarchy}' on this machine")
        self.base, self.made = base, []
        directory = base
        for part in Path(path).parts:
            directory = directory / part
            if not directory.exists():
                directory.mkdir()
                self.made.append(directory)
        self.directory = directory

    def add(self, pid):
        (self.directory / "cgroup.procs").write_text(str(pid))

    def remove(self):
        for directory in reversed(self.made):
            recorder.until(lambda: not (directory / "cgroup.procs").read_text().strip(), f"{directory} is empty")
            directory.rmdir()
