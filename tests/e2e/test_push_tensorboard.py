"""Event files, read by TensorBoard's own reader and its server: of a push, of an export, and while they grow."""

import json
import shutil
import struct
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest

import recorder
import sinks
from exported import ROOT, export, reader
from sinks import METRICS, exported, push

@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return sinks.record(tmp_path_factory.mktemp("run") / "job.tacho")


def accumulated(path):
    """Tag -> [(wall time, step, value)], by TensorBoard's EventAccumulator."""
    module = reader("tensorboard.backend.event_processing.event_accumulator")
    events = module.EventAccumulator(str(path), size_guidance={module.SCALARS: 0})
    events.Reload()
    return {tag: [(e.wall_time, e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def tag_of(key):
    table, metric, _, instance, pid = key
    tag = f"{table}/{metric.removeprefix(table + '.')}"
    return "/".join(filter(None, (tag, instance))) + (f"-{pid}" if pid else "")


def single(value):
    """As a float has it."""
    return struct.unpack("f", struct.pack("f", value))[0]


def wanted(recording, *options):
    """What the accumulator must say: of counters with a rate the rate."""
    done = recorder.run("export", "--to", "json", "-o", "-", "--per", "node", "-m", ",".join(METRICS), *options, recording)
    assert done.returncode == 0, done.stderr
    tags = {}
    for table, data in json.loads(done.stdout)["tables"].items():
        columns = [c["name"] for c in data["fields"]]
        rated = {c.removesuffix(".rate") for c in columns if c.endswith(".rate")}
        for row in data["rows"]:
            cells = dict(zip(columns, row))
            for f in data["fields"]:
                name = f["name"]
                if "kind" not in f or (name in rated and f["kind"] == "counter") or cells[name] is None:
                    continue
                key = (table, name, None, None if table in ("node", "tree") else cells.get("instance"), cells.get("pid"))
                stamp = cells["time"] if isinstance(cells["time"], int) else sinks.ns_of(cells["time"])
                tags.setdefault(tag_of(key), []).append((stamp / 1e9, single(cells[name])))
    return tags


def same_as(found, said):
    assert found.keys() == said.keys()
    for tag, points in said.items():
        assert [(time, value) for time, _, value in found[tag]] == points, tag
        steps = [step for _, step, _ in found[tag]]
        assert steps == sorted(steps) and len(set(steps)) > len(steps) / 2, f"{tag}: steps {steps}"


def test_push_and_export_are_the_same(tmp_path, job):
    target = tmp_path / "board"
    words = ("--to", f"tensorboard={target}", "--every", "0", "-m", ",".join(METRICS), job)
    done = push(*words)
    assert f"tensorboard --logdir {target}".encode() in done.stderr
    (file,) = target.glob("job/events.out.tfevents.*")
    assert file.stat().st_mode & 0o777 == 0o600
    found = accumulated(file.parent)
    same_as(found, wanted(job))
    before = file.read_bytes()
    assert b"all was sent before" in push(*words).stderr and file.read_bytes() == before
    poured = export(job, "tensorboard", tmp_path / "x.tfevents", "--per", "node", "-m", ",".join(METRICS))
    assert accumulated(poured) == found


def test_steps_are_samples_or_windows(tmp_path, job):
    """Counted from the start of the run, whichever metric it is."""
    for every, length in ("0", 0.05), ("200ms", 0.2):
        push("--to", f"tensorboard={tmp_path / every}", "--every", every, "-m", "tree.processes", job)
        (points,) = accumulated(tmp_path / every / "job").values()
        (series,) = exported(job, ["tree.processes"]).values()
        start = min(series) / 1e9
        for time, step, _ in points:
            assert abs(step - (time - start) / length) <= 2, (step, time - start)


def test_usual_place_and_choice(job):
    done = push("--to", "tensorboard", "--every", "100ms", "--prefix", "hw/", job)
    place = job.with_name("job-tensorboard")
    assert str(place).encode() in done.stderr
    found = accumulated(place / "job")
    assert {"hw/tree/cores", "hw/tree/cores.max", "hw/node/mem.used", "hw/process/proc.mem.rss"} <= found.keys()
    assert all(most[2] >= mean[2] for mean, most in zip(found["hw/tree/cores"], found["hw/tree/cores.max"]))


def test_export_by_default_has_no_single_processes(tmp_path, job):
    found = accumulated(export(job, "tensorboard", tmp_path / "job.tfevents"))
    assert {"tree/cores", "node/mem.used", "process/proc.mem.rss"} <= found.keys()
    assert not [tag for tag in found if tag.startswith("process/") and tag.count("/") > 1]
    everything = accumulated(export(job, "tensorboard", tmp_path / "all.tfevents", "-d", "process"))
    assert [tag for tag in everything if tag.startswith("process/proc.mem.rss/")]


def test_several_nodes(tmp_path, job):
    """Each recording is a run of the page; an export, which is one file, has the names in its tags."""
    runs = tmp_path / "runs"
    runs.mkdir()
    for name in "a", "b":
        shutil.copy(job, runs / f"{name}.tacho")
    push("--to", f"tensorboard={tmp_path / 'board'}", "--every", "0", "-m", "mem.used", runs)
    found = {name: accumulated(tmp_path / "board" / name)["node/mem.used"] for name in "ab"}
    poured = accumulated(export(runs, "tensorboard", tmp_path / "x.tfevents", "-m", "mem.used"))
    assert poured == {f"{name}/node/mem.used": points for name, points in found.items()}


def state_of(job, place):
    (state,) = (p for p in job.parent.glob("job.push-tensorboard*") if f'"{place}"' in p.read_text())
    return state


def set_back(state):
    """As if the pusher had been killed before it could remember its last rows."""
    told = json.loads(state.read_text())
    sent = {table: time - 2 * 10**8 for table, time in told["sent"].items()}
    state.write_text(json.dumps({**told, "all": False, "done": False, "sent": sent}))


def test_what_is_in_the_file_is_not_written_again(tmp_path, job):
    words = ("--to", f"tensorboard={tmp_path}", "--every", "0", "-m", ",".join(METRICS), job)
    push(*words)
    (file,) = tmp_path.glob("job/events*")
    whole = file.read_bytes()
    set_back(state_of(job, tmp_path))
    push(*words)
    assert file.read_bytes() == whole


def test_a_file_that_was_removed_or_cut_is_said(tmp_path, job):
    words = ("--to", f"tensorboard={tmp_path}", "--every", "0", "-m", "tree.cpu", job)
    push(*words)
    (file,) = tmp_path.glob("job/events*")
    whole = file.read_bytes()
    state = state_of(job, tmp_path)
    set_back(state)
    file.write_bytes(whole[: len(whole) // 2])
    done = push(*words, status=1)
    assert b"removed or cut" in done.stderr and str(state).encode() in done.stderr
    state.unlink()
    push(*words)
    assert file.read_bytes() == whole


def test_places_that_cannot_be(tmp_path, job):
    (tmp_path / "file").write_text("")
    done = push("--to", f"tensorboard={tmp_path}/file", job, status=1)
    assert b"Not a directory" in done.stderr and b"--to tensorboard=DIR" in done.stderr
    assert b"directory" in push("--to", "tensorboard=http://host:6006", job, status=2).stderr


# ---- a run in progress ----


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.loads(answer.read())


class Board(sinks.Server):
    """The real server, which reads the directory again every second."""

    def __init__(self, place, log):
        reader("tensorboard")
        python = ROOT / ".dev" / "python" / "bin" / "python"
        port = sinks.free_port()
        url = f"http://127.0.0.1:{port}/data"
        words = [python if python.exists() else sys.executable, "-m", "tensorboard.main", "--logdir", place, "--port", str(port),
                 "--host", "127.0.0.1", "--reload_interval", "1", "--samples_per_plugin", "scalars=1000000", "--load_fast=false"]
        super().__init__(words, url, lambda: fetch(f"{url}/environment") is not None, log)

    def tags(self):
        return fetch(f"{self.url}/plugin/scalars/tags")

    def points(self, run, tag):
        return fetch(f"{self.url}/plugin/scalars/scalars?" + urllib.parse.urlencode({"run": run, "tag": tag}))


def test_live_run_tailed_by_tensorboard_while_the_pusher_is_killed(tmp_path):
    """The page has every value once, whatever happened to the pusher meanwhile."""
    path, place = tmp_path / "live.tacho", tmp_path / "board"
    place.mkdir()
    words = ("--to", f"tensorboard={place}", "--every", "0", "-m", ",".join(METRICS), path)
    board = Board(place, tmp_path / "log")
    try:
        with recorder.lasting(sinks.LASTING, "-i", "50ms", output=path):
            recorder.until(lambda: recorder.shown(path), "there is a recording")
            pusher = sinks.following(*words, stderr=subprocess.PIPE)
            for round in range(6):
                sinks.growing(path, "tensorboard", 60 * (round + 1))
                sinks.kill(pusher)
                if round == 3:  # as if it had been killed while it wrote
                    (file,) = place.glob("live/events*")
                    file.write_bytes(file.read_bytes() + b"\x40\x00\x00\x00\x00\x00\x00\x00half of a record")
                pusher = sinks.following(*words, stderr=subprocess.PIPE)
            recorder.until(lambda: board.tags().get("live"), "TensorBoard sees the run")
        sinks.ended(pusher)
        same_as(accumulated(place / "live"), wanted(path))
        said = wanted(path)["tree/cores"]
        shown = recorder.until(lambda: len(p := board.points("live", "tree/cores")) == len(said) and p, "TensorBoard has it all")
        assert [(time, value) for time, _, value in shown] == said
        assert set(board.tags()["live"]) == set(wanted(path))
    finally:
        board.stop()
