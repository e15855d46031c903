"""How often, by how many threads and with how many open files recordings are read: counted, never timed."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from recorder import can_trace

ROOT = Path(__file__).resolve().parent.parent.parent
TACHO = os.environ.get("TACHO", str(ROOT / "build" / "tacho"))
TOOL = Path(TACHO).parent / "tests" / "unit" / "query_tool"

ENDS = 0.6  # of a pass over the second half of a file: what is read of its end to find out how long it is
MANY = 60  # recordings

PASSES = {
    "show": ["show", "--json"],
    "processes": ["show", "-p", "--json"],
    "stats": ["show", "--stats", "--json"],
    "series": ["show", "--series", "tree.cpu", "--json"],
    "report": ["report", "--force", "-o", "{out}.html"],
    "report of a part": ["report", "--force", "--from", "10%", "--to", "95%", "-o", "{out}.html"],
    "report of a phase": ["report", "--force", "--phase", "solve", "-o", "{out}.html"],
    "plot of a part": ["plot", "--from", "10%", "--to", "95%", "tree.cores"],
    "plot of a phase": ["plot", "--phase", "solve", "tree.cores"],
    "series of a phase": ["show", "--series", "tree.cpu", "--phase", "solve"],
    "export of a phase": ["export", "--force", "-t", "csv", "--phase", "solve", "-o", "{out}/"],
    "all of a phase": ["export", "--force", "-t", "csv,perfmon-json", "--phase", "solve", "--per", "group", "-o", "{out}/"],
    "report for paper": ["report", "--force", "-f", "md,pdf", "-o", "{out}/"],
    "report for github": ["report", "--force", "-f", "github", "-o", "{out}/"],
    "statistics by all": ["show", "--stats", "--by", "all"],
    "jobstats": ["show", "--jobstats"],
    "report with numbers": ["report", "--force", "--all", "-o", "{out}/"],
    "log": ["log"],
    "ls": ["ls"],
    "check": ["check"],
    "plot": ["plot", "--force", "-o", "{out}.svg", "tree.cpu"],
    "export": ["export", "--force", "-t", "json", "-o", "{out}.json"],
    "parquet": ["export", "--force", "-t", "parquet", "-o", "{out}/"],
    "orc and csv": ["export", "--force", "-t", "orc,csv", "-o", "{out}/"],
    "wide": ["export", "--force", "-t", "csv", "--wide", "--every", "10s", "-o", "{out}/"],
    "part": ["export", "--force", "-t", "csv", "--until", "90%", "-o", "{out}/"],
}
FORMATS = ["csv", "json", "jsonl", "parquet", "arrow", "feather", "arrow-stream", "orc", "pickle", "openmetrics", "sqlite", "hdf5", "xlsx", "perfetto",
           "snakemake", "perfmon-json", "oasis-csv", "tyche-csv", "runlog", "tensorboard"]
TABLES = FORMATS[:FORMATS.index("perfetto")]
# Formats of tables are driven together: if one of them read a recording more often, all of them would. A spreadsheet of all ticks would
# have 150 MB, and the passes are the same.
PASSES["to all formats of tables"] = ["export", "--force", "-t", "{tables}", "--every", "10s", "-o", "{out}/"]
PASSES |= {f"to {name}": ["export", "--force", "-t", name, "-o", "{out}/"] for name in FORMATS if name not in TABLES}
ONCE = {"show", "processes", "series", "stats", "statistics by all", "ls", "check"}  # statistics of GPUs need a second reading
TWICE = 2  # the others
MORE = {"report with numbers": 3}  # what metrics/ has columns of is known when the report has been read


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three nodes; long enough that their beginnings are a small part of them."""
    folder = tmp_path_factory.mktemp("reading")
    subprocess.run([TOOL, "long", folder / "a.tacho", "1200", "10", "12"], check=True)
    for name in "bc":
        shutil.copy(folder / "a.tacho", folder / f"{name}.tacho")
    return folder


def missing_formats():
    lines = subprocess.check_output([TACHO, "export", "--formats"], text=True).splitlines()
    return {lines[i - 1].split()[0] for i, line in enumerate(lines) if "not in this build" in line}


def test_all_formats_are_counted():
    lines = subprocess.check_output([TACHO, "export", "--formats"], text=True).splitlines()
    assert {line.split()[0] for line in lines if line[0] != " "} == set(FORMATS)


