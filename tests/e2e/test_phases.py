"""Phases in numbers: real jobs tell of phases, and every output has the same numbers of them."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from recorder import BURNERS, TACHO, lasting, names, record, run, show, start, told, until

BURN = BURNERS / "cpu"


def script(text):
    """sh, with `tacho` and `burn` (CPU seconds) as its words."""
    return ["sh", "-c", f"burn() {{ {BURN} $1 >/dev/null; }}\n" + text.replace("tacho ", f"{TACHO} ")]


TRAINING = """
tacho phase load -- sh -c 'head -c 3000000 /dev/zero >load.bin; sleep 0.2'
tacho phase begin train
for i in 1 2 3; do tacho phase begin "epoch $i"; burn 0.1; tacho phase end "epoch $i"; done
tacho phase end train
tacho phase begin save; burn 0.05; tacho phase end save
"""


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    assert record(script(TRAINING), "-q", "-i", "50ms", output=folder / "a.tacho", cwd=folder).returncode == 0
    return folder / "a.tacho"


def by_name(summary):
    return {p["name"]: p for p in summary["phases"]}


def rows_of(recording, *options):
    """Table `phases` of an export."""
    done = run("export", "--to", "csv", "-d", "phases", "-o", "-", *options, recording)
    assert done.returncode == 0, done.stderr
    return [{key.split(" [")[0]: value for key, value in row.items()} for row in csv.DictReader(io.StringIO(done.stdout.decode()))]


def table_in(text):
    """Lines of the table by phase that `show` prints, without the remarks that have a line of their own."""
    return [line for line in text[text.index("by phase"):].splitlines() if not line.lstrip().startswith("(")]


def test_the_table_of_the_summary(training):
    text = run("show", training, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.decode()
    table = table_in(text)
    assert re.fullmatch(r"by phase +wall +cpu +cores +peak mem +read +wrote.*", table[0])
    order = [row.split("  ")[1] if not row.startswith("    ") else row.strip().split("  ")[0] for row in table[1:5]]
    assert order == ["load", "train", "epoch ×3", "save"]
    assert table[3].startswith("    epoch")  # it lies in train
    assert "each " in text and "±" in text
    plain = run("show", training, env={**os.environ, "LC_ALL": "C"}).stdout
    assert b"epoch x3" in plain and plain.isascii()


def test_time_since_the_start_of_a_phase(training):
    """In the table of a series: of several repetitions, since the one in which a sample lies."""
    spans = [(o["begin_s"], o["end_s"]) for o in by_name(show(training))["epoch"]["occurrences"]]
    done = run("show", "--series", "tree.cores", "--csv", "--phase", "epoch", training)
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert rows and list(rows[0]) == ["time_s", "phase_s", "tree.cores"]
    for row in rows:
        since = [float(row["time_s"]) - begin for begin, end in spans if begin <= float(row["time_s"]) <= end]
        assert float(row["phase_s"]) == pytest.approx(since[-1], abs=1e-6) if since else row["phase_s"] == ""
    (one,) = json.loads(run("show", "--series", "tree.cores", "--json", "--phase", "epoch#2", training).stdout)["recordings"]
    assert one["columns"] == ["time_s", "phase_s", "tree.cores"]
    assert all(0 <= point[1] == pytest.approx(point[0] - spans[1][0], abs=1e-6) for point in one["points"])
    plain = run("show", "--series", "tree.cores", "--csv", training).stdout
    assert plain.startswith(b"time_s,tree.cores\n")


@pytest.mark.parametrize("options", [["-d", "tree"], ["-d", "process"], ["-d", "cpu", "--wide"], ["-d", "cpu", "--long"], ["-d", "cpu", "--per", "node"],
                                     ["-d", "tree", "--every", "50ms"]], ids=" ".join)
def test_exports_have_the_time_since_the_start_of_a_phase(training, options):
    """The same as a series, in every table of time; nothing of it without --phase."""
    spans = [(o["begin_s"], o["end_s"]) for o in by_name(show(training))["epoch"]["occurrences"]]
    done = run("export", "--to", "csv", "-o", "-", *options, "--phase", "epoch", training)
    rows = [{key.split(" [")[0]: value for key, value in row.items()} for row in csv.DictReader(io.StringIO(done.stdout.decode()))]
    assert rows and any(row["phase_s"] for row in rows), done.stderr
    for row in rows:
        since = [float(row["elapsed"]) - begin for begin, end in spans if begin <= float(row["elapsed"]) <= end]
        assert float(row["phase_s"]) == pytest.approx(since[-1], abs=1e-6) if since else row["phase_s"] == ""
    assert b"phase_s" not in run("export", "--to", "csv", "-o", "-", *options, training).stdout


def test_every_output_has_the_same_numbers(training, tmp_path):
    phases = by_name(show(training))
    assert phases["epoch"]["repetitions"] == 3 and phases["epoch"]["parent"] == "train" and phases["epoch"]["depth"] == 1
    assert [o["name"] for o in phases["epoch"]["occurrences"]] == ["epoch 1", "epoch 2", "epoch 3"]
    assert 2_000_000 < phases["load"]["write_chars"] < 3_100_000 and all(p["ended"] for p in phases.values())

    rows = rows_of(training)
    assert [r["phase"] for r in rows if r["level"] == "phase"] == list(phases)
    numbers = [key for key, value in phases["load"].items() if isinstance(value, (int, float)) and not isinstance(value, bool)]
    assert {"duration_s", "cpu_s", "rss_peak_bytes", "rss_mean_bytes", "read_chars", "cores"} <= set(numbers)
    for row in rows:
        one = phases[row["phase"]]
        of = one if row["level"] == "phase" else one["occurrences"][int(row["number"]) - 1]
        for key in set(numbers) & set(row) & set(of):
            assert (float(row[key]) if row[key] else None) == (None if of[key] is None else pytest.approx(of[key])), key

    stats = json.loads(run("show", "--stats", "--by", "phase", "--json", training).stdout)["phases"]
    assert [(s["name"], s["cpu_s"], s["duration_s"], s["rss_peak_bytes"]) for s in stats] == [
        (p["name"], p["cpu_s"], p["duration_s"], p["rss_peak_bytes"]) for p in phases.values()
    ]

    other = tmp_path / "b.tacho"
    shutil.copy(training, other)
    compared = json.loads(run("compare", "--format", "json", training, other).stdout)["phases"]
    for name, p in phases.items():
        for key in ("duration_s", "cpu_s", "peak_memory_bytes", "write_chars", "cores"):
            assert compared[f"phases.{name}.{key}"]["sets"][0]["mean"] == pytest.approx(p[key])
    assert compared["phases.epoch.repetitions"]["sets"][0]["mean"] == 3
    assert compared["phases.epoch.each_s"]["sets"][1]["mean"] == pytest.approx(phases["epoch"]["each"]["mean_s"])


def test_events_are_counted_in_phases(tmp_path):
    """Those of -e, with the unit of the summary, in every output; all phases together have what the run has."""
    out = tmp_path / "a.tacho"
    job = script("tacho phase begin all; tacho phase begin 'part 1'; burn 0.2; tacho phase end 'part 1'; tacho phase begin 'part 2'; burn 0.1; tacho phase end 'part 2'; tacho phase end all")
    assert record(job, "-q", "-i", "50ms", "-e", "task-clock,page-faults", output=out).returncode == 0
    whole = show(out)
    if whole["perf"]["task_clock"]["value"] is None:
        pytest.skip("no events can be counted here: " + str(whole["unavailable"]))
    every, part = by_name(whole)["all"], by_name(whole)["part"]
    parts = [o["perf"]["task_clock"] for o in part["occurrences"]]
    assert sum(parts) == pytest.approx(part["perf"]["task_clock"]) and parts[0] > parts[1] > 0
    assert part["perf"]["task_clock"] == pytest.approx(part["cpu_s"], rel=0.2)
    assert part["perf"]["page_faults"] <= every["perf"]["page_faults"] <= whole["perf"]["page_faults"]["value"]
    (row,) = [row for row in rows_of(out) if row["level"] == "phase" and row["phase"] == "all"]
    assert float(row["perf.task_clock"]) == pytest.approx(every["perf"]["task_clock"]) and int(row["perf.page_faults"]) == every["perf"]["page_faults"]
    assert "perf.ghz" not in row  # its cycles were not counted
    assert re.search(r"perf\.page_faults +\d", run("show", "--phase", "all", out).stdout.decode())
    compared = json.loads(run("compare", "--format", "json", out, out).stdout)["phases"]["phases.all.perf.task_clock"]
    assert compared["unit"] == "seconds" and compared["sets"][0]["mean"] == pytest.approx(every["perf"]["task_clock"])
    shutil.copy(out, tmp_path / "b.tacho")
    assert by_name(show(tmp_path))["all"]["perf"]["page_faults"] == 2 * every["perf"]["page_faults"]


def test_the_phases_add_up_to_the_run(training):
    """What lies between and around them is the shell's and little."""
    summary = show(training)
    phases = by_name(summary)
    parts = phases["load"]["cpu_s"] + phases["train"]["cpu_s"] + phases["save"]["cpu_s"]
    total = summary["cpu"]["total_s"]
    assert parts <= total * 1.001 and parts >= 0.7 * total
    epochs = phases["epoch"]["occurrences"]
    assert sum(o["cpu_s"] for o in epochs) == pytest.approx(phases["epoch"]["cpu_s"]) and phases["epoch"]["cpu_s"] <= phases["train"]["cpu_s"]
    assert phases["epoch"]["cpu_s"] >= 0.2  # three times a tenth, as far as ticks tell


