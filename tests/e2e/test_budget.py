"""What a tick may cost, counted and never timed: system calls, allocations, bytes, descriptors.

The recorder runs under strace on a herd of known size (bench/herd.c) with a library preloaded that makes allocations
visible in the same trace (tests/fakes/malloc_count.c). The tick is recognised by the CPU clock of the herd's root,
which is asked once in each. Times are measured by bench/run.py; a count holds on any machine under any load.
"""

import csv
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from recorder import PATIENCE_S, can_trace, dump, run

ROOT = Path(__file__).resolve().parent.parent.parent
TACHO = os.environ.get("TACHO", str(ROOT / "build" / "tacho"))

# The budget. A change here is a change of what the product promises: say why in the commit.
ASLEEP = {"clock": 1}  # system calls per tick for a process that did nothing
AWAKE = {"clock": 1, "stat": 1, "statm": 1, "io": 1, "schedstat": 1, "fd": 1}  # and for one that ran
STATUS_EVERY_S = 5
MET = {"clock": 1, "stat": 2, "statm": 2, "io": 2}  # when the first tick has no time for more: opened and read
LOOK_AT_SLEEPERS_EVERY_S = 10
CONSTANT = 18  # per tick for all that is not a member: wake, node files, network, disks, groups, ourselves, flushes; on a busy machine some are repeated
ASKED_WHERE = 16  # ticks in which the job's first process is asked whether it has entered another control group
NOW_AND_THEN = 16  # in the whole trace: what is looked at every few seconds
ASKED_CALLS = 2  # besides, in each of those: is its network namespace still ours?
ALLOCATIONS = 0  # after the third tick
MAPPINGS = 0
WRITES_PER_SECOND = 2  # one flush, and room for a segment's end
BYTES_AWAKE, BYTES_NODE = 12, 80  # written per tick: for each process that ran, and besides
RESERVED_FILES = 32  # descriptors that are ours besides those of members

SETTLED = 3  # ticks before the counting starts
ENOUGH = 10  # ticks behind those, to judge by
FAST = ["-m", "-smaps"]  # without page-table walks, whose budget is another


class Call:
    """One line of the trace: whose and what."""

    CLOCK = re.compile(r"clock_gettime\(0x([0-9a-f]+)")
    PROC = re.compile(r"</proc/(\d+)/(\w+)>")
    LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)$")

    def __init__(self, text):
        self.text = text
        match = self.LINE.match(text)
        self.name = match[1] if match else ""
        self.pid, self.what = None, None
        clock, proc = self.CLOCK.search(text), self.PROC.search(text)
        if clock:
            self.pid, self.what = (~int(clock[1], 16) & 0xFFFFFFFF) >> 3, "clock"
        elif proc:
            self.pid, self.what = int(proc[1]), proc[2]

    def is_allocation(self):
        return self.name == "write" and '(-1, "allocation"' in self.text

    def is_mapping(self):
        return self.name in ("brk", "mmap", "mremap", "munmap")

    def is_write_to_file(self):
        """Of the recording, which has no name while it is young; the mark of an allocation goes to -1."""
        return re.match(r"(?:\d+ +)?p?write(?:v|64)?\((\d+)<", self.text) and not re.search(r"\([012]<", self.text)

    def is_walk(self):
        return self.name.startswith("open") and "smaps_rollup" in self.text

    def result(self):
        number = re.search(r"= (-?\d+)[^=]*$", self.text)
        return int(number[1]) if number else None


class Trace:
    """All calls of a recorder, cut into ticks."""

    def __init__(self, path, pids, summary):
        self.calls = [Call(line) for line in path.read_text(errors="replace").splitlines()]
        self.pids, self.summary = pids, summary
        starts = [i for i, call in enumerate(self.calls) if call.what == "clock" and call.pid == pids[0]]
        # The last tick is followed by the end of the recording, so it only closes the one before.
        self.every = [self.calls[a:b] for a, b in zip(starts, starts[1:])]
        # Traced, the first tick is too slow for everyone: who they are is asked in the next ones, too.
        asked = [n for n, tick in enumerate(self.every) if any("/cmdline" in call.text for call in tick)]
        self.ticks = self.every[max(SETTLED, *(n + 1 for n in asked), 0):]
        # Of the ticks that were taken, of which some began twice on a busy machine; all of them, and those that were missed.
        self.wall_s = summary["wall_s"]
        self.seconds = min(len(self.ticks) * summary["interval_s"], self.wall_s * len(self.ticks) / max(1, len(self.every)))

    def settled(self):
        return [call for tick in self.ticks for call in tick]

    def of_process(self, pid):
        """Per tick: how often each source of this process was asked."""
        return [Counter(call.what for call in tick if call.pid == pid) for tick in self.ticks]


