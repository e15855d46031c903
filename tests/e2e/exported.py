"""What the tests of formats share: recordings that are hard to export, what `tacho show --series` says of them, and
the comparison of the two, value by value.

    def test_it(tmp_path, recordings):                 # `from exported import recordings` makes the fixture known
        pyarrow = reader("pyarrow")                    # or skips, and says what is missing
        for name, recording in recordings.items():
            folder = export(recording, "parquet", tmp_path / name)
            for frame in expected(recording):          # the tables of time, with the columns that show knows
                compare(frame, {column: values of the file folder / f"{frame.name}.parquet"})

Columns are lists of Python values: None where nothing is known, int, float, str, bool; times are ns since 1970.
"""

import functools
import importlib
import json
import math
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from recorder import TACHO, run

ROOT = Path(__file__).resolve().parents[2]
UNIT = Path(TACHO).parent / "tests" / "unit"
FILMS = ROOT / "tests" / "films"
SERIES_MOST = 64
NOT_OF_TIME = ("processes", "events", "metrics", "meta", "summary", "phases")


def reader(name):
    """A package that reads files of others, from Python or from the project's own folder (`./dev test` fills it)."""
    for folder in map(str, ROOT.glob(".dev/python/lib/python3*/site-packages")):
        if folder not in sys.path:
            sys.path.insert(1, folder)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} for Python is not there ({error}): `./dev test` installs it into .dev/python")


def cell(text):
    """The text of a cell without the apostrophe that keeps spreadsheets from computing it: docs/export.md has the rule."""
    return re.sub(r"\A'('*[=+\-@\t\r\n])", r"\1", text)


def tool(name):
    """One of the programs beside the unit tests."""
    path = UNIT / name
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


# ---- recordings ----


def make(what, path, *more):
    subprocess.run([tool("export_recording"), what, path, *map(str, more)], check=True)
    return path


def play(film, path, *pids):
    done = run("debug", "play", FILMS / film, path, "1s", *pids)
    assert done.returncode == 0, done.stderr
    return path


