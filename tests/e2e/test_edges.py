"""When things happened: samples at the edges of phases, and times of messages."""

import json
import re
import subprocess
import sys

import pytest

from recorder import TACHO, can_trace, dump, record, run

KINDS = ("phase.begin", "phase.end", "mark")


def script(text):
    return ["sh", "-c", text.replace("tacho ", f"{TACHO} ")]


def course(recording):
    """Ticks and what the job told, in their order."""
    for r in dump(recording):
        if r["type"] == "tick":
            yield "tick"
        elif r["type"] == "event" and r["kind"] in KINDS:
            yield r["kind"]


def spoken(tmp_path, text):
    """A recording of a Python program with the socket `s`."""
    out = tmp_path / "a.tacho"
    head = "import os, socket, time\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.connect(os.environ['TACHO_SOCKET'])\n"
    assert record([sys.executable, "-c", head + text], "-q", output=out).returncode == 0
    return out


def test_a_sample_is_taken_at_the_edges_of_a_phase(tmp_path):
    """Between deadlines: without it there would be none in the whole phase."""
    out = tmp_path / "a.tacho"
    job = "sleep 1; tacho phase begin x; sleep 0.5; tacho mark inside; sleep 0.5; tacho phase end x; sleep 0.5"
    assert record(script(job), "-q", "-i", "60s", output=out).returncode == 0
    told = " ".join(course(out))
    assert "phase.begin tick mark phase.end tick" in told  # a mark is no edge
    end = next(dict(r["pairs"]) for r in dump(out) if r["type"] == "summary")
    assert end["missed"] == "0" and end["late"] == "0"


def test_a_sample_is_taken_of_a_number(tmp_path):
    """Between deadlines, so that its curve has it from its time on; of numbers that follow each other the next sample has the last."""
    out = tmp_path / "a.tacho"
    job = "sleep 1; tacho mark loss=0.5; sleep 0.5; for i in 1 2 3; do tacho mark loss=$i; done; sleep 0.5"
    assert record(script(job), "-q", "-i", "60s", output=out).returncode == 0
    assert " ".join(course(out)).endswith("mark tick mark mark mark tick")
    told = next(r["time"] for r in dump(out) if r["type"] == "event" and r["kind"] == "mark")
    at, value = zip(*(row for row in json.loads(run("show", "--series", "app.loss", "--json", out).stdout)["recordings"][0]["points"] if row[1] is not None))
    assert value == (0.5, 3) and at[0] * 1e9 >= told - 1 and at[0] * 1e9 < told + 5e8 < at[1] * 1e9


def test_the_recording_says_which_samples_are_at_edges(tmp_path):
    """Readers must know: these are close to others. Nothing is said of a job that tells nothing, but where it ends."""
    out = tmp_path / "a.tacho"
    job = "sleep 0.3; tacho phase begin x; sleep 0.3"
    assert record(script(job), "-q", "-i", "60s", output=out).returncode == 0
    assert [r.get("at") for r in dump(out) if r["type"] == "tick"][-2:] == [1, 2]
    assert record(["sleep", "0.3"], "-q", "-i", "0.1s", output=tmp_path / "b.tacho").returncode == 0
    at = [r.get("at") for r in dump(tmp_path / "b.tacho") if r["type"] == "tick"]
    assert at[-1] == 2 and set(at[:-1]) == {None}


def test_edges_do_not_exceed_the_budget(tmp_path):
    """Many phases do not make a recorder of many samples."""
    events = list(course(spoken(tmp_path, "for i in range(2000): s.send(b'begin x'); s.send(b'end x'); time.sleep(0.001)\n")))
    assert events.count("phase.begin") == 2000 and events.count("tick") < 200


def test_a_talkative_job_is_sampled_at_every_interval(tmp_path):
    """Reading messages costs much more than the budget, and fewer samples would not make it less."""
    talk = "while time.monotonic() < end:\n    for i in range(10): s.send(b'mark x')\n    time.sleep(0.001)\n"
    records = list(dump(spoken(tmp_path, "end = time.monotonic() + 9\n" + talk)))
    assert next(dict(r["pairs"]) for r in records if r["type"] == "summary")["skipped"] == "0"
    assert not [r for r in records if r["type"] == "event" and r["kind"] in ("backoff", "turns")]


def test_a_burst_keeps_its_order_and_its_distances(tmp_path):
    """Exact to the nanosecond by the sender's clock, whenever the recorder gets to it."""
    burst = "now = time.monotonic_ns()\ntime.sleep(0.01)\nfor i in range(100): s.send(f'mark {i}\\n@time={now + 1000 * i}'.encode())\n"
    marks = [dict(r["pairs"]) for r in dump(spoken(tmp_path, burst)) if r["type"] == "event" and r["kind"] == "mark"]
    assert [m["name"] for m in marks] == [str(i) for i in range(100)]
    assert [int(after["sent_ns"]) - int(before["sent_ns"]) for before, after in zip(marks, marks[1:])] == [1000] * 99


def test_a_silent_job_costs_nothing(tmp_path):
    """The recorder does not look at the socket before something has come."""
    trouble = can_trace()
    if trouble:
        pytest.skip(trouble)
    trace = tmp_path / "trace"
    job = [TACHO, "run", "-q", "-i", "20ms", "--helpers", "none", "-o", tmp_path / "a.tacho", "--", "sleep", "0.5"]
    subprocess.run(["strace", "-o", trace, "-e", "trace=recvmsg,recvfrom,stat,newfstatat", *map(str, job)], check=True)
    calls = trace.read_text()
    assert len(re.findall(r"^recvmsg\(", calls, re.M)) == 1  # at the end