def test_the_time_of_a_phase(training, tmp_path):
    phases = by_name(show(training))
    first, second = (run("show", "--phase", name, "--json", training) for name in ("epoch#2", "epoch 2"))
    assert json.loads(first.stdout) == json.loads(second.stdout) == phases["epoch"]["occurrences"][1]
    assert json.loads(run("show", "--phase", "train", "--json", training).stdout) == phases["train"]
    assert b"duration_s" in run("show", "--phase", "train", training).stdout
    points = json.loads(run("show", "--series", "tree.cores", "--phase", "train", "--json", training).stdout)["recordings"][0]["points"]
    every = json.loads(run("show", "--series", "tree.cores", "--json", training).stdout)["recordings"][0]["points"]
    inside = [p for p in every if phases["train"]["begin_s"] <= p[0] <= phases["train"]["end_s"]]
    assert [p[0] for p in points] == [p[0] for p in inside] and 0 < len(points) < len(every)
    processes = json.loads(run("show", "-p", "--phase", "load", "--json", training).stdout)["processes"]
    assert "cpu" not in {p["name"] for p in processes} and processes
    assert {r["phase"] for r in rows_of(training, "--phase", "save")} == {"save"}
    assert run("plot", "--phase", "train", "-o", tmp_path / "a.svg", "tree.cores", training).returncode == 0
    assert run("report", "--phase", "train", "-o", tmp_path / "a.html", training).returncode == 0
    for words in (["--phase", "trian"], ["--phase", "epoch#9"], ["--phase", "train", "--stats"]):
        done = run("show", *words, training)
        assert done.returncode == 2 and b"phase" in done.stderr
    assert b"did you mean 'train'" in run("show", "--phase", "trian", training).stderr
    done = run("show", "--series", "tree.cores", "--phase", "train", "--from", "1", training)
    assert done.returncode == 2


