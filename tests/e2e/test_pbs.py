"""Jobs of PBS. Debian has no PBS, so these are processes as its daemon starts them: variables in the environment, a
session for the job's script and one for each task, control groups where its hook makes them."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import recorder
from cluster import NOBODY, QUICK, Group, ends, is_sampled, names, scheduler


class Pbs:
    """One job. Its id is not that of any other on this machine; its programs have names of its own."""

    def __init__(self, directory, number):
        self.directory = directory
        self.id = f"{number}.head"
        self.started = []
        nodefile = directory / f"nodes-{number}"
        nodefile.write_text("node1\n")
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(directory),
            "PBS_JOBID": self.id,
            "PBS_NODEFILE": str(nodefile),
            "PBS_ENVIRONMENT": "PBS_BATCH",
            "PBS_NODENUM": "0",
        }

    def program(self, name):
        path = self.directory / name
        if not path.exists():
            path.symlink_to("/bin/sleep")
        return f"{path} 1000"

    def task(self, text):
        """What the daemon starts: the script, or a task on behalf of it. Each has a session of its own."""
        process = subprocess.Popen(
            ["bash", "-c", text], env=self.environment, cwd=self.directory, start_new_session=True,
            stdin=subprocess.DEVNULL,
        )
        self.started.append(process)
        return process

    def end(self):
        """As the daemon does: all processes of the job's sessions."""
        for process in self.started:
            subprocess.run(["pkill", "-KILL", "-s", str(process.pid)])
            process.wait()


@pytest.fixture
def jobs(tmp_path):
    """Makes jobs, and ends what a test leaves of them."""
    made = []

    def make():
        made.append(Pbs(tmp_path, 1_000_000 + 10 * os.getpid() + len(made)))
        return made[-1]

    yield make
    for job in made:
        job.end()


def until_running(*wanted):
    def running():
        found = set()
        for path in Path("/proc").glob("[0-9]*/comm"):
            try:
                found.add(path.read_text(errors="replace").strip())
            except OSError:
                pass
        return set(wanted) <= found

    recorder.until(running, f"{wanted} run")


def start_both(jobs):
    """Two jobs of one user. The first has a task with a session of its own, and one that cleaned its environment."""
    first, second = jobs(), jobs()
    first.task(f"{first.program('pa_script')} & env -i {first.program('pa_clean')} & wait")
    first.task(f"{first.program('pa_task')} & wait")
    second.task(f"{second.program('pb_script')} & wait")
    until_running("pa_script", "pa_clean", "pa_task", "pb_script")
    return first, second


def attach(target, recording, **kwargs):
    process = recorder.start(
        "attach", "-q", *QUICK, "-o", recording, target, stderr=subprocess.PIPE, **kwargs
    )
    recorder.until(lambda: is_sampled(recording) or process.poll() is not None, f"{target} is recorded")
    assert process.poll() is None, process.stderr.read().decode(errors="replace")
    return process


def test_sessions_of_the_right_job(tmp_path, jobs):
    first, second = start_both(jobs)
    number = first.id.split(".")[0]
    recorders = [
        attach(f"job:{first.id}", tmp_path / "full.tacho"),
        attach(f"job:pbs:{number}", tmp_path / "short.tacho"),
    ]
    first.end()
    for process in recorders:
        ends(process)
    for recording in (tmp_path / "full.tacho", tmp_path / "short.tacho"):
        assert scheduler(recording) == {"kind": "pbs", "job_id": first.id, "found_by": "environment"}
        assert names(recording) == {"pa_script": 1, "pa_clean": 1, "pa_task": 1, "bash": 2}
    assert second.started[0].poll() is None


