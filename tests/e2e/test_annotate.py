"""Phases and events of a log that the job wrote, added to its recording afterwards."""

import hashlib
import json
import os
import shutil
import subprocess
from datetime import datetime, timedelta

import pytest
from exported import need_export
from recorder import TACHO, lasting, need_mounts, on_terminal, record, run, show, until


def script(text):
    return ["sh", "-c", text.replace("tacho ", f"{TACHO} ")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("annotate") / "job.tacho"
    job = script("tacho phase begin own; sleep 0.3; tacho phase end own; sleep 0.3")
    assert record(job, "-q", "-i", "50ms", output=path).returncode == 0
    return path


@pytest.fixture
def job(recorded, tmp_path):
    return shutil.copy(recorded, tmp_path / "job.tacho")


def entries(recording):
    done = run("log", "--json", recording)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def start_of(recording):
    return datetime.fromisoformat(entries(recording)[0]["ts"])


def after(recording, seconds):
    return (start_of(recording) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def annotate(recording, lines, *options):
    log = recording.parent / "log.jsonl"
    log.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return run("annotate", *options, recording, log)


def phases(recording):
    """Name, start and length of each, as the table of events has them; those of the job itself left out."""
    done = need_export(run("export", "--to", "json", "-d", "events", "-o", "-", recording))
    table = json.loads(done.stdout)["tables"]["events"]
    names = [field["name"] for field in table["fields"]]
    rows = [dict(zip(names, row)) for row in table["rows"]]
    return [(row["label"], row["elapsed"], row["length"]) for row in rows if row["kind"] == "phase" and row["label"] != "own"]


def close(found, expected):
    assert [name for name, _, _ in found] == [name for name, _, _ in expected]
    for one, other in zip(found, expected):
        assert one[1:] == pytest.approx(other[1:], abs=0.0021)  # the log has milliseconds


NOTES = [("load", 0.1, 0.1), ("epoch", 0.2, 0.1), ("epoch", 0.3, 0.1)]


def of_log(recording):
    """As pytyche writes them; rounding makes the second epoch begin before the first has ended."""
    return [{"ts": after(recording, begin + length), "type": "phase", "name": name, "seconds": length + 0.001 * (begin == 0.3), "lr": 0.1}
            for name, begin, length in NOTES] + [
        {"ts": after(recording, 0.25), "type": "event", "event": "checkpoint", "data": {"size": {"gib": 3}, "ok": True, "none": None}}]


def test_every_reader_sees_them_as_recorded_ones(job):
    before, digest = show(job), hashlib.sha256(job.read_bytes()).digest()
    done = annotate(job, of_log(job))
    assert done.returncode == 0 and done.stderr == b"" and b"job.notes.jsonl: 3 phases and 1 event" in done.stdout
    assert hashlib.sha256(job.read_bytes()).digest() == digest
    assert (job.parent / "job.notes.jsonl").stat().st_mode & 0o777 == 0o600
    close(phases(job), NOTES)
    told = {entry["name"] if entry["type"] == "phase" else entry["event"]: entry for entry in entries(job)}
    assert told["load"]["lr"] == 0.1 and told["checkpoint"]["data"] == {"size.gib": 3, "ok": "true"} and "own" in told
    made = show(job)
    assert made["cpu"] == before["cpu"] and made["memory"] == before["memory"]
    assert {phase["name"]: phase["repetitions"] for phase in made["phases"]} == {"own": 1, "load": 1, "epoch": 2}
    assert "epoch" in run("show", job).stdout.decode() and "load" in on_terminal("plot", job, "tree.cores")
    page = job.parent / "page.html"
    assert run("report", "-o", page, job).returncode == 0 and '"epoch"' in page.read_text()
    assert b"epoch" in run("compare", "--all", job, job).stdout
    assert b"checkpoint" in run("log", job).stdout
    part = run("export", "--to", "csv", "-d", "events", "--from", "0.35", "-o", "-", job).stdout
    assert b"epoch" in part and b"load" not in part


def test_again_replaces_add_keeps_remove_takes_away(job):
    assert annotate(job, of_log(job)).returncode == 0
    one = {"type": "phase", "name": "one", "start": after(job, 0.1), "end": after(job, 0.1)}
    assert annotate(job, [one], "--add").returncode == 0
    assert annotate(job, [one], "--add").returncode == 0  # phases without length stay such
    assert [name for name, _, length in phases(job) if length == 0] == ["one", "one"] and len(phases(job)) == 5
    assert annotate(job, [one]).returncode == 0
    assert [name for name, _, _ in phases(job)] == ["one"]
    assert run("annotate", "--remove", job).returncode == 0 and phases(job) == []
    assert run("annotate", "--remove", job).returncode == 0 and not (job.parent / "job.notes.jsonl").exists()


@pytest.mark.parametrize("form", ["start and end", "begin and ts", "start and seconds", "epoch", "epoch text", "another zone", "no zone"])
def test_forms_of_times(job, form):
    t = start_of(job)
    begin, end = t + timedelta(seconds=0.1), t + timedelta(seconds=0.35)
    line = {"type": "phase", "name": "x"} | {
        "start and end": {"start": begin.isoformat(), "end": end.isoformat()},
        "begin and ts": {"begin": begin.isoformat(), "ts": end.isoformat()},
        "start and seconds": {"start": begin.isoformat(), "seconds": 0.25},
        "epoch": {"start": begin.timestamp(), "end": end.timestamp()},
        "epoch text": {"ts": str(end.timestamp()), "seconds": 0.25},
        "another zone": {"start": begin.isoformat().replace("+00:00", "Z"), "end": (end + timedelta(hours=1)).isoformat().replace("+00:00", "+0100")},
        "no zone": {"start": begin.isoformat().replace("+00:00", ""), "end": end.isoformat().replace("+00:00", "").replace("T", " ")},
    }[form]
    assert annotate(job, [line]).returncode == 0
    close(phases(job), [("x", 0.1, 0.25)])


def test_what_reaches_beyond_the_recording_is_cut(job):
    length = entries(job)[-1]["data"]["seconds"]
    done = annotate(job, [
        {"type": "phase", "name": "all", "ts": after(job, 3600), "seconds": 7200},
        {"type": "phase", "name": "before", "ts": after(job, -100), "seconds": 1},
        {"type": "event", "event": "after", "ts": after(job, 100)},
        {"type": "event", "event": "edge", "ts": after(job, -0.5)},
    ])
    assert done.returncode == 0 and b"2 lines were left out; the first of them, line 2, lies outside the time of the recording" in done.stderr
    close(phases(job), [("all", 0, length)])
    assert "edge" in [entry.get("event") for entry in entries(job)] and "after" not in [entry.get("event") for entry in entries(job)]


@pytest.mark.parametrize("line, why", [
    ("nonsense", b"is not a JSON object"), ('{"type":"phase"', b"is not a JSON object"), ("[" * 100000, b"nested too deep"), ("3", b"is neither a phase nor an event"),
    ('{"type":"metric","name":"x"}', b"is neither"), ('{"type":"phase","ts":1}', b"has no name"), ('{"type":"phase","name":"x"}', b"has no times"),
    ('{"type":"phase","name":"x","ts":"yesterday","seconds":1}', b"has a time that is none"),
    ('{"type":"phase","name":"x","ts":1e99,"seconds":1}', b"has a time that is none"),
    ('{"type":"phase","name":"x","ts":1,"seconds":-1}', b"has a time that is none"),
    ('{"type":"phase","name":"x","ts":-8.9e9,"seconds":8.9e9}', b"lies outside"), ('{"type":"phase","name":"x","start":8.9e9,"seconds":8.9e9}', b"lies outside"),
    ('{"type":"phase","name":"x","ts":-8.9e9,"start":-8.99e9}', b"lies outside"), ('{"type":"event","name":"x","ts":1}', b"has no name"),
    ('{"type":"phase","event":"x","ts":1,"seconds":1}', b"has no name"), ('{"type":"phase","name":null,"ts":1,"seconds":1}', b"has no name"),
    ('{"type":"phase","name":"x","start":2,"end":1}', b"ends before it begins"), ('{"type":"event","event":"x"}', b"has no time"),
])
def test_lines_that_are_of_no_use(job, line, why):
    done = annotate(job, [line])
    assert done.returncode == 1 and why in done.stderr and b"nothing was changed" in done.stderr and not (job.parent / "job.notes.jsonl").exists()
    assert annotate(job, [line, of_log(job)[0]]).returncode == 0 and len(phases(job)) == 1  # the others count


def test_all_of_time_is_cut_to_the_recording(job):
    length = entries(job)[-1]["data"]["seconds"]
    assert annotate(job, ['{"type":"phase","name":"all","start":-8.99e9,"end":8.99e9}']).returncode == 0
    close(phases(job), [("all", 0, length)])


def test_a_key_that_is_null_is_not_there(job):
    """Writers of logs name every field; also a byte order mark of an editor harms nothing."""
    line = {"host": None, "event": None, "type": "phase", "name": "x", "start": after(job, 0.1), "end": after(job, 0.2), "ts": None, "seconds": None}
    done = annotate(job, ["\ufeff" + json.dumps(line)])
    assert done.returncode == 0 and done.stderr == b""
    close(phases(job), [("x", 0.1, 0.1)])


def test_an_event_keeps_its_text_beside_a_name(job):
    assert annotate(job, [
        {"type": "event", "event": "real", "name": "other", "ts": after(job, 0.1), "data": {"a": 1}},
        {"type": "phase", "event": "other", "name": "real too", "ts": after(job, 0.2), "seconds": 0.1},
    ]).returncode == 0
    found = {entry["event" if entry["type"] == "event" else "name"]: entry for entry in entries(job)}
    assert found["real"]["data"] == {"a": 1, "name": "other"} and found["real too"]["event"] == "other"


def test_lines_of_other_hosts_are_said(job):
    done = annotate(job, [{"type": "phase", "name": "x", "host": "elsewhere", "ts": after(job, 0.2), "seconds": 0.1}])
    assert done.returncode == 1 and b"of this run (there are some of other hosts): nothing was changed" in done.stderr


def test_hostile_names_are_drawn_escaped(job):
    name = "a\x1b[31m\x00b\u202e\n\t\"" + "x" * 9000
    done = annotate(job, [{"type": "phase", "name": name, "ts": after(job, 0.2), "seconds": 0.1, "k\x1b\n=": "v\x1b[0m"}])
    assert done.returncode == 0
    for text in (on_terminal("log", job), run("log", job).stdout.decode(), run("show", job).stdout.decode(), run("export", "--to", "csv", "-d", "events", "-o", "-", job).stdout.decode()):
        assert "\x1b[31m" not in text and "\x00" not in text and "\u202e" not in text
    (entry,) = [entry for entry in entries(job) if entry.get("name", "").startswith("a")]
    assert len(entry["name"]) < 4200 and entry["k___"] == "v\x1b[0m"


def test_notes_of_another_recording_or_damaged_are_said_and_ignored(job, tmp_path):
    other = tmp_path / "other.tacho"
    assert record(["true"], "-q", output=other).returncode == 0
    assert annotate(job, of_log(job)).returncode == 0
    notes = tmp_path / "job.notes.jsonl"
    shutil.copy(notes, tmp_path / "other.notes.jsonl")
    done = run("log", "--json", other)
    assert done.returncode == 0 and b"other.notes.jsonl belongs to another recording" in done.stderr and b"epoch" not in done.stdout
    assert b"belongs to another recording: without --add it is replaced" in annotate(other, of_log(job), "--add").stderr
    good = notes.read_bytes()
    for bad in (good.replace(b"epoch", b"epoxx", 1), good[:-20], good + b"{}\n", b"", b"\n", b'{"tacho":"notes"}\n', b"\x00" * 4096, good.replace(b'"version":1', b'"version":2')):
        notes.write_bytes(bad)
        done = run("show", job)
        assert done.returncode == 0 and done.stderr.count(b"job.notes.jsonl is ") == 1 and b"left out" in done.stderr and b"epoch" not in done.stdout
    notes.unlink()
    os.mkfifo(notes)
    assert b"is not a regular file" in run("show", job, timeout=60).stderr
    notes.unlink()
    notes.write_bytes(good)
    assert run("show", job).stderr == b"" and len(phases(job)) == 3


def test_a_file_of_the_user_is_not_replaced(job):
    """The job may have called its own log job.notes.jsonl; also when that is the log which is given."""
    notes = job.parent / "job.notes.jsonl"
    for text in ("my notes\n", "".join(json.dumps(line) + "\n" for line in of_log(job))):
        notes.write_text(text)
        tries = [annotate(job, of_log(job)), annotate(job, of_log(job), "--add"), run("annotate", "--remove", job)]
        for done in [*tries, *([run("annotate", job, notes)] if text[0] == "{" else [])]:
            assert done.returncode == 1 and b"was not made by tacho annotate, and is left as it is" in done.stderr and notes.read_text() == text
    for damaged in ('{"tacho":"notes","version":1', ""):
        notes.write_text(damaged)
        assert annotate(job, of_log(job)).returncode == 0 and len(phases(job)) == 3


def test_a_directory_that_cannot_be_written_is_said(job, tmp_path):
    if os.getuid() == 0:
        done = run("annotate", "/proc/self/fd/0", "-", stdin=open(job, "rb"))
        assert done.returncode in (1, 2)  # the log is a recording: no line of it is of use
        (tmp_path / "job.notes.jsonl").mkdir()
        done = annotate(job, of_log(job))
    else:
        (tmp_path / "log.jsonl").touch()
        tmp_path.chmod(0o500)
        done = annotate(job, of_log(job))
        tmp_path.chmod(0o700)
    assert done.returncode == 1 and b"cannot write" in done.stderr and b"job.notes.jsonl" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if "notes" in path.name) == (["job.notes.jsonl"] if os.getuid() == 0 else [])


def test_a_read_only_file_system_is_said(job, tmp_path):
    need_mounts()
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(of_log(job)[0]) + "\n")
    words = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,ro,bind {tmp_path} && exec {TACHO} annotate {job} {log}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", words], capture_output=True)
    assert done.returncode == 1 and b"Read-only file system; the notes stand beside the recording: copy that" in done.stderr
    assert not (tmp_path / "job.notes.jsonl").exists()