def test_without_phases_nothing_is_said(tmp_path):
    out = tmp_path / "a.tacho"
    assert record(["true"], "-q", output=out).returncode == 0
    assert "phases" not in show(out) and b"by phase" not in run("show", out).stdout and rows_of(out) == []
    assert "phases" not in json.loads(run("show", "--stats", "--by", "all", "--json", out).stdout)
    assert b"told of no phases" in run("show", "--phase", "x", out).stderr


# ---- processes and threads ----


def test_across_fork_and_exec(tmp_path):
    """Begun in a shell, ended by what became of it; begun in a parent, ended by its child."""
    out = tmp_path / "a.tacho"
    end = f"import subprocess; subprocess.run(['{TACHO}', 'phase', 'end', 'exec'])"
    job = script(f"tacho phase begin fork; (tacho phase end fork); tacho phase begin exec; exec {sys.executable} -c \"{end}\"")
    assert record(job, "-q", output=out).returncode == 0
    phases = by_name(show(out))
    assert phases["fork"]["ended"] and phases["exec"]["ended"] and phases["exec"]["depth"] == 0
    assert phases["fork"]["end_s"] <= phases["exec"]["begin_s"]


RANK = r"""
import os, socket, sys, time
to, me, folder = os.environ["TACHO_SOCKET"], sys.argv[1], sys.argv[2]
def tell(line):
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(f"{line}\n@time={time.monotonic_ns()}".encode(), to)
def barrier(name):
    open(f"{folder}/{name}.{me}", "w").close()
    while not all(os.path.exists(f"{folder}/{name}.{k}") for k in "01"):
        time.sleep(0.005)
while not os.path.exists(f"{folder}/sampled"):
    time.sleep(0.005)
for i in (1, 2, 3):
    barrier(f"before{i}")
    tell(f"begin step {i}")
    barrier(f"in{i}")
    tell(f"end step {i}")
"""


