"""The run log: lines while the job runs, the same lines of a recording later, and what people are shown of them."""

import json
import os
import re
import resource
import signal
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest
from exported import need_export
from recorder import TACHO, lasting, on_terminal, record, run, show, start, until

ROOT = Path(__file__).resolve().parents[2]
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00")


def script(text):
    return ["sh", "-c", text.replace("tacho ", f"{TACHO} ")]


JOB = script(
    "tacho phase begin load lr=0.1 seconds=7; tacho mark 'checkpoint written' size=3.1G n=5 zip=007 'f=  1.5';"
    "tacho mark loss=0.31 step=1200; tacho phase begin inner; tacho phase end inner why=done; tacho phase end load;"
    "tacho phase begin open; exit 3"
)


def lines(path):
    """All lines of the file; each must be whole."""
    text = Path(path).read_text()
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def later(*recordings):
    done = need_export(run("export", "--to", "runlog", "-o", "-", *recordings))
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(entries):
    return [entry["name"] if entry["type"] == "phase" else entry["event"] for entry in entries]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runlog")
    recording, log = folder / "a.tacho", folder / "log.jsonl"
    assert record(JOB, "-q", "--run-log", log, output=recording).returncode == 3
    return recording, log


# ---- lines ----


def test_the_lines_have_pytyches_form(job):
    entries = lines(job[1])
    assert names(entries) == ["start", "checkpoint written", "mark", "inner", "load", "open", "end"]
    for entry in entries:
        assert STAMP.fullmatch(entry["ts"])
        assert datetime.fromisoformat(entry["ts"]).isoformat(timespec="milliseconds") == entry["ts"]
        first = ["ts", "type", "name", "seconds"] if entry["type"] == "phase" else ["ts", "type", "event", "data"]
        assert list(entry)[:4] == first
    begin, checkpoint, mark, inner, load, still_open, end = entries
    assert checkpoint == {"ts": checkpoint["ts"], "type": "event", "event": "checkpoint written",
                          "data": {"size": "3.1G", "n": 5, "zip": "007", "f": 1.5}}
    assert mark["data"] == {"loss": 0.31, "step": 1200}
    assert inner["why"] == "done" and 0 <= inner["seconds"] <= load["seconds"]
    assert load["lr"] == 0.1 and load["data.seconds"] == 7 and still_open["unfinished"] is True
    assert begin["data"]["command"] == JOB and begin["data"]["limits"]["cpus"] > 0 and begin["data"]["tacho"]
    assert end["data"]["exit"] == 3 and end["data"]["ended"] == "exit" and end["data"]["seconds"] > 0


def test_a_key_that_is_told_twice_is_there_once(tmp_path):
    """The later value counts: of the end of a phase, and within a mark."""
    recording, log = tmp_path / "a.tacho", tmp_path / "log.jsonl"
    job = script("tacho phase begin x a=1 b=2 ts=1; tacho phase end x a=3 c=4 ts=2; tacho mark m k=1 kk=5 k=2")
    assert record(job, "-q", "--run-log", log, output=recording).returncode == 0
    pairs = [json.loads(line, object_pairs_hook=lambda pairs: pairs) for line in log.read_text().splitlines()[1:3]]
    assert pairs[0][4:] == [("b", 2), ("a", 3), ("c", 4), ("data.ts", 2)] and dict(pairs[1])["data"] == [("kk", 5), ("k", 2)]
    text = run("log", recording).stdout.decode()
    assert "  b=2  a=3  c=4  ts=2\n" in text and "m  kk=5  k=2\n" in text
    assert '"{""kk"":""5"",""k"":""2""}"' in run("export", "--to", "csv", "-d", "events", "-o", "-", recording).stdout.decode()


def test_the_recording_gives_the_same_lines_later(job):
    assert later(job[0]) == job[1].read_bytes()
    assert run("log", "--json", job[0]).stdout == job[1].read_bytes()