def test_a_run_on_several_nodes(job, tmp_path):
    shutil.copy(job, tmp_path / "second.tacho")
    host = os.uname().nodename
    lines = [{"type": "phase", "name": name, "ts": after(job, 0.2), "seconds": 0.1, **more}
             for name, more in (("all", {}), ("here", {"host": host}), ("there", {"host": "elsewhere"}))]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("annotate", tmp_path, log).stdout.count(b"2 phases and 0 events") == 2
    assert sorted(name for name, _, _ in phases(tmp_path)) == ["all", "all", "here", "here"]


def test_our_own_run_log_can_be_read(job):
    own = run("log", "--json", job).stdout.decode()
    assert annotate(job, own.splitlines()).returncode == 0
    assert [entry.get("name", entry.get("event")) for entry in entries(job)] == ["start", "own", "own", "end"]


def test_a_recording_in_progress(tmp_path):
    recording = tmp_path / "a.tacho"
    with lasting(script("tacho mark ready; cat"), output=recording):
        until(lambda: recording.exists() and b'"event":"ready"' in run("log", "--json", recording).stdout, "it is recorded")
        assert annotate(recording, [{"type": "phase", "name": "x", "ts": after(recording, 0.01), "seconds": 0.005}]).returncode == 0
    assert [name for name, _, _ in phases(recording)] == ["x"]


def test_wrong_use(job, tmp_path):
    for words in ([], [job], [job, "a", "b"], ["--remove", job, "log"], ["--remove", "--add", job], [job, tmp_path / "none"], [job, tmp_path], [tmp_path / "none", job]):
        done = run("annotate", *words)
        assert done.returncode == 2 and done.stderr, words
