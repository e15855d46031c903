"""`tacho ls`: what it lists, what it leaves out, and that its numbers are those of `tacho show`."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from recorder import TACHO, can_trace, dump, job_of, lasting, on_terminal, record, run, show, shown, start, until

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def ls(*words, cwd=None):
    done = run("ls", "--json", *words, cwd=cwd)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return json.loads(done.stdout)


def names(answer):
    return [Path(item["path"]).name for item in answer["recordings"]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three recordings of different ends, sizes and labels."""
    here = tmp_path_factory.mktemp("runs")
    record(["sh", "-c", "sleep 0.3"], "-i", "20ms", "-t", "project=genome", "-n", "long one", output=here / "a.tacho")
    program = "held = bytearray(64 << 20); held[::4096] = b'x' * len(held[::4096]); input(); exit(3)"
    options = ["-i", "20ms", "-t", "project=genome", "-t", "try=2", "--message", "too much"]
    with lasting([sys.executable, "-c", program], *options, output=here / "b.tacho", status=3) as tacho:
        until(lambda: (shown(here / "b.tacho").get("memory", {}).get("peak_uss_bytes") or 0) > 64 << 20, "what it holds is seen")
        tacho.stdin.write(b"\n")
    (here / "deep" / "er").mkdir(parents=True)
    record(["sh", "-c", "kill -9 $$"], output=here / "deep" / "er" / "c.tacho")
    return here


def test_what_is_listed(runs):
    answer = ls(runs)
    assert names(answer) == ["b.tacho", "a.tacho"]  # the newest first, and nothing from below
    assert answer["unreadable"] == [] and answer["left_out"] == 0
    a, b = answer["recordings"][1], answer["recordings"][0]
    assert a["argv"] == ["sh", "-c", "sleep 0.3"]
    assert (a["exit"], b["exit"]) == ({"code": 0, "signal": None}, {"code": 3, "signal": None})
    assert a["state"] == b["state"] == "complete"
    assert (a["name"], a["labels"]) == ("long one", {"project": "genome"})
    assert b["labels"] == {"project": "genome", "try": "2"} and b["message"] == "too much"
    assert re.search(r"LABELS +MESSAGE +COMMAND", run("ls", runs).stdout.decode().splitlines()[0])
    assert run("ls", runs).stdout.decode().count("  too much  ") == 1
    assert a["size_bytes"] == (runs / "a.tacho").stat().st_size
    assert names(ls("-r", runs))[0] == "c.tacho" and len(names(ls("-r", runs))) == 3
    assert names(ls("-r", runs / "deep")) == ["c.tacho"]
    assert names(ls(cwd=runs)) == ["b.tacho", "a.tacho"]


@pytest.fixture(scope="module")
def attached(tmp_path_factory):
    """One job that starts and ends processes, watched by many at a time: every kind of target, every kind of end."""
    here = tmp_path_factory.mktemp("attached")
    loop = "while :; do head -c 3000000 /dev/zero | md5sum >/dev/null; sh -c 'sleep 0.01 & true'; done"
    with subprocess.Popen(["sh", "-c", loop], start_new_session=True) as job, start("run", "-q", "-o", here / "run.tacho",
                                                                                   "--duration", "400ms", "-i", "10ms", "sh", "-c",
                                                                                   "head -c 30000000 /dev/zero | md5sum; sleep 1000", stdout=subprocess.DEVNULL) as other:
        kinds = {"pid": [job.pid], "signal": [job.pid], "file": ["--until-file", here / "word", job.pid], "none": ["--helpers=none", job.pid],
                 "duration": ["--duration", "500ms", job.pid], "tool": ["--duration", "500ms", "match:(md5sum|head)", job.pid],
                 "system": ["--duration", "500ms", "system"], "user": ["--duration", "500ms", "user:"]}
        watch = {kind: start("attach", "-q", "-i", "10ms", "--flush", "20ms", "-o", here / f"{kind}.tacho", *words) for kind, words in kinds.items()}
        for kind in "pid", "signal", "file", "none":
            until(lambda: (shown(here / f"{kind}.tacho").get("processes", {}).get("seen") or 0) > 20, f"{kind} has seen some")
        watch["signal"].send_signal(signal.SIGINT)
        (here / "word").write_text("FINISHED")
        for kind in "signal", "file", "duration", "tool", "system", "user":
            assert watch[kind].wait() == 0, kind
        until((here / "run.tacho").exists, "the other job is recorded")
        until(lambda: shown(here / "run.tacho").get("complete"), "its recording is over")
        os.killpg(job.pid, signal.SIGKILL)
        os.kill(job_of(other, "sh"), signal.SIGKILL)
        assert [watch[kind].wait() for kind in ("pid", "none")] == [0, 0]
    assert play_film(here / "film.tacho").returncode == 0
    return here


