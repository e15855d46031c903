"""What is found in recorded runs of which earlier versions said something wrong: tests/golden/findings/README.md lists them."""

import json
from pathlib import Path

import pytest
from recorder import TACHO, on_terminal, run, show

RECORDINGS = Path(__file__).resolve().parent.parent / "golden" / "findings"
MIB = 1 << 20

if not (Path(TACHO).parent / "tacho-report").exists():
    pytest.skip("tacho-report is not built (cairo and pango)", allow_module_level=True)


@pytest.fixture(scope="module")
def stories():
    made = {}
    for recording in RECORDINGS.glob("*.tacho"):
        done = run("report", "--format", "json", "-o", "-", recording)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        made[recording.stem] = json.loads(done.stdout)
    return made


def found(story):
    return {f["id"]: f for f in story["findings"]}


def words(story):
    return " ".join(f"{f['title']} {f['text']}" for f in story["findings"])


def test_threads_that_others_kept_waiting_are_not_serial(stories):
    story = stories["contended"]
    assert story["summary"]["ticks"]["taken"] < 12
    assert set(found(story)) == {"node-full"}
    assert "serial" not in words(story) and "Ask for one" not in words(story)
    assert found(story)["node-full"]["panel"] == "node-cpu"


def test_what_others_have_in_the_group_is_not_the_jobs(stories):
    panels = {p["id"]: p for p in stories["session"]["panels"]}
    lines = panels["memory-views"]["lines"]
    assert lines and not any("cgroup" in line["name"] for line in lines)
    assert max(line["most"] for line in lines) < 100 * MIB
    # The group's own panel still has all of it.
    assert max(line["most"] for line in panels["cgroup-memory"]["lines"]) > 400 * MIB


def test_the_kill_is_where_it_happened(stories):
    story = stories["oom"]
    oom = found(story)["oom"]
    assert oom["title"].startswith("Out of memory: the kernel killed python3 (PID ")
    assert oom["title"].endswith(": limit 200 MiB of /job, used 200 MiB")
    assert "memory grew by" in oom["text"]
    (event,) = [e for e in story["events"] if e["kind"] == "oom"]
    assert event["time_s"] == pytest.approx(5.36, abs=0.05), "not at the tick after it, at 6 s"
    assert "python3 (PID " in event["label"]
    # By the limit that was reached, not by the memory of the machine.
    slurm = next(s["lines"] for s in story["advice"]["schedulers"] if s["scheduler"] == "slurm")
    assert "#SBATCH --mem=448M" in slurm
    assert "rounded up to 448 MiB" in story["advice"]["headroom"]


def test_bytes_that_never_reached_a_disk():
    says = show(RECORDINGS / "cancelled.tacho")
    assert says["io"]["write_bytes"] >= 215 * MIB and says["io"]["cancelled_bytes"] >= 200 * MIB
    (note,) = [n for n in says["notes"] if "never reached it" in n]
    assert "of the 215 MiB written to storage, 207 MiB" in note


def test_growth_in_a_run_of_few_ticks(stories):
    story = stories["growth"]
    assert story["summary"]["ticks"]["taken"] < 48
    assert "Memory grew steadily by 37.9 MiB/s" in found(story)["memory-growth"]["title"]
    assert "rounded up" in story["advice"]["headroom"]


def test_the_summary_ends_with_the_first_finding(stories):
    """The same as the report's, however it is made."""
    for name in ("oom", "contended", "growth"):
        first = stories[name]["findings"][0]
        assert first["weight"] != "fine"
        lines = run("show", RECORDINGS / f"{name}.tacho").stdout.decode().splitlines()
        at = max(i for i, line in enumerate(lines) if line.startswith("  finding "))
        assert " ".join(" ".join(lines[at:]).split()) == f"finding {first['title']}"
    # That a job slept is in the line of its CPU time.
    assert b"  finding " not in run("show", RECORDINGS / "session.tacho").stdout


def test_the_alarm_names_process_limit_and_time():
    text = " ".join(run("show", RECORDINGS / "oom.tacho").stdout.decode().split())
    assert "alarm out of memory: the kernel killed python3 (PID 5807) at 5.36s: limit 200 MiB of /job, used 200 MiB" in text


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_processes_never_lose_their_command(columns):
    lines = on_terminal("show", "-p", RECORDINGS / "oom.tacho", columns=columns).splitlines()
    assert lines[0].split()[-1] == "COMMAND" and lines[0].split()[0] == "PID"
    assert all(len(line) <= columns for line in lines)
    assert any("grow.py" in line for line in lines), lines
    assert ("SYS" in lines[0]) == (columns == 200)
