"""Statistics of stored recordings, checked value by value.

Two ways: against what they were when the recording was stored, so that no change goes unnoticed; and against numbers
that are worked out here from the raw cells, with the decoder that shares no code with the program."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import decoder  # noqa: E402
from recorder import record, run, show  # noqa: E402

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "stats"
WITHIN = 0.011  # quantiles are within a hundredth of the value

def stats(*words):
    done = run("show", "--stats", "--json", *words)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return json.loads(done.stdout)


def recordings():
    return sorted(GOLDEN.glob("*.tacho"), key=str)


def compare(now, then, where=""):
    if isinstance(then, dict):
        assert now.keys() == then.keys(), where
        for key in then:
            compare(now[key], then[key], f"{where}.{key}")
    elif isinstance(then, list):
        assert len(now) == len(then), where
        for i, (a, b) in enumerate(zip(now, then)):
            compare(a, b, f"{where}[{i}]")
    elif isinstance(then, float):
        assert now == pytest.approx(then, rel=1e-9), where
    else:
        assert now == then, where


@pytest.mark.parametrize("file", recordings(), ids=lambda path: path.stem)
def test_as_they_were_when_stored(file):
    compare(stats("--by", "all", file), json.loads(file.with_suffix(".json").read_text()))


# ---- worked out again ----

class Line:
    """The run, a group or a process: what it held at each tick."""

    def __init__(self):
        self.points = []  # (seconds, bytes): what was seen holds until the next tick
        self.held = None
        self.peaks = {}  # by process
        self.samples = 0
        self.peak, self.peak_at = 0, None

    def take(self, time, seconds, held):
        """held: bytes by process, None where a process is there and tells nothing; seconds: since the tick before."""
        if self.held is not None:
            self.points.append((seconds, self.held))
        self.held = None
        if not held:
            return
        self.samples += len(held)
        known = {key: value for key, value in held.items() if value is not None}
        total = sum(known.values())
        if known:
            self.held = total
        for key, value in known.items():
            self.peaks[key] = max(self.peaks.get(key, 0), value)
        if known and (self.peak_at is None or total > self.peak):
            self.peak, self.peak_at = total, time

    def mean(self):
        return sum(seconds * value for seconds, value in self.points) / sum(seconds for seconds, _ in self.points)

    def quantile(self, share):
        below, points = 0, sorted((value, seconds) for seconds, value in self.points)
        for value, seconds in points:
            below += seconds
            if below >= share * sum(seconds for _, seconds in points):
                return value
        raise AssertionError("nothing there")


class Reckoning:
    """Resident memory, processes and CPU time from the cells themselves."""

    def __init__(self, path):
        self.run, self.groups, self.processes = Line(), {}, {}
        self.members = {}  # group: ids
        self.pids, self.seen, self.cells, self.tree, self.group_rows = {}, set(), {}, {}, {}
        self.live, self.names = {}, {}  # of processes: id -> groups; of groups: id -> name
        last = 0
        for entry in decoder.records(path.read_bytes()):
            kind = entry["type"]
            if kind == "schema":
                self.schema(entry["sets"])
            elif kind == "instance":
                self.instance(entry)
            elif kind == "gone" and entry["set"] == self.process_set:
                self.seen.add(entry["id"])
                self.live.pop(entry["id"], None)
                self.cells.pop(entry["id"], None)
                if entry["id"] in self.processes:
                    self.processes[entry["id"]].take(None, max(entry["time"] - last, 0) / 1e9, {})
            elif kind == "tick":
                self.tick(entry, last)
                last = entry["time"]

    def schema(self, sets):
        domains = [one["domain"] for one in sets]
        self.process_set, self.tree_set = domains.index("process"), domains.index("tree")
        self.group_set = domains.index("group") if "group" in domains else None
        self.column = {metric["name"]: (column, metric["scale"])
                       for one in sets for column, metric in enumerate(one["metrics"])}

    def instance(self, entry):
        pairs = dict(entry["pairs"])
        if entry["set"] == self.group_set:
            self.names[entry["id"]] = pairs["name"]
        if entry["set"] != self.process_set:
            return
        groups = [name for name in pairs.get("groups", "").replace("\\x00", "\0").split("\0") if name]
        self.seen.add(entry["id"])
        self.pids[entry["id"]] = int(pairs["pid"])
        for name in groups:
            self.members.setdefault(name, set()).add(entry["id"])
        if entry["row"] is not None:
            self.live[entry["id"]] = groups

    def value(self, row, metric):
        column, scale = self.column[metric]
        return row["cells"][column] * scale if row["valid"] >> column & 1 else None

    def tick(self, entry, last):
        time, seconds = entry["time"] / 1e9, (entry["time"] - last) / 1e9
        for row in entry["rows"]:
            if row["set"] == self.process_set:
                self.cells[row["id"]] = self.value(row, "proc.mem.rss")
            elif row["set"] == self.tree_set:
                self.tree = row
            elif row["set"] == self.group_set:
                self.group_rows[self.names[row["id"]]] = row
        held = {key: self.cells.get(key) for key in self.live}
        self.run.take(time, seconds, held)
        for name in self.members:
            line = self.groups.setdefault(name, Line())
            line.take(time, seconds, {key: held[key] for key in held if name in self.live[key]})
        for key in held:
            self.processes.setdefault(key, Line()).take(time, seconds, {key: held[key]})

    def cpu(self):
        counted = self.value(self.tree, "tree.cgroup.cpu") if "tree.cgroup.cpu" in self.column else None
        if counted is not None:
            return counted
        return self.value(self.tree, "tree.gone.user") + self.value(self.tree, "tree.gone.system")

    def group_cpu(self, name):
        row = self.group_rows[name]
        return self.value(row, "group.gone.user") + self.value(row, "group.gone.system")


def assert_memory(found, line):
    assert found["samples"] == line.samples
    assert found["rss_mean_bytes"] == pytest.approx(line.mean(), abs=1)
    assert found["rss_p50_bytes"] == pytest.approx(line.quantile(0.5), rel=WITHIN)
    assert found["rss_p95_bytes"] == pytest.approx(line.quantile(0.95), rel=WITHIN)
    assert found["rss_peak_bytes"] == line.peak
    assert found["rss_peak_at_s"] == pytest.approx(line.peak_at, abs=1e-6)
    # Of one process with what the kernel marked between samples.
    assert found["rss_one_peak_bytes"] >= max(line.peaks.values())
    assert found["rss_peaks_sum_bytes"] >= sum(line.peaks.values())


@pytest.mark.parametrize("file", recordings(), ids=lambda path: path.stem)
def test_as_worked_out_from_the_cells(file):
    found, wanted = stats("--by", "all", file), Reckoning(file)
    assert found["run"]["instances"] == len(wanted.seen)
    assert found["run"]["cpu_s"] == pytest.approx(wanted.cpu(), abs=1e-6)
    assert_memory(found["run"], wanted.run)
    assert {group["name"] for group in found["groups"]} >= set(wanted.members) and wanted.members
    # The command's own group is counted by the kernel, and has what nobody saw.
    tools = [group for group in found["groups"] if group["name"] in ("grow", "hold", "count")]
    assert len(tools) == 3
    for group in found["groups"]:
        assert group["instances"] == len(wanted.members[group["name"]])
        assert_memory(group, wanted.groups[group["name"]])
    for tool in tools:
        assert tool["cpu_s"] == pytest.approx(wanted.group_cpu(tool["name"]), abs=0.011)
    by_pid = {process["pid"]: process for process in found["processes"]}
    assert len(by_pid) == len(found["processes"]) == len(wanted.seen)
    for key, pid in wanted.pids.items():
        line = wanted.processes.get(key)
        assert by_pid[pid]["samples"] == (line.samples if line else 0)
        if line and line.points:
            between = by_pid[pid]["rss_peak_bytes"] > 1.05 * line.peak  # the kernel's mark, of which no time is known
            assert by_pid[pid]["rss_peak_bytes"] >= line.peak
            assert by_pid[pid]["rss_mean_bytes"] == pytest.approx(line.mean(), abs=1)
            assert by_pid[pid]["rss_peak_at_s"] == (None if between else pytest.approx(line.peak_at, abs=1e-6))
        else:
            assert by_pid[pid]["rss_peak_at_s"] is None


@pytest.mark.parametrize("file", recordings(), ids=lambda path: path.stem)
def test_they_never_contradict_the_plots(file):
    title = run("plot", file, "proc.mem.rss").stdout.decode()
    mean, most = (float(number) for number in re.search(r"mean ([\d.]+) MiB, max ([\d.]+) MiB", title).groups())
    found = stats(file)["run"]
    assert mean == pytest.approx(found["rss_mean_bytes"] / 2**20, rel=0.01)
    assert most == pytest.approx(found["rss_peak_bytes"] / 2**20, rel=0.01)


def test_they_never_contradict_the_summary(tmp_path):
    """Whatever happens on a busy machine: the statistics of a run are those of `tacho show`."""
    file = tmp_path / "a.tacho"
    assert record(["sh", "-c", "for i in 1 2 3 4 5; do ls >/dev/null; sleep 0.05; done"], "-i", "10ms",
                  output=file).returncode == 0
    row, summary = stats(file)["run"], show(file)
    assert row["cpu_s"] == summary["cpu"]["total_s"]
    assert row["cores_mean"] == summary["cpu"]["mean_cores"]
    assert row["cores_peak"] == summary["cpu"]["peak_cores"]
    assert row["instances"] == summary["processes"]["seen"]
    assert summary["processes"]["unsampled_is_upper_bound"] or row["instances"] == 11
    assert row["rss_peak_bytes"] == summary["memory"]["peak_rss_bytes"]
    assert row["pss_peak_bytes"] == summary["memory"]["peak_pss_bytes"]
    assert row["duration_s"] == summary["wall_s"]
    for kind in ("rss", "pss", "uss"):
        mean, p95, peak = (row[f"{kind}_{what}_bytes"] for what in ("mean", "p95", "peak"))
        if peak is None:
            continue  # page tables are walked when the budget has room, and a short job may be over before
        assert 0 < mean <= peak and 0 < p95 <= peak <= row[f"{kind}_peaks_sum_bytes"]
    assert row["rss_peak_bytes"] > 0


# ---- the command ----

def test_levels_and_forms():
    file = recordings()[0]
    assert set(stats(file)) == {"columns", "run", "groups"}  # of one node and one user there is nothing to compare
    assert set(stats("--by", "user", file)) == {"columns", "users"}
    assert [user["name"] for user in stats("--by", "user", file)["users"]] == ["root"]
    done = run("show", "--stats", "--csv", "--by", "process", "--sort", "pid", "--limit", "3", file)
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert len(rows) == 3 and {row["level"] for row in rows} == {"process"}
    assert [int(row["pid"]) for row in rows] == sorted(int(row["pid"]) for row in rows)
    assert rows[0]["rss_p95_bytes"] == ""  # not told of a process
    text = run("show", "--stats", file).stdout.decode()
    peak = json.loads(file.with_suffix(".json").read_text())["run"]["rss_peak_bytes"]
    assert f"RSS peak {peak / 2**20:15.3g} MiB".replace(" ", "") in text.replace(" ", "")
    assert "Groups" in text and "Users" not in text


@pytest.mark.parametrize("words", [["--by", "user"], ["--stats", "--processes"], ["--stats", "--series", "tree.cores"],
                                   ["--stats", "--json", "--csv"], ["--stats", "--by", "planet"]])
def test_questions_that_are_none(words):
    done = run("show", *words, recordings()[0])
    assert done.returncode == 2 and not done.stdout and done.stderr


def test_what_there_is_none_of_is_said(tmp_path):
    record(["true"], output=tmp_path / "one.tacho")
    done = run("show", "--stats", "--by", "group", tmp_path / "one.tacho")
    assert done.returncode == 0 and not done.stdout
    assert "no statistics by group" in done.stderr.decode()
