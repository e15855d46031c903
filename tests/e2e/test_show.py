"""`tacho show`: the JSON contract name by name and type by type, the table of processes, time series, words."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from datetime import datetime

import pytest

from recorder import PATIENCE_S, TACHO, lasting, record, run, show, shown, start, until

# Two children that use CPU, write, and hold memory, each until it is told to go on; one of them fails.
BUSY = r"""
import os, sys
held = bytearray(24 << 20)
for n in range(2):
    pid = os.fork()
    if pid == 0:
        x = 0
        for i in range(500_000): x += i
        with open(sys.argv[1], "wb") as f:
            for _ in range(64): f.write(b"x" * 65536); f.flush()
        os.write(1, b"%d\n" % os.getpid())
        os.read(0, 1)
        os._exit(n)
    os.waitpid(pid, 0)
sys.exit(3)
"""

NUMBER = (int, float)
# The contract: names and types. A value may be null, and then says why.
CONTRACT = {
    "command": str,
    "host": str,
    "start": str,
    "message": str,
    "target": str,
    "wall_s": NUMBER,
    "exit": {"code": int, "signal": int},
    "interval_s": NUMBER,
    "ticks": {"taken": int, "missed": int},
    "cpu": {
        "user_s": NUMBER,
        "system_s": NUMBER,
        "total_s": NUMBER,
        "source": str,
        "mean_cores": NUMBER,
        "peak_cores": NUMBER,
        "observed_ratio": NUMBER,
        "of_allocation_ratio": NUMBER,
        "of_node_ratio": NUMBER,
    },
    "memory": {
        "peak_bytes": int,
        "peak_rss_bytes": int,
        "peak_rss_at_s": NUMBER,
        "peak_pss_bytes": int,
        "peak_pss_at_s": NUMBER,
        "peak_pss_estimated_ratio": NUMBER,
        "peak_uss_bytes": int,
        "peak_uss_at_s": NUMBER,
        "peak_vms_bytes": int,
        "peak_vms_at_s": NUMBER,
        "peak_swap_bytes": int,
        "peak_swap_at_s": NUMBER,
        "max_process_hwm_bytes": int,
        "max_process_rss_bytes": int,
        "max_process_pss_bytes": int,
        "max_process_uss_bytes": int,
        "of_allocation_ratio": NUMBER,
        "of_node_ratio": NUMBER,
        "ratio_view": str,
    },
    "io": {
        "read_bytes": int,
        "write_bytes": int,
        "read_chars": int,
        "write_chars": int,
        "read_calls": int,
        "write_calls": int,
    },
    "faults": {"major": int, "minor": int},
    "switches": {"voluntary": int, "involuntary": int},
    "processes": {"seen": int, "peak": int, "unsampled": int, "active_s": NUMBER},
    "threads": {"peak": int},
    "fds": {"peak": int},
    "limits": {
        "cpus": NUMBER,
        "cpus_source": str,
        "memory_bytes": int,
        "memory_source": str,
        "machine_cpus": int,
        "machine_memory_bytes": int,
    },
    "network": {"rx_bytes": int, "tx_bytes": int, "rx_packets": int, "tx_packets": int},
    "interconnect": {"rx_bytes": int, "tx_bytes": int, "rx_packets": int, "tx_packets": int},
    "disk": {"read_bytes": int, "write_bytes": int},
    "energy": {"node_joules": NUMBER, "mean_watts": NUMBER, "source": str, "gpu_joules": NUMBER, "job_gpu_joules": NUMBER},
    "memory_bandwidth": {
        "read_bytes": int,
        "write_bytes": int,
        "total_bytes": int,
        "mean_bytes_per_s": NUMBER,
        "peak_bytes_per_s": NUMBER,
        "source": str,
    },
    "perf": {},
    "gpus": list,
    "cgroup": {"path": str, "peak_bytes": int, "oom_kills": int, "throttled_s": NUMBER},
    "scheduler": {"kind": str, "job_id": str, "found_by": str},
    "hardware": {},
    "environment": {},
    "groups": {},
    "self": {"cpu_s": NUMBER, "cpu_percent": NUMBER, "peak_rss_bytes": int},
    "complete": bool,
    "unavailable": dict,
}

# A group has the shapes of the whole, and its own reasons.
GROUP = {
    "kind": str,
    "target": str,
    "with_children": bool,
    "gpus": list,
    "unavailable": dict,
    **{name: CONTRACT[name] for name in ("cpu", "memory", "io", "faults", "switches", "processes", "threads", "fds")},
}


def contract_breaches(found, contract=CONTRACT, path="", top=None):
    """What is missing, of the wrong type, or null without a reason."""
    top = found if top is None else top
    for name, kind in contract.items():
        where = f"{path}{name}"
        if name not in found:
            yield f"{where} is missing"
        elif isinstance(kind, dict):
            yield from contract_breaches(found[name], kind, f"{where}.", top)
        elif found[name] is None:
            # A job either exits or is killed: of the two, the other does not apply.
            other = {"exit.code": "signal", "exit.signal": "code"}.get(where)
            if where not in top["unavailable"] and not (other and found[other] is not None):
                yield f"{where} is null without a reason"
        elif isinstance(found[name], bool) != (kind is bool) or not isinstance(found[name], kind):
            yield f"{where} is {found[name]!r}"


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A recording of the busy program, in which both of its children were seen after their work."""
    where = tmp_path_factory.mktemp("busy")
    recording = where / "busy.tacho"

    def has_written(pid):
        listed = run("show", "--processes", "--json", recording)
        found = json.loads(listed.stdout)["processes"] if listed.returncode == 0 else []
        return any(p["pid"] == pid and (p["write_chars"] or 0) >= 64 * 65536 for p in found)

    command = [sys.executable, "-c", BUSY, where / "written"]
    with lasting(command, "-i", "10ms", output=recording, status=3, stdout=subprocess.PIPE) as tacho:
        for _ in range(2):
            pid = int(tacho.stdout.readline())
            until(lambda: has_written(pid), "a child is seen after its work")
            tacho.stdin.write(b"x")
            tacho.stdin.flush()
    return recording


