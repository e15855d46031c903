"""`tacho top` through a real terminal: every number is the recording's, every key does what the page of keys says, and the
terminal is as it was after every kind of end."""

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import hostile
import pytest

from exported import tool
from recorder import BURNERS, TACHO, record, run, start, until
from top_terminal import top

JOB = """
import os, subprocess, sys, time
tacho = sys.argv[1]
subprocess.run([tacho, "phase", "begin", "load"])
kept = []
for i in range(10):
    kept.append(bytearray(4 << 20))
    time.sleep(0.05)
child = subprocess.Popen([sys.executable, "-c", "import time; x = bytearray(8 << 20); time.sleep(1.5)"])
subprocess.run([tacho, "phase", "end", "load"])
subprocess.run([tacho, "phase", "begin", "compute"])
end = time.monotonic() + 1.2
while time.monotonic() < end:
    pass
subprocess.run(["sh", "-c", "exit 3"])
child.wait()
subprocess.run([tacho, "phase", "end", "compute"])
"""
GOLDEN = Path(__file__).resolve().parent.parent / "golden"
FILMS = Path(__file__).resolve().parent.parent / "films"
ESCAPES = "a\033[31m\033]0;owned\007b\u202ec\u4e2d\u6587"


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A finished run with two phases, memory that grows, and a child."""
    path = tmp_path_factory.mktemp("top") / "job.tacho"
    done = record([sys.executable, "-c", JOB, TACHO], "-q", "-i", "100ms", output=path)
    assert done.returncode == 0, done.stderr
    return path


def series(recording, *metrics, pid=None):
    words = ["show", "--series", ",".join(metrics), "--json", recording] + (["--pid", pid] if pid else [])
    done = run(*words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def points(recording, metric, pid=None):
    """(time, value) of a metric."""
    done = run(*["show", "--series", metric, "--csv", recording, *(["--pid", pid] if pid else [])])
    assert done.returncode == 0, done.stderr
    head, *rows = [line.split(",") for line in done.stdout.decode().splitlines()]
    at, value = head.index("time_s"), len(head) - 1
    return [(float(row[at]), float(row[value]) if row[value] else math.nan) for row in rows]


def plain(recording, *words, columns=200, rows=60, **env):
    done = run("top", *words, recording, env={**os.environ, "COLUMNS": str(columns), "LINES": str(rows), "LC_ALL": "C.UTF-8", **env})
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "": 1}


def size(number, unit):
    return float(number) * UNITS[unit]


def is_shown(shown, value):
    """To the three digits that are shown."""
    return math.isnan(value) or shown == pytest.approx(value, rel=0.006, abs=0.051 if value < 1000 else 0)


def near(shown, value, digits):
    return abs(shown - value) <= 0.5 * 10**-digits + 0.006 * abs(value)


# ---- numbers ----


def test_numbers_of_a_moment_are_those_of_the_series(job):
    cores, memory = points(job, "tree.cores"), dict(points(job, "proc.mem.pss_now"))
    chosen = [point for i, point in enumerate(cores) if i % 5 == 3 and i + 1 < len(cores)]
    assert len(chosen) >= 4
    for at, value in chosen:
        text = plain(job, "--at", f"{at + 0.002:.6f}")
        shown = re.search(r"CPU ([\d.]+) of", text)
        assert shown, text
        digits = len(shown[1].partition(".")[2])
        assert near(float(shown[1]), value, digits), (at, value, text)
        shown = re.search(r"MEM ~?([\d.]+) (\w+) of", text)
        assert size(shown[1], shown[2]) == pytest.approx(memory[at], rel=0.006), (at, text)


def test_numbers_of_processes_are_those_of_the_series(job):
    processes = json.loads(run("show", "-p", "--json", job).stdout)["processes"]
    largest = max(processes, key=lambda p: p["peak_rss_bytes"] or 0)
    rss, cores = points(job, "proc.mem.rss", largest["pid"]), dict(points(job, "proc.cpu.cores", largest["pid"]))
    seen = 0
    for at, value in rss[2::6]:
        if math.isnan(value):
            continue
        text = plain(job, "--at", f"{at + 0.002:.6f}")
        head = next(line for line in text.splitlines() if line.split()[:1] == ["PID"]).split()
        line = next(line for line in text.splitlines() if line.split()[:1] == [str(largest["pid"])] and " x " not in line).split()
        shown = re.fullmatch(r"([\d.]+)([KMG]?)", line[head.index("RSS")])
        assert size(shown[1], shown[2]) == pytest.approx(value, rel=0.006), (at, text)
        if not math.isnan(cores[at]):
            assert near(float(line[head.index("CPU%")]), 100 * cores[at], 1), (at, text)
        seen += 1
    assert seen >= 3


def test_the_ended_have_their_final_accounts(job):
    processes = {p["pid"]: p for p in json.loads(run("show", "-p", "--json", job).stdout)["processes"]}
    text = plain(job)  # it is over: the ended are shown
    rows = [line.split() for line in text.splitlines() if line.split()[:1] and line.split()[0].isdigit() and " x " in line]
    head = next(line for line in text.splitlines() if line.split()[:1] == ["PID"]).split()
    assert len(rows) == len([p for p in processes.values() if p["end_s"] is not None])
    for row in rows:
        said = processes[int(row[0])]
        shown = re.fullmatch(r"([\d.]+)([KMG]?)", row[head.index("RSS")])
        if shown and said["peak_rss_bytes"]:
            assert size(shown[1], shown[2]) == pytest.approx(said["peak_rss_bytes"], rel=0.006)
    assert "ended with 3" in text
    assert "READ" in head and "WRITE" in head and "READ/s" not in head, "totals"
    shown, said = re.search(r"peak ([\d.]+) (\w+)", text), json.loads(run("show", "--json", job).stdout)["memory"]
    assert size(shown[1], shown[2]) == pytest.approx(max(said.get(key) or 0 for key in ("peak_pss_bytes",)), rel=0.006), said
    assert "peak" not in plain(job, "--at", "50%") and "READ/s" in plain(job, "--at", "50%")


def test_stepping_back_and_jumping_agree(job):
    """The same moment, come to by steps from the end, from the start, and at once."""
    times = [at for at, _ in points(job, "tree.cores")]
    with top(job, columns=140, rows=40) as t:
        t.until("ended", "the end")
        t.type("x")  # only the living
        t.type("left", "left", "left")
        t.until("back", "a step back")
        t.settle()
        back = t.lines()
        t.type("home")
        t.until("paused at 0m00.", "the start")
        for _ in range(len(times) - 4):
            t.type("right")
        t.settle()
        assert t.lines()[0] == back[0]
        assert strip_moment(t.lines()) == strip_moment(back)


def strip_moment(lines):
    return [line for line in lines if "processes" not in line or "of" not in line][1:-2]


# ---- sizes and terminals ----


@pytest.mark.parametrize(("columns", "rows"), [(20, 5), (31, 7), (40, 10), (60, 16), (80, 24), (132, 43), (250, 60), (400, 100)])
def test_every_size_is_usable(job, columns, rows):
    with top(job, "--at", "50%", columns=columns, rows=rows) as t:
        text = t.until(lambda: "MEM" in t.text() and t.text(), "panels")
        assert "CPU" in text or rows < 8
        assert "PID" in text
        t.type("?")
        t.until("Time", "the page of keys")
        t.type("esc")
        t.until("PID", "the table again")
        t.type("q")
        assert t.end() == 0
        assert t.is_restored()


def test_resizing_draws_anew(job):
    with top(job, columns=120, rows=40) as t:
        t.until("PID", "the table")
        for columns, rows in [(60, 20), (20, 5), (200, 50), (80, 24)]:
            t.resize(columns, rows)
            t.until(lambda: "PID" in t.text() and t.lines()[0].endswith("ended"), f"{columns}x{rows}")
        t.type("q")
        assert t.end() == 0


@pytest.mark.parametrize(
    ("env", "pattern"),
    [
        ({"TERM": "xterm-256color"}, rb"\033\[0[0-9;]*;38;5;\d+"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, rb"\033\[0[0-9;]*;38;2;\d+"),
        ({"TERM": "linux"}, rb"\033\[0[0-9;]*;3\d[;m]"),
        ({"TERM": "never-heard-of"}, rb"\033\[0[0-9;]*;3\d[;m]"),
    ],
)  # fmt: skip
def test_colours_are_those_of_the_terminal(job, env, pattern):
    with top(job, env=env) as t:
        t.until("PID", "the table")
        assert re.search(pattern, t.raw)


def test_without_colours_and_without_utf8(job):
    with top(job, env={"NO_COLOR": "1", "LC_ALL": "C"}) as t:
        t.until("PID", "the table")
        assert not re.search(rb"\033\[[0-9;]*[34]8;|\033\[[0-9;]*;[34]\d[;m]", t.raw)
        assert all(byte < 0x80 for byte in t.raw)
        assert "<- -> time" in t.lines()[-1] and "?" not in t.text().replace("?help", ""), t.text()
        t.type("q")
        assert t.end() == 0


def test_a_terminal_of_lines_gets_text(job):
    with top(job, env={"TERM": "dumb"}) as t:
        assert t.end() == 0
        assert b"\033" not in t.raw and b"PID" in t.raw


# ---- keys ----


def test_filter_keeps_ancestors_and_search_finds(job):
    processes = json.loads(run("show", "-p", "--json", job).stdout)["processes"]
    pids = {p["pid"] for p in processes}
    child = next(p["pid"] for p in processes if p["ppid"] in pids)
    with top(job, columns=160, rows=40) as t:
        t.until("ended", "the run")
        t.type("\\", str(child))
        text = t.until(lambda: re.search(r"(\d+) of (\d+) processes", t.text()) and f"filter: {child}" in t.text() and t.text(), "a filter")
        shown, of = map(int, re.search(r"(\d+) of (\d+) processes", text).groups())
        assert 2 <= shown < of, text  # itself, and its parent
        t.type("enter", "esc")
        t.until(lambda: f"{of} of {of} processes" in t.text(), "all again")
        t.type("t", "/", str(child), "enter")
        t.until(lambda: chosen(t) and str(child) in chosen(t), "the search")
        t.type(" ")
        t.type("I", "P", "M", "T", "<", ">", "H", "c", "U", "F", "+", "-", "u", "nobody-of-that-name", "enter")
        t.until("no process matches", "a user without processes")
        t.type("esc")
        t.until(lambda: "no process matches" not in t.text(), "all users")


def chosen(t):
    """The line of the cursor: it is drawn in reverse, and is not the heading."""
    for row in range(t.screen.lines):
        if t.screen.buffer[row][0].reverse and not t.lines()[row].lstrip().startswith("PID"):
            return t.lines()[row]
    return None


def test_orders_are_chosen_by_headings_keys_and_the_list(job):
    with top(job, columns=160, rows=40) as t:
        t.until("PID", "the table")
        t.type("t")
        row = next(i for i, line in enumerate(t.lines()) if line.lstrip().startswith("PID"))
        t.click(t.lines()[row].index("RSS"), row)
        t.until(lambda: "RSS▽" in t.lines()[row], "sorted by the heading")
        sizes = [size(*re.fullmatch(r"([\d.]+)([KMG]?)", line.split()[6]).groups()) for line in t.lines()[row + 1 : row + 6]]
        assert sizes == sorted(sizes, reverse=True)
        t.click(t.lines()[row].index("RSS"), row)
        t.until(lambda: "RSS△" in t.lines()[row], "turned around")
        t.type("f6")
        t.until("Order by", "the list of orders")
        t.type("home", "esc")
        t.type("f6", "down", "enter")
        t.until(lambda: "Order by" not in t.text(), "back")


def test_going_to_times(job):
    with top(job, columns=120, rows=40) as t:
        t.until("ended", "the run")
        for typed, seen in [("1s", r"paused at 0m01\.0s"), ("-500ms", r"paused at 0m00\.5s"), ("+1s", r"paused at 0m01\.5s"), ("50%", "paused")]:
            t.type("j", typed, "enter")
            t.until(lambda seen=seen: re.search(seen, t.lines()[0]), typed)
        t.type("j", "phase compute", "enter")
        t.until("phase compute", "by name")
        t.type("j", "phase 1", "enter")
        t.until("phase load", "by number")
        t.type("j", "nonsense", "enter")
        t.until("is no time", "what is no time")
        t.type("j", "phase 77", "enter")
        t.until("there is no phase", "what is no phase")
        t.type("end")
        t.until(lambda: "ended" in t.lines()[0], "the end")
        bar = next(i for i, line in enumerate(t.lines()) if "┃" in line)
        t.click(60, bar)
        t.until(lambda: "back" in t.lines()[0], "a click on the time bar")
        t.type("shift-right", "shift-left", "i", "o", "Z")
        t.until(lambda: "playing" in t.lines()[0] or "ended" in t.lines()[0], "play")


def test_findings_and_marks(job, tmp_path):
    copy = tmp_path / "job.tacho"
    copy.write_bytes(job.read_bytes())
    with top(copy, columns=120, rows=40) as t:
        t.until("ended", "the run")
        t.type("e")
        t.until("Esc: back", "the page of findings")
        assert re.search(r"^ ?(fine|note|warning|serious): ", t.text(), re.M) or "nothing" in t.text() or "short" in t.text(), t.text()
        t.type("esc", "j", "1s", "enter", "m", "here it began", "enter")
        t.until("mark 'here it began' at 1.0 s", "a mark")
    assert b"here it began" in run("log", copy).stdout


def test_a_report_is_written(job, tmp_path):
    copy = tmp_path / "job.tacho"
    copy.write_bytes(job.read_bytes())
    with top(copy, columns=200, rows=40) as t:
        t.until("ended", "the run")
        t.type("r")
        t.until(lambda: "report: " in t.text() or "no report" in t.text(), "a report")
        assert "no report" not in t.text()
    assert (tmp_path / "job.html").exists()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of two minutes that is always the same: twenty processes of two users, phases, a mark."""
    path = tmp_path_factory.mktemp("made") / "made.tacho"
    long_recording(path, 120, 20)
    return path