def test_processes_that_tell_the_same(tmp_path):
    """Two ranks: one repetition each time, not one in the other."""
    out = tmp_path / "a.tacho"
    rank = f"{sys.executable} -c '{RANK}'"
    job = ["sh", "-c", f"{rank} 0 {tmp_path} & {rank} 1 {tmp_path} & wait"]
    with lasting(job, "-i", "50ms", output=out):
        until(lambda: out.exists() and (run("show", "-p", "--json", out).stdout or b"").count(b'"name": "python') >= 2, "both are sampled")
        (tmp_path / "sampled").touch()
    (step,) = show(out)["phases"]
    assert step["name"] == "step" and step["repetitions"] == 3 and step["processes"] == 2 and step["depth"] == 0


BACKWARDS = """
import os, socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
time.sleep(0.1)  # of which the recorder knows
now = time.monotonic_ns()
for line, at in ("begin all", now), ("begin step", now), ("end step", now - 10**7), ("end all", now - 5 * 10**7):
    s.sendto(f"{line}\\n@time={at}".encode(), os.environ["TACHO_SOCKET"])
"""


def test_a_clock_that_goes_backwards(tmp_path):
    """A phase that ends before it began has no length, and has ended: in the table as in the run log."""
    out, log = tmp_path / "a.tacho", tmp_path / "a.jsonl"
    run("run", "-q", "--run-log", log, "-o", out, "--", sys.executable, "-c", BACKWARDS)
    logged = {line["name"]: line["seconds"] for line in map(json.loads, log.read_text().splitlines()) if line["type"] == "phase"}
    phases = {phase["name"]: phase for phase in show(out)["phases"]}
    assert logged == {"all": 0, "step": 0} and set(phases) == set(logged)
    for phase in phases.values():
        assert phase["duration_s"] == 0 and phase["ended"], phase


THREADS = r"""
#include <pthread.h>
#include <semaphore.h>
static sem_t a_began, b_began, a_ended;
static void *a(void *arg)
{
	tacho_phase_begin("a", NULL);
	sem_post(&a_began);
	sem_wait(&b_began);
	tacho_phase_end("a", NULL);
	sem_post(&a_ended);
	return arg;
}
int main(void)
{
	pthread_t t;

	tacho_phase_begin("all", NULL);
	sem_init(&a_began, 0, 0);
	sem_init(&b_began, 0, 0);
	sem_init(&a_ended, 0, 0);
	pthread_create(&t, NULL, a, NULL);
	sem_wait(&a_began);
	tacho_phase_begin("b", NULL);
	sem_post(&b_began);
	sem_wait(&a_ended);
	tacho_phase_end("b", NULL);
	pthread_join(t, NULL);
	tacho_phase_end("all", NULL);
	return 0;
}
"""


def test_threads_that_overlap(tmp_path):
    from test_marks import compiled

    out = tmp_path / "a.tacho"
    assert record([compiled(tmp_path, THREADS)], "-q", output=out).returncode == 0
    phases = by_name(show(out))
    assert list(phases) == ["all", "a", "b"] and phases["a"]["begin_s"] <= phases["b"]["begin_s"] <= phases["a"]["end_s"] <= phases["b"]["end_s"]
    # Neither lies in the other; both lie in what is around them.
    assert phases["a"]["parent"] == phases["b"]["parent"] == "all"