def play_film(output):
    return run("debug", "play", GOLDEN.parent / "films" / "tree.txt", output, "1s", "100")


def test_numbers_are_those_of_the_summary(runs, attached):
    """The recorder's own words at the end, and reading all of it, are the same numbers."""
    ends = ls("-r", "--glance", runs, attached)["recordings"]
    assert len(ends) == 13 and {item["state"] for item in ends} == {"complete"}
    for item in ends:
        summary = show(item["path"])
        assert item["duration_s"] == summary["wall_s"]
        assert item["cpu_s"] == summary["cpu"]["total_s"], item["path"]
        assert item["cores_mean"] == summary["cpu"]["mean_cores"]
        assert item["processes"] == summary["processes"]["seen"], item["path"]
        assert item["memory_peak_bytes"] == summary["memory"]["peak_bytes"], item["path"]
        assert item["memory_view"] in (summary["memory"]["ratio_view"] or "none").split("_")
        assert (item["host"] or "") == summary["host"] and item["start"] == summary["start"]
    # They stand in the last block: without reading a tick they are known.
    [a] = [item for item in ls("--glance", runs)["recordings"] if item["path"].endswith("a.tacho")]
    assert a["memory_peak_bytes"] and a["cpu_s"] and a["processes"] == 2
    ending = dict(dump(runs / "a.tacho")[-1]["pairs"])
    assert int(ending["peak_pss_bytes"]) == a["memory_peak_bytes"] or a["memory_view"] != "pss"


def test_processes_that_end_within_a_tick_are_counted(tmp_path):
    """They are told of before those who go on, though they were born after them."""
    path = tmp_path / "brief.tacho"
    record(["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (true; true & true; true & wait; true) & done; wait"],
           "-i", "100ms", output=path)
    [item] = ls("--glance", path)["recordings"]
    assert item["processes"] == show(path)["processes"]["seen"] > 8


@pytest.mark.parametrize("words, wanted", [
    (["--sort", "memory", "--limit", "1"], None),
    (["--sort", "duration", "--limit", "1"], None),
    (["--sort", "name", "--reverse"], ["c.tacho", "b.tacho", "a.tacho"]),
    (["--sort", "exit"], ["c.tacho", "b.tacho", "a.tacho"]),
    (["--failed"], ["c.tacho", "b.tacho"]),
    (["--command", "^sh .*kill"], ["c.tacho"]),
    (["--match", "genome"], ["b.tacho", "a.tacho"]),
    (["--match", "too much"], ["b.tacho"]),
    (["--tag", "try"], ["b.tacho"]),
    (["--tag", "project=genome", "--tag", "try=2"], ["b.tacho"]),
    (["--tag", "project=gen"], []),
    (["--tag", "name=long one"], ["a.tacho"]),
    (["--host", "no such host"], []),
    (["--since", "1h"], ["c.tacho", "b.tacho", "a.tacho"]),
    (["--until", "1h"], []),
    (["--until", "2020-01-01"], []),
    (["--since", "2020-01-01 00:00"], ["c.tacho", "b.tacho", "a.tacho"]),
], ids=lambda words: " ".join(words) if isinstance(words, list) else "")
def test_sorted_and_sifted(runs, words, wanted):
    answer = ls("-r", *words, runs)
    if wanted is None:
        column = {"duration": "duration_s", "memory": "memory_peak_bytes"}[words[1]]
        most = max(ls("-r", runs)["recordings"], key=lambda item: item[column])
        assert [item["path"] for item in answer["recordings"]] == [most["path"]]
    else:
        assert names(answer) == wanted
        assert answer["left_out"] == 3 - len(wanted)


def test_memory_that_was_never_read_comes_last_either_way(runs):
    values = [item["memory_peak_bytes"] for item in ls("-r", "--sort", "memory", "--reverse", runs)["recordings"]]
    known = [value for value in values if value is not None]
    assert known == sorted(known) and values[:len(known)] == known


