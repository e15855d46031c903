"""`tacho compare`: real runs of known difference, conditions for CI, pages."""

import datetime
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from recorder import BURNERS, TACHO, record, run, show

MAKER = Path(TACHO).parent / "tests" / "unit" / "query_tool"
REPORT = Path(TACHO).parent / "tacho-report"
EXIT_CONDITION = 3


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs that hold 40 MiB and two that hold 120 MiB, each for a while."""
    folder = tmp_path_factory.mktemp("compare")
    for name, mib in (("small-1", 40), ("small-2", 40), ("large-1", 120), ("large-2", 120)):
        done = record([f"{BURNERS}/mem", "private", str(mib), "0.5"], "--interval", "50ms", output=folder / f"{name}.tacho")
        assert done.returncode == 0, done.stderr.decode()
    return folder


@pytest.fixture(scope="module")
def phases(tmp_path_factory):
    """Recordings of 100 s and 200 s, each with the phases load, solve and write."""
    folder = tmp_path_factory.mktemp("phases")
    for name, seconds in (("short", 100), ("long", 200)):
        subprocess.run([MAKER, "long", folder / f"{name}.tacho", str(seconds), "1", "4", "node1"], check=True)
    return folder / "short.tacho", folder / "long.tacho"


def compare(*words, **kwargs):
    kwargs.setdefault("env", {**os.environ, "LC_ALL": "C.UTF-8"})
    return run("compare", *words, **kwargs)


def compared(*words):
    done = compare("--format", "json", *words)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return json.loads(done.stdout)


def test_two_runs(runs):
    done = compare(runs / "small-1.tacho", runs / "large-1.tacho")
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode()
    row = next(line for line in text.splitlines() if "largest process, kernel's mark" in line)
    assert "+80 MiB" in row or "+79" in row or "+80." in row, row
    assert "interval_s" not in text
    assert "interval_s" in compare("--all", runs / "small-1.tacho", runs / "large-1.tacho").stdout.decode()


def test_repeated_runs(runs):
    small = [runs / f"small-{i}.tacho" for i in (1, 2)]
    large = [runs / f"large-{i}.tacho" for i in (1, 2)]
    answer = compared(*small, "--", *large)
    assert [len(one["runs"]) for one in answer["sets"]] == [2, 2]
    peak = answer["figures"]["memory.max_process_hwm_bytes"]
    before, after = peak["sets"]
    assert before["runs"] == after["runs"] == 2
    assert before["min"] <= before["mean"] <= before["max"]
    assert before["deviation"] is not None
    assert peak["changes"][0]["beyond_spread"] is True
    assert 79 << 20 < peak["changes"][0]["difference"] < 81 << 20
    # Each for itself: the first is the base.
    answer = compared(*small, *large)
    assert [one["title"] for one in answer["sets"]] == ["small-1.tacho", "small-2.tacho", "large-1.tacho", "large-2.tacho"]
    assert len(answer["figures"]["wall_s"]["changes"]) == 3
    assert answer["figures"]["wall_s"]["changes"][0]["beyond_spread"] is None


@pytest.mark.parametrize("rule, status", [
    ("memory.process>+10%", EXIT_CONDITION),
    ("memory.process>+70MiB", EXIT_CONDITION),
    ("memory.process>x2", EXIT_CONDITION),
    ("memory.process>100MiB", EXIT_CONDITION),
    ("memory.max_process_hwm_bytes >= +10%", EXIT_CONDITION),
    ("memory.process<+10%", 0),
    ("memory.process>x4", 0),
    ("memory.process>200MiB", 0),
    ("exit>0", 0),
    ("memory.procces>+10%", 2),
    ("energy>", 2),
    ("memory.process>10%", 2),
    ("gpus.nvidia-0.util_mean_percent>5", 2),
])
def test_conditions(runs, rule, status):
    done = compare("--fail-if", rule, runs / "small-1.tacho", runs / "large-1.tacho")
    assert done.returncode == status, done.stdout.decode() + done.stderr.decode()
    if status == EXIT_CONDITION:
        assert "failed  " + rule.strip() in " ".join(done.stdout.decode().split(" "))
    elif status == 2:
        assert done.stderr and not done.stdout


def test_a_condition_on_what_was_not_measured_never_passes(runs):
    done = compare("--fail-if", "perf.cycles>+1%", runs / "small-1.tacho", runs / "large-1.tacho")
    assert done.returncode == 2
    answer = compared(runs / "small-1.tacho", runs / "large-1.tacho")
    unknown = [name for name, figure in answer["figures"].items() if not figure["sets"][1]["runs"]]
    for name in unknown[:5]:
        done = compare("--fail-if", f"{name}>+1%", runs / "small-1.tacho", runs / "large-1.tacho")
        assert done.returncode == 2, name
        assert b"is not known of" in done.stderr


def test_all_conditions_count(runs):
    words = ["--fail-if", "memory.process>x4", "--fail-if", "memory.process>+1%"]
    done = compare(*words, "--format", "json", runs / "small-1.tacho", runs / "large-1.tacho")
    assert done.returncode == EXIT_CONDITION
    assert [one["failed"] for one in json.loads(done.stdout)["conditions"]] == [False, True]
    assert b"memory.process>+1%" in done.stderr and b"x4" not in done.stderr


def test_phases_by_name(phases):
    answer = compared(*phases)
    load = answer["phases"]["phases.load.duration_s"]
    assert load["changes"][0]["ratio"] == pytest.approx(2, rel=0.1)
    assert answer["phases"]["phases.solve.cpu_s"]["sets"][0]["mean"] > 0
    assert compare("--fail-if", "phases.solve.duration_s>x1.5", *phases).returncode == EXIT_CONDITION
    text = compare(*phases).stdout.decode()
    assert "write: wall time" in text and "phases." not in text, "people read titles"
    assert b"phases.write.duration_s" in compare("--all", *phases).stdout, "--all has the names for --fail-if"


def test_what_is_interpolated_is_marked(phases, tmp_path):
    """A phase between two samples: what it used is a guess, how long it took is known."""
    log = tmp_path / "log.jsonl"
    for recording, seconds in zip(phases, (0.3, 0.6)):
        start = datetime.datetime.fromisoformat(show(recording)["start"])
        line = {"ts": (start + datetime.timedelta(seconds=10.2)).isoformat(), "type": "phase", "name": "blink", "seconds": seconds}
        log.write_text(json.dumps(line) + "\n")
        copy = tmp_path / recording.name
        shutil.copy(recording, copy)
        assert run("annotate", copy, log).returncode == 0
    words = tmp_path / phases[0].name, tmp_path / phases[1].name
    figures = compared(*words)["phases"]
    assert all(of["interpolated"] for of in figures["phases.blink.cpu_s"]["sets"])
    assert not any(of["interpolated"] for name in ("blink.duration_s", "solve.cpu_s", "blink.each_s") for of in figures[f"phases.{name}"]["sets"])
    rows = {line.split()[0]: line.split()[1:3] for line in compare("--all", *words).stdout.decode().splitlines() if "phases." in line}
    assert all(value.startswith("~") for value in rows["phases.blink.cpu_s"]) and "~" not in "".join(rows["phases.blink.duration_s"])
    page, markdown = tmp_path / "page.html", tmp_path / "c.md"
    assert compare("--all", "-o", page, *words).returncode == 0 and compare("--all", "-o", markdown, *words).returncode == 0
    for text in (page.read_text(), markdown.read_text(), compare("--all", *words).stdout.decode()):
        assert "before a value: interpolated between samples" in " ".join(text.split())
    assert b"interpolated" not in compare("--all", phases[0], phases[1]).stdout


def test_phases_that_are_the_same_are_not_told(phases, runs, tmp_path):
    assert b"phases." not in compare(phases[0], phases[0]).stdout
    assert b"phases.write.duration_s" in compare("--all", phases[0], phases[0]).stdout
    other = runs / "small-1.tacho"
    text = compare(phases[0], other).stdout.decode()
    assert "only in before: load, solve, write\n" in text and "phases." not in text
    page = tmp_path / "page.html"
    assert compare("-o", page, other, phases[0]).returncode == 0
    assert "only in after: load, solve, write</p>" in page.read_text()


def test_the_first_line_is_the_verdict(phases, runs, tmp_path):
    first = compare(*phases).stdout.decode().splitlines()[0]
    assert first.startswith("verdict took 2.0 times as long, CPU time +") and "; slower in phase " in first
    back = compare(*reversed(phases)).stdout.decode().splitlines()[0]
    assert back.startswith("verdict 2.0 times as fast, CPU time -") and "; faster in phase " in back
    same = compare(phases[0], phases[0]).stdout.decode().splitlines()[0]
    assert same == "verdict equally fast, CPU time unchanged, memory unchanged"
    several = compare(phases[0], *phases).stdout.decode().splitlines()
    assert several[0].startswith("verdict short.tacho: equally fast") and several[1].startswith("verdict long.tacho: took 2.0 times")
    repeated = [runs / f"small-{i}.tacho" for i in (1, 2)], [runs / f"large-{i}.tacho" for i in (1, 2)]
    text = compare(*repeated[0], "--", *repeated[1]).stdout.decode()
    assert "memory x3" in text.splitlines()[0] or "memory x2" in text.splitlines()[0], text
    page = tmp_path / "p.md"
    done = compare("-o", page, *phases)
    assert done.stdout.decode() == f"{page}\n", "it says where it wrote"
    assert f"**{first.removeprefix('verdict ')}" in page.read_text()


def test_other_commands_are_named(runs):
    text = " ".join(compare(runs / "small-1.tacho", runs / "large-1.tacho").stdout.decode().split())
    assert "warning commands differ: " in text and "mem private 40 0.5 and " in text
    assert b"commands differ" not in compare(runs / "small-1.tacho", runs / "small-2.tacho").stdout


def test_markdown(phases, tmp_path):
    to = tmp_path / "c.md"
    done = compare("-o", to, *phases)
    assert done.returncode == 0, done.stderr.decode()
    text = to.read_text()
    assert text.startswith("# Comparison\n") and "|---|---:|" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({row.count(" |") + row.count("| ") for row in rows}) <= 2
    assert compare("-o", to, *phases).returncode == 2  # it is there already


@pytest.mark.parametrize("words", [[], ["one.tacho"], ["--", "one.tacho"], ["one.tacho", "--"], ["none-1.tacho", "none-2.tacho"]])
def test_wrong_use(words, tmp_path):
    (tmp_path / "one.tacho").write_bytes(b"")
    done = compare(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(b"tacho: ")


def test_damaged_recordings(phases, tmp_path):
    data = phases[1].read_bytes()
    cut = tmp_path / "cut.tacho"
    cut.write_bytes(data[:len(data) // 2])
    done = compare(phases[0], cut)
    assert done.returncode == 0, done.stderr.decode()
    assert "unfinished" in done.stdout.decode()
    cut.write_bytes(data[:40])
    assert compare(phases[0], cut).returncode in (0, 1, 2)


def test_hosts_that_differ_are_named(phases, tmp_path):
    other = tmp_path / "other.tacho"
    subprocess.run([MAKER, "long", other, "100", "1", "4", "node<2>"], check=True)
    assert b"hosts differ: node1 and node<2>" in compare(phases[0], other).stdout


def test_the_page(phases, tmp_path):
    if not REPORT.exists():
        pytest.skip("tacho-report was not built: cairo and pango are missing")
    page = tmp_path / "c.html"
    done = compare("--align", "phases", "--fail-if", "wall>+10%", "-o", page, *phases)
    assert done.returncode == EXIT_CONDITION, done.stderr.decode()
    assert b"failed: wall>+10%" in done.stderr and done.stdout.decode() == f"{page}\n"
    text = page.read_text()
    assert 'id="panel-compare-cpu"' in text and 'id="panel-compare-memory"' in text
    assert text.count("<img class=\"light\"") == text.count("<img class=\"dark\"") > 3
    assert "http://" not in text.replace("http://www.w3.org", "") and "<script" not in text
    folder = tmp_path / "all"
    done = compare("-o", f"{folder}/", *phases)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == f"{folder}/compare.html\n" and (folder / "compare.html").exists()
    assert (folder / "plots" / "compare-cpu.png").read_bytes().startswith(b"\x89PNG")
    assert "](plots/compare-cpu.png)" in (folder / "compare.md").read_text()