SAME_NAME = r"""
#include <pthread.h>
static pthread_barrier_t step;
static void *work(void *arg)
{
	for (int i = 0; i < 6; i++) {
		if (i == *(int *)arg)
			tacho_phase_begin("work", NULL);
		if (i == 3 + *(int *)arg)
			tacho_phase_end("work", NULL);
		usleep(5000);
		pthread_barrier_wait(&step);
	}
	return NULL;
}
int main(void)
{
	pthread_t t[3];
	int n[3] = {0, 1, 2};

	pthread_barrier_init(&step, NULL, 3);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, work, &n[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}
"""

# The end is the last command of its subshell: some shells start no process for that.
SUBSHELLS = """
work() { tacho phase begin work; touch begun$1; until [ -e end$1 ]; do sleep 0.01; done; tacho phase end work; }
until_begun() { until [ -e begun$1 ]; do sleep 0.01; done; }
(work 0)& a=$!
until_begun 0
(tacho phase begin work; touch begun1; until [ -e end1 ]; do sleep 0.01; done; tacho phase end work)& b=$!
until_begun 1
(work 2; :)& c=$!
until_begun 2
touch end0; wait $a; touch end1; wait $b; touch end2; wait $c
"""


@pytest.mark.parametrize("speakers", ["threads", "sh", "bash"])
def test_speakers_in_phases_of_one_name(tmp_path, speakers):
    """Three that overlap: each ends what it began, in every output."""
    from test_marks import compiled

    if not shutil.which(speakers) and speakers != "threads":
        pytest.skip(f"needs {speakers}")
    job = [compiled(tmp_path, SAME_NAME)] if speakers == "threads" else [speakers, *script(SUBSHELLS)[1:]]
    out = tmp_path / "a.tacho"
    assert record(job, "-q", output=out, cwd=tmp_path).returncode == 0
    edges = told(out)
    assert [e["kind"] for e in edges] == 3 * ["phase.begin"] + 3 * ["phase.end"]
    want = [int(end["sent_ns"]) - int(begin["sent_ns"]) for begin, end in zip(edges[:3], edges[3:])]
    log = run("export", "--to", "runlog", "-o", "-", out).stdout.decode().splitlines()
    lines = [line for line in map(json.loads, log) if line["type"] == "phase"]
    events = run("export", "--to", "csv", "-d", "events", "-o", "-", out).stdout.decode()
    bands = [row for row in csv.DictReader(io.StringIO(events)) if "phase" in row.values()]
    spans = [row for row in rows_of(out) if row["level"] == "occurrence"]
    assert [float(row["duration_s"]) for row in spans] == pytest.approx([ns / 1e9 for ns in want], abs=1e-6)
    assert [float(row["length [s]"]) for row in bands] == pytest.approx([ns / 1e9 for ns in want], abs=1e-6)
    assert [line["seconds"] for line in lines] == pytest.approx([ns / 1e9 for ns in want], abs=1e-3)


# ---- cut ----


def test_the_recorder_is_killed_in_a_phase(tmp_path):
    out, go = tmp_path / "a.tacho", tmp_path / "go"
    job = script(f"tacho phase begin done; tacho phase end done; tacho phase begin work; until [ -e {go} ]; do sleep 0.02; done; tacho phase end work")
    with start("run", "-q", "-i", "50ms", "--flush", "50ms", "-o", out, "--", *job) as tacho:
        until(
            lambda: out.exists() and run("check", out).returncode < 2 and ("phase.begin", "work") in names(told(out)), "the phase is written"
        )
        before = show(out)["ticks"]["taken"]
        until(lambda: show(out)["ticks"]["taken"] > before + 1, "samples in the phase")
        tacho.kill()
        tacho.wait()
        go.touch()
    phases = by_name(show(out))
    assert phases["done"]["ended"] and not phases["work"]["ended"] and phases["work"]["duration_s"] > 0
    assert b"open at the end of the recording" in run("show", out).stdout