def test_hardware_is_in_the_first_line_of_a_longer_job(tmp_path):
    log = tmp_path / "log.jsonl"
    with lasting(script("tacho mark early; cat"), "--run-log", log, output=tmp_path / "a.tacho"):
        until(lambda: log.exists() and "early" in names(lines(log)), "the mark is told")
        first = lines(log)[0]
    assert first["event"] == "start" and first["data"]["hardware"]["architecture"] and "cpu_all_flags" not in first["data"]["hardware"]
    assert later(tmp_path / "a.tacho") == log.read_bytes()


def test_lines_come_while_the_job_runs(tmp_path):
    log = tmp_path / "deep" / "log.jsonl"
    with lasting(script("tacho phase load -- true; tacho mark here; cat"), "--run-log", log, output=tmp_path / "a.tacho"):
        until(lambda: log.exists() and names(lines(log)) == ["start", "load", "here"], "phase and mark are told")
        assert log.stat().st_mode & 0o777 == 0o600
    assert names(lines(log))[-1] == "end"


def test_hostile_texts_stay_data(tmp_path):
    recording, log = tmp_path / "a.tacho", tmp_path / "log.jsonl"
    hostile = "a\x1b[31mred\x07 \u202e\"quote\\x41"
    job = ["python3", "-c", f"import socket,os\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\n"
           f"for m in ({hostile!r}.encode(), b'\\xff\\xfe', b'x\\\\nevent'):\n s.sendto(b'mark '+m, os.environ['TACHO_SOCKET'])"]
    assert record(job, "-q", "--run-log", log, output=recording).returncode == 0
    told = names(lines(log))
    assert told[0] == "start" and told[1].replace("\\\\x41", "\\x41") == hostile and told[2] == "\\xff\\xfe" and told[3] == "x\nevent"
    assert b"\x1b" not in log.read_bytes() and later(recording) == log.read_bytes()
    for text in (run("log", recording).stdout.decode(), on_terminal("log", recording), on_terminal("log", "--json", recording)):
        assert "\x1b[31mred" not in text and "\u202e" not in text and "\x07" not in text


def test_a_job_that_is_attached_to(tmp_path):
    log = tmp_path / "log.jsonl"
    job = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    tacho = start("attach", "-q", "-o", tmp_path / "a.tacho", "--run-log", log, job.pid)
    until(lambda: log.exists() and names(lines(log)) == ["start"], "it is attached")
    job.stdin.close()
    assert job.wait() == 0 and tacho.wait() == 0
    assert names(lines(log))[-1] == "end" and lines(log)[-1]["data"]["ended"] == "attach-end"
    assert later(tmp_path / "a.tacho") == log.read_bytes()


def test_stop_and_continue_and_signals(tmp_path):
    recording, log = tmp_path / "a.tacho", tmp_path / "log.jsonl"
    job = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    tacho = start("attach", "-q", "-o", recording, "--run-log", log, job.pid)
    until(lambda: log.exists() and names(lines(log)) == ["start"], "it is attached")
    tacho.send_signal(signal.SIGTSTP)
    until(lambda: "stopped" in names(lines(log)), "the stop is told")

    def goes_on():
        tacho.send_signal(signal.SIGCONT)
        return "continued" in names(lines(log))

    until(goes_on, "it goes on")
    job.stdin.close()
    assert job.wait() == 0 and tacho.wait() == 0
    entries = {entry["event"]: entry for entry in lines(log)}
    assert "data" not in entries["stopped"] and entries["continued"]["data"]["seconds"] >= 0
    assert later(recording) == log.read_bytes()


def test_a_command_that_is_stopped_alone(tmp_path):
    """The recorder goes on, and tells of it."""
    recording, log, place = tmp_path / "a.tacho", tmp_path / "log.jsonl", tmp_path / "pid"
    with lasting(["sh", "-c", f"echo $$ >{place}.new; mv {place}.new {place}; kill -STOP $$; cat"], "--run-log", log, output=recording):
        until(lambda: log.exists() and "stopped" in names(lines(log)), "the stop is told")
        os.kill(int(place.read_text()), signal.SIGCONT)
        until(lambda: "continued" in names(lines(log)), "it goes on")
    assert names(lines(log)) == ["start", "stopped", "continued", "end"] and lines(log)[2]["data"]["seconds"] >= 0
    assert "the job was stopped 1 time" in show(recording)["notes"]
    assert later(recording) == log.read_bytes()