def damaged(path, whole):
    """Two thirds of a recording, its last bytes overwritten."""
    data = Path(whole).read_bytes()
    data = data[: len(data) * 2 // 3]
    path.write_bytes(data[:-20] + b"\xff" * 20)
    return path


def holed(path, whole):
    """A recording of which the last part cannot be read any more."""
    data = bytearray(Path(whole).read_bytes())
    at = len(data) * 17 // 20
    data[at : at + 64] = bytes(64)
    path.write_bytes(data)
    return path


def make_recordings(folder):
    done = run("run", "-q", "-i", "50ms", "-o", folder / "run.tacho", "--", "sh", "-c",
               "for i in 1 2 3; do head -c 3000000 /dev/zero | gzip >/dev/null; sleep 0.05; done")
    assert done.returncode == 0, done.stderr
    subprocess.run([tool("query_tool"), folder / "gpus.tacho", "n1", "2"], check=True)
    subprocess.run([tool("query_tool"), folder / "other.tacho", "n2", "1"], check=True)
    subprocess.run([tool("query_tool"), "long", folder / "long.tacho", "30", "2", "12"], check=True)
    made = {
        "run": folder / "run.tacho",
        "gpus": folder / "gpus.tacho",
        "long": folder / "long.tacho",
        "infiniband": play("ib-ports.txt", folder / "infiniband.tacho", 100),
        "energy": play("rapl-wrap.txt", folder / "energy.tacho", 100),
        "tree": play("tree.txt", folder / "tree.tacho", 100),
        "hostile": make("hostile", folder / "hostile.tacho"),
        "one_tick": make("one_tick", folder / "one_tick.tacho"),
        "no_tick": make("no_tick", folder / "no_tick.tacho"),
        "unfinished": make("unfinished", folder / "unfinished.tacho"),
        "damaged": holed(folder / "damaged.tacho", folder / "long.tacho"),
    }
    nodes = folder / "nodes"
    nodes.mkdir()
    (folder / "other.tacho").rename(nodes / "b.tacho")
    (nodes / "a.tacho").write_bytes((folder / "gpus.tacho").read_bytes())
    made["nodes"] = nodes
    return made


made = {}  # every module that imports the fixture has one of its own, and all of them the same recordings


@pytest.fixture(scope="session")
def recordings(tmp_path_factory):
    """Their paths by name; `nodes` is a directory of two."""
    if not made:
        made.update(make_recordings(tmp_path_factory.mktemp("exported")))
    return made


# ---- exporting ----


def need_export(done):
    if done.returncode == 127 and b"tacho-export" in done.stderr:
        pytest.skip("tacho-export was not built (-Dexport=disabled)")
    if done.returncode == 2 and b"not in this build" in done.stderr:
        pytest.skip(done.stderr.decode(errors="replace").strip())
    return done


def export(recording, format, output, *options):
    """`tacho export --to FORMAT -o OUTPUT/`, which must succeed; for one file OUTPUT has its name."""
    done = need_export(run("export", "--to", format, "-o", output, *options, recording))
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return Path(output)


@functools.lru_cache(maxsize=None)
def tables_of(recording):
    done = need_export(run("export", "--to", "json", "-o", "-", recording))
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return json.loads(done.stdout)["tables"]


def columns_of(recording):
    """Table -> its fields, as JSON tells of them: {name, type, unit, help}, and of metrics also {kind, resample, scale}."""
    return {name: table["fields"] for name, table in tables_of(recording).items()}


# ---- what show says ----


@dataclass
class Frame:
    """What is known from elsewhere: rows by key (host, elapsed, pid, instance), each a dict of columns."""

    name: str
    metrics: list = field(default_factory=list)
    rows: dict = field(default_factory=dict)


def series(recording, metrics, *options):
    """What `tacho show --series --json` says, in as few questions as it takes: metrics of different instances are asked
    for one after the other, and neighbours belong together."""
    if not metrics:
        return
    done = run("show", "--json", "--series", ",".join(metrics[:SERIES_MOST]), *options, recording)
    if done.returncode == 0:
        yield metrics[:SERIES_MOST], json.loads(done.stdout)
        yield from series(recording, metrics[SERIES_MOST:], *options)
    elif len(metrics) > 1:
        yield from series(recording, metrics[: len(metrics) // 2], *options)
        yield from series(recording, metrics[len(metrics) // 2 :], *options)


def instance_of(table, instance):
    """Several collectors tell of the node, each by a name of its own; in the table they are one row."""
    return "node" if table == "node" else instance


def add_series(frame, said, suffix):
    """The key has a count: two instances may have one name."""
    for one in said["recordings"]:
        names = [name + suffix for name in one["columns"][3:]]
        count = defaultdict(int)
        for elapsed, pid, instance, *values in one["points"]:
            key = (one["host"], elapsed, pid, instance_of(frame.name, instance))
            count[key] += 1
            frame.rows.setdefault((*key, count[key]), {}).update(zip(names, values))


def add_wholes(frame, recording, metrics):
    """What is known of the whole job, or of a whole group, alone: show has no instances of it."""
    columns = [column["name"] for column in columns_of(recording)[frame.name]]
    groups = {row[columns.index("instance")] for row in tables_of(recording)[frame.name]["rows"]}
    known = set()
    for instance in groups:
        options = () if frame.name == "tree" else ("--group", instance)
        for some, said in series(recording, metrics, *options):
            known.update(some)
            for one in said["recordings"]:
                for elapsed, *values in one["points"]:
                    row = frame.rows.setdefault((one["host"], elapsed, None, instance, 1), {})
                    row.update(zip(one["columns"][1:], values))
    frame.metrics += [name for name in metrics if name in known]


@functools.lru_cache(maxsize=None)
def expected(recording):
    """The tables of time with every metric that show knows, levels and rates."""
    each = ("--per", "instance")
    frames = []
    for name, columns in columns_of(recording).items():
        if name in NOT_OF_TIME:
            continue
        names = [column["name"] for column in columns if "kind" in column]
        rates = [n for n in names if n.endswith(".rate") and n[: -len(".rate")] in names]
        levels = [n for n in names if n not in rates]
        frame = Frame(name)
        for wanted, suffix, options in ((levels, "", ()), ([n[: -len(".rate")] for n in rates], ".rate", ("--rate",))):
            for some, said in series(recording, wanted, *each, *options):
                frame.metrics += [n + suffix for n in some]
                add_series(frame, said, suffix)
        if name in ("tree", "group"):
            add_wholes(frame, recording, [n for n in levels if n not in frame.metrics])
        unknown = set(names) - set(frame.metrics)
        assert not unknown or not tables_of(recording)[name]["rows"], f"show does not know {sorted(unknown)} of {name}"
        frames.append(frame)
    return frames


# ---- comparing ----


def bytes_of(text):
    """The bytes behind a text of frames: an odd number of backslashes before x and two digits is an escape."""
    out, i = bytearray(), 0
    while i < len(text):
        run_ = 0
        while i + run_ < len(text) and text[i + run_] == "\\":
            run_ += 1
        at = i + run_
        if not run_ or at == len(text) or text[at] != "x":
            out += text[i : at + 1].encode()
            i = at + 1
            continue
        out += b"\\" * (run_ // 2)
        if run_ % 2:
            out.append(int(text[at + 1 : at + 3], 16))
            i = at + 3
        else:
            out += b"x"
            i = at + 1
    return bytes(out)


def same(a, b):
    """Values may have been integers in one and doubles in the other; show has doubles."""
    if a is None or b is None:
        return a is b
    return a == b or float(a) == float(b)


def keys_of(columns):
    """The key of each row, as Frame.rows has it."""
    count, keys = defaultdict(int), []
    pids = columns.get("pid") or [None] * len(columns["elapsed"])
    for host, elapsed, pid, instance in zip(columns["host"], columns["elapsed"], pids, columns["instance"]):
        key = (host, elapsed, pid, instance)
        count[key] += 1
        keys.append((*key, count[key]))
    return keys


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def compare(frame, columns):
    """Columns of one table, as a reader found them, against what show says: every row, every metric, both ways."""
    length = {len(values) for values in columns.values()}
    assert len(length) <= 1, f"{frame.name}: columns of {sorted(length)} rows"
    missing = [name for name in frame.metrics if name not in columns]
    assert not missing, f"{frame.name} lacks {missing}"
    keys = keys_of(columns)
    found = set(keys)
    said = {key for key, row in frame.rows.items() if any(value is not None for value in row.values())}
    assert said <= found, f"{frame.name} lacks rows, such as {sorted(said - found, key=str)[:3]}"
    for name in frame.metrics:
        for key, value in zip(keys, columns[name]):
            value = None if is_missing(value) else value
            truth = frame.rows.get(key, {}).get(name)
            assert same(value, truth), f"{frame.name}: {name} of {key} is {value}, show says {truth}"