def rows_of(t):
    """The rows of the table, as words."""
    lines = t.lines()
    head = next(i for i, line in enumerate(lines) if line.lstrip().startswith("PID"))
    return lines[head], [line.split() for line in lines[head + 1 : -2] if line.split()]


@contextlib.contextmanager
def in_the_middle(made, **size):
    with top(made, "--at", "60.01", **{"columns": 160, "rows": 40, **size}) as t:
        t.until(lambda: "paused at 1m00.0s" in t.lines()[0] and "20 of 20 processes" in t.text(), "the middle")
        yield t


def test_keys_of_orders(made):
    with in_the_middle(made) as t:
        t.type("t")
        t.until(lambda: "CPU%▽" in rows_of(t)[0] and "├" not in t.text(), "a list, by CPU")
        for key, title in [("M", "MEM▽"), ("P", "CPU%▽"), ("T", "TIME▽"), (">", "MEM▽"), ("<", "TIME▽"), ("I", "TIME△"), ("I", "TIME▽")]:
            t.type(key)
            t.until(lambda title=title: title in rows_of(t)[0], f"{key}: {title}")
        seconds = [float(m[1]) for row in rows_of(t)[1] if (m := re.fullmatch(r"([\d.]+)s", row[4]))]
        assert len(seconds) > 5 and seconds == sorted(seconds, reverse=True)
        t.type("f6")
        t.until("Order by", "the list of orders")
        t.type("down", "enter")
        t.until(lambda: "MEM▽" in rows_of(t)[0], "the next one")
        t.type("t")
        t.until(lambda: "├" in t.text(), "a tree again")