class Herd:
    def __init__(self, binary, size, active_percent, period_ms):
        command = [binary, str(size), str(active_percent), str(period_ms)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = []
        for line in self.process.stdout:
            if line.strip() == "ready":
                break
            lines.append(int(line))
        assert len(lines) == size
        self.pids = lines
        # As bench/herd.c spreads them.
        self.active = {
            pid for i, pid in enumerate(lines) if (i + 1) * active_percent // 100 > i * active_percent // 100
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The herd and the counting library."""
    folder = tmp_path_factory.mktemp("budget")
    compiler = os.environ.get("CC", "cc")
    herd, count = folder / "herd", folder / "malloc_count.so"
    flags = ["-O2", "-D_GNU_SOURCE"]
    subprocess.run([compiler, *flags, "-static", "-o", herd, ROOT / "bench" / "herd.c"], check=True)
    source = ROOT / "tests" / "fakes" / "malloc_count.c"
    subprocess.run([compiler, *flags, "-fPIC", "-shared", "-o", count, source], check=True)
    return {"herd": herd, "count": count, "folder": folder}


def show(file):
    done = subprocess.run([TACHO, "show", "--json", file], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def record_traced(tools, herd, name, *options, interval_ms=100, ticks=35, wrapper=()):
    why = can_trace()
    if why:
        pytest.skip(why)
    file, trace = tools["folder"] / f"{name}.tacho", tools["folder"] / f"{name}.strace"
    for patience in (1, 2, 4, 8):  # a traced recorder may be too slow for its interval, and misses ticks
        command = [*wrapper, "strace", "-f", "-y", "-s", "16", "-E", f"LD_PRELOAD={tools['count']}", "-o", trace, TACHO,
                   "attach", str(herd.pids[0]), "-i", f"{interval_ms}ms", "--duration", f"{interval_ms * ticks * patience}ms",
                   "-q", "-o", file, *options]
        subprocess.run(command, check=True)
        taken = Trace(trace, herd.pids, show(file))
        if len(taken.ticks) >= ENOUGH:
            return taken
        file.unlink()
    pytest.fail(f"{len(taken.ticks)} ticks are too few to judge")


@pytest.fixture(scope="module")
def half_awake(tools):
    """40 processes of which every second one works all the time; no help of the kernel, so that strangers' forks
    do not show up as messages."""
    with Herd(tools["herd"], 40, 50, 40) as herd:
        trace = record_traced(tools, herd, "half", "--helpers", "none", "--budget", "100", *FAST)
        trace.active = herd.active
        return trace


@pytest.fixture(scope="module")
def asleep(tools):
    """Many more, all asleep."""
    with Herd(tools["herd"], 300, 0, 100) as herd:
        return record_traced(tools, herd, "asleep", "--helpers", "none", "--budget", "100", *FAST)


def test_a_sleeper_costs_one_call_a_tick(half_awake, asleep):
    sleepers = [pid for pid in half_awake.pids if pid not in half_awake.active]
    assert len(sleepers) == 20
    for trace, pids in ((half_awake, sleepers), (asleep, asleep.pids)):
        for pid in pids:
            ticks = trace.of_process(pid)
            assert all(tick["clock"] == ASLEEP["clock"] for tick in ticks), pid
            # It is looked at now and then all the same, since reclaim can shrink a sleeper.
            asked = [tick for tick in ticks if tick == Counter(ASLEEP, cgroup=1)]
            assert len(asked) <= (ASKED_WHERE if pid == trace.pids[0] else 0), (pid, asked)
            looked = [tick for tick in ticks if tick != Counter(ASLEEP) and tick not in asked]
            assert len(looked) <= 1 + trace.seconds / LOOK_AT_SLEEPERS_EVERY_S, (pid, looked)


def test_clocks_of_sleepers_take_turns(tools):
    """Where even the clocks exceed the budget those of sleepers are taken in turns, that of a worker at every tick, and the
    recording says so."""
    with Herd(tools["herd"], 200, 1, 20) as herd:
        trace = record_traced(tools, herd, "clocks", "--helpers", "none", "--budget", "0.01", *FAST, interval_ms=50, ticks=200)
    rest = trace.calls[len(trace.calls) // 2:]
    clocks = Counter(call.pid for call in rest if call.what == "clock")
    (worker,) = list(herd.active)[:1]
    sleepers = [pid for pid in herd.pids if pid not in herd.active]
    assert clocks[worker] >= ENOUGH
    assert sum(clocks[pid] for pid in sleepers) <= len(sleepers) * clocks[worker] / 4, clocks
    assert any(note.startswith("CPU time of processes that sleep was read in turns") for note in trace.summary["notes"])
    assert trace.summary["ticks"]["skipped"] == 0


def test_the_first_tick_reads_what_fits(tools):
    """What is added up of everyone, the rest for half an interval; who is not reached then is in the ticks that follow."""
    with Herd(tools["herd"], 400, 0, 100) as herd:
        trace = record_traced(tools, herd, "first", "--helpers", "none", "--budget", "100", *FAST, interval_ms=20, ticks=50)
    first = next(tick for tick in trace.every if any(call.what == "statm" and call.pid == herd.pids[0] for call in tick))
    whole = {call.pid for call in first if call.what == "status"}
    assert herd.pids[0] in whole and len(whole) <= len(herd.pids) / 2
    for pid in set(herd.pids) - whole:
        assert Counter(call.what for call in first if call.pid == pid) == Counter(MET), pid
    told = [dict(record["pairs"]) for record in dump(tools["folder"] / "first.tacho") if record["type"] == "instance"]
    assert {int(one["pid"]) for one in told if "cmdline" in one and one["name"] == "herd"} >= set(herd.pids)
    assert any(note.startswith("details of processes were read in turns") for note in trace.summary["notes"])


def test_a_worker_costs_its_files_once_a_tick(half_awake):
    assert len(half_awake.active) == 20
    for pid in half_awake.active:
        ticks = half_awake.of_process(pid)
        total = sum(ticks, Counter())
        assert all(tick["clock"] == AWAKE["clock"] for tick in ticks), pid
        for what in total:
            limit = AWAKE.get(what, 1 if what == "status" else 0)
            assert max(tick[what] for tick in ticks) <= limit, (pid, what)
        # What is read is read together; a worker that was kept off the CPU for a whole tick is not read at all.
        assert len({total[what] for what in AWAKE if what != "clock"}) == 1, (pid, total)
        assert 0 < total["stat"] <= len(ticks)
        assert total["status"] <= half_awake.wall_s / STATUS_EVERY_S + 1, (pid, total)


def test_the_rest_does_not_grow_with_the_tree(half_awake, asleep):
    for trace in (half_awake, asleep):
        members = set(trace.pids)
        rest = [call for call in trace.settled() if call.pid not in members and not is_stranger(call, trace)]
        allowed = NOW_AND_THEN + CONSTANT * len(trace.ticks) + ASKED_CALLS * min(ASKED_WHERE, len(trace.ticks))
        assert len(rest) <= allowed, (len(trace.ticks), Counter(call.name for call in rest).most_common(12))


def is_stranger(call, trace):
    """Processes of others that came into being meanwhile are looked at once, to see whose they are."""
    own = re.search(r"^(\d+) ", trace.calls[0].text)
    return call.pid is not None and call.pid not in trace.pids and (not own or call.pid != int(own[1]))


def test_nothing_is_allocated_or_mapped_while_sampling(half_awake, asleep):
    for trace in (half_awake, asleep):
        assert any(call.is_allocation() for call in trace.calls), "the counting library did not work"
        settled = trace.settled()
        assert sum(call.is_allocation() for call in settled) == ALLOCATIONS
        assert sum(call.is_mapping() for call in settled) == MAPPINGS


def test_nothing_is_allocated_with_every_metric_on(tools):
    """And no path is looked up but where the job is, in its first ticks, and what the medium tier finds."""
    with Herd(tools["herd"], 5, 50, 40) as herd:
        trace = record_traced(tools, herd, "all", "--helpers", "none", "--budget", "100", "-m", "all,-smaps", ticks=50)
    settled = trace.settled()
    assert any("proc/diskstats" in call.text for call in settled), "not everything was recorded"
    assert sum(call.is_allocation() for call in settled) == ALLOCATIONS
    assert sum(call.is_mapping() for call in settled) == MAPPINGS
    looked = 0
    for tick in trace.ticks[ASKED_WHERE:]:
        opened = [call for call in tick if call.name in ("openat", "readlinkat") and not is_stranger(call, trace)]
        looked += bool([call for call in opened if not re.search(r'"proc/\d+/stat"', call.text)])
    assert looked <= 1 + trace.wall_s / STATUS_EVERY_S, "paths are looked up at every tick"


def test_writes_are_few_and_small(half_awake, asleep):
    for trace, awake in ((half_awake, len(half_awake.active)), (asleep, 0)):
        writes = [call.result() for call in trace.settled() if call.is_write_to_file()]
        assert len(writes) >= max(1, int(trace.seconds) - 1), "a flush a second was asked for"
        assert len(writes) <= WRITES_PER_SECOND * trace.wall_s + 1
        # The first holds who everybody is and where all values start.
        assert sum(writes[1:]) <= len(trace.ticks) * (BYTES_NODE + BYTES_AWAKE * awake)


def test_files_of_members_stay_open(half_awake):
    opened = [call for call in half_awake.settled() if call.name.startswith("open") and call.pid in half_awake.pids]
    assert not opened


def test_descriptors_stay_within_the_limit(tools):
    """With room for a fraction of the files, the rest is opened per sample: nothing fails, nothing is lost."""
    limit = 64 + RESERVED_FILES
    with Herd(tools["herd"], 40, 100, 40) as herd:
        trace = record_traced(tools, herd, "few-files", "--helpers", "none", "--budget", "100", *FAST,
                              wrapper=["prlimit", f"--nofile={limit}:{limit}"])
    assert not any("EMFILE" in call.text for call in trace.calls)
    kept = [call for call in trace.settled() if call.name.startswith("open") and call.pid in herd.pids]
    assert kept, "the limit did not bind: the test shows nothing"
    assert trace.summary["processes"]["peak"] == 40
    for pid in herd.pids:
        total = sum(trace.of_process(pid), Counter())
        for what in AWAKE:
            assert total[what] > 0, (pid, what)


def test_the_job_keeps_its_limits(tools):
    """Ours are raised, never the job's."""
    ask = ["sh", "-c", "ulimit -Sn; ulimit -Hn"]
    limits = ["prlimit", "--nofile=300:700"]
    plain = subprocess.run([*limits, *ask], stdout=subprocess.PIPE, check=True).stdout
    file = tools["folder"] / "limits.tacho"
    recorded = subprocess.run(
        [*limits, TACHO, "run", "-q", "-o", file, "--", *ask], stdout=subprocess.PIPE, check=True
    ).stdout
    assert plain == b"300\n700\n"
    assert recorded == plain


def test_page_tables_are_walked_within_the_budget(tools):
    """The least budget leaves a small part of the walks that an unlimited one makes on the same herd, in the long run
    and also within the first tick, when nothing is known of anyone and everyone would have to be walked."""
    first, later = {}, {}
    with Herd(tools["herd"], 100, 100, 20) as herd:
        for budget in ("0.01", "100"):
            trace = record_traced(tools, herd, f"budget-{budget}", "--helpers", "none", "--budget", budget, ticks=25)
            walks = sum(call.is_walk() for call in trace.settled())
            first[budget] = sum(call.is_walk() for call in trace.calls) - walks
            later[budget] = walks / len(trace.ticks)
    assert first["100"] >= 100 and later["100"] >= 4, (first, later)
    assert first["0.01"] * 2 <= first["100"], first
    assert later["0.01"] * 4 <= later["100"], later


# One after another they come to share 100 MiB; then it tells what all have together, in KiB.
COMES_TO_SHARE = r"""
import os, re, sys, time
memory = bytearray(100 << 20)
children = []
for i in range(10):
    children.append(os.fork())
    if not children[-1]:
        time.sleep(60)
    time.sleep(0.1)
pss = [int(re.search(r"Pss: +([0-9]+)", open(f"/proc/{pid}/smaps_rollup").read())[1]) for pid in (os.getpid(), *children)]
print(sum(pss))
for pid in children:
    os.kill(pid, 9)
"""


def test_shared_memory_counts_once_though_not_all_can_be_read(tmp_path):
    """Each new sharer makes all readings too high, and the budget is not enough to read all again."""
    recording = tmp_path / "shared.tacho"
    words = ["run", "-q", "-i", "50ms", "-o", recording, "--", "/usr/bin/python3", "-S", "-c", COMES_TO_SHARE]
    done = subprocess.run([TACHO, *words], stdout=subprocess.PIPE, check=True)
    series = run("show", "--series", "proc.mem.rss,proc.mem.pss_now", "--csv", recording, check=True).stdout.decode()
    rows = [[float(value) for value in row[1:]] for row in csv.reader(series.splitlines()[1:]) if all(row)]
    until_they_end = rows[: rows.index(max(rows)) + 1]
    assert max(pss for _, pss in until_they_end) <= 1.15 * 1024 * int(done.stdout), until_they_end


def test_every_tick_is_taken_or_counted_as_missed(tools):
    """A thousand ticks a second, on whatever machine: what cannot be taken is said."""
    file = tools["folder"] / "fast.tacho"
    with Herd(tools["herd"], 10, 50, 5) as herd:
        command = [TACHO, "attach", str(herd.pids[0]), "-i", "1ms", "--duration", "1s", "-q", "-o", file]
        subprocess.run(command, check=True)
    summary = show(file)
    ticks = summary["ticks"]
    numbers = [(one["number"], one["time"] / 1e9 / summary["interval_s"]) for one in dump(file) if one["type"] == "tick"]
    assert len(numbers) == ticks["taken"] > 2
    # Those in which everything was opened, after the first sample, were not due yet. From then on each number is one tick.
    (_, _), (second, _), *_, (last, at) = numbers
    assert ticks["taken"] + ticks["missed"] == last - second + 2, (ticks, numbers[:3], numbers[-3:])
    # And numbers are what the clock says.
    assert abs(at - last) <= 2, (last, at)


# Of programs and libraries, resident in a recorder that is under way: what only its start needed was given back. The kernel
# maps windows of 64 KiB, and where these begin is random: 2,450 to 2,670 were seen, and 3,020 to 3,240 if nothing is given back.
RESIDENT_FILES_KIB = 2848


def test_pages_that_only_the_start_needed_are_given_back(tools):
    file = tools["folder"] / "resident.tacho"
    if b"__asan_init" in Path(TACHO).read_bytes():
        pytest.skip("with sanitizers the program is another")
    with Herd(tools["herd"], 100, 40, 20) as herd:
        command = [TACHO, "attach", "-q", "-i", "20ms", "--flush", "20ms", "-o", file, str(herd.pids[0])]
        with subprocess.Popen(command) as recorder:
            try:
                deadline = time.monotonic() + PATIENCE_S
                while not file.exists() or sum(one["type"] == "tick" for one in dump(file)) < ENOUGH:
                    assert recorder.poll() is None and time.monotonic() < deadline
                    time.sleep(0.1)
                status = Path(f"/proc/{recorder.pid}/status").read_text(encoding="utf-8")
            finally:
                recorder.send_signal(signal.SIGINT)
    assert int(re.search(r"^RssFile:\s+(\d+) kB", status, re.M)[1]) <= RESIDENT_FILES_KIB, status


def test_the_recorder_links_the_c_library_alone():
    """Every library more is loaded at every start, also in front of a job of a millisecond."""
    done = subprocess.run(["readelf", "-d", TACHO], stdout=subprocess.PIPE, text=True, check=True)
    needed = re.findall(r"NEEDED.*\[(.*)\]", done.stdout)
    assert [name for name in needed if not re.match(r"(libc|ld-linux.*|lib[au]san|libubsan)\.so", name)] == []


# A job of milliseconds: what all of recording it may cost. The recorder's own calls, its start by the dynamic linker
# included.
SHORT_CALLS, SHORT_OPENS, SHORT_WRITES, SHORT_BYTES = 306, 42, 4, 4700


def own_calls(trace):
    """Without those about the control groups of other recorders, and about what others forked meanwhile."""
    own = re.search(r'mkdirat\(.*"(tacho-\d+)"', trace)
    names = own[1] if own else "tacho-0"
    return [line for line in trace.splitlines()
            if not re.match(r"kill\(|recvmmsg\(", line) and set(re.findall(r"\btacho-\d+\b", line)) <= {names}]


def test_short_job_is_recorded_with_little(tmp_path):
    why = can_trace()
    if why:
        pytest.skip(why)
    file, trace = tmp_path / "true.tacho", tmp_path / "strace"
    tries, calls = [], Counter()
    for _ in range(50):  # on a busy machine even this one may live long enough to be worth more
        command = ["strace", "-y", "-o", trace, TACHO, "run", "-q", "--force", "-o", file, "--", "/bin/true"]
        subprocess.run(command, check=True)
        summary = show(file)
        if summary["unavailable"].get("disk.read_bytes") == "the job ended before it was read":
            tries.append(Counter(Call(line).name for line in own_calls(trace.read_text(errors="replace"))))
            calls = min(tries, key=Counter.total)
            if calls.total() <= SHORT_CALLS or len(tries) == 10:
                break
    assert calls.total() <= SHORT_CALLS, calls
    assert calls["openat"] + calls["open"] <= SHORT_OPENS, calls
    assert calls["write"] <= SHORT_WRITES, calls
    assert file.stat().st_size <= SHORT_BYTES
    # What it has is whole, and what it has not says why.
    done = subprocess.run([TACHO, "check", file], stdout=subprocess.PIPE, check=True)
    assert b"whole" in done.stdout
    assert summary["ticks"]["taken"] == 2 and summary["processes"]["seen"] == 1
    # Nothing of ours is counted as its own but the byte by which it enters each control group of version 1.
    assert (summary["io"]["write_chars"] or 0) <= 2
    # A sample of an ended process has no descriptors; no reading was refused.
    assert summary["fds"]["peak"] or summary["unavailable"]["fds.peak"] == "the job ended before it was read"
    assert summary["limits"]["cpus"] >= 1
    done = subprocess.run([TACHO, "show", "--series", "mem.used", file], stderr=subprocess.PIPE, check=False)
    assert done.returncode != 0 and b"the job ended before it was read" in done.stderr


def test_job_that_lives_a_while_has_the_node(tmp_path):
    """Its sources are opened while it runs, in a sample of their own."""
    file = tmp_path / "job.tacho"
    words = ["run", "-q", "-i", "60s", "-o", file, "--", "sh", "-c", f"until {TACHO} show --series mem.used {file}; do :; done"]
    subprocess.run([TACHO, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=60)
    summary = show(file)
    assert summary["ticks"]["taken"] == 3 and summary["ticks"]["missed"] == 0
    assert summary["hardware"]
    assert "disk.read_bytes" not in summary["unavailable"] or "job ended" not in summary["unavailable"]["disk.read_bytes"]


def test_processes_take_turns_when_there_are_too_many(tools):
    """A budget that cannot reach all of them in a tick is kept, no tick is left out, and the recording says so."""
    file = tools["folder"] / "turns.tacho"

    def turned():
        """How many ticks there were since they take turns; None: they do not yet."""
        kinds = [record.get("kind", record["type"]) for record in dump(file)] if file.exists() else []
        return kinds[kinds.index("turns"):].count("tick") if "turns" in kinds else None

    with Herd(tools["herd"], 600, 100, 200) as herd:
        command = [TACHO, "attach", "-q", "-i", "100ms", "--flush", "100ms", "-o", file, str(herd.pids[0])]
        with subprocess.Popen(command) as recorder:
            try:
                deadline = time.monotonic() + PATIENCE_S
                while (turned() or 0) < ENOUGH:
                    assert recorder.poll() is None and time.monotonic() < deadline
                    time.sleep(0.5)
            finally:
                recorder.send_signal(signal.SIGINT)
    summary = show(file)
    assert any(note.startswith("details of processes were read in turns") for note in summary["notes"]), summary["notes"]
    assert summary["ticks"]["skipped"] == 0


@pytest.mark.parametrize("budget, ticks", [("0.01", 0), ("1", 200)])
def test_the_budget_is_judged_early_when_it_is_far_exceeded(tools, budget, ticks):
    """Where the CPU clocks alone exceed it, at once; else when all that five seconds may spend is spent, in far fewer ticks than
    the 500 of these. From then on processes take turns."""
    file = tools["folder"] / "early.tacho"

    def kinds():
        return [record.get("kind", record["type"]) for record in dump(file)] if file.exists() else []

    with Herd(tools["herd"], 200, 100, 5) as herd:
        command = [TACHO, "attach", "-q", "-i", "10ms", "--budget", budget, "--flush", "10ms", *FAST, "-o", file, str(herd.pids[0])]
        with subprocess.Popen(command) as recorder:
            try:
                deadline = time.monotonic() + PATIENCE_S
                while "turns" not in kinds():
                    assert recorder.poll() is None and time.monotonic() < deadline
                    time.sleep(0.5)
            finally:
                recorder.send_signal(signal.SIGINT)
    found = kinds()
    assert found[:found.index("turns")].count("tick") <= ticks