def lines_of(*words):
    done = run("show", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def table_of(*words):
    return list(csv.DictReader(lines_of(*words)))


# ---- the contract ----


def test_contract(busy):
    summary = show(busy)
    assert list(contract_breaches(summary)) == []
    assert summary["exit"] == {"code": 3, "signal": None}
    assert summary["complete"] is True
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", summary["start"])
    datetime.fromisoformat(summary["start"].replace("Z", "+00:00"))
    assert summary["argv"][1:3] == ["-c", BUSY]
    assert summary["host"] == os.uname().nodename
    assert summary["interval_s"] == 0.01
    # Nobody asked for counters.
    assert summary["perf"] == {}
    assert summary["cpu"]["counted_percent"] is None and summary["unavailable"]["cpu.counted_percent"] == "not recorded"


def test_numbers_agree_with_each_other(busy):
    summary = show(busy)
    cpu, memory = summary["cpu"], summary["memory"]
    assert cpu["total_s"] > 0
    assert cpu["mean_cores"] == pytest.approx(cpu["total_s"] / summary["wall_s"])
    assert cpu["mean_cores"] <= cpu["peak_cores"] <= os.cpu_count() + 0.01
    assert 0 < cpu["observed_ratio"] <= 1
    # Both split and total are the kernel's; the split is coarse.
    assert cpu["user_s"] + cpu["system_s"] == pytest.approx(cpu["total_s"], abs=0.1)
    assert memory["peak_rss_bytes"] >= memory["peak_pss_bytes"] >= memory["peak_uss_bytes"] > 0
    assert memory["peak_vms_bytes"] > memory["peak_rss_bytes"] > 24 << 20
    for name in ("rss", "pss", "uss", "vms"):
        assert 0 <= memory[f"peak_{name}_at_s"] <= summary["wall_s"]
    # The children wrote 64 x 64 KiB each.
    assert 2 * 64 * 65536 <= summary["io"]["write_chars"] < 2 * 64 * 65536 + 100_000
    assert summary["io"]["write_calls"] >= 128
    assert summary["processes"]["seen"] == 3
    assert summary["processes"]["peak"] == 2
    assert summary["self"]["peak_rss_bytes"] < 50 << 20


def test_contract_of_a_killed_recorder(tmp_path):
    recording = tmp_path / "a.tacho"
    tacho = start("run", "-q", "-i", "10ms", "--flush", "10ms", "-o", recording, "--", "sleep", "1000")
    until(lambda: recording.exists() and run("show", "--json", recording).returncode == 0
          and show(recording)["ticks"]["taken"] > 2, "it is being recorded")
    growing = show(recording)
    os.kill(tacho.pid, signal.SIGKILL)
    tacho.wait()
    dead = show(recording)
    (process,) = json.loads(run("show", "--processes", "--json", recording).stdout)["processes"]
    os.kill(process["pid"], signal.SIGKILL)
    assert not process["ended"]
    for summary in (growing, dead):
        assert list(contract_breaches(summary)) == []
        assert summary["complete"] is False
        assert summary["exit"] == {"code": None, "signal": None}
        assert "unfinished" in summary["unavailable"]["exit.code"]
        assert summary["processes"]["seen"] == 1
    assert dead["ticks"]["taken"] >= growing["ticks"]["taken"]


def test_signals(tmp_path):
    record(["sh", "-c", "kill -USR1 $$"], "-q", output=tmp_path / "a.tacho")
    summary = show(tmp_path / "a.tacho")
    assert summary["exit"] == {"code": None, "signal": signal.SIGUSR1}
    assert list(contract_breaches(summary)) == []
    assert "killed by SIGUSR1" in "\n".join(lines_of(tmp_path / "a.tacho"))


def test_what_was_not_recorded_is_null_with_its_reason(tmp_path):
    done = record(["true"], "-q", "-m", "-pss", output=tmp_path / "a.tacho")
    if done.returncode != 0:
        pytest.skip(f"-m -pss: {done.stderr.decode()}")
    summary = show(tmp_path / "a.tacho")
    assert list(contract_breaches(summary)) == []
    assert summary["memory"]["peak_pss_bytes"] is None
    assert summary["unavailable"]["memory.peak_pss_bytes"]


def test_limits_and_hardware(busy):
    summary = show(busy)
    limits, cpu, memory = summary["limits"], summary["cpu"], summary["memory"]
    assert 0 < limits["cpus"] <= limits["machine_cpus"]
    assert limits["cpus"] <= len(os.sched_getaffinity(0))
    assert 0 < limits["memory_bytes"] <= limits["machine_memory_bytes"]
    assert cpu["of_allocation_ratio"] == pytest.approx(cpu["mean_cores"] / limits["cpus"])
    assert cpu["of_node_ratio"] == pytest.approx(cpu["mean_cores"] / limits["machine_cpus"])
    assert memory["of_allocation_ratio"] == pytest.approx(memory[memory["ratio_view"]] / limits["memory_bytes"])
    assert memory["of_node_ratio"] == pytest.approx(memory[memory["ratio_view"]] / limits["machine_memory_bytes"])
    assert summary["hardware"]["kernel"] == os.uname().release
    assert summary["groups"] == {}


# ---- groups ----

# Tools by the last word of their command lines: each burns so many ms of CPU and writes so many bytes, once it is known to
# be one of the group, which has nothing of what was before.
TOOL = r"""
import os, sys, time
while not os.path.exists(sys.argv[3]): time.sleep(0.01)
end = time.process_time() + int(sys.argv[1]) / 1000
while time.process_time() < end: pass
with open(os.devnull, "wb") as f: f.write(b"x" * int(sys.argv[2]))
while not os.path.exists(sys.argv[3] + ".end"): time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """Two tools, three and two instances, as `--also match:` finds them among the command's own processes."""
    where = tmp_path_factory.mktemp("tools")
    recording, go = where / "tools.tacho", where / "go"
    driver = "\n".join(
        f"{sys.executable} -c '{TOOL}' {ms} {size} {go} tacho-test-{name} &"
        for name, ms, size in [("grind", 150, 100 << 10), ("sieve", 50, 5 << 10)] * 2 + [("grind", 100, 100 << 10)]
    )


    def all_known():
        groups = shown(recording).get("groups", {})
        return [groups[name]["processes"]["peak"] for name in ("grind", "sieve") if name in groups] == [3, 2]

    options = ["-i", "10ms", "--also", "match:tacho-test-(grind|sieve)$"]
    with lasting(["sh", "-c", driver + "\nwait"], *options, output=recording):
        until(all_known, "all tools are known")
        go.touch()
        until(lambda: show(recording)["groups"]["grind"]["io"]["write_chars"] >= 300 << 10, "their work is seen")
        go.with_suffix(".end").touch()
    return recording


def test_groups(tools):
    summary = show(tools)
    assert list(contract_breaches(summary)) == []
    assert set(summary["groups"]) == {"sh", "grind", "sieve"}
    for name, group in summary["groups"].items():
        assert list(contract_breaches(group, GROUP)) == [], name
        assert group["kind"] == ("command" if name == "sh" else "match")
        # Whoever is in a group is in the whole, once.
        assert group["cpu"]["total_s"] <= summary["cpu"]["total_s"] + 1e-6
        assert group["memory"]["peak_rss_bytes"] <= summary["memory"]["peak_rss_bytes"]
    grind, sieve = (summary["groups"][name] for name in ("grind", "sieve"))
    # Children of the shell are matched in the moment between fork and exec by nothing, and after it by their names.
    assert grind["processes"]["seen"] == 3
    assert sieve["processes"]["seen"] == 2
    assert grind["cpu"]["total_s"] >= 0.35
    assert grind["io"]["write_chars"] >= 300 << 10
    assert 10 << 10 <= sieve["io"]["write_chars"] < 100_000
    assert grind["memory"]["max_process_rss_bytes"] <= grind["memory"]["peak_rss_bytes"]


def test_the_sum_over_tools_is_the_sum_over_their_processes(tools):
    processes = json.loads(run("show", "--processes", "--json", tools).stdout)["processes"]
    for name, group in show(tools)["groups"].items():
        if group["kind"] != "match":
            continue
        members = [process for process in processes if name in process["groups"]]
        assert len(members) == group["processes"]["seen"]
        # A process brings along what it used before the exec that gave it its name; a group does not have that.
        assert group["cpu"]["total_s"] == pytest.approx(sum(p["cpu_s"] for p in members), abs=0.03)


def test_series_of_a_group(tools):
    points = json.loads(run("show", "--series", "group.cpu,proc.mem.rss,group.processes", "--group", "grind", "--json",
                            tools).stdout)["recordings"][0]["points"]
    group = show(tools)["groups"]["grind"]
    used = [point[1] for point in points if point[1] is not None]
    assert used == sorted(used)
    assert used[-1] == pytest.approx(group["cpu"]["total_s"], abs=0.03)
    assert max(point[2] or 0 for point in points) == group["memory"]["peak_rss_bytes"]
    assert max(point[3] or 0 for point in points) == group["processes"]["peak"]


def test_groups_in_words(tools):
    text = "\n".join(lines_of(tools))
    assert re.search(r"^  groups   name +procs +cpu", text, re.M)
    assert re.search(r"^ {11}grind +3 ", text, re.M)
    table = lines_of("--processes", tools)
    assert "GROUPS" in table[0]
    assert sum("grind" in line for line in table) >= 3


def test_lower_bounds_of_groups_are_marked(tmp_path):
    """Nobody tells how much memory they had in the end."""
    jobs, recording = [subprocess.Popen(["sleep", "1000"]) for _ in "ab"], tmp_path / "a.tacho"
    targets = [f"{name}={job.pid}" for name, job in zip("ab", jobs)]
    try:
        tacho = start("attach", "-q", "--helpers=none", "-i", "20ms", "--flush", "20ms", "-o", recording, *targets)
        until(lambda: recording.exists() and run("show", recording).returncode == 0 and
              show(recording)["processes"]["seen"] == 2, "both are recorded")
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    assert tacho.wait() == 0
    text = "\n".join(lines_of(recording))
    assert all(group["memory"]["lower_bound"] for group in show(recording)["groups"].values())
    assert len(re.findall(r"^ {11}[ab] +1 +\S+ +\S+ +≥", text, re.M)) == 2, text


# ---- several ----


def test_several_are_one_run(tmp_path, busy):
    for name in "ab":
        (tmp_path / f"{name}.tacho").write_bytes(busy.read_bytes())
    (tmp_path / "not.tacho").write_bytes(b"")
    one, both = show(busy), show(tmp_path)
    assert list(contract_breaches(both)) == []
    assert len(both["nodes"]) == 2
    for node in both["nodes"]:
        assert list(contract_breaches(node)) == []
        assert node["cpu"] == one["cpu"]
    assert both["cpu"]["total_s"] == pytest.approx(2 * one["cpu"]["total_s"])
    # Sums over nodes stand on a grid of the interval, which need not begin with a tick; and on a busy machine ticks may come closer
    # together than a peak of one recording is told over.
    assert both["cpu"]["peak_cores"] <= 2.3 * one["cpu"]["peak_cores"]
    assert both["memory"]["peak_rss_bytes"] == 2 * one["memory"]["peak_rss_bytes"]
    assert both["memory"]["peak_rss_at_s"] == pytest.approx(one["memory"]["peak_rss_at_s"], abs=one["interval_s"])
    assert both["wall_s"] == pytest.approx(one["wall_s"])
    assert both["processes"]["seen"] == 6
    assert both["exit"]["code"] == 3
    assert any("not.tacho" in note for note in both["notes"])
    text = lines_of(tmp_path / "a.tacho", tmp_path / "b.tacho")
    assert [line.split()[0] for line in text if line and not line.startswith(" ")] == [one["host"]] * 2 + ["total"]
    table = table_of("--processes", "--csv", tmp_path)
    assert len(table) == 6
    series = table_of("--series", "tree.cpu", "--csv", tmp_path)
    assert {row["host"] for row in series} == {one["host"]}
    assert len(series) == both["ticks"]["taken"]


def test_newest_here(tmp_path, busy):
    done = run("show", cwd=tmp_path)
    assert done.returncode == 2
    (tmp_path / "old.tacho").write_bytes(busy.read_bytes())
    (tmp_path / "new.tacho").write_bytes(busy.read_bytes())
    os.utime(tmp_path / "old.tacho", (1, 1))
    done = run("show", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["path"] == "new.tacho"
    assert b"new.tacho" in done.stderr


# ---- processes ----


def test_every_process_is_in_the_table(busy):
    listed = json.loads(run("show", "--processes", "--json", busy).stdout)
    assert listed["total"] == 3
    for process in listed["processes"]:
        assert process["user_s"] + process["system_s"] == pytest.approx(process["cpu_s"], abs=1e-9)
    by_pid = {process["pid"]: process for process in listed["processes"]}
    root = next(p for p in by_pid.values() if p["ppid"] not in by_pid)
    children = [p for p in by_pid.values() if p["ppid"] == root["pid"]]
    assert len(children) == 2
    assert root["exit"] == {"code": 3, "signal": None}
    assert root["argv"][1] == "-c"
    for child in children:
        assert 0 < child["cpu_s"] <= show(busy)["cpu"]["total_s"]
        assert root["start_s"] <= child["start_s"] <= child["end_s"] <= root["end_s"]
        assert child["ended"] and child["sampled"]
    # Each process has its own time: together they are the tree's.
    total = sum(p["cpu_s"] for p in by_pid.values())
    assert total == pytest.approx(show(busy)["cpu"]["total_s"], rel=0.2, abs=0.05)


@pytest.mark.parametrize("key, column, falling", [
    ("cpu", "cpu_s", True), ("rss", "hwm_bytes", True), ("start", "start_s", False), ("pid", "pid", False),
    ("wall", "wall_s", True), ("name", "name", False), ("end", "end_s", False), ("fds", "peak_fds", True),
])
def test_order(busy, key, column, falling):
    def column_of(*words):
        values = [row[column] for row in table_of("--processes", "--csv", "--sort", key, *words, busy)]
        return values if key == "name" else [float(value) for value in values if value]

    forward = column_of()
    assert forward == sorted(forward, reverse=falling)
    backward = column_of("--reverse")
    assert backward == sorted(forward, reverse=not falling)
    assert column_of("--limit", "1") == forward[:1]


def test_unknown_order(busy):
    done = run("show", "--processes", "--sort", "beauty", busy)
    assert done.returncode == 2
    assert b"beauty" in done.stderr


# ---- series ----


def test_series_in_three_forms(busy):
    metrics = "proc.mem.rss,tree.cores"
    table = table_of("--series", metrics, "--csv", busy)
    assert list(table[0]) == ["time_s", "proc.mem.rss", "tree.cores"]
    assert len(table) == show(busy)["ticks"]["taken"]
    found = json.loads(run("show", "--series", metrics, "--json", busy).stdout)["recordings"][0]
    assert found["columns"] == ["time_s", "proc.mem.rss", "tree.cores"]
    assert found["units"][0] == "bytes"
    assert len(found["points"]) == len(table)
    for row, point in zip(table, found["points"]):
        assert [float(cell) if cell else None for cell in row.values()] == point
    # A tick may find nobody but zombies.
    assert max(point[1] or 0 for point in found["points"]) == show(busy)["memory"]["peak_rss_bytes"]
    text = lines_of("--series", metrics, busy)
    assert len(text) == len(table) + 2
    assert len({len(line) for number, line in enumerate(text) if number != 1}) == 1, "but for the units, which have no spaces behind them"
    times = [point[0] for point in found["points"]]
    assert times == sorted(times)


def test_rates_add_up_to_the_total(busy):
    """A rate times the time that passed, summed up, is what was used; ticks that came late have the rate before them."""
    points = json.loads(run("show", "--series", "tree.cores", "--json", busy).stdout)["recordings"][0]["points"]
    used = sum((b[0] - a[0]) * (b[1] or 0) for a, b in zip(points, points[1:]))
    assert all(b[1] >= 0 for b in points[1:] if b[1] is not None)
    assert points[0][1] is None
    first = json.loads(run("show", "--series", "tree.cpu", "--json", busy).stdout)["recordings"][0]["points"][0][1]
    assert used + first == pytest.approx(show(busy)["cpu"]["total_s"], rel=0.1)


def test_series_of_one_process_and_of_each(busy):
    rows = table_of("--series", "proc.cpu.time,proc.state", "--per", "instance", "--csv", busy)
    pids = {row["pid"] for row in rows}
    assert len(pids) == 3
    pid = sorted(pids)[-1]
    one = [row for row in rows if row["pid"] == pid]
    alone = [row for row in table_of("--series", "proc.cpu.time,proc.state", "--pid", pid, "--csv", busy)
             if row["proc.cpu.time"]]
    assert [row["proc.cpu.time"] for row in one] == [row["proc.cpu.time"] for row in alone]
    assert {chr(int(row["proc.state"])) for row in one} <= set("RSDTZXI")


# Two processes hold still until they are told to end, and say what the kernel shows of them.
STILL = r"""
import os, sys, threading, time
held = bytearray(24 << 20)
files = [open("/dev/null") for _ in range(5)]
ours, theirs = os.pipe(), os.pipe()
child = os.fork()
if not child:
    more = bytearray(16 << 20)
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    os.write(ours[1], b"x")
    os.read(theirs[0], 1)
    os._exit(0)
os.read(ours[0], 1)
def told(pid):
    words = open(f"/proc/{pid}/statm").read().split()
    stat = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    io = dict(line.split(": ") for line in open(f"/proc/{pid}/io").read().splitlines())
    return [int(words[1]) * 4096, int(words[0]) * 4096, int(stat[17]), len(os.listdir(f"/proc/{pid}/fd")), int(io["write_bytes"])]
print(*told(os.getpid()), *told(child), flush=True)
sys.stdin.readline()
os.write(theirs[1], b"x")
os.wait()
"""


@pytest.mark.parametrize("children", ["yes", "no"])
def test_names_of_a_tree(tmp_path, children):
    """CPU and memory shares, RSS, VMS, USS, threads, files and bytes, with or without the children: as /proc has them."""
    file = tmp_path / "a.tacho"
    recorder = start("run", "-q", "-i", "50ms", "--flush", "50ms", "--children", children, "-o", file, "--", sys.executable, "-c",
                     STILL, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    told = [int(word) for word in recorder.stdout.readline().split()]
    expected = [told[i] + (told[5 + i] if children == "yes" else 0) for i in range(5)]

    def points():
        names = ["proc.mem.rss", "proc.mem.vms", "proc.threads", "proc.fds", "proc.io.write_bytes", "proc.mem.uss_now",
                 "tree.cpu.of_allocation", "tree.rss.of_allocation", "tree.rss.of_node", "tree.cores", "proc.io.read_bytes"]
        done = run("show", "--json", "--series", ",".join(names), file)
        return json.loads(done.stdout)["recordings"][0]["points"] if done.returncode == 0 else []

    def settled():
        """The tick in which it stood still. (The listing has opened a directory, and python frees what it read.)"""
        found = points()
        if not found or None in found[-1]:
            return None
        point = found[-1][1:]
        near = point[0] == pytest.approx(expected[0], rel=0.02)  # mapped, and written to
        return near and point[1:3] == expected[1:3] and point[3] <= expected[3] and point[4] == expected[4] and point
    found = until(settled, f"it is recorded as it was told: {expected}")
    recorder.communicate(b"\n")
    assert recorder.returncode == 0
    rss, _, _, fds, _, uss, cpu, of_allocation, of_node, cores, read = found
    summary = show(file)
    assert expected[3] - 2 <= fds
    assert 0 < uss <= rss and read >= 0
    assert of_allocation == pytest.approx(rss / summary["limits"]["memory_bytes"])
    assert of_node == pytest.approx(rss / summary["limits"]["machine_memory_bytes"], rel=0.01)
    assert cpu == pytest.approx(cores / summary["limits"]["cpus"])
    assert summary["processes"]["peak"] == (2 if children == "yes" else 1)


def test_cpus_of_the_node(busy):
    """Of the whole node and of each CPU: what is user time and what is idle."""
    for words in ([], ["--per", "instance"]):
        rows = table_of("--series", "cpu.user_ratio,cpu.idle_ratio,cpu.busy", "--csv", *words, busy)
        known = [[float(row[name]) for name in ("cpu.user_ratio", "cpu.idle_ratio", "cpu.busy")]
                 for row in rows if row["cpu.user_ratio"]]
        assert known
        # The kernel takes back some of its iowait now and then: shares of one step need not add up, those of all do.
        assert all(0 <= user <= busy_part + 1e-9 and idle >= 0 for user, idle, busy_part in known)
        assert sum(idle + busy_part for _, idle, busy_part in known) <= 1.1 * len(known)
        assert max(user for user, _, _ in known) > 0
    assert len({row["instance"] for row in rows if re.fullmatch("cpu[0-9]+", row["instance"])}) == os.cpu_count()


@pytest.mark.parametrize("words, message", [
    (["--series", "proc.mem.rs"], "did you mean 'proc.mem.rss'"),
    (["--series", "bananas"], "tacho metrics"),
    (["--series", "proc.state"], "cannot be added up"),
    (["--csv"], "--csv"),
    (["--json", "--csv", "--processes"], "--json"),
    (["--rate"], "--series"),
    (["--group", "grind"], "--series"),
    (["--series", "proc.mem.rss", "--group", "nobody"], "no group 'nobody'"),
    (["--series", "group.cores"], "choose it with --group"),
    (["--processes", "--series", "proc.mem.rss"], "cannot be combined"),
])
def test_wrong_questions(busy, words, message):
    done = run("show", *words, busy)
    assert done.returncode == 2
    assert done.stdout == b""
    assert message in done.stderr.decode()


# ---- words ----


def test_words(busy):
    text = "\n".join(lines_of(busy))
    assert "exit 3" in text
    for label in ("cpu", "memory", "io", "tree", "cost", "kept in"):
        assert re.search(rf"^  {label} +\S", text, re.M), label
    assert "3 processes, 2 at once" in text
    assert "\033" not in text
    assert str(busy) in text


def test_words_in_a_poor_locale(busy):
    env = {**os.environ, "LC_ALL": "C"}
    done = run("show", busy, env=env)
    assert done.stdout.isascii()


def test_broken_pipe(busy):
    """`tacho show | head -1` is no error worth a word."""
    done = subprocess.run(
        f"{TACHO} show --series proc.cpu.time --per instance --csv {busy} | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True,
    )
    assert done.stderr == b""
    assert done.returncode in (0, 128 + signal.SIGPIPE)


def test_a_full_disk_is_told(busy):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([TACHO, "show", "--json", busy], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert b"standard output" in done.stderr


@pytest.mark.parametrize("words", [[], ["--json"], ["--processes"], ["--series", "tree.cores"]])
def test_not_a_file(tmp_path, words):
    fifo = tmp_path / "fifo.tacho"
    os.mkfifo(fifo)
    for operand in (fifo, tmp_path / "none.tacho", "/dev/null"):
        done = run("show", *words, operand, timeout=PATIENCE_S)
        assert done.returncode == 2
        assert done.stdout == b""
        assert done.stderr


def test_verbose_names_every_source(tmp_path):
    done = run("run", "-v", "--no-summary", "-o", tmp_path / "a.tacho", "--", "sleep", "0.1")
    told = dict(re.findall(r"^  (\w[\w ]*?)  +((?:not )?recorded: .+)$", done.stderr.decode(), re.M))
    assert re.match(r"recorded: \d+ ", told["process"])
    # Nothing is left out without a reason; where the job was over too soon one line is for all that was not read.
    assert "all others" in told or {"cpu", "memory", "gpu", "disk"} <= set(told), told
    quiet = run("run", "-v", "-q", "-o", tmp_path / "b.tacho", "--", "true")
    assert (done.returncode, quiet.stderr) == (0, b"")