def test_keys_of_the_list(made):
    with in_the_middle(made) as t:
        pids = [row[0] for row in rows_of(t)[1]]
        for key, row in [("down", 1), ("down", 2), ("up", 1), ("page-down", 19), ("page-up", 0)]:
            t.type(key)
            t.until(lambda row=row: chosen(t) and chosen(t).split()[0] == pids[row], f"{key}: row {row}")
        t.type("/", "worker", "enter")
        t.until(lambda: chosen(t).split()[0] in pids[:2], "the first match")
        at = pids.index(chosen(t).split()[0])
        t.type("n", "n")
        t.until(lambda: chosen(t).split()[0] == pids[at + 2], "the one after the next")
        t.type("page-up", "-")
        t.until("1 of 20 processes", "the root is folded")
        t.type("+")
        t.until("20 of 20 processes", "and unfolded")
        t.type("down", " ", " ")
        t.until("2 tagged: ", "two are tagged")
        t.type("U")
        t.until(lambda: "tagged" not in t.text(), "none is")
        t.type("F")
        t.until("follows", "it stays on the process")
        pid = chosen(t).split()[0]
        t.type("t", "M", "I")
        t.until(lambda: "MEM△" in t.text() and chosen(t).split()[0] == pid, "wherever that is")
        t.type("esc")
        t.until(lambda: "follows" not in t.text(), "no more")
        t.type("u", "1001", "enter")
        t.until("user: 1001", "processes of a user")
        assert {row[1] for row in rows_of(t)[1] if row[-1] == "-v"} == {"1001"}
        t.type("esc", "c")
        t.until(lambda: "worker -v" not in t.text() and "loader" in t.text(), "names")
        t.type("c")
        t.until("worker -v", "whole commands")