def test_within_the_job(tmp_path, jobs):
    """A task that starts later belongs to it too; the end is told by a file."""
    first, second = jobs(), jobs()
    recording = tmp_path / "within.tacho"
    second.task(f"{second.program('pb_script')} & wait")
    script = first.task(
        f"""
        {recorder.TACHO} attach -q {' '.join(QUICK)} -o {recording} job &
        recorder=$!
        {first.program('pa_script')} &
        until [ -e go ]; do sleep 0.1; done
        echo FINISHED >.ipc-$PBS_JOBID
        wait $recorder
        """
    )
    recorder.until(lambda: "pa_script" in names(recording), "the script is recorded")
    first.task(f"{first.program('pa_late')} & wait")
    recorder.until(lambda: "pa_late" in names(recording), "the late task is recorded")
    (tmp_path / "go").touch()
    assert script.wait(recorder.PATIENCE_S) == 0
    summary = recorder.show(recording)
    assert summary["ended"] == "until-file"
    assert summary["scheduler"] == {"kind": "pbs", "job_id": first.id, "found_by": "environment"}
    assert set(names(recording)) == {"pa_script", "pa_late", "bash", "sleep"}


def test_a_script_that_waits_for_us(tmp_path, jobs):
    """`tacho attach job & work; wait`: its shell is the last process of the job, known by its environment alone."""
    job, recording = jobs(), tmp_path / "waits.tacho"
    script = job.task(
        f"""
        {recorder.TACHO} attach -q {' '.join(QUICK)} -o {recording} job &
        until [ -s {recording} ]; do sleep 0.02; done
        {job.program('pa_last').replace('1000', '0.5')}
        wait
        """
    )
    assert script.wait(recorder.PATIENCE_S) == 0
    assert recorder.show(recording)["ended"] == "attach-end" and "pa_last" in names(recording)


def test_a_run_in_the_background(tmp_path, jobs):
    """The same with `tacho job`, by a stand-in for pbs_tmrsh whose other node is this machine, too."""
    (tmp_path / "pbs_tmrsh").write_text('#!/bin/sh\nshift\nexec setsid -w "$@" </dev/null\n')
    (tmp_path / "pbs_tmrsh").chmod(0o755)
    job = jobs()
    job.environment["PATH"] = f"{tmp_path}:/usr/bin:/bin"
    copied = tmp_path / "copied"
    copied.write_text(f"{os.uname().nodename}\nnode2\nnode2\n")
    job.environment["PBS_NODEFILE_LOCAL"] = str(copied)
    log = f"runs/{job.id}/tacho.log"
    script = job.task(
        f"""
        {recorder.TACHO} job -d runs -i 100ms --flush 100ms &
        until [ $(grep -cs '| records' {log}) = 2 ]; do sleep 0.1; done
        {job.program('pa_last').replace('1000', '0.5')}
        wait
        """
    )
    assert script.wait(recorder.PATIENCE_S) == 0
    nodes = tmp_path / "runs" / job.id / "nodes"
    assert {path.stem for path in nodes.iterdir()} == {os.uname().nodename, "node2"}
    for path in nodes.iterdir():
        assert recorder.check(path)[0] == 0 and "pa_last" in names(path)


def test_control_groups_of_its_hook(tmp_path, jobs):
    """They also hold what has neither the variables nor the session."""
    first, second = start_both(jobs)
    groups = []
    try:
        for job in (first, second):
            groups.append(Group("memory", f"pbs_jobs.service/jobid/{job.id}"))
            for process in job.started:
                members = [process.pid, *recorder.children(process.pid)]
                for pid in members:
                    groups[-1].add(pid)
        stray = subprocess.Popen([first.directory / "pa_clean", "1000"], start_new_session=True)
        first.started.append(stray)
        groups[0].add(stray.pid)
        process = attach(f"job:{first.id}", tmp_path / "hook.tacho")
        first.end()
        ends(process)
    finally:
        first.end()
        second.end()
        for group in reversed(groups):
            group.remove()
    assert scheduler(tmp_path / "hook.tacho") == {"kind": "pbs", "job_id": first.id, "found_by": "cgroup"}
    assert names(tmp_path / "hook.tacho") == {"pa_script": 1, "pa_clean": 2, "pa_task": 1, "bash": 2}


