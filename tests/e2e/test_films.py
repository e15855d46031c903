"""The whole recorder on films: what was filmed is what is recorded, and a capture of a live machine plays back the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recorder import dump, lasting, run, show, shown, until

FILMS = Path(__file__).resolve().parent.parent / "films"
DECODER = Path(__file__).resolve().parent.parent / "decoder.py"


def play(film, output, interval, *pids):
    done = run("debug", "play", film, output, interval, *pids)
    assert done.returncode == 0, done.stderr
    return output


def test_a_tree_through_everything(tmp_path):
    """Processes that join, are reaped by a member, orphaned, replaced by a stranger under the same PID, and end."""
    says = show(play(FILMS / "tree.txt", tmp_path / "film.tacho", "1s", 100))
    # At the first sample 100 and 101 had used 1.5 s; at the end 1.3 + 0.55 (reaped) + 0.2 (with it) + 0.3 (orphan).
    assert says["cpu"]["total_s"] == pytest.approx(0.85, abs=1e-6)
    assert says["processes"]["seen"] == 4
    assert says["processes"]["peak"] == 3
    assert says["io"]["write_bytes"] == 5000
    assert says["ticks"]["missed"] == 0
    # Three processes of 200 pages, 150 of them proportional.
    assert says["memory"]["peak_rss_bytes"] == 3 * 200 * 4096
    assert says["memory"]["peak_pss_bytes"] == 3 * 150 * 4096
    assert says["memory"]["max_process_hwm_bytes"] == 900 * 1024
    assert any("clock" in note for note in says["notes"])


def test_the_stranger_under_a_reused_pid_is_not_recorded(tmp_path):
    recording = play(FILMS / "tree.txt", tmp_path / "film.tacho", "1s", 100)
    done = run("show", "--processes", "--json", recording)
    names = [process["name"] for process in json.loads(done.stdout)["processes"]]
    assert sorted(names) == ["a b) (c", "child", "grandchild", "late"]


def test_a_capture_never_writes_through_a_link(tmp_path):
    target, link, film = tmp_path / "precious", tmp_path / "link.txt", tmp_path / "film.txt"
    target.write_text("precious")
    link.symlink_to(target)
    done = run("debug", "capture", link, tmp_path / "a.tacho", "100ms", "100ms", os.getpid())
    assert done.returncode == 1 and b"symbolic link" in done.stderr
    assert target.read_text() == "precious" and link.is_symlink() and not (tmp_path / "a.tacho").exists()
    # A file with two names is replaced, not written into.
    os.link(target, film)
    done = run("debug", "capture", film, tmp_path / "a.tacho", "100ms", "100ms", os.getpid())
    assert done.returncode == 0, done.stderr
    assert target.read_text() == "precious" and film.read_text().startswith("# Captured")


def test_a_capture_plays_back_the_same(tmp_path):
    job = subprocess.Popen([sys.executable, "-c", "import time\nwhile True:\n sum(range(5000)); time.sleep(0.01)"])
    try:
        film, live, played = tmp_path / "film.txt", tmp_path / "live.tacho", tmp_path / "played.tacho"
        done = run("debug", "capture", film, live, "100ms", "600ms", job.pid)
        assert done.returncode == 0, done.stderr
    finally:
        job.kill()
        job.wait()
    assert film.stat().st_mode & 0o077 == 0, "a film of other people's processes is nobody's business"
    play(film, played, "100ms", job.pid)
    # The capture ends by the clock, its play by the end of the film; all that was recorded must be the same.
    kinds = ("instance", "gone", "tick")
    a, b = ([r for r in dump(path) if r["type"] in kinds] for path in (live, played))
    assert len(a) > 5
    assert a == b


def test_the_independent_decoder_agrees_on_a_real_recording(tmp_path):
    output = tmp_path / "run.tacho"
    with lasting(["sh", "-c", "for i in 1 2 3; do sleep 0.05; done; read line; true"], "-i", "20ms", output=output):
        until(lambda: shown(output).get("ticks", {}).get("taken", 0) > 5, "some ticks")
    decoded = subprocess.run([sys.executable, DECODER, output], stdout=subprocess.PIPE, check=True)
    theirs = [json.loads(line) for line in decoded.stdout.splitlines()]
    ours = dump(output)
    assert sum(r["type"] == "tick" for r in ours) > 5
    assert theirs == ours