def test_keys_of_time_and_pages(made):
    with in_the_middle(made, columns=100) as t:
        for keys, clock in [("left", "0m59.0s"), ("shift-left", "0m49.0s"), ("right", "0m50.0s"), ("shift-right", "1m00.0s"), ("home", "0m00.0s")]:
            t.type(keys)
            t.until(f"paused at {clock}", keys)
        t.type("Z")
        t.until(lambda: "playing at 0m02.0s" in t.lines()[0], "it plays")
        t.type("Z")
        t.until("paused at", "it is paused")
        before = re.search(r"curves: (\S+)", t.text())[1]
        t.type("i")
        t.until(lambda: re.search(r"curves: (\S+)", t.text())[1] != before, "a shorter time")
        shorter = re.search(r"curves: (\S+)", t.text())[1]
        t.type("o")
        t.until(lambda: re.search(r"curves: (\S+)", t.text())[1] != shorter, "a longer time")
        for key in ("?", "h", "f1"):
            t.type(key)
            t.until("Left Right", "the page of keys")
            t.type("q")
            t.until("PID", "the table again")
        assert "THR" not in rows_of(t)[0]
        t.type("H")
        t.until(lambda: "THR" in rows_of(t)[0], "the column of threads")
        t.type("H", "end")
        t.until(lambda: " ended" in t.lines()[0] and "THR" not in rows_of(t)[0], "the end")
        t.type("x")
        t.until(lambda: "totals and peaks" not in t.text(), "the living alone")
        t.type("x")
        t.until("totals and peaks", "and those that had ended")
        t.type("w")
        t.until("this recording is kept already", "nothing is to be kept")


def test_marks_are_over_the_curves(made, tmp_path):
    """Those of the job, and one that is set now; on curves and on the time bar."""
    path = tmp_path / "made.tacho"
    path.write_bytes(made.read_bytes())
    at = float(re.search(r"([\d.]+)s .* mark +checkpoint", run("log", path).stdout.decode())[1])
    with top(path, "--at", f"{at + 1:.2f}", columns=120, rows=40) as t:
        t.until("paused at", "the moment")
        t.until(lambda: " mark checkpoint" in t.lines()[0], "its name, for a while")
        over = {i for i, line in enumerate(t.lines()) if "▾" in line}
        bar = len(t.lines()) - 2
        assert bar in over and len(over) >= 3, t.text()
        before = t.lines()[bar].count("▾")
        t.type("j", "20s", "enter", "m", "here \u202e now", "enter")
        t.until(lambda: " mark here \\u202e now" in t.lines()[0] and "' at 20.0 s" in t.text(), "it is set, and its name shown harmlessly")
        t.type("left")
        t.until(lambda: " mark here" not in t.lines()[0], "before it")
        t.type("home")
        t.until(lambda: t.lines()[bar].count("▾") == before + 1, "the new one on the bar, too")
        assert "\u202e".encode() not in t.raw
    with top(path, "--at", "20", columns=120, rows=40, env={"LC_ALL": "C"}) as t:
        t.until(lambda: " mark here" in t.lines()[0] and "v" in t.lines()[bar], "as it is in the file beside it")


def test_all_sizes_from_the_smallest_to_the_largest(made):
    """No line is wider, no frame higher than the terminal; memory and processes are always there."""
    for columns in (20, 23, 39, 40, 56, 63, 64, 80, 90, 110, 170, 255, 400):
        for rows in (5, 6, 7, 8, 11, 12, 14, 24, 100):
            lines = plain(made, "--at", "50%", columns=columns, rows=rows).splitlines()
            assert len(lines) <= rows and max(map(len, lines)) <= columns, (columns, rows)
            assert any("MEM" in line for line in lines[:3]) and any("PID" in line for line in lines), (columns, rows, lines)


# ---- a run in progress ----