def test_missed_samples_are_those_of_the_summary(tmp_path):
    """The recorder stands still for some of them; what the lines tell adds up to what the end and the summary say."""
    recording, log = tmp_path / "a.tacho", tmp_path / "log.jsonl"
    with lasting(["cat"], "-i", "10ms", "--run-log", log, output=recording) as tacho:
        until(lambda: log.exists() and names(lines(log)) == ["start"], "it is recorded")
        tacho.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        until(lambda: time.monotonic() - stopped > 0.1, "samples are due")
        tacho.send_signal(signal.SIGCONT)
        until(lambda: "missed" in names(lines(log)), "it is told")
    told = sum(entry["data"]["ticks"] for entry in lines(log) if entry.get("event") == "missed")
    assert told == lines(log)[-1]["data"]["missed"] == show(recording)["ticks"]["missed"] > 0


def test_a_signal_is_told(tmp_path):
    recording, log = tmp_path / "a.tacho", tmp_path / "log.jsonl"
    tacho = start("run", "-q", "-o", recording, "--run-log", log, "--", *script("trap 'exit 6' TERM; tacho mark ready; while :; do sleep 0.02; done"))
    until(lambda: log.exists() and "ready" in names(lines(log)), "the job runs")
    tacho.send_signal(signal.SIGTERM)
    assert tacho.wait() == 6
    entries = {entry["event"]: entry for entry in lines(log)}
    assert entries["signal"]["data"] == {"name": "TERM"} and entries["end"]["data"]["exit"] == 6
    assert later(recording) == log.read_bytes()


# ---- the file ----


def test_whole_lines_after_the_recorder_was_killed(tmp_path):
    log = tmp_path / "log.jsonl"
    job = script("i=0; while [ $i -lt 2000 ]; do i=$((i+1)); tacho mark m$i x=$i; done")
    tacho = start("run", "-q", "-o", tmp_path / "a.tacho", "--run-log", log, "--", *job, start_new_session=True)
    until(lambda: log.exists() and len(log.read_bytes().splitlines()) > 20, "there are lines")
    os.killpg(tacho.pid, signal.SIGKILL)
    tacho.wait()
    entries = lines(log)
    assert names(entries)[0] == "start" and names(entries)[1:] == [f"m{i}" for i in range(1, len(entries))] and "end" not in names(entries)
    whole = later(tmp_path / "a.tacho")  # what had reached the recording
    assert log.read_bytes().startswith(whole)


