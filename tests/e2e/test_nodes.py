"""Runs of many nodes as they are read: the directory with run.json, nodes/ and clock/, several jobs in one directory, clocks that
differ, hostile files."""

import csv
import io
import json
import os
import shutil
import subprocess

import pytest

from exported import tool
from recorder import lasting, run, start, until

START = 1_700_000_000_000_000_000
SECOND = 10**9


def make(path, host, start=START, seconds=60, rate="1"):
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([tool("query_tool"), "long", path, str(seconds), rate, "3", host, str(start)], check=True)


def describe(folder, **more):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps({"format": "tacho-run", "version": 1, **more}))


def measure(folder, host, offset, bound=400_000, seconds=60):
    (folder / "clock").mkdir(exist_ok=True)
    lines = [{"launcher_ns": START + t * SECOND, "offset_ns": offset, "bound_ns": bound} for t in range(0, seconds + 1, 10)]
    (folder / "clock" / f"{host}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def said(*words, status=0, **more):
    done = run(*words, **more, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode() if not status else done.stderr.decode()


def summary(*words):
    return json.loads(said("show", "--json", *words))


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A run of which one node is missing and one has a clock that is an hour ahead."""
    folder = tmp_path_factory.mktemp("runs") / "4711"
    describe(folder, job="4711", scheduler="slurm", name="sim", user="me", nodes=["node10", "node2", "node3"],
             command=["srun", "./simulate"], labels={"system": "blue"}, start_wall_ns=START, end_wall_ns=START + 60 * SECOND,
             exit_status=0, missing=[{"node": "node3", "why": "did not start within 10 s"}])
    make(folder / "nodes" / "node10.tacho", "node10")
    make(folder / "nodes" / "node2.tacho", "node2", START + 3600 * SECOND)
    measure(folder, "node10", 0)
    measure(folder, "node2", 3600 * SECOND)
    return folder


def test_every_view_names_who_is_missing(job, tmp_path):
    words = "1 of 3 nodes is missing: node3 (did not start within 10 s)"
    text = said("show", job)
    assert words in text and text.index("node2  ") < text.index("node10  ")
    assert "total  srun ./simulate   exit 0   wall 59.0s" in text
    whole = summary(job)
    assert words in whole["notes"]
    assert whole["attendance"]["missing"] == [{"node": "node3", "why": "did not start within 10 s"}]
    assert words in said("ls", job) and words in said("ls", job.parent)
    listed = json.loads(said("ls", "--json", job.parent))
    assert [(r["nodes"], r["nodes_expected"], r["job_id"], r["labels"]) for r in listed["recordings"]] == \
        [(2, 3, "4711", {"system": "blue"})]
    for name in ("report.md", "report.html", "report.pdf"):
        done = run("report", "-o", tmp_path / name, job)
        if done.returncode and b"tacho-report" in done.stderr:
            pytest.skip("this build has no reports")
        assert done.returncode == 0, done.stderr
    assert words.replace("(", "\\(") in (tmp_path / "report.md").read_text() or words in (tmp_path / "report.md").read_text()
    assert words in (tmp_path / "report.html").read_text()
    findings = json.loads(run("report", "-f", "json", "-o", "-", job).stdout)["findings"]
    (missing,) = [finding for finding in findings if finding["id"] == "missing-nodes"]
    assert missing["title"] == "1 of 3 nodes is missing" and missing["text"].startswith("node3 (did not start within 10 s). What they did is in no number")
    if shutil.which("pdftotext"):
        pdf = subprocess.run(["pdftotext", tmp_path / "report.pdf", "-"], check=True, capture_output=True, text=True).stdout
        assert words in " ".join(pdf.split())


def test_a_clock_that_was_measured_is_corrected_everywhere(job, tmp_path):
    whole = summary(job)
    straight = summary(job / "nodes" / "node10.tacho")
    assert "clocks within ±0.4 ms (node2 corrected by 1h00m)" in whole["notes"]
    assert whole["wall_s"] == straight["wall_s"] == 59
    assert whole["start"] == straight["start"]
    # Both nodes did the same at the same time: the peak of the sum is twice that of one.
    assert whole["memory"]["peak_rss_bytes"] == 2 * straight["memory"]["peak_rss_bytes"]
    assert [node["clock"]["offset_s"] for node in whole["nodes"]] == [3600, 0]
    series = json.loads(said("show", "--json", "--series", "proc.mem.rss", job))["recordings"]
    assert [r["offset_s"] for r in series] == [0, 0]
    rows = {}
    for line in csv.DictReader(io.StringIO(said("export", "--to", "csv", "-d", "tree", "-o", "-", job))):
        rows.setdefault(line["host"], []).append((line["time"], line["elapsed [s]"]))
    assert rows["node2"] == rows["node10"]
    assert all(line.split()[0] == "0.000s" for line in said("log", job).splitlines() if " start" in line)


def test_drift_is_corrected_in_every_view(tmp_path):
    """A clock that gains 5,000 ppm: what it took for 59 seconds was less, wherever a time is shown."""
    recording = tmp_path / "1" / "nodes" / "a.tacho"
    make(recording, "a")
    plain = [json.loads(said(*words, recording)) for words in (["show", "--json"], ["show", "--json", "-p"])]
    (tmp_path / "1" / "clock").mkdir()
    (tmp_path / "1" / "clock" / "a.jsonl").write_text("".join(
        json.dumps({"launcher_ns": START + t * SECOND, "offset_ns": t * SECOND // 200, "bound_ns": 1000}) + "\n"
        for t in range(0, 61, 10)))
    rate = 1.005

    def near(value, expected):
        assert value == pytest.approx(expected, abs=2e-6)

    near(summary(recording)["wall_s"], 59 / rate)
    near(summary(recording)["memory"]["peak_rss_at_s"], plain[0]["memory"]["peak_rss_at_s"] / rate)
    for phase, before in zip(summary(recording)["phases"], plain[0]["phases"]):
        near(phase["begin_s"], before["begin_s"] / rate)
        near(phase["end_s"], before["end_s"] / rate)
    for process, before in zip(json.loads(said("show", "--json", "-p", recording))["processes"], plain[1]["processes"]):
        near(process["start_s"], before["start_s"] / rate)
    series = json.loads(said("show", "--json", "--series", "proc.mem.rss", recording))["recordings"][0]
    near(series["points"][-1][0], 59 / rate)
    rows = list(csv.DictReader(io.StringIO(said("export", "--to", "csv", "-d", "tree", "-o", "-", recording))))
    near(float(rows[-1]["elapsed [s]"]), 59 / rate)
    assert rows[-1]["time"].startswith("2023-11-14T22:14:18.706")
    part = list(csv.DictReader(io.StringIO(said("export", "--to", "csv", "-d", "tree", "--from", "40", "-o", "-", recording))))
    assert part == [row for row in rows if float(row["elapsed [s]"]) >= 40]
    assert "58.706s" in said("log", recording).splitlines()[-1]


def test_clocks_that_were_not_measured_are_named_when_they_are_strange(tmp_path):
    folder = tmp_path / "1"
    describe(folder, job="1", nodes=["a", "b"], start_wall_ns=START)
    make(folder / "nodes" / "a.tacho", "a")
    make(folder / "nodes" / "b.tacho", "b", START + 300 * SECOND)
    notes = summary(folder)["notes"]
    assert any("the clock of b is strange: it began 5m00s after the run" in note for note in notes)


def test_several_jobs_are_listed_and_not_added(job, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(job, runs / "4711")
    describe(runs / "4712", job="4712", name="other")
    make(runs / "4712" / "nodes" / "node1.tacho", "node1")
    for command in (["show"], ["show", "--follow"], ["plot"], ["report"], ["export", "--to", "csv"], ["log"]):
        done = run(*command, runs, cwd=tmp_path)
        assert done.returncode == 2, (command, done.stderr)
        assert b"holds 2 jobs: 4711, 4712; choose one with --job ID" in done.stderr, command
    lines = said("show", "runs", status=2, cwd=tmp_path).splitlines()
    assert ["runs/4711" in line and "srun ./s" in line for line in lines[1:3]].count(True) == 1
    assert len(summary("--job", "4711", runs)["nodes"]) == 2
    assert "nodes" not in summary("--job", "4712", runs)
    assert b"" == run("compare", "--job", "4712", runs, runs).stderr
    assert "there is no" in said("show", "--job", "5", runs, status=2)
    assert len(said("check", runs).splitlines()) == 3  # it needs no single run
    assert len(json.loads(said("ls", "--json", runs))["recordings"]) == 2
    assert len(json.loads(said("ls", "--json", "--job", "4712", runs))["recordings"]) == 1
    assert b"the newest here" in run("show", cwd=runs).stderr


def test_recordings_of_two_jobs_in_one_directory(tmp_path):
    """As a recorder writes them: it describes the job after its first sample."""
    for number in (1, 2):
        env = {**os.environ, "PBS_JOBID": f"{number}.head"}
        with subprocess.Popen(["sleep", "1000"], env=env) as process:
            words = ["-q", "-i", "50ms", "--duration", "0.2", "-o", tmp_path / f"{number}.tacho", f"job:pbs:{number}.head"]
            assert run("attach", *words, env=env).returncode == 0
            process.kill()
    assert "holds 2 jobs: 1.head, 2.head; choose one with --job ID" in said("show", tmp_path, status=2)
    assert summary("--job", "2.head", tmp_path)["scheduler"]["job_id"] == "2.head"


def break_with_pipe(path):
    os.mkfifo(path)


def break_with_directory(path):
    path.mkdir()


def break_with_loop(path):
    path.symlink_to(path.name)


def break_with_device(path):
    path.symlink_to("/dev/zero")


def break_with_size(path):
    with open(path, "wb") as file:
        file.truncate(1 << 40)


def break_with_depth(path):
    path.write_text('{"a":' * 100_000)


def break_with_rubbish(path):
    path.write_bytes(bytes(range(256)) * 100)


def break_with_lines(path):
    path.write_text('{"launcher_ns":1,"offset_ns":-9223372036854775808,"bound_ns":0}\n' * 50_000)


def break_with_rights(path):
    path.write_text("{}")
    path.chmod(0)


BREAKS = [break_with_pipe, break_with_directory, break_with_loop, break_with_device, break_with_size, break_with_depth,
          break_with_rubbish, break_with_lines, break_with_rights]


@pytest.mark.parametrize("breaks", BREAKS, ids=lambda f: f.__name__[11:])
def test_hostile_files_of_a_run(job, tmp_path, breaks):
    """They are left out with a word, or say nothing; the recordings are read in any case."""
    for name in ("run.json", "clock/node2.jsonl"):
        folder = tmp_path / name[:3]
        shutil.copytree(job, folder)
        (folder / name).unlink()
        breaks(folder / name)
        for words in (["show", "--json"], ["ls"], ["log"], ["check"]):
            done = run(*words, folder, timeout=60)
            assert done.returncode in (0, 1, 2), (words, done)
        assert len(summary(folder)["nodes"]) == 2


def test_nodes_that_appear_later_are_followed(tmp_path):
    folder = tmp_path / "7"
    describe(folder, job="7", nodes=["a", "b"])
    with start("show", "--follow", "--json", tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tacho:
        assert b"waiting for a recording" in tacho.stderr.readline()
        (folder / "nodes").mkdir()
        with lasting(["cat"], "-i", "50ms", output=folder / "nodes" / "a.tacho"):
            assert json.loads(tacho.stdout.readline())["host"] != "b"
            make(folder / "b.tacho", "b")
            (folder / "b.tacho").rename(folder / "nodes" / "b.tacho")
            until(lambda: json.loads(tacho.stdout.readline())["host"] == "b", "a line of the other node")
        tacho.stdout.read()
        assert tacho.wait() == 0