def test_the_job_is_killed_in_a_phase(tmp_path):
    out = tmp_path / "a.tacho"
    done = record(script("tacho phase begin outer; tacho phase begin inner; burn 0.1; kill -KILL $$"), "-q", "-i", "50ms", output=out)
    assert done.returncode == -signal.SIGKILL
    summary = show(out)
    phases = by_name(summary)
    assert not phases["outer"]["ended"] and not phases["inner"]["ended"] and phases["inner"]["parent"] == "outer"
    assert phases["inner"]["end_s"] <= summary["wall_s"] + 0.001 and phases["inner"]["cpu_s"] >= 0.05


# ---- several nodes, many, hostile ----


def test_several_ranks_of_a_node(training, tmp_path):
    """Recordings of one host: amounts are added, the time is that of one; each has its rows in exports."""
    for name in ("a.tacho", "b.tacho"):
        shutil.copy(training, tmp_path / name)
    one, both = by_name(show(training)), show(tmp_path)
    phases = by_name(both)
    assert list(phases) == list(one)
    for name, p in phases.items():
        assert p["nodes"] == 1 and p["processes"] == 2 * one[name]["processes"] and p["repetitions"] == one[name]["repetitions"]
        assert p["cpu_s"] == pytest.approx(2 * one[name]["cpu_s"]) and p["duration_s"] == pytest.approx(one[name]["duration_s"])
        assert p["disk_written_bytes"] == one[name]["disk_written_bytes"]  # one machine
    assert by_name(both["nodes"][1])["load"]["cpu_s"] == pytest.approx(one["load"]["cpu_s"])
    hosts = {(r["level"], r["host"] != "") for r in rows_of(tmp_path)}
    assert hosts == {(level, with_host) for level in ("phase", "occurrence") for with_host in (False, True)}
    assert {r["recording"] for r in rows_of(tmp_path)} == {"", str(tmp_path / "a.tacho"), str(tmp_path / "b.tacho")}
    assert b"in 2 processes" in run("show", tmp_path).stdout and b"on 2 nodes" not in run("show", tmp_path).stdout


def test_names_do_no_harm(tmp_path):
    out = tmp_path / "a.tacho"
    hostile = [b"\x1b[31mred\x07", b"a\nb", b"\xff\xfe", b"<script>", b"", b"=1+1", b"x" * 3000, b"%s%n", b"./../etc"]
    tell = "import os, socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n" + "".join(
        f"s.sendto({w + b' ' + n.replace(chr(10).encode(), rb'{bs}n')!r}, os.environ['TACHO_SOCKET'])\n".replace("{bs}", "\\\\")
        for n in hostile for w in (b"begin", b"end")
    )
    assert record([sys.executable, "-c", tell], "-q", output=out).returncode == 0
    phases = show(out)["phases"]
    assert len(phases) == len(hostile)
    for words in (["show", out], ["show", "--json", out], ["show", "--stats", "--by", "phase", out], ["compare", "--all", out, out]):
        done = run(*words, env={**os.environ, "NO_COLOR": "1"})
        assert done.returncode == 0 and b"\x1b" not in done.stdout and b"\x07" not in done.stdout
    assert len([r for r in rows_of(out) if r["level"] == "phase"]) == len(hostile)
    for p in phases:
        assert json.loads(run("show", "--json", "--phase", p["name"], out).stdout)["name"] == p["name"]


def test_ten_thousand_steps(tmp_path):
    """All count; the first are told one by one."""
    out = tmp_path / "a.tacho"
    job = (
        "import os, socket, time\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "for i in range(10000):\n    for w in 'begin', 'end':\n        s.sendto(f'{w} step {i}'.encode(), os.environ['TACHO_SOCKET'])\n"
        "    i % 500 or time.sleep(0.1)\n"
    )
    assert record([sys.executable, "-c", job], "-q", output=out).returncode == 0
    begun = sum(e["kind"] == "phase.begin" for e in told(out))
    summary = show(out)
    (step,) = summary["phases"]
    assert step["name"] == "step" and step["repetitions"] == begun - summary["phases_ignored"] and begun > 4096
    assert len(step["occurrences"]) == 4096 and summary["phases_left_out"] == step["repetitions"] - 4096
    assert b"not told one by one" in b" ".join(run("show", out).stdout.split())