def test_a_job_that_is_yet_to_start(tmp_path, jobs):
    """It is tried again while there is none of its processes."""
    job, recording = jobs(), tmp_path / "late.tacho"
    words = ["--no-summary", *QUICK, "--wait", "12s", "-o", recording, f"job:{job.id}"]
    process = recorder.start("attach", *words, stderr=subprocess.PIPE, text=True)
    said = process.stderr.readline()
    assert f"job {job.id} is on this node now" in said and "; trying again for 12 s" in said
    assert not recording.exists()
    job.task(f"{job.program('pa_script')} & wait")
    recorder.until(lambda: is_sampled(recording), "the job is found")
    job.end()
    process.communicate(timeout=recorder.PATIENCE_S)
    assert process.returncode == 0
    assert names(recording) == {"pa_script": 1, "bash": 1}


def test_somebody_elses_job_is_hidden(tmp_path, jobs):
    """Without control groups only environments tell, and those are for the owner and root. That it is on this node is
    known by the file that PBS puts there, here in a /var/spool of our own."""
    if os.getuid() != 0:
        pytest.skip("only root can be somebody else for a while")
    recorder.need_mounts()
    job = jobs()
    job.task(f"{job.program('pa_script')} & wait")
    until_running("pa_script")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o755)  # pytest's own directories are closed to other users
        shutil.copy(recorder.TACHO, directory)
        script = f"""
            mount -t tmpfs tmpfs /var/spool && mkdir -p /var/spool/pbs/aux && echo node1 >/var/spool/pbs/aux/{job.id}
            exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {directory}/tacho attach --wait 0 job:{job.id}
        """
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], cwd="/", stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert b"hidden from this user" in done.stderr


def test_launcher_without_a_batch_system(tmp_path):
    """`tacho attach job & mpirun ./a` in a script: what the launcher started, and nothing else of the script."""
    for name, target in (("mpirun", "/bin/bash"), ("rank", "/bin/sleep"), ("beside", "/bin/sleep")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "ranks.sh").write_text("./rank 1000 & ./rank 1000 & wait\n")
    attach_to_job = f"{recorder.TACHO} attach -q {' '.join(QUICK)} --wait 8s -o job.tacho job"
    script = f"./beside 1000 & ./mpirun ranks.sh & {attach_to_job} & wait"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PBS", "OAR"))}
    process = subprocess.Popen(
        ["bash", "-c", script], cwd=tmp_path, env=environment, start_new_session=True, stdin=subprocess.DEVNULL
    )
    try:
        recorder.until(lambda: names(tmp_path / "job.tacho").get("rank") == 2, "both ranks are recorded")
        subprocess.run(["pkill", "-KILL", "-s", str(process.pid), "rank"], check=True)
        recorder.until(lambda: recorder.show(tmp_path / "job.tacho").get("ended"), "the recorder ends")
    finally:
        subprocess.run(["pkill", "-KILL", "-s", str(process.pid)])
        process.wait()
    assert names(tmp_path / "job.tacho") == {"mpirun": 1, "rank": 2}


def test_hosts_of_the_job(tmp_path):
    """By the node file that the user copied for all nodes, else by PBS's own; each host once."""
    own, copied = tmp_path / "own", tmp_path / "copied"
    own.write_text("first\nfirst\nsecond\n")
    copied.write_text("one\none\ntwo\none\nthree\n")
    for variables, nodes in (
        ({"PBS_NODEFILE": own}, "first,second"),
        ({"PBS_NODEFILE": own, "PBS_NODEFILE_LOCAL": copied}, "one,two,three"),
        ({"PBS_NODEFILE": own, "PBS_NODEFILE_LOCAL": tmp_path / "gone"}, "first,second"),
        ({}, None),
    ):
        env = {"PATH": os.environ["PATH"], "PBS_JOBID": "7.head", **{key: str(value) for key, value in variables.items()}}
        done = recorder.record(["true"], "-q", "--force", output=tmp_path / "a.tacho", env=env)
        assert done.returncode == 0, done.stderr
        told = recorder.show(tmp_path / "a.tacho")
        assert told["reservation"] == {"nodes": nodes}
        assert told["scheduler"] == {"kind": "pbs", "job_id": "7.head", "found_by": "environment"}
