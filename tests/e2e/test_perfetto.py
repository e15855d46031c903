"""Traces for Perfetto, decoded by the classes of its own package: processes, phases, marks and counters, each against what
the tables of the same run say."""

import json
import random
import subprocess
import zlib
from collections import defaultdict
from datetime import datetime

import pytest

from exported import export, reader, recordings, tables_of, tool  # noqa: F401
from feed import Column, feed
from recorder import TACHO, run

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
RECORDINGS = ("run", "gpus", "infiniband", "energy", "hostile", "one_tick", "no_tick", "unfinished", "damaged", "nodes")
PROCESS_COUNTERS = ("proc.cpu.cores", "proc.mem.rss", "proc.threads", "proc.io.read_rate", "proc.io.write_rate")


def packets_of(data):
    """Those that were deflated stand in their place, as trace_processor takes them."""
    trace = reader("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace()
    trace.ParseFromString(data)
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            yield from packets_of(zlib.decompress(packet.compressed_packets))
        else:
            yield packet


class Trace:
    def __init__(self, path):
        self.packets = list(packets_of(path.read_bytes()))
        self.tracks, self.events = {}, defaultdict(list)
        for packet in self.packets:
            assert packet.trusted_packet_sequence_id == 1
            if packet.HasField("track_descriptor"):
                self.describe(packet.track_descriptor)
            elif packet.HasField("track_event"):
                event = packet.track_event
                assert event.type != COUNTER or self.tracks[event.track_uuid].HasField("counter"), "a value before its track"
                self.events[event.track_uuid].append((packet.timestamp, event))
        for events in self.events.values():
            events.sort(key=lambda event: event[0])  # as readers do: what has the same time keeps its order

    def describe(self, track):
        known = self.tracks.get(track.uuid)
        assert not known or (known.parent_uuid, known.process.pid) == (track.parent_uuid, track.process.pid)
        assert not track.parent_uuid or track.parent_uuid in self.tracks, "a parent that comes later"
        self.tracks[track.uuid] = track

    def path(self, number):
        """The names from the node down; of a process PID and start."""
        track = self.tracks[number]
        name = (track.process.pid, track.process.start_timestamp_ns) if track.HasField("process") else track.name
        return (*(self.path(track.parent_uuid) if track.parent_uuid else ()), name)

    def counters(self):
        """Path -> [(time, value)]. Of values at one time all are kept."""
        found = {}
        for number, track in self.tracks.items():
            if not track.HasField("counter"):
                continue
            assert self.path(number) not in found, f"two tracks are called {self.path(number)}"
            found[self.path(number)] = [(time, event.double_counter_value if event.HasField("double_counter_value") else event.counter_value)
                                        for time, event in self.events[number]]
        return found

    def slices(self, number):
        """[(name, begin, end, depth, notes)]: every begin has its end, and they nest."""
        open_, found = [], []
        for time, event in self.events[number]:
            if event.type == BEGIN:
                open_.append((event.name, time, {note.name: value_of(note) for note in event.debug_annotations}))
            elif event.type == END:
                assert open_, "an end without a beginning"
                name, begin, notes = open_.pop()
                found.append((name, begin, time, len(open_), notes))
        assert not open_, f"{open_} have no end"
        return found

    def named(self, *path):
        return [number for number in self.tracks if self.path(number) == path]


def value_of(note):
    return getattr(note, note.WhichOneof("value"))


def nanoseconds(text):
    whole, part = text.removesuffix("Z").split(".")
    return int((datetime.fromisoformat(whole) - datetime(1970, 1, 1)).total_seconds()) * 10**9 + int(part)


def rows_of(table):
    names = [field["name"] for field in table["fields"]]
    return [dict(zip(names, row)) for row in table["rows"]]


def trace_of(recording, folder, *options):
    return Trace(export(recording, "perfetto", folder / "job.pftrace", *options))


def paths_of(tables):
    """Table, row -> the path of the track above its counters, as docs/export.md says."""
    start = {row["process"]: nanoseconds(row["start"]) for row in rows_of(tables["processes"]) if row["start"]} if "processes" in tables else {}

    def path(table, row):
        if row.get("process") is not None and row["process"] in start:
            process = (row["host"], (row["pid"], start[row["process"]]))
            return process if table == "process" else (*process, row["instance"])
        if table == "tree":
            return row["host"], "job"
        return (row["host"], table) if row["instance"] == table else (row["host"], table, row["instance"])

    return path


def check_counter(values, rows):
    """At the time of each row the counter has its value: what was written last, or any of several at that time."""
    at = last = None
    position = 0
    for time, value in rows:
        now = {last}
        while position < len(values) and values[position][0] <= time:
            now = {last} if at != values[position][0] else now
            at, last = values[position]
            now.add(last)
            position += 1
        assert float(value) in map(float, filter(lambda v: v is not None, now)), f"{value} at {time} is {now}"


@pytest.mark.parametrize("name", RECORDINGS)
def test_counters_are_those_of_the_tables(recordings, tmp_path, name):
    tables, trace = tables_of(recordings[name]), trace_of(recordings[name], tmp_path)
    found, path = trace.counters(), paths_of(tables)
    truth = defaultdict(list)
    for table in tables:
        for row in rows_of(tables[table]) if "elapsed" in tables[table]["fields"][1]["name"] and table != "events" else ():
            for metric, value in row.items():
                if value is not None and isinstance(value, (int, float)):
                    truth[(*path(table, row), metric)].append((nanoseconds(row["time"]), value))
    checked = 0
    for counter, values in found.items():
        if counter[1:2] == ("job",) and counter[2].startswith("proc."):
            continue  # of all processes together: below
        assert counter in truth, f"{counter} is in no table"
        check_counter(values, truth[counter])
        times = {time for time, _ in truth[counter]}
        strange = [(time, value) for time, value in values if time not in times]
        assert not strange or (len(strange) == 1 and strange[0][1] == 0 and isinstance(counter[1], tuple)), strange
        assert all(one[1] != two[1] for one, two in zip(values, values[1:])) or name == "hostile", f"{counter} is written where it did not change"
        checked += 1
    shown = {counter[-1] for counter in found}
    for counter in truth:
        assert counter in found or counter[-1] not in shown or counter[1:2] == ("cpu",), f"{counter} is missing"
    assert checked or name == "no_tick"
    if name == "run":
        assert set(PROCESS_COUNTERS) | {"tree.cores", "mem.used", "cpu.busy", "load.1m"} <= shown
    if name == "gpus":
        assert {"gpu.util", "gpu.memory.used", "gpu_process.memory"} <= shown
    if name == "energy":
        assert "energy.watts" in shown


@pytest.mark.parametrize("name", ("run", "nodes"))
def test_the_memory_of_all_processes_is_that_of_the_folded_table(recordings, tmp_path, name):
    found = trace_of(recordings[name], tmp_path).counters()
    done = run("export", "--to", "json", "-o", "-", "-d", "process", "-m", "proc.mem.rss,proc.mem.pss_now", "--per", "node", recordings[name])
    assert done.returncode == 0, done.stderr
    rows = rows_of(json.loads(done.stdout)["tables"]["process"])
    for host in {row["host"] for row in rows}:
        for metric in ("proc.mem.rss", "proc.mem.pss_now"):
            truth = [(nanoseconds(row["time"]), row[metric]) for row in rows if row["host"] == host and row.get(metric) is not None]
            if truth:
                check_counter(found[host, "job", metric], truth)


@pytest.mark.parametrize("name", RECORDINGS)
def test_processes_are_tracks_with_their_life(recordings, tmp_path, name):
    tables, trace = tables_of(recordings[name]), trace_of(recordings[name], tmp_path)
    expected = {}
    for row in rows_of(tables["processes"]):
        if not row["start"]:
            continue
        begin = nanoseconds(row["start"])
        end = nanoseconds(row["end"]) if row["end"] else begin + round(row["wall"] * 1e9)
        expected[row["host"], row["pid"], begin] = (row["name"], max(begin, end), row["command"], row["ppid"])
    found = {}
    for number, track in trace.tracks.items():
        if track.HasField("process"):
            assert trace.tracks[track.parent_uuid].parent_uuid == 0
            (slice_,) = trace.slices(number)
            found[trace.path(number)[0], track.process.pid, slice_[1]] = (slice_[0], slice_[2], slice_[4].get("command"), slice_[4].get("ppid"))
            assert track.name == track.process.process_name == slice_[0]
    assert found == expected


@pytest.mark.parametrize("name", RECORDINGS)
def test_phases_and_events_are_all_there(recordings, tmp_path, name):
    tables, trace = tables_of(recordings[name]), trace_of(recordings[name], tmp_path)
    spans, moments = [], []
    for row in rows_of(tables["events"]):
        if row["time"]:
            told = (row["host"], row["kind"], row["label"] or row["kind"], nanoseconds(row["time"]))
            spans.append((*told, nanoseconds(row["end"]))) if row["end"] else moments.append(told)
    found_spans, found_moments = [], []
    for number, events in trace.events.items():
        path = trace.path(number)
        if isinstance(path[1], tuple) or trace.tracks[number].HasField("counter"):
            continue
        kinds = {(time, event.name): event.categories[0] for time, event in events if event.type == BEGIN}
        found_spans += [(path[0], kinds[begin, label], label, begin, end) for label, begin, end, _, _ in trace.slices(number)]
        found_moments += [(path[0], event.categories[0], event.name, time) for time, event in events if event.type == INSTANT]
    assert sorted(found_spans) == sorted(spans) and sorted(found_moments) == sorted(moments)


def test_what_a_process_held_is_given_back_at_its_end(recordings, tmp_path):
    tables, trace = tables_of(recordings["run"]), trace_of(recordings["run"], tmp_path)
    counters = trace.counters()
    levels = {field["name"] for field in tables["process"]["fields"] if field.get("kind") == "gauge"}
    ended = 0
    for row in rows_of(tables["processes"]):
        for metric in levels if row["ended"] else ():
            values = counters.get((row["host"], (row["pid"], nanoseconds(row["start"])), metric))
            if values:
                assert values[-1][1] == 0, metric
                ended += any(value for _, value in values)
    assert ended > 3


def test_the_clock_of_the_trace_is_the_time_of_day(recordings, tmp_path):
    first = trace_of(recordings["run"], tmp_path).packets[0]
    clocks = {clock.clock_id: clock.timestamp for clock in first.clock_snapshot.clocks}
    assert set(clocks) == {1, 6} and clocks[1] == clocks[6] == first.timestamp


def test_nodes_are_parents(recordings, tmp_path):
    trace = trace_of(recordings["nodes"], tmp_path)
    roots = [track.name for track in trace.tracks.values() if not track.parent_uuid]
    assert sorted(roots) == ["n1", "n2"]
    for number, track in trace.tracks.items():
        assert trace.path(number)[0] in roots


def test_two_recordings_of_one_host_are_two_nodes(recordings, tmp_path):
    pair = tmp_path / "pair"
    pair.mkdir()
    for name in ("a", "b"):
        (pair / f"{name}.tacho").write_bytes(recordings["gpus"].read_bytes())
    one, two = trace_of(recordings["gpus"], tmp_path).counters(), trace_of(pair, tmp_path, "--force").counters()
    assert {path[0] for path in two} == {"n1", "n1 (2)"}
    for path, values in one.items():
        assert two[path] == two["n1 (2)", *path[1:]] == values


def test_a_job_that_speaks(tmp_path):
    """Phases that nest, repeat, overlap and never end; marks with hostile texts."""
    mark = f"{TACHO} mark --"
    done = run("run", "-q", "-i", "20ms", "-o", tmp_path / "job.tacho", "--", "sh", "-c", f"""
        t() {{ {TACHO} phase "$@"; }}
        t begin outer; t begin inner; sleep 0.05; t end inner; t begin inner; t end inner
        t begin late; t end outer; sleep 0.05; t end late
        {mark} '<b>"x|`' 'size=3.1G' 'of="a=b"'; {mark} "$(printf 'two\\nlines')"; t begin open; sleep 0.05""")
    assert done.returncode == 0, done.stderr
    tables, trace = tables_of(tmp_path / "job.tacho"), trace_of(tmp_path / "job.tacho", tmp_path)
    phases = [row for row in rows_of(tables["events"]) if row["kind"] == "phase"]
    assert len(phases) == 5
    host = phases[0]["host"]
    (first,), (second,) = trace.named(host, "phases"), trace.named(host, "phases (2)")
    outer = trace.slices(first)
    assert {(name, depth) for name, _, _, depth, _ in outer} == {("outer", 0), ("inner", 1), ("open", 0)}
    assert [name for name, *_ in trace.slices(second)] == ["late"]
    told = sorted((name, begin, end) for number in (first, second) for name, begin, end, _, _ in trace.slices(number))
    assert told == sorted((row["label"], nanoseconds(row["time"]), nanoseconds(row["end"])) for row in phases)
    (events,) = trace.named(host, "events")
    names = [event.name for _, event in trace.events[events]]
    told = {event.name: json.loads(note.legacy_json_value) for _, event in trace.events[events] for note in event.debug_annotations}
    assert list(told.values()) == [{"size": "3.1G", "of": '"a=b"'}]
    assert any(name.startswith('<b>"x|`') for name in names) and any(name.startswith("two") for name in names)


def test_what_is_chosen_is_all_there(recordings, tmp_path):
    trace = trace_of(recordings["run"], tmp_path, "-m", "cpu.user,proc.faults.minor,processes")
    found = {path[-1] for path in trace.counters()}
    assert {"cpu.user", "cpu.user.rate", "proc.faults.minor"} <= found and "mem.used" not in found
    assert any(track.HasField("process") for track in trace.tracks.values())


def test_packets_are_deflated_unless_that_is_not_wanted(recordings, tmp_path):
    small, plain = (export(recordings["long"], "perfetto", tmp_path / name, "--compression", name) for name in ("zlib", "none"))
    assert [packet.SerializeToString() for packet in Trace(small).packets] == [packet.SerializeToString() for packet in Trace(plain).packets]
    assert small.stat().st_size * 2 < plain.stat().st_size


def test_hard_tables(tmp_path):
    """Everything that the laboratory has: the edges of numbers, hostile names, what is missing."""
    subprocess.run([tool("export_tool"), "perfetto", "mixed", tmp_path / "lab"], check=True)
    said = subprocess.run([tool("export_tool"), "expected"], capture_output=True, check=True)
    found = Trace(tmp_path / "lab").counters()
    for frame in json.loads(said.stdout):
        if frame["name"] not in ("mixed", "whole"):
            continue
        truth = defaultdict(list)
        for row in rows_of(frame):
            for metric, value in row.items():
                if metric.startswith("lab.") and isinstance(value, (int, float)):
                    truth[row["instance"], metric].append((row["time"], value))
        for (instance, metric), rows in truth.items():
            one = found["node1", frame["name"], instance, metric] if instance else found["node1", frame["name"], metric]
            check_counter(one, rows)


def fed(table, path, *columns):
    return Trace(feed("perfetto", [Column(*column) for column in columns], path, batch=lambda: random.randint(1, 300), table=table))


@pytest.mark.parametrize("seed", range(4))
def test_any_events(tmp_path, seed):
    """Thousands that overlap, begin and end at the same time, end before they begin or lie before 1970: slices nest, and each that
    a trace can hold is there, as a slice or (where too many overlap) as an instant."""
    random.seed(seed)
    times = sorted(random.choice((random.randint(1, 50 * 10**seed), random.randint(1, 3))) for _ in range(3000))
    rows = [(None if random.random() < 0.01 else -time if random.random() < 0.01 else time,
             None if random.random() < 0.1 else time + random.randint(-1, random.choice((2, 60, 5000))), random.choice(("phase", "stopped", "mark", None)),
             random.choice(("a", "b", "", None, "<x>"))) for time in times]
    trace = fed("events", tmp_path / "x", ("time", "time", [row[0] for row in rows]), ("end", "time", [row[1] for row in rows]),
                ("kind", "text", [row[2] for row in rows]), ("label", "text", [row[3] for row in rows]), ("more", "integer", [7] * len(rows)))
    found = defaultdict(int)
    for number, events in trace.events.items():
        for name, begin, _, _, notes in trace.slices(number):
            found[begin, name] += 1
            assert notes == {"more": 7}
        for time, event in events:
            if event.type == INSTANT:
                found[time, event.name] += 1
    expected = defaultdict(int)
    for time, _, kind, label in rows:
        if time is not None and time > 0:
            expected[time, label or kind or ""] += 1
    assert found == expected


def test_lengths_are_kept_when_slices_begin_and_end_together(tmp_path):
    spans = [(10, 20), (10, 30), (10, 10), (20, 30), (20, 20), (25, 40), (30, 40), (40, 40)]
    trace = fed("events", tmp_path / "x", ("time", "time", [begin for begin, _ in spans]), ("end", "time", [end for _, end in spans]),
                ("kind", "text", ["phase"] * len(spans)), ("label", "text", [f"{begin}-{end}" for begin, end in spans]))
    for number in trace.events:
        for name, begin, end, _, _ in trace.slices(number):
            assert name == f"{begin}-{end}"
    assert sum(len(trace.slices(number)) for number in trace.events) == len(spans)


def test_any_processes(tmp_path):
    """PIDs that are none, the same PID again, times and types that make no sense."""
    rows = [(0, 1, "a", 5, 9), (1, 1, "b", 10, 8), (2, -1, "c", 5, None), (3, 1 << 40, "d", 5, 6), (4, None, "e", 5, 6), (5, 7, None, 5, 6),
            (6, 8, "g", -5, 6), (7, 9, "h", None, 6), (8, 0, "i", 5, 5)]
    trace = fed("processes", tmp_path / "x", *((name, type_, [row[i] for row in rows]) for i, (name, type_) in enumerate(
        (("process", "integer"), ("pid", "integer"), ("name", "text"), ("start", "time"), ("end", "time")))))
    slices = [(*slice_[:3], track.process.pid if track.HasField("process") else None)
              for number, track in trace.tracks.items() for slice_ in trace.slices(number)]
    assert len(slices) == 6
    assert set(slices) == {("a", 5, 9, 1), ("b", 10, 10, 1), ("c", 5, 5, None), ("d", 5, 6, None), ("", 5, 6, 7), ("i", 5, 5, 0)}
    wrong = fed("processes", tmp_path / "y", ("process", "text", ["x"]), ("pid", "text", ["y"]), ("start", "text", ["z"]), ("end", "real", [1.0]))
    assert not wrong.events


def test_it_is_not_for_terminals_and_streams(recordings, tmp_path):
    done = run("export", "--to", "perfetto", "-o", "-", recordings["run"])
    assert done.returncode == 0
    assert done.stdout == export(recordings["run"], "perfetto", tmp_path / "x.pftrace").read_bytes()
    assert run("export", "-o", tmp_path / "y.perfetto-trace", recordings["run"]).returncode == 0
    assert (tmp_path / "y.perfetto-trace").read_bytes() == done.stdout