# ---- reports ----

SPEAKING = r"""
import os, socket, time
def tell(*lines):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto("\n".join([*lines, f"@time={time.monotonic_ns()}"]).encode(), os.environ["TACHO_SOCKET"])
kept = []
for i in range(1, 9):
    tell(f"begin epoch {i}")
    kept.append(b"x" * (48 << 20))
    time.sleep(0.55)
    tell("mark ", f"loss={1 / i}", f"step={1000 * i}")
    tell(f"end epoch {i}")
tell("begin save")
more = b"x" * (600 << 20)
time.sleep(1)
tell("end save")
"""


@pytest.fixture(scope="module")
def speaking(tmp_path_factory):
    """A job in Python whose epochs leave memory behind, and which tells numbers; with its reports."""
    folder = tmp_path_factory.mktemp("speaking")
    assert record([sys.executable, "-c", SPEAKING], "-q", "-i", "50ms", output=folder / "a.tacho").returncode == 0
    return folder / "a.tacho"


def reports(recording, folder, *options):
    """{format: text} of all formats; the PDF as pdftotext reads it."""
    done = run("report", "-f", "html,md,pdf,json", "-o", folder, *options, recording)
    if done.returncode and b"tacho-report" in done.stderr:
        pytest.skip("tacho-report was not built (cairo and pango)")
    assert done.returncode == 0, done.stderr
    text = {path.suffix[1:]: path.read_text() for path in folder.iterdir() if path.suffix in (".html", ".md", ".json")}
    if not shutil.which("pdftotext"):
        pytest.skip("no pdftotext (poppler-utils)")
    (paper,) = folder.glob("*.pdf")
    text["pdf"] = subprocess.run(["pdftotext", "-layout", paper, "-"], capture_output=True, text=True, check=True).stdout
    return text


@pytest.fixture(scope="module")
def whole(speaking):
    return reports(speaking, speaking.parent / "whole")


def cells(text):
    """Rows of the table by phase that `show` prints: cells as texts."""
    table = table_in(text)
    titles = re.split(r"  +", table[0])
    return titles[1:], {row[0]: row[1:] for row in (re.split(r"  +", line.strip()) for line in table[1:3])}


def test_the_table_of_reports(speaking, whole):
    text = run("show", speaking, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.decode()
    titles, rows = cells(text)
    assert list(rows) == ["epoch ×8", "save"]
    each = re.search(r"each [^);]*± [\d.]+\w+", text)[0]
    section = whole["html"].split('<section id="phases">')[1].split("</section>")[0]
    section = re.sub("</?bdi>", "", section)
    written = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in section.split("<tr")]
    lines = ["".join(line.split()) for line in whole["pdf"].splitlines()]
    for name, row in rows.items():
        row = row[: len(titles)]
        assert [name, *row] in [w[: len(row) + 1] for w in written], name
        assert f"| {name} | {' | '.join(row)} |" in whole["md"].replace(r"\~", "~"), name
        assert any(line.startswith("".join([name, *row]).replace(" ", "")) for line in lines), name
    assert each in section and each in whole["md"] and any(each.replace(" ", "") in line for line in lines)
    assert lines.count("Byphase") == 1 and "Phases" not in lines


@pytest.mark.skipif(not shutil.which("pdftotext"), reason="needs pdftotext (poppler-utils)")
def test_phases_without_a_band_are_counted(tmp_path):
    """Three rows of names have room for three phases at a time: a picture says how many have none."""
    names = ["one", "two", "three", "four", "five"]
    job = script("".join(f"tacho phase begin {name}; " for name in names) + "burn 0.2; " + "".join(f"tacho phase end {name}; " for name in names))
    out, picture = tmp_path / "a.tacho", tmp_path / "a.pdf"
    assert record(job, "-q", "-i", "50ms", output=out).returncode == 0
    assert run("plot", "-o", picture, out, "tree.cores").returncode == 0
    text = subprocess.run(["pdftotext", picture, "-"], capture_output=True, check=True).stdout.decode()
    assert "2 more phases are not named" in text and "three" in text and "four" not in text


