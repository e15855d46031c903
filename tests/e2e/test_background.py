"""tacho attach --background: it returns when it records, and the recorder ends by itself."""

import os
import signal
import subprocess
from pathlib import Path

from recorder import TACHO, names, run, show, state, told, until

SLEEPER = ["sleep", "600"]


def background(*words, **kwargs):
    """Status, what it says of itself, and what it says on standard error."""
    done = run("attach", "--background", *words, **kwargs)
    said = dict(line.split("=", 1) for line in done.stdout.decode().splitlines())
    return done.returncode, said, done.stderr.decode()


def gone(said):
    return state(said["TACHO_RECORDER"]) in (None, "Z")


def test_it_returns_when_it_records_and_ends_at_a_signal(tmp_path):
    out = tmp_path / "a.tacho"
    with subprocess.Popen(SLEEPER) as job:
        try:
            status, said, _ = background("-o", out, job.pid)
            assert (status, said["TACHO_RECORDING"]) == (0, str(out)) and list(said) == ["TACHO_RECORDING", "TACHO_SOCKET", "TACHO_RECORDER"]
            recorder = int(said["TACHO_RECORDER"])
            assert show(out)["complete"] is False  # there is a sample already
            fields = Path(f"/proc/{recorder}/stat").read_text().rpartition(")")[2].split()
            assert int(fields[1]) != os.getpid() and int(fields[3]) == recorder  # no child of ours, in a session of its own
            assert {os.readlink(f"/proc/{recorder}/fd/{fd}") for fd in range(3)} == {"/dev/null"}
            os.kill(recorder, signal.SIGTERM)
            until(lambda: gone(said), "the recorder ends")
            summary = show(out)
            assert summary["complete"] and summary["ended"] == "signal" and summary["processes"]["seen"] == 1
        finally:
            job.kill()


def test_it_ends_with_the_process_whatever_its_children_do(tmp_path):
    for option, ended in (("--until-exit", True), (None, False)):
        out = tmp_path / f"{ended}.tacho"
        with subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE) as job:
            child = int(job.stdout.readline())
            try:
                status, said, _ = background("-i", "50ms", "-o", out, *filter(None, [option]), job.pid)
                assert status == 0
                job.kill()
                job.wait()
                if ended:
                    until(lambda: gone(said), "the recorder ends")
                    assert show(out)["complete"]
                else:
                    ticks = show(out)["ticks"]["taken"]
                    until(lambda: show(out)["ticks"]["taken"] > ticks + 2, "it goes on with the child")
            finally:
                os.kill(child, signal.SIGKILL)
            until(lambda: gone(said), "the recorder ends")


def test_what_the_process_tells_is_heard(tmp_path):
    """A shell script that records itself."""
    out = tmp_path / "a.tacho"
    script = f'''{TACHO} attach --background --until-exit -o {out} $$ >{tmp_path}/said
        . {tmp_path}/said; export TACHO_SOCKET
        {TACHO} phase load -- true; {TACHO} mark loss=0.5; echo $TACHO_RECORDER'''
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    until(lambda: gone({"TACHO_RECORDER": int(done.stdout)}), "the recorder ends")
    assert names(told(out)) == [("phase.begin", "load"), ("phase.end", "load"), ("mark", "")]
    assert show(out)["processes"]["seen"] >= 1


def test_what_cannot_be_recorded_is_said_at_once(tmp_path):
    with subprocess.Popen(["true"]) as ended:
        pass
    assert background(ended.pid)[0] == 1
    out = tmp_path / "there"
    out.write_text("mine")
    status, said, error = background("-o", out, os.getpid())
    assert (status, said) == (125, {}) and "exists already" in error and out.read_text() == "mine"


def test_nothing_of_the_caller_stays_open(tmp_path):
    """Whoever waits for the end of a pipe that the caller has does not wait for the recorder."""
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    with subprocess.Popen(SLEEPER) as job:
        try:
            status, said, _ = background("-o", tmp_path / "a.tacho", job.pid, close_fds=False)
            assert status == 0
            os.close(theirs)
            assert os.read(ours, 1) == b""
            os.close(ours)
        finally:
            job.kill()
    until(lambda: gone(said), "the recorder ends with its process")