def test_a_torn_line_is_ended_first(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"ts":"2026-01-01T00:00:00.000+00:00","type":"event","event":"old"}\n{"ts":"2026-01-')
    log.chmod(0o640)
    for number in (1, 2):
        assert record(["true"], "-q", "--run-log", log, output=tmp_path / f"{number}.tacho").returncode == 0
    text = log.read_text().splitlines()
    assert text[1] == '{"ts":"2026-01-' and [json.loads(line)["event"] for line in text if line != text[1]] == ["old", "start", "end", "start", "end"]
    assert log.stat().st_mode & 0o777 == 0o640  # what was there keeps its rights


def test_a_full_disk_is_said_once_and_lines_stay_whole(tmp_path):
    recording, log = tmp_path / "a.tacho", tmp_path / "log.jsonl"
    size = 1 << 20
    log.write_text("\n" * (size - 4000))
    job = script("i=0; while [ $i -lt 40 ]; do i=$((i+1)); tacho mark a-mark-with-a-name-that-is-long-$i; done; exit 5")
    done = record(job, "-q", "--run-log", log, output=recording, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    assert done.returncode == 5
    said = done.stderr.decode().splitlines()
    assert len(said) == 1 and "the run log" in said[0] and "is incomplete" in said[0] and str(log) in said[0]
    assert "file size limit" in said[0]
    found = [json.loads(line) for line in log.read_text().splitlines() if line]
    assert found and log.stat().st_size <= size and log.read_bytes().endswith(b"\n")
    assert len(later(recording).splitlines()) == 42 > len(found)  # the recording has them all


@pytest.mark.parametrize("kind", ["fifo", "directory", "device", "beneath a file", "a directory that is not there"])
def test_what_cannot_be_written_is_said_and_harms_nothing(tmp_path, kind):
    path = {"device": Path("/dev/full"), "beneath a file": tmp_path / "file" / "log"}.get(kind, tmp_path / "log")
    (tmp_path / "file").write_text("")
    if kind == "fifo":
        os.mkfifo(path)
    if kind == "directory":
        path.mkdir()
    name = f"{path}/" if kind == "a directory that is not there" else path
    done = record(["sh", "-c", "echo job; exit 4"], "-q", "--run-log", name, output=tmp_path / "a.tacho", timeout=60)
    assert (done.returncode, done.stdout) == (4, b"job\n")
    assert len(done.stderr.splitlines()) == 1 and b"no run log is written" in done.stderr and (tmp_path / "a.tacho").exists()
    assert list(path.iterdir()) == [] if kind == "directory" else kind != "a directory that is not there" or not path.exists()


def test_a_log_that_is_removed_is_said(tmp_path):
    recording, log = tmp_path / "a.tacho", tmp_path / "log.jsonl"
    done = record(script(f"rm {log}; tacho mark one"), "-q", "--run-log", log, output=recording)
    assert done.returncode == 0 and b"was removed while it was written" in done.stderr
    assert names([json.loads(line) for line in later(recording).splitlines()]) == ["start", "one", "end"]


def test_a_command_that_does_not_exist_leaves_no_log(tmp_path):
    done = record(["/nonexistent/command"], "--run-log", tmp_path / "log", output=tmp_path / "a.tacho")
    assert done.returncode == 127 and not (tmp_path / "log").exists()


def test_the_name_has_placeholders(tmp_path):
    assert record(["true"], "-q", "-n", "mine", "--run-log", f"{tmp_path}/{{name}}.jsonl", output=tmp_path / "a.tacho").returncode == 0
    assert names(lines(tmp_path / "mine.jsonl")) == ["start", "end"]


# ---- for people ----


def test_log_for_people(job):
    text = run("log", job[0], env={**os.environ, "TZ": "UTC"}).stdout.decode().splitlines()
    assert len(text) == len(lines(job[1])) and not any("\x1b" in line for line in text)
    for line, entry in zip(text, lines(job[1])):
        since, clock, kind = line.split()[:3]
        assert since.endswith("s") and clock == entry["ts"][11:23]
        assert kind == (entry["type"] if entry["type"] == "phase" else "mark" if entry["event"] in ("checkpoint written", "mark") else entry["event"])
    assert "checkpoint written" in text[1] and "size=3.1G" in text[1] and "lr=0.1" in text[4] and "exit 3" in text[-1] and "not ended" in text[5]


def test_log_has_colours_on_a_terminal(job):
    assert "\x1b[36mphase" in on_terminal("log", job[0], NO_COLOR="") and "\x1b[" not in on_terminal("log", job[0], NO_COLOR="1")


def test_follow_stays_until_the_end(tmp_path):
    recording = tmp_path / "a.tacho"
    with lasting(script("tacho phase load -- true; cat; tacho mark late"), output=recording):
        until(recording.exists, "it is recorded")
        follower = start("log", "--follow", recording, stdout=subprocess.PIPE)
        assert [follower.stdout.readline().split()[2] for _ in range(2)] == [b"start", b"phase"]
        assert follower.poll() is None
    rest = follower.communicate()[0].splitlines()
    assert [line.split()[2] for line in rest] == [b"mark", b"end"] and follower.returncode == 0
    assert run("log", "--follow", "--json", recording).stdout == later(recording)


def test_follow_of_a_directory_waits_for_recordings(tmp_path):
    follower = start("log", "-f", tmp_path, stdout=subprocess.PIPE)
    assert record(["true"], "-q", output=tmp_path / "a.tacho").returncode == 0
    text = follower.communicate()[0].decode().splitlines()
    assert follower.returncode == 0 and [line.split()[3] for line in text] == ["start", "end"] and os.uname().nodename in text[0]


def test_follow_of_a_killed_recorder_ends(tmp_path):
    recording, log = tmp_path / "a.tacho", tmp_path / "log.jsonl"
    tacho = start("run", "-q", "-o", recording, "--flush", "50ms", "--run-log", log, "--", *script("tacho phase begin load; tacho mark here; sleep 1000"),
                  start_new_session=True)
    until(lambda: log.exists() and "here" in names(lines(log)), "the job speaks")
    until(lambda: b'"event":"here"' in run("log", "--json", recording).stdout, "the recording has it")
    os.killpg(tacho.pid, signal.SIGKILL)
    tacho.wait()
    done = run("log", "--follow", "--json", recording)
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    assert names(entries) == ["start", "here", "load"] and entries[-1]["unfinished"] is True
    assert done.returncode == 0 and b"its recorder" not in done.stdout and b"unfinished" in done.stderr


def test_several_nodes_come_in_the_order_of_time(tmp_path):
    for name in ("b", "a"):
        assert record(script(f"tacho mark {name}"), "-q", output=tmp_path / f"{name}.tacho").returncode == 0
    entries = [json.loads(line) for line in later(tmp_path).splitlines()]
    assert [entry["ts"] for entry in entries] == sorted(entry["ts"] for entry in entries)
    assert names(entries) == ["start", "b", "end", "start", "a", "end"] and {entry["host"] for entry in entries} == {os.uname().nodename}
    assert len(run("log", tmp_path).stdout.splitlines()) == 6


def test_a_recording_of_an_older_version_has_a_log():
    for recording in sorted((ROOT / "tests/golden").glob("*.tacho")):
        done = run("log", "--json", recording)
        assert done.returncode == 0 and [json.loads(line)["ts"] for line in done.stdout.splitlines()], recording


# ---- jq, as docs/runlog.md shows it ----


def idioms():
    text = (ROOT / "docs/runlog.md").read_text()
    return [line for line in re.search(r"## With jq\n\n```\n(.*?)```", text, re.S)[1].splitlines()]


def test_jq_reads_it(job):
    answers = {}
    for line in idioms():
        done = subprocess.run(["bash", "-c", line.replace("tail -f", "cat").replace("job.jsonl", str(job[1]))], capture_output=True)
        assert done.returncode == 0 and done.stdout, (line, done.stderr)
        answers[line] = done.stdout.decode()
    assert len(answers) == 5
    assert answers["jq 'select(.type==\"phase\")' job.jsonl"].count('"name"') == 3
    assert "load\t" in answers[idioms()[1]] and '"n": 1' in answers[idioms()[2]] and answers[idioms()[4]].count("\n") == 4


def test_a_recording_is_no_run_log(tmp_path):
    """Neither the one that is made nor an older one: it stays as it is, and the job runs."""
    old, new = tmp_path / "old.tacho", tmp_path / "new.tacho"
    assert record(["true"], "-q", output=old).returncode == 0
    before = old.read_bytes()
    for log in (old, new):
        done = record(["true"], "-q", "--force", "--run-log", log, output=new)
        assert done.returncode == 0 and b"is a recording" in done.stderr
        assert run("check", new).returncode == 0 and old.read_bytes() == before
    done = run("run", "--strict", "--run-log", old, "-o", tmp_path / "third.tacho", "--", "touch", tmp_path / "ran")
    assert done.returncode == 125 and b"is a recording" in done.stderr
    assert not (tmp_path / "ran").exists() and not (tmp_path / "third.tacho").exists() and old.read_bytes() == before