def test_numbers_of_the_job_are_steps(speaking, whole, tmp_path):
    """What was told holds until the next value: no slope anywhere, and none is said to be in the phase after it."""
    panels = {p["id"]: p for p in json.loads(whole["json"])["panels"]}
    assert panels["app-loss"]["lines"][0]["held"] and not panels["cpu"]["lines"][0]["held"]
    assert " in " not in panels["app-loss"]["subtitle"] and " at " not in panels["app-loss"]["subtitle"]
    picture = tmp_path / "loss.svg"
    assert run("plot", "-o", picture, speaking, "app.loss").returncode == 0
    line = max(re.findall(r'<path style="fill:none;stroke-width:1.5;[^"]*" d="([^"]*)"', picture.read_text()), key=len)
    points = [tuple(map(float, point)) for point in re.findall(r"[ML] ([\d.]+) ([\d.]+)", line)]
    assert len(points) > 3 and all(a == c or b == d for (a, b), (c, d) in zip(points, points[1:])), points


def test_numbers_of_the_job_have_panels(whole):
    panels = {p["id"]: p for p in json.loads(whole["json"])["panels"]}
    assert {"app-loss", "app-step"} <= set(panels) and panels["app-loss"]["section"] == "app"
    (line,) = panels["app-step"]["lines"]
    assert line["most"] == 8000
    (line,) = panels["app-loss"]["lines"]
    assert line["most"] == 1
    assert "### loss" in whole["md"] and "plots/app-loss.png" in whole["md"] and "plots/app-step.png" in whole["md"]
    assert "The job's own numbers" in whole["pdf"].replace("’", "'")
    assert 'id="panel-app-loss"' in whole["html"]


def test_numbers_of_the_job_have_an_axis_each(speaking):
    charts = run("plot", "--size", "80x10", "app.loss", "app.step", speaking, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.decode()
    assert charts.count("Told by the job") == 2 and re.search("^app.loss  mean", charts) and re.search("\napp.step  mean", charts)


def test_which_phase_leaks(whole):
    """The job lasts for more than the five seconds below which findings on use are left out."""
    (leak,) = [f for f in json.loads(whole["json"])["findings"] if f["id"] == "phase-leak"]
    assert re.fullmatch(r"Each repetition of epoch left (4[4-9]|5[0-2])[.\d]* MiB more memory behind", leak["title"])
    for form in ("html", "md", "pdf"):
        assert leak["title"] in " ".join(whole[form].split()), form


def test_a_peak_is_in_a_phase(speaking, whole):
    assert re.search(r"peak .*in save", run("show", speaking).stdout.decode())
    for form in ("html", "md", "pdf"):
        assert re.search(r"Memory, peak[\s\S]{0,900}in save", whole[form]), form


def test_a_report_of_a_phase(speaking, whole, tmp_path):
    assert json.loads(whole["json"])["window"] is None and "of the whole run" not in whole["md"]
    second = by_name(show(speaking))["epoch"]["occurrences"][1]
    part = reports(speaking, tmp_path / "part", "--phase", "epoch#2")
    data = json.loads(part["json"])
    window = data["window"]
    assert window["phase"] == "epoch 2"
    assert (window["from_s"], window["to_s"]) == (pytest.approx(second["begin_s"]), pytest.approx(second["end_s"]))
    times = data["nodes"][0]["times"]  # even, or each by itself
    assert (times["values"][0] if "values" in times else times["from"]) >= second["begin_s"] - 1e-6
    assert data["nodes"][0]["end_s"] <= second["end_s"] + 1e-6
    for form in ("html", "md", "pdf"):
        text = " ".join(part[form].split())
        assert re.search(r"Phase epoch 2: from \S+ to \S+ of \S+\. Plots are of this time; all else is of the whole run\.", text), form
        assert "Findings of the whole run" in text
        assert "Phase epoch 2" not in whole[form]
    assert "Phase epoch ×8: from" in run("report", "-f", "md", "-o", "-", "--phase", "epoch", speaking).stdout.decode()
    assert "Part of the run: from 1s to 2s of " in run("report", "-f", "md", "-o", "-", "--from", "1s", "--to", "2s", speaking).stdout.decode()
