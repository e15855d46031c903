"""What `tacho top` says of runs that have ended, or that could not begin, and of whose they were."""

import os
import pwd
import re

import pytest

from recorder import record, run
from test_top import job, long_recording, plain, temporary
from top_terminal import top

__all__ = ["job"]  # a fixture


@pytest.mark.parametrize(("command", "said"), [("exit 3", "exit 3"), ("kill -9 $$", "SIGKILL"), ("exit 0", "exit 0")])
def test_the_first_line_says_how_the_job_ended(tmp_path, command, said):
    path = tmp_path / "ended.tacho"
    record(["sh", "-c", f"sleep 0.5; {command}"], "-q", "-i", "100ms", output=path)
    assert f"  {said}  " in plain(path).splitlines()[0]
    assert f"  {said}  " not in plain(path, "--at", "0").splitlines()[0]


def test_a_node_that_has_ended_counts_nothing(tmp_path):
    """Its last values are not those of the rest of the run."""
    long_recording(tmp_path / "short.tacho", 20, 8, "node03")
    long_recording(tmp_path / "long.tacho", 60, 20, "node01", "rank 0", "rank 1")
    both = plain(tmp_path / "short.tacho", tmp_path / "long.tacho", "--at", "50.01", columns=120, rows=30)
    alone = plain(tmp_path / "long.tacho", "--at", "50.01", columns=120, rows=30)
    for shown in [r"CPU [\d.]+ of [\d.]+ cores", r"\d+ processes", r"MEM ~?[\d.]+ \w+"]:
        assert re.search(shown, both)[0] == re.search(shown, alone)[0], (both, alone)
    row = next(line for line in both.splitlines() if line.startswith("node03"))
    assert row.split()[1:3] == ["-", "-"] and row.endswith("ended"), row
    assert not any("slow:" in line for line in both.splitlines() if line.startswith("node")), both
    before = plain(tmp_path / "short.tacho", tmp_path / "long.tacho", "--at", "10.01", columns=120, rows=30)
    row = next(line for line in before.splitlines() if line.startswith("node03"))
    assert row.split()[1] != "-" and not row.endswith("ended"), row


def test_a_recording_without_a_tick_is_not_waited_for(job, tmp_path):
    """Its recorder is gone before anything was measured."""
    cut = tmp_path / "cut.tacho"
    cut.write_bytes(job.read_bytes()[:2000])
    os.utime(cut, (1, 1))
    done = run("top", cut, timeout=60)
    assert done.returncode == 1, done
    assert done.stderr.count(b"no measurement can be read from it, and its recorder is gone") == 1
    with top(cut) as t:
        t.until("its recorder is gone", "the alarm")
        assert "cut.tacho" in t.lines()[0] and "live" not in t.lines()[0] and "waiting" not in t.lines()[0], t.text()
        t.type("q")
        assert t.end() == 0


def test_a_command_that_is_not_there_is_said_once(tmp_path):
    done = run("top", "--", "no-such-command-anywhere", env={**os.environ, **temporary(tmp_path)})
    assert done.returncode == 127, done
    assert (done.stdout + done.stderr).count(b"tacho: ") == 1 == done.stderr.count(b"no-such-command-anywhere"), done


def test_without_arguments_it_is_the_processes_of_the_user(tmp_path):
    done = run("top", env={**os.environ, **temporary(tmp_path), "LC_ALL": "C.UTF-8"}, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    name = pwd.getpwuid(os.getuid()).pw_name
    assert done.stdout.decode().startswith(f"processes of {name}"), done.stdout


def test_totals_of_the_ended_stand_beside_rates(tmp_path):
    path = tmp_path / "made.tacho"
    long_recording(path, 60, 8)
    with top(path, "--at", "50%", columns=160, rows=40) as t:
        t.until("READ/s", "rates")
        t.type("x")
        t.until("with those that ended: totals and peaks", "all of them")
        head = next(line.split() for line in t.lines() if line.split()[:1] == ["PID"])
        rows = [line.split() for line in t.lines() if re.match(r" *\d+ \S+ +[A-Za-z] ", line)]
        assert "READ" in head and "READ/s" not in head
        assert rows and all(row[head.index("READ")] == "-" or row[head.index("READ")].endswith("/s") for row in rows if row[2] != "x"), t.text()
