"""The job's own numbers: KEY=NUMBER of a mark is a metric like any other."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess

import pytest

from recorder import TACHO, dump, record, run, start, until


def script(text):
    return ["sh", "-c", text.replace("tacho ", f"{TACHO} ")]


def table(recording, *options):
    """Rows of the export of the job's numbers."""
    done = run("export", "--to", "csv", "-d", "app", "-o", "-", *options, recording)
    assert done.returncode == 0, done.stderr.decode()
    return list(csv.DictReader(io.StringIO(done.stdout.decode())))


def values(rows, name):
    """Those that are known, each once as long as it stays."""
    all_of = [float(row[name]) for row in rows if row[name] != ""]
    return [v for i, v in enumerate(all_of) if i == 0 or v != all_of[i - 1]]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A job that tells numbers, one after the other, in ticks of their own."""
    out = tmp_path_factory.mktemp("numbers") / "a.tacho"
    job = (
        "tacho mark loss=0.5 step=1; sleep 0.15; tacho mark loss=0.25 step=2 step_ms=12.5; sleep 0.15;"
        "tacho mark 'checkpoint written' size=3G note=text; tacho mark loss=nan rate=7 unit=img/s; sleep 0.15;"
        "tacho mark huge=1e308 tiny=-1e-300 Val-Acc=91%"
    )
    assert record(script(job), "-q", "-i", "50ms", output=out).returncode == 0
    return out


def test_numbers_are_metrics(told):
    rows = table(told)
    assert values(rows, "app.loss") == [0.5, 0.25] and values(rows, "app.step") == [1, 2]
    assert values(rows, "app.step_ms [s]") == [0.0125] and values(rows, "app.size [bytes]") == [3 << 30]
    assert values(rows, "app.val_acc [ratio]") == [0.91] and values(rows, "app.huge") == [1e308] and values(rows, "app.tiny") == [-1e-300]
    assert "note" not in " ".join(rows[0])
    # What is told later is missing before, not zero; and NaN means not known.
    assert rows[0]["app.step_ms [s]"] == "" and rows[-1]["app.loss"] == "" and rows[-1]["app.step"] == "2"


def test_raw_values_are_the_same(told):
    assert values(table(told, "--raw"), "app.loss") == [0.5, 0.25]


def test_a_number_in_every_view(told, tmp_path):
    series = run("show", "--series", "app.loss,app.huge", "--json", told)
    points = json.loads(series.stdout)
    assert series.returncode == 0 and "app.loss" in json.dumps(points)
    text = run("show", "--series", "app.loss,app.huge", told).stdout.decode()
    assert "0.25" in text and "1e+308" in text
    plot = run("plot", told, "app.loss")
    assert plot.returncode == 0 and b"Told by the job: loss" in plot.stdout
    drawn = tmp_path / "loss.svg"
    assert run("plot", "-o", drawn, told, "app.loss,app.huge,app.tiny").returncode == 0 and drawn.stat().st_size > 1000
    metrics = run("export", "--to", "openmetrics", "-m", "app", "-o", "-", told).stdout.decode()
    assert "# TYPE tacho_app_loss gauge" in metrics and "# UNIT tacho_app_step_ms_seconds seconds" in metrics
    assert "in img/s" in metrics  # a unit of the job's own is said
    for form in ("html", "markdown"):
        assert run("report", "--format", form, "-o", tmp_path / f"r.{form}", told).returncode == 0
    assert run("check", told).returncode == 0


def test_marks_of_numbers_are_no_lines_in_plots(told):
    events = run("export", "--to", "csv", "-d", "events", "-o", "-", told).stdout.decode()
    assert "loss=0.25, step=2" in events and "checkpoint written" in events
    plot = run("plot", told, "app.step").stdout.decode()
    assert plot.count("▾") == 1 and "loss=0.5" not in plot


def test_without_numbers_nothing_is_recorded_of_them(tmp_path):
    out = tmp_path / "a.tacho"
    assert record(script("tacho mark x note=text v=1.2.3"), "-q", output=out).returncode == 0
    records = list(dump(out))
    # The columns come with those of the node: a job of milliseconds has none.
    which = [i for r in records if r["type"] == "schema" for i, s in enumerate(r["sets"]) if s["domain"] == "app"]
    assert not [r for r in records if r["type"] == "instance" and r["set"] in which]
    done = run("show", "--series", "app.loss", out)
    assert done.returncode != 0 and b"app.loss" in done.stderr
    assert "app" not in run("export", "--to", "csv", "-d", "metrics", "-o", "-", out).stdout.decode().replace("\n", ",").split(",")


def test_more_keys_than_columns_are_counted(tmp_path):
    out = tmp_path / "a.tacho"
    words = " ".join(f"k{i}={i}" for i in range(100))
    assert record(script(f"tacho mark {words}; tacho mark k5=1s"), "-q", output=out).returncode == 0
    rows = table(out)
    assert rows[-1]["app.k63"] == "63" and "app.k64" not in rows[-1] and rows[-1]["app.k5"] == "5"
    events = run("export", "--to", "csv", "-d", "events", "-o", "-", out).stdout.decode()
    assert "37 numbers of the job have no curve" in events
    assert [note for note in json.loads(run("show", "--json", out).stdout)["notes"] if note.startswith("37 numbers of the job have no curve")]
    line = next(line for line in run("log", out).stdout.decode().splitlines() if "37 numbers" in line)
    assert "  left out   37 numbers" in line


def test_the_names_of_the_numbers_are_said(told, tmp_path):
    """They are in no list of metrics."""
    for word in ("app.nope", "app", "app.*"):
        done = run("plot", told, word, cwd=tmp_path)
        assert done.returncode != 0 and b"(the job's numbers: app.loss, app.step, app.step_ms, app.size, " in done.stderr
    assert b"(the job's numbers: app.loss, " in run("export", "--to", "csv", "-m", "app.nope", "-o", "-", told).stderr
    assert record(["true"], "-q", output=tmp_path / "b.tacho").returncode == 0
    assert b"(the job told no numbers)" in run("plot", tmp_path / "b.tacho", "app.loss").stderr


def test_the_recorder_is_killed(tmp_path):
    """The names are found in what was written, also of an unfinished recording of several segments."""
    out, go = tmp_path / "a.tacho", tmp_path / "go"
    job = f"tacho mark first=1; tacho mark second=2; while [ ! -e {go} ]; do sleep 0.05; done"
    with start("run", "-q", "-i", "10ms", "--flush", "50ms", "-o", out, "--", *script(job)) as tacho:
        until(lambda: run("show", "--series", "app.second", out).returncode == 0, "both are in the file")
        tacho.send_signal(signal.SIGKILL)
        tacho.wait()
        go.touch()
    rows = table(out)
    assert values(rows, "app.first") == [1] and values(rows, "app.second") == [2]


def test_numbers_are_followed(tmp_path):
    """A reader that follows sees numbers as they come."""
    out, go = tmp_path / "a.tacho", tmp_path / "go"
    job = f"tacho mark loss=1; while [ ! -e {go} ]; do sleep 0.05; done; tacho mark loss=2 late=3; sleep 0.3"
    with start("run", "-q", "-i", "50ms", "--flush", "50ms", "-o", out, "--", *script(job)) as tacho:
        until(lambda: run("show", "--series", "app.loss", out).returncode == 0, "the first is in the file")
        with start("show", "--follow", "--series", "app.loss", out, stdout=subprocess.PIPE) as follower:
            line = b""
            while b" 1" not in line:
                line = follower.stdout.readline()
                assert line
            go.touch()
            rest = follower.stdout.read()
            assert follower.wait() == 0
        assert tacho.wait() == 0
    assert b" 2" in rest


def test_two_nodes_told_other_numbers(tmp_path):
    """Recordings of one run have the columns of all."""
    for name, word in (("a", "x=1"), ("b", "y=2")):
        assert record(script(f"tacho mark {word} z=3"), "-q", output=tmp_path / "run" / f"{name}.tacho").returncode == 0
    rows = table(tmp_path / "run")
    assert {(row["app.x"], row["app.y"], row["app.z"]) for row in rows} == {("1", "", "3"), ("", "2", "3")}


def test_a_short_job_tells_as_well(tmp_path):
    """One of milliseconds, of which the node's sources are never opened."""
    if not shutil.which("perl"):
        pytest.skip("needs perl")
    out = tmp_path / "a.tacho"
    speak = 'use Socket; socket(my $s, AF_UNIX, SOCK_DGRAM, 0); send($s, "mark \\nloss=0.125", 0, pack_sockaddr_un($ENV{TACHO_SOCKET}))'
    assert record(["perl", "-e", speak], "-q", output=out, env=os.environ).returncode == 0
    assert values(table(out), "app.loss") == [0.125]