def test_a_run_in_progress_is_followed_to_its_end(tmp_path):
    path = tmp_path / "live.tacho"
    with start("run", "-q", "-i", "100ms", "-o", path, "--", "sh", "-c", "sleep 2; sleep 0.5; exit 0") as recorder:
        until(path.exists, "the recording")
        with top(path, "--delay", "100ms") as t:
            t.until(lambda: " live" in t.lines()[0] and "sleep 2" in t.text(), "the first numbers")
            t.type("left")
            t.until("paused", "a moment ago")
            t.type("end")
            t.until(lambda: "live" in t.lines()[0], "live again")
            t.until("sleep 0.5", "what came later")
            t.until(lambda: "ended" in t.lines()[0], "the end")
            t.type("q")
            assert t.end() == 0
        assert recorder.wait() == 0


def test_the_recorder_is_killed(tmp_path):
    path = tmp_path / "killed.tacho"
    with start("run", "-q", "-i", "100ms", "-o", path, "--", "sleep", "2") as recorder:
        until(path.exists, "the recording")
        with top(path) as t:
            t.until("sleep 2", "the process")
            recorder.kill()
            t.until("the recorder is gone", "the alarm")
            assert t.lines()[0].endswith("unfinished"), t.text()  # the job may still run
            t.type("q")
            assert t.end() == 0
            assert t.is_restored()


def test_nothing_is_done_while_paused(tmp_path):
    path = tmp_path / "live.tacho"
    with start("run", "-q", "-i", "100ms", "-o", path, "--", "sleep", "60") as recorder:
        until(path.exists, "the recording")
        with top(path, "--delay", "100ms", "--cost") as t:
            t.until(lambda: "live" in t.lines()[0] and "sleep 60" in t.text(), "numbers")
            t.type("Z")
            t.until("paused", "pause")
            t.read(0.3)
            before, read = switches(t.process.pid), bytes_read(t.process.pid)
            assert t.read(1.5) == b""
            assert bytes_read(t.process.pid) == read
            assert switches(t.process.pid) - before <= 1
            t.type("q")
            assert t.end() == 0
        recorder.terminate()


def bytes_read(pid):
    with open(f"/proc/{pid}/io", encoding="ascii") as io:
        return int(io.readline().split()[1])


def switches(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)