@pytest.mark.parametrize("cpus", ["one CPU", "all CPUs"])
@pytest.mark.parametrize("what", PASSES)
def test_no_command_reads_a_recording_more_than_twice(folder, tmp_path, what, cpus):
    why = can_trace()
    if why:
        pytest.skip(why)
    if what.startswith("to ") and what[3:] in missing_formats():
        pytest.skip("this build lacks the library of the format")
    trace = tmp_path / "trace"
    tables = ",".join(name for name in TABLES if name not in missing_formats())
    words = [word.format(out=tmp_path / "out", tables=tables) for word in PASSES[what]]
    # A file for each thread, so that no line of one is broken in two by another.
    command = ["strace", "-ff", "--seccomp-bpf", "-y", "-e", "trace=pread64", "-s", "1", "-o", trace, TACHO, *words, folder]
    allowed = os.sched_getaffinity(0) if cpus == "all CPUs" else {min(os.sched_getaffinity(0))}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, allowed))
    # Beginnings are looked at more often, to find out what a file is: a pass is one that goes through the second half, too.
    size, read = (folder / "a.tacho").stat().st_size, {}
    for line in "".join(path.read_text(errors="replace") for path in tmp_path.glob("trace.*")).splitlines():
        found = re.search(r"pread64\(\d+<([^>]*\.tacho)>.*, (\d+)\) = (\d+)$", line)
        if found and int(found[2]) + int(found[3]) > size / 2:
            read[found[1]] = read.get(found[1], 0) + int(found[3])
    passes = {name: nr_bytes / (size / 2) for name, nr_bytes in read.items()}
    assert len(passes) == 3, "the trace has no readings of the recordings"
    assert max(passes.values()) <= (1 if what in ONCE else MORE.get(what, TWICE)) + ENDS, passes
    assert min(passes.values()) > 0.9, passes


def answer(words, folder, cpus):
    done = subprocess.run([TACHO, *words, folder], check=True, stdout=subprocess.PIPE,
                          preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    return done.stdout


@pytest.mark.parametrize("words", [["show", "--json"], ["show", "--stats", "--by", "all", "--json"], ["show", "-p", "--json"], ["report", "-f", "json", "-o", "-"],
                                   ["export", "-t", "json", "-o", "-"]])
def test_threads_change_no_number(tmp_path, words):
    """Integers are added up, so the order in which recordings are done does not matter."""
    cpus = os.sched_getaffinity(0)
    for i in range(9):
        subprocess.run([TOOL, "long", tmp_path / f"{i}.tacho", str(20 + 7 * i), "5", str(3 + i)], check=True)
    assert answer(words, tmp_path, {min(cpus)}) == answer(words, tmp_path, cpus) == answer(words, tmp_path, cpus)


@pytest.mark.parametrize("words", [["show", "--json"], ["show", "--stats", "--json"], ["report", "-f", "json", "-o", "-"],
                                   ["show", "--series", "tree.cpu", "--json"]])
def test_few_files_are_open_at_once(tmp_path, words):
    """Many more recordings than a process may have open files: one for each thread is enough."""
    subprocess.run([TOOL, "long", tmp_path / "0.tacho", "30", "1", "3"], check=True)
    for i in range(1, MANY):
        shutil.copy(tmp_path / "0.tacho", tmp_path / f"{i}.tacho")
    limit = len(os.sched_getaffinity(0)) + 16
    assert limit < MANY
    done = subprocess.run(["sh", "-c", 'ulimit -n "$0"; exec "$@"', str(limit), TACHO, *words, tmp_path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["recordings"] if "--series" in words else found.get("summary", found)["nodes"]) == MANY


@pytest.mark.parametrize("words", [["show", "--follow", "--json"], ["log", "--follow", "--json"]])
def test_followers_keep_every_recording_open(tmp_path, words):
    """What the shell allows is raised to the limit itself; beyond that it is said what to do."""
    subprocess.run([TOOL, "long", tmp_path / "0.tacho", "30", "1", "3"], check=True)
    for i in range(1, MANY):
        shutil.copy(tmp_path / "0.tacho", tmp_path / f"{i}.tacho")
    raised = subprocess.run(["sh", "-c", 'ulimit -S -n 32; exec "$@"', "sh", TACHO, *words, tmp_path], stdout=subprocess.PIPE, check=True)
    assert raised.stdout.count(b"\n") >= MANY
    done = subprocess.run(["sh", "-c", 'ulimit -n 32; exec "$@"', "sh", TACHO, *words, tmp_path],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode in (1, 2) and "ulimit -n" in done.stderr