def test_states(runs, tmp_path):
    shutil.copy(runs / "a.tacho", tmp_path / "whole.tacho")
    data = (runs / "a.tacho").read_bytes()
    (tmp_path / "cut.tacho").write_bytes(data[:-100])
    (tmp_path / "bad.tacho").write_bytes(data[:len(data) // 2] + b"\xff" * 20 + data[len(data) // 2 + 20:])
    (tmp_path / "junk.tacho").write_bytes(b"no recording at all")
    (tmp_path / "empty.tacho").write_bytes(b"")
    (tmp_path / "gone.tacho").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.tacho")
    answer = ls(tmp_path)
    states = {Path(item["path"]).stem: item["state"] for item in answer["recordings"]}
    assert states == {"whole": "complete", "cut": "unfinished", "bad": "damaged"}
    assert {Path(item["path"]).stem for item in answer["unreadable"]} == {"junk", "empty", "pipe"}
    by_name = {Path(item["path"]).stem: item for item in answer["recordings"]}
    # Of the unfinished one all is read, and it does not say how it ended.
    assert by_name["cut"]["exit"] == {"code": None, "signal": None}
    assert by_name["cut"]["memory_peak_bytes"] and by_name["cut"]["cpu_s"] is not None
    done = run("ls", tmp_path)
    assert done.returncode == 0 and b"junk.tacho: not a recording" in done.stderr
    assert b"junk" not in done.stdout and b"whole.tacho" in done.stdout
    # Without reading it, it is not known, and not zero.
    [cut] = [item for item in ls("--glance", tmp_path)["recordings"] if "cut" in item["path"]]
    assert cut["memory_peak_bytes"] is None and cut["duration_s"] is None


def test_large_ones_are_not_read_as_a_whole(tmp_path):
    """Their first and last blocks are looked at; what is broken between them is for `tacho check` to find."""
    file = tmp_path / "large.tacho"
    tool = Path(TACHO).parent / "tests" / "unit" / "query_tool"
    subprocess.run([tool, "long", file, "1200", "10", "20"], check=True)
    data = file.read_bytes()
    assert len(data) > 700_000
    [whole] = ls("--glance", file)["recordings"]
    assert whole["state"] == "complete" and whole["argv"] and whole["memory_peak_bytes"] is None
    middle = len(data) - 100_000
    for stem, content, state in [("cut", data[:-5], "unfinished"),
                                 ("end", data[:-2000] + b"\xff" * 30 + data[-1970:], "damaged"),
                                 ("middle", data[:middle] + b"\xff" * 30 + data[middle + 30:], "complete"),
                                 ("early", data[:9000] + b"\xff" * 30 + data[9030:], "damaged")]:
        (tmp_path / f"{stem}.tacho").write_bytes(content)
        [item] = ls("--glance", tmp_path / f"{stem}.tacho")["recordings"]
        assert item["state"] == state, stem
    # To show its peak it must be read, and then nothing is hidden.
    [item] = ls(tmp_path / "middle.tacho")["recordings"]
    assert item["state"] == "damaged" and item["memory_peak_bytes"]


@pytest.mark.skipif(can_trace() is not None, reason=str(can_trace()))
def test_no_byte_of_an_end_is_read_twice(attached, tmp_path):
    trace = tmp_path / "strace"
    subprocess.run(["strace", "-y", "-e", "trace=read,pread64", "-o", trace, TACHO, "ls", "--json", attached], check=True, stdout=subprocess.DEVNULL)
    read = {}
    for path, nr in re.findall(r"^p?read(?:64)?\(\d+<([^>]*\.tacho)>.* = (\d+)$", trace.read_text(), re.M):
        read[path] = read.get(path, 0) + int(nr)
    assert len(read) == 10
    for path, nr in read.items():
        assert nr <= min(os.stat(path).st_size, 600 << 10), path


@pytest.mark.skipif(can_trace() is not None, reason=str(can_trace()))
def test_files_of_a_run_are_told_apart_by_a_look_at_each(runs, tmp_path):
    for i in range(60):
        shutil.copy(runs / "deep" / "er" / "c.tacho", tmp_path / f"{i}.tacho")
    os.link(tmp_path / "0.tacho", tmp_path / "twice.tacho")
    trace = tmp_path / "strace"
    done = subprocess.run(["strace", "-f", "-e", "trace=stat,newfstatat,statx", "-o", trace, TACHO, "show", "--json", tmp_path, tmp_path / "7.tacho"],
                          check=True, stdout=subprocess.PIPE)
    assert len(json.loads(done.stdout)["nodes"]) == 60
    assert len(re.findall(r"\d\.tacho", trace.read_text())) < 5 * 60


def test_one_that_is_being_written(tmp_path):
    file = tmp_path / "now.tacho"
    with start("run", "-q", "-o", file, "-i", "20ms", "--flush", "20ms", "--", "sleep", "1000") as tacho:
        job = job_of(tacho, "sleep")
        try:
            item = until(lambda: [i for i in ls(tmp_path)["recordings"] if i["processes"]], "it is listed")[0]
            assert item["state"] == "being written"
            assert b"running" in run("ls", tmp_path).stdout
        finally:
            os.kill(job, signal.SIGTERM)
    assert ls(tmp_path)["recordings"][0]["state"] == "complete"


def test_hostile_names(tmp_path):
    weird = tmp_path / "a\nb\x1b[31m<script>\".tacho"
    record(["sh", "-c", "true", "x\ny\x1b[31m"], "-n", "na\nme", "-t", "k=\x1b[5m,\"", output=weird)
    done = run("ls", tmp_path, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0 and b"\x1b" not in done.stdout and done.stdout.count(b"\n") == 2
    assert ls(tmp_path)["recordings"][0]["labels"] == {"k": "\x1b[5m,\""}
    [row] = csv.DictReader(io.StringIO(run("ls", "--csv", tmp_path).stdout.decode()))
    assert row["exit_code"] == "0" and row["state"] == "complete"


def test_old_recordings(tmp_path):
    """Without the numbers at their end: they are read."""
    item = ls(GOLDEN / "stats")["recordings"][0]
    assert item["memory_peak_bytes"] == show(item["path"])["memory"]["peak_pss_bytes"]
    assert len(ls(GOLDEN)["recordings"]) >= 1


def test_what_is_not_there(tmp_path):
    done = run("ls", tmp_path / "nowhere")
    assert done.returncode == 2 and b"nowhere" in done.stderr
    done = run("ls", tmp_path)
    assert done.returncode == 0 and not done.stdout and b"there is no recording" in done.stderr
    assert ls(tmp_path)["recordings"] == []


@pytest.mark.parametrize("words", [["--since", "yesterday"], ["--command", "("], ["--json", "--csv"], ["--sort", "taste"]])
def test_questions_that_are_none(tmp_path, words):
    done = run("ls", *words, tmp_path)
    assert done.returncode == 2 and not done.stdout and done.stderr


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_it_fits_the_screen(runs, width):
    lines = on_terminal("ls", runs, columns=width, NO_COLOR="1").splitlines()
    assert len(lines) == 3
    for line in lines:
        assert "\x1b" not in line and len(line) <= width
    assert "b.tacho" in lines[1] and "3 " in lines[1]
    colored = on_terminal("ls", runs, columns=width, NO_COLOR="")
    assert "\x1b[31m" in colored
    assert [line for line in re.sub(r"\x1b\[[0-9;]*m", "", colored).splitlines()] == lines
    if width >= 120:
        assert "project=genome" in lines[1] and "LABELS" in lines[0]
    if width >= 200:
        assert "bytearray" in lines[1] and "COMMAND" in lines[0]


# ---- what cannot be opened ----


def as_stranger(folder, *words):
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", TACHO, *words]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "HOME": "/nonexistent"}, stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode, done.stderr.decode(), done.stdout.decode()


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_recordings_that_cannot_be_opened_are_named(runs):
    """A directory whose recordings belong to others is not an empty one; an older one is not shown without a word."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        if as_stranger(folder, "--version")[0]:
            pytest.skip(f"an ordinary user cannot run {TACHO}")
        status, err, _ = as_stranger(folder, "show")
        assert status == 2 and "there is no recording" in err
        for name, mode in ("a.tacho", 0), ("b.tacho", 0o600):
            shutil.copy(runs / "a.tacho", f"{folder}/{name}")
            os.chmod(f"{folder}/{name}", mode)
        questions = ["show", "show .", "report", "report .", "export", "export .", "plot", "ls", "check ."]
        for words in map(str.split, questions):
            status, err, out = as_stranger(folder, *words)
            assert status in (1, 2) and (err + out).count("Permission denied") == 2, (words, status, err)
            assert "a.tacho" in err + out and "b.tacho" in err + out and "there is no" not in err, (words, err)
        os.chmod(f"{folder}/a.tacho", 0o644)
        os.utime(f"{folder}/b.tacho")
        status, err, out = as_stranger(folder, "show")
        assert status == 0 and "b.tacho is newer, but cannot be opened: Permission denied" in err, err
        status, _, out = as_stranger(folder, "show", ".")
        assert status == 0 and "b.tacho cannot be opened: Permission denied" in " ".join(out.split()), out
        status, err, out = as_stranger(folder, "ls")
        assert status == 0 and "b.tacho: Permission denied" in err and "a.tacho" in out


def test_the_message_is_shown_wherever_the_recording_is(runs, tmp_path):
    summary = show(runs / "b.tacho")
    assert summary["message"] == "too much" and "message" not in summary["unavailable"]
    other = show(runs / "a.tacho")
    assert other["message"] is None and "--message" in other["unavailable"]["message"]
    assert re.search(r"^  message  too much$", run("show", runs / "b.tacho").stdout.decode(), re.M)
    assert "message" not in run("show", runs / "a.tacho").stdout.decode()
    listed = list(csv.DictReader(io.StringIO(run("ls", "--csv", runs).stdout.decode())))
    assert sorted(item["message"] for item in listed) == ["", "too much"]
    assert "| Message | too much |" in run("report", "--format", "md", "-o", "-", runs / "b.tacho").stdout.decode()
    page = run("report", "--format", "html", "-o", "-", runs / "b.tacho").stdout.decode()
    assert '<p class="message"><bdi>too much</bdi></p>' in page