def test_a_quiet_frame_is_small(tmp_path):
    path = tmp_path / "quiet.tacho"
    with start("run", "-q", "-o", path, "--", "sleep", "60") as recorder:
        until(path.exists, "the recording")
        with top(path, columns=120, rows=40) as t:
            t.until(lambda: "live" in t.lines()[0] and "sleep 60" in t.text(), "numbers")
            t.read(4)
            sizes = [len(frame) for frame in t.read(5).split(b"\033[?2026h") if frame]
            assert sizes and sorted(sizes)[len(sizes) // 2] < 1024, sizes
        recorder.terminate()


# ---- how it ends ----


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_the_terminal_is_restored_after_signals(job, number):
    if "asan" in TACHO and number not in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        pytest.skip("sanitizers have handlers of their own for crashes")
    with top(job) as t:
        t.until("PID", "the table")
        t.process.send_signal(number)
        assert t.end() == -number
        assert t.is_restored()


@pytest.mark.parametrize("key", ["q", "f10", "ctrl-c"])
def test_the_terminal_is_restored_after_keys(job, key):
    with top(job) as t:
        t.until("PID", "the table")
        t.type(key)
        assert t.end() == 0
        assert t.is_restored()


def process_state(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


@pytest.mark.parametrize("way", ["key", signal.SIGTSTP, signal.SIGSTOP])
def test_stopped_and_continued(job, way):
    with top(job) as t:
        t.until("PID", "the table")
        if way == "key":
            t.type("ctrl-z")
        else:
            t.process.send_signal(way)
        until(lambda: process_state(t.process.pid) == "T", "it is stopped")
        t.read(0.1)
        if way != signal.SIGSTOP:  # nothing can be done about that one
            assert t.is_restored()
        t.screen.reset()
        t.process.send_signal(signal.SIGCONT)
        t.until("PID", "everything is drawn again")
        t.type("q")
        assert t.end() == 0
        assert t.is_restored()


def test_the_terminal_goes_away(job):
    with top(job) as t:
        t.until("PID", "the table")
        os.close(t.theirs)
        os.close(t.ours)
        t.process.wait(timeout=20)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_our_own_recorder_crashes(tmp_path, number):
    with subprocess.Popen(["sleep", "60"]) as sleeper, top(sleeper.pid, env=temporary(tmp_path)) as t:
        t.until("sleep 60", "the target")
        child = Path(f"/proc/{t.process.pid}/task/{t.process.pid}/children").read_text(encoding="ascii").split()
        assert len(child) == 1
        os.kill(int(child[0]), number)
        t.until("the recorder is gone", "the alarm")
        t.type("q")
        t.end()
        assert t.is_restored()
        sleeper.kill()
    assert not list(tmp_path.glob("tacho-top-*"))


# ---- targets and commands ----


def temporary(tmp_path):
    return {"TMPDIR": str(tmp_path)}


def test_a_command_is_recorded_and_its_status_returned(tmp_path):
    with top("--delay", "200ms", "--", "sh", "-c", "echo said; sleep 1.5; exit 7", env=temporary(tmp_path)) as t:
        t.until("sleep 1.5", "the command's process")
        t.until(lambda: "ended" in t.lines()[0], "its end")
        t.type("q")
        assert t.end() == 7
        assert b"said" in t.raw[t.raw.rfind(b"\033[?1049l") :]
    assert not list(tmp_path.glob("tacho-top-*"))


def test_a_command_outlives_the_screen(tmp_path):
    with top("--", "sh", "-c", "sleep 2; touch done", env=temporary(tmp_path), cwd=tmp_path) as t:
        t.until("sleep 2", "the command's process")
        t.type("q")
        assert t.end() == 0
        assert (tmp_path / "done").exists()
        assert b"the command goes on" in t.process.stderr.read()


def test_w_keeps_the_recording(tmp_path):
    place, other = tmp_path / "place", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    with subprocess.Popen(["sleep", "60"]) as sleeper, top(sleeper.pid, env=temporary(other), cwd=place) as t:
        t.until("sleep 60", "the target")
        t.type("w", "kept", "enter")
        t.until("kept as kept.tacho", "it is kept")
        t.type("q")
        assert t.end() == 0
        sleeper.kill()
    assert not list(other.glob("tacho-top-*"))
    done = run("check", place / "kept.tacho")
    assert done.returncode == 0, done.stdout
    assert (place / "kept.tacho").stat().st_mode & 0o777 == 0o600


def test_a_target_that_is_not_there_is_named(tmp_path):
    with top("999999999", env=temporary(tmp_path)) as t:
        assert t.end() == 1
        said = t.process.stderr.read()
        assert b"999999999" in said and said.count(b"tacho: ") == 1, said
    assert not list(tmp_path.glob("tacho-top-*"))


def test_wrong_words_are_refused(job, tmp_path):
    assert run("top", tmp_path / "absent.tacho").returncode == 2
    assert b"give recordings or targets" in run("top", job, "4711x:").stderr
    bad = tmp_path / "bad.tacho"
    bad.write_bytes(b"no recording")
    assert run("top", bad).returncode == 2
    assert run("top", "--against", bad, job).returncode == 2
    assert b"is no time" in run("top", "--at", "soon", job).stderr


# ---- signals to processes ----


def test_no_signal_without_permission(tmp_path):
    path = tmp_path / "live.tacho"
    with start("run", "-q", "-o", path, "--", "sleep", "60") as recorder:
        until(path.exists, "the recording")
        with top(path) as t:
            t.until("sleep 60", "the process")
            t.type("k")
            t.until("--allow-kill", "it is refused")
        assert recorder.poll() is None
        with top(path, "--allow-kill") as t:
            t.until("sleep 60", "the process")
            t.type("/", "sleep", "enter", "k")
            t.until("Signal (TERM", "the question")
            t.type("enter")
            t.until(lambda: "signal 15 was sent" in t.text() or "ended" in t.lines()[0], "the signal")
        recorder.wait(timeout=30)


# ---- names ----


def test_names_with_escapes_are_harmless(tmp_path):
    script = tmp_path / "weird"
    script.write_text("#!/bin/sh\nsleep 1.5\n")
    script.chmod(0o755)
    path = tmp_path / "weird.tacho"
    done = record([script, ESCAPES, "\033[2J\x9b31m"], "-q", "-i", "100ms", output=path)
    assert done.returncode == 0
    with top(path, "--at", "50%", columns=160) as t:
        t.until("\\x1b[31m", "the name, escaped")
        assert b"\033]0;" not in t.raw and b"\033[31m" not in t.raw and b"\x9b" not in t.raw.replace(b"\xe2\x80\x9b", b"")
        assert "\u202e" not in t.text() and "\u4e2d" in t.text()
        t.type("/", "\x1b[31m", "esc")
        t.type("q")
        assert t.end() == 0


# ---- many nodes, an earlier run ----


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Two nodes of one run with two ranks each, the second of which has little to do."""
    folder = tmp_path_factory.mktemp("nodes")
    long_recording(folder / "a.tacho", 60, 20, "node01", "rank 0", "rank 1")
    long_recording(folder / "b.tacho", 60, 8, "node02", "rank 2", "rank 11")
    return folder


def long_recording(path, seconds, processes, host="node01", *groups):
    """A recording of one second a tick that is made, not recorded."""
    words = ["long", path, seconds, 1, processes, host, 0, *groups]
    subprocess.run([tool("query_tool"), *map(str, words)], check=True)


def test_many_nodes(nodes):
    with top(nodes, "--at", "60%", columns=120, rows=30) as t:
        t.until("paused at", "the moment")
        t.until("NODE", "rows of nodes")
        assert "2 nodes" in t.lines()[0]
        rows = [line.split()[:2] for line in t.lines() if re.match(r"node\d+ |  rank ", line)]
        assert [row[0] for row in rows] == ["node01", "rank", "rank", "node02", "rank", "rank"], t.text()
        assert [row[1] for row in rows if row[0] == "rank"] == ["0", "1", "2", "11"], "by their number"
        slow = [line.split()[:2] for line in t.lines() if "slow:" in line]
        assert slow[-1] == ["rank", "11"], t.text()
        t.type("-")
        t.until(lambda: "rank" not in t.text(), "only nodes")
        t.type("+")
        t.until("rank 11", "ranks again")
        for seen in [r"node01.*phase", "group rank 0", "group rank 1", "node02", "group rank 2", "group rank 11"]:
            t.type("g")
            t.until(lambda seen=seen: re.search(seen, t.lines()[0]) and "PID" in t.text(), seen)
        t.type("g")
        t.until("NODE", "all of them")
        t.type("down", "enter")
        t.until("group rank 0", "the chosen one")


def test_rows_of_ranks_are_those_of_the_series(nodes):
    for at in (0, 5, 23, 47, 59):
        text = plain(nodes, "--at", f"{at}.01" if at else "0", columns=120, rows=40)
        for name, file in [("rank 0", "a"), ("rank 11", "b")]:
            done = run("show", "--series", "group.cores,proc.mem.pss_now", "--group", name, "--csv", nodes / f"{file}.tacho")
            row = done.stdout.decode().splitlines()[1 + at].split(",")
            shown = re.search(rf"^  {name} +(\S+) +([\d.]+) (\w+)", text, re.M)
            assert shown, text
            assert shown[1] == "-" if not row[1] else near(float(shown[1]), float(row[1]), len(shown[1].partition(".")[2])), (at, row, shown[0])
            assert size(shown[2], shown[3]) == pytest.approx(float(row[2]), rel=0.006)


def test_groups_of_one_node_are_rows(nodes):
    with top(nodes / "a.tacho", "--at", "50%", columns=100, rows=30) as t:
        t.until("paused at", "the processes")
        t.type("g", "g", "g")
        t.until(lambda: "GROUP" in t.text() and re.search("^  rank 1 ", t.text(), re.M), "both groups")
        t.click(5, next(i for i, line in enumerate(t.lines()) if "rank 1" in line))
        t.type("enter")
        t.until("group rank 1", "the chosen one")


def test_an_earlier_run_is_behind(job):
    with top(job, "--against", job, "--at", "50%", columns=140, rows=40) as t:
        t.until(lambda: "of the earlier run" in t.text() and "paused at" in t.text(), "how far along it is")
        share = int(re.search(r"(\d+) % of the earlier run", t.text())[1])
        assert 40 <= share <= 60
        t.type("m", "here", "enter")


def ghosts(t):
    """Cells in the ink of the earlier run."""
    return sum(cell.fg == "808080" and cell.data != " " for row in range(t.screen.lines) for cell in t.screen.buffer[row].values())


def test_an_earlier_run_of_many_nodes_and_groups(nodes, tmp_path):
    """Half as long, and one group has another name: behind all, a node, a group; and why there is nothing."""
    (tmp_path / "run").mkdir()
    long_recording(tmp_path / "run" / "a.tacho", 60, 40, "node01", "rank 0", "rank 9")
    long_recording(tmp_path / "run" / "b.tacho", 60, 40, "node07", "rank 2", "rank 11")
    with top(nodes, "--against", tmp_path / "run", "--at", "70%", columns=160, rows=40) as t:
        t.until(lambda: "of the earlier run" in t.lines()[0] and ghosts(t), "behind all nodes")
        t.type("g")
        t.until(lambda: "node01" in t.lines()[0] and ghosts(t), "behind a node")
        t.type("g")
        t.until(lambda: "group rank 0" in t.lines()[0] and ghosts(t), "behind a group")
        t.type("g")
        t.until(lambda: "no such group in the earlier run" in t.lines()[0] and not ghosts(t), "no such group")
    with top(nodes, "--against", tmp_path / "run" / "a.tacho", "--at", "70%", columns=160, rows=40) as t:
        t.until(lambda: "of the earlier run" in t.lines()[0], "behind all nodes")
        t.type("down", "down", "down", "enter")
        t.until("no such node in the earlier run, which had 1", "no such node")


def open_recordings(pid):
    with contextlib.suppress(OSError):
        return [name for fd in Path(f"/proc/{pid}/fd").iterdir() if (name := os.readlink(fd)).endswith(".tacho")]
    return None


def test_runs_in_progress_with_few_files(tmp_path):
    """Where not all can be open at once each is opened when it has grown; to their end."""
    with contextlib.ExitStack() as stack:
        recorders = [stack.enter_context(start("run", "-q", "-i", "100ms", "-o", tmp_path / f"{name}.tacho", "--", "sh", "-c", "read line; exit 3",
                                               stdin=subprocess.PIPE)) for name in "ab"]  # fmt: skip
        until(lambda: all((tmp_path / f"{name}.tacho").exists() for name in "ab"), "two recordings")
        with top(tmp_path, "--delay", "100ms", columns=100, rows=30, wrapper=["sh", "-c", 'ulimit -n 44; exec "$@"', "sh"]) as t:
            t.until(lambda: "2 nodes" in t.lines()[0] and " live" in t.lines()[0] and "2 processes" in t.text(), "both of them")
            first = t.lines()[0]
            until(lambda: t.read(0.02) is not None and open_recordings(t.process.pid) == [], "none is open between two looks")
            t.until(lambda: " live" in t.lines()[0] and t.lines()[0] != first, "they are read on")
            for recorder in recorders:
                recorder.stdin.close()
                recorder.wait()
            t.until(lambda: "ended" in t.lines()[0] and "unfinished" not in t.text(), "their end")


def test_hundreds_of_nodes_with_few_files(tmp_path):
    """More than may be open at once, and one more that comes later."""
    first = tmp_path / "0.tacho"
    long_recording(first, 20, 5)
    for i in range(1, 120):
        (tmp_path / f"{i}.tacho").write_bytes(first.read_bytes())
    with top(tmp_path, columns=100, rows=30, wrapper=["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"]) as t:
        t.until(lambda: "120 nodes" in t.lines()[0] and "ended" in t.lines()[0], "all nodes")
        assert "Too many" not in t.text() and t.text().count(" ended") > 5, t.text()
        assert len(list(Path(f"/proc/{t.process.pid}/fd").iterdir())) < 20, "those that have ended are not kept open"
        (tmp_path / "later.tacho").write_bytes(first.read_bytes())
        t.until(lambda: "121 nodes" in t.lines()[0], "the one that came")
        t.type("j", "5s", "enter")
        t.until("paused at 0m05.0s", "the past")
        t.type("enter")
        t.until("PID", "a node's processes")
        t.type("q")
        assert t.end() == 0


def test_groups_are_shown_one_by_one(tmp_path):
    path = tmp_path / "groups.tacho"
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        done = run("run", "-q", "-i", "100ms", "--also", f"other={sleeper.pid}", "-o", path, "--", "sleep", "1.2")
        sleeper.kill()
    assert done.returncode == 0, done.stderr
    with top(path, "--at", "50%", columns=140) as t:
        t.until("sleep 60", "both")
        t.type("g")
        t.until("group", "a group")
        t.type("g")
        t.until(lambda: "group other" in t.text() and "sleep 1.2" not in t.text().split("\n", 1)[1], "the other group")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Ten thousand processes at once."""
    path = tmp_path_factory.mktemp("crowd") / "crowd.tacho"
    long_recording(path, 6, 10000)
    return path


def cost_of(stderr):
    names = ["frames", "writes", "bytes", "cpu_s", "rss_kib", "first_bytes"]
    return dict(zip(names, map(float, re.findall(r"[\d.]+", stderr.decode())), strict=True))


def test_ten_thousand_processes(crowd):
    """Counted, not timed: all are there, a frame has what fits on the screen, and memory is bounded."""
    processes = json.loads(run("show", "-p", "--json", crowd).stdout)["processes"]
    some = processes[7777]["pid"]
    with top(crowd, "--cost", "--at", "3.01", columns=120, rows=40) as t:
        t.until(lambda: "of 10000 processes" in t.text() and "paused at" in t.text(), "all of them")
        t.settle()
        sizes = []
        for keys in [("page-down",), ("down",), ("left",), ("right",), ("M",), ("t",), ("/", str(some), "enter")]:
            t.type(*keys)
            t.settle()
            sizes.append(max(len(frame) for frame in t.raw.split(b"\033[?2026h")))
        assert str(some) in chosen(t).split()[0]
        assert max(sizes) < 60000, "no more than a whole screen"
        t.type("\\", str(some), "enter")
        t.until("\n1 of 10000 processes", "one of them")
        t.type("t")
        t.until(lambda: re.search(r"\n[2-9] of 10000 processes", t.text()), "and its parents, in the tree")
        t.type("q")
        assert t.end() == 0
        cost = cost_of(t.process.stderr.read())
        if "asan" not in TACHO:
            assert cost["rss_kib"] < 150 << 10


@pytest.fixture(scope="module")
def half_a_day(tmp_path_factory):
    path = tmp_path_factory.mktemp("long") / "long.tacho"
    long_recording(path, 43200, 20)
    return path


def test_the_first_frame_does_not_wait_for_the_rest(half_a_day):
    """Of a long recording the end is shown before the rest is read: counted in bytes, not in seconds."""
    path = half_a_day
    read = []
    for _ in range(5):  # where there is hardly any CPU for it, more than one piece is read meanwhile
        with top(path, "--frames", "1", "--cost", columns=120, rows=40) as t:
            assert t.end() == 0
            assert b"11h59m" in t.raw
            read.append(cost_of(t.process.stderr.read())["first_bytes"])
        if read[-1] < path.stat().st_size:
            break
    assert min(read) < path.stat().st_size or "asan" in TACHO  # which is slow
    with top(path, columns=120, rows=40) as t:
        t.until(lambda: " ended" in t.lines()[0], "all of it")
        t.type("home")
        t.until("paused at 0m00.0s", "its first tick")


def test_those_that_have_ended_are_read_between_frames(tmp_path):
    path = tmp_path / "long.tacho"
    long_recording(path, 4 * 43200, 20)  # more than is read between two frames
    with top(path, "--at", "50%", "--delay", "50ms", columns=120, rows=40) as t:
        t.until("paused at", "the middle")
        t.until(lambda: "with those that ended" not in t.text(), "the living")
        t.type("x")
        t.type("i")  # keys are heard meanwhile
        t.until("with those that ended: totals and peaks", "all of them")
        t.until("ended with 0", "a process that had ended")


# ---- whatever a file holds ----


@pytest.mark.parametrize("weapon", [weapon.__name__ for weapon in hostile.WEAPONS])
def test_hostile_recordings_do_no_harm(tmp_path, weapon):
    path = tmp_path / f"{weapon}.tacho"
    path.write_bytes(getattr(hostile, weapon)())
    for words in [(), ("--at", "50%"), ("--at", "0")]:
        done = run("top", *words, path, env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "80", "LINES": "24"})
        assert done.returncode in (0, 1, 2), done.stderr
        assert b"\033" not in done.stdout


def test_recordings_of_older_versions(tmp_path):
    assert "MEM" in plain(GOLDEN / "format-1.tacho")
    assert "PID" in plain(GOLDEN / "stats" / "tools.tacho", "--at", "50%")


def test_a_film_with_gpus(tmp_path):
    path = tmp_path / "gpu.tacho"
    done = run("debug", "play", FILMS / "gpu-amd.txt", path, "1s", "1000")
    assert done.returncode == 0, done.stderr
    at, busy = next(point for point in points(path, "gpu.util") if point[1] == point[1])
    text = plain(path, "--at", f"{at + 0.002:.6f}")
    shown = re.search(r"GPU (\d+) % busy", text)
    assert shown and abs(int(shown[1]) - 100 * busy) <= 0.51, (at, busy, text)
