"""`tacho metrics --events`: the events of this machine, as text, JSON and names, and as its users see them."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from recorder import TACHO


def run(*words, **more):
    return subprocess.run([TACHO, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def listed(*words):
    done = run("metrics", "--events", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_text_json_and_names_agree():
    whole = json.loads(listed("--json"))
    events = {e["name"]: e for e in whole["events"]}
    assert len(events) == len(whole["events"])
    names = listed("--names").split()
    assert set(names) == {n for n in events if "…" not in n}
    assert {"cycles", "task-clock", "context-switches", "L1-dcache-load-misses"} <= set(names)
    text = listed()
    for name in ("cycles", "task-clock", "LLC-loads"):
        assert name in text
    for event in whole["events"]:
        assert event["available"] == (event["reason"] is None), event
        assert event["scope"] in ("task", "package")


def test_what_can_be_counted_is_what_the_kernel_counts():
    """task-clock needs no hardware: it is there exactly when the kernel lets us count our own processes."""
    whole = json.loads(listed("--json", "task-clock"))
    (event,) = whole["events"]
    assert event["available"] == whole["access"]["tasks"]
    if not whole["access"]["tasks"]:
        assert whole["access"]["reason"] and event["reason"]
    if not whole["access"]["hardware"]:
        assert whole["access"]["reason"]


def test_words_restrict_the_list():
    text = listed("page-faults", "LLC")
    assert "page-faults" in text and "LLC-stores" in text
    assert "branch-misses" not in text and "What may be counted" not in text
    done = run("metrics", "--events", "no-such-event-at-all")
    assert done.returncode == 1 and done.stdout == ""
    assert "no-such-event-at-all" in done.stderr and "tacho metrics --events" in done.stderr


def test_markdown_is_refused():
    done = run("metrics", "--events", "--markdown")
    assert done.returncode == 2 and "--markdown" in done.stderr


def test_lines_fit():
    for line in listed().splitlines():
        assert len(line) <= 80 or "=…" in line, line


@pytest.mark.skipif(os.geteuid() != 0, reason="another user can be played by root only")
def test_as_an_ordinary_user():
    """Whatever that user may do: every event has a state, and each refusal a reason."""
    with tempfile.TemporaryDirectory() as folder: # the binary may lie where only root comes
        binary = shutil.copy(TACHO, folder)
        os.chmod(folder, 0o755)
        done = subprocess.run([binary, "metrics", "--events", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              user=65534, group=65534, extra_groups=[], cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    events = {e["name"]: e for e in whole["events"]}
    assert events["task-clock"]["available"] == whole["access"]["tasks"]
    # It happens in the kernel: who may not count there would always see 0.
    assert events["context-switches"]["available"] == whole["access"]["kernel"]
    for event in events.values():
        assert event["available"] or event["reason"]


def test_the_play_of_a_capture_with_counters_records_the_same(tmp_path):
    if not json.loads(listed("--json", "task-clock"))["access"]["tasks"]:
        pytest.skip("the kernel refuses counters of our own processes")
    film, first, again = tmp_path / "film.txt", tmp_path / "first.tacho", tmp_path / "again.tacho"
    job = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        done = run("debug", "capture", film, first, "200ms", "1s", "+perf", str(job.pid))
        assert done.returncode == 0, done.stderr
    finally:
        job.kill()
        job.wait()
    assert "\ncounter " in film.read_text()
    done = run("debug", "play", film, again, "200ms", "+perf", str(job.pid))
    assert done.returncode == 0, done.stderr
    counted = [json.loads(run("show", "--json", path).stdout)["perf"] for path in (first, again)]
    assert counted[0] == counted[1]
    assert counted[0]["task_clock"]["value"] > 0
