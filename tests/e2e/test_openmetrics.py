"""OpenMetrics, judged by the strict parser of prometheus_client and by Prometheus itself, which makes blocks of its
database of it."""

import json
import pickle
import re
import shutil
import subprocess
from collections import defaultdict

import pytest

from exported import columns_of, compare, expected, export, reader, recordings, tool  # noqa: F401

UNIT = {"bytes": "bytes", "s": "seconds", "ratio": "ratio", "J": "joules", "W": "watts", "C": "celsius", "Hz": "hertz",
        "FLOP": "flop", "1": "", "": ""}
RECORDINGS = ("run", "hostile", "one_tick", "no_tick", "nodes")
KEYS = ("host", "instance", "pid", "process")


def families(path):
    parser = reader("prometheus_client.openmetrics.parser")
    return {family.name: family for family in parser.text_string_to_metric_families(path.read_bytes().decode())}


def promtool(path, blocks):
    """How many samples Prometheus took."""
    program = shutil.which("promtool")
    if not program:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    done = subprocess.run([program, "tsdb", "create-blocks-from", "openmetrics", path, blocks], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    taken = 0
    for line in done.stdout.splitlines():
        words = line.split()
        taken += int(words[4]) if len(words) == 8 and words[0] != "BLOCK" else 0
    return taken


def family_of(name, unit, kind):
    """By the rules, from what the column is."""
    rate = unit.endswith("/s")
    suffix = "_".join(filter(None, (UNIT[unit.removesuffix("/s")], "per_second" if rate else "")))
    name = "tacho_" + re.sub("[^A-Za-z0-9]", "_", name)
    if kind == "counter" and not rate:
        name = name.removesuffix("_total")
    return name if not suffix or name.endswith("_" + suffix) else f"{name}_{suffix}"


def families_of(frame, columns, claimed):
    """Family -> column. Of two columns that come to one name the second is told apart by the table's."""
    metrics = {}
    for column in columns:
        if "kind" not in column:
            continue
        name = family_of(column["name"], column["unit"] or "", column["kind"])
        if name in claimed:
            name = name.replace("tacho_", f"tacho_{frame}_", 1)
        claimed.add(name)
        metrics[name] = column["name"]
    return metrics


def key_of(labels, time):
    return (*sorted(labels.items()), time)


def table_of(found, metrics, keys):
    """The table that samples came from: `keys` are its other columns, `metrics` family -> column. A sample that is of
    no row is an error."""
    rows = defaultdict(dict)
    for family, column in metrics.items():
        for sample in found[family].samples if family in found else ():
            stamp = sample.timestamp
            rows[key_of(sample.labels, stamp.sec * 10**9 + stamp.nsec)][column] = sample.value
    columns = {**keys, **{column: [] for column in metrics.values()}}
    again = defaultdict(int)
    for i, time in enumerate(keys["time"]):
        labels = {name: str(keys[name][i]) for name in KEYS if name in keys and keys[name][i] is not None}
        count = again[key_of(labels, time)]
        again[key_of(labels, time)] += 1
        row = rows.pop(key_of({**labels, "duplicate": str(count)} if count else labels, time), {})
        for column in metrics.values():
            columns[column].append(row.get(column))
    assert not rows, f"samples that are of no row, such as {list(rows)[:2]}"
    return columns


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The file of the laboratory's frames, and what is in them."""
    path = tmp_path_factory.mktemp("lab") / "lab"
    subprocess.run([tool("export_tool"), "openmetrics", "mixed", path], check=True)
    said = subprocess.run([tool("export_tool"), "expected"], capture_output=True, check=True)
    return path, {frame["name"]: frame for frame in json.loads(said.stdout)}


LAB = {
    "mixed": {"tacho_lab_bytes": "lab.bytes", "tacho_lab_bytes_rate_bytes_per_second": "lab.bytes.rate",
              "tacho_lab_level_ratio": "lab.level", "tacho_lab_peak": "lab.peak", "tacho_lab_raw": "lab.raw",
              "tacho_lab_on": "lab.on", "tacho_lab_seldom_celsius": "lab.seldom"},
    "whole": {"tacho_lab_count": "lab.count", "tacho_lab_watts": "lab.watts"},
}


def test_every_value_comes_back(lab):
    path, frames = lab
    found = families(path)
    assert set(found) == set(LAB["mixed"]) | set(LAB["whole"])
    for name, metrics in LAB.items():
        columns = {field["name"]: [row[i] for row in frames[name]["rows"]] for i, field in enumerate(frames[name]["fields"])}
        keys = {key: columns[key] for key in ("time", *KEYS) if key in columns}
        table = table_of(found, metrics, keys)
        for metric in metrics.values():
            assert table[metric] == columns[metric], metric
            assert all(type(value) is int for value in table[metric] if metric in ("lab.bytes", "lab.count") and value is not None)


def test_families_say_what_they_are(lab):
    found = families(lab[0])
    assert (found["tacho_lab_bytes"].type, found["tacho_lab_bytes"].unit) == ("counter", "bytes")
    assert {sample.name for sample in found["tacho_lab_bytes"].samples} == {"tacho_lab_bytes_total"}
    assert found["tacho_lab_bytes_rate_bytes_per_second"].unit == "bytes_per_second"
    assert found["tacho_lab_level_ratio"].documentation == 'A level, "quoted", and <bracketed>.'
    assert found["tacho_lab_count"].type == "unknown"  # a counter below zero is none
    assert (found["tacho_lab_raw"].unit, found["tacho_lab_raw"].documentation) == (
        "", "Hundredths of seconds. In units of 0.01 s.")
    assert found["tacho_lab_peak"].type == "gauge"


def test_prometheus_takes_every_sample(tmp_path, lab):
    samples = sum(len(family.samples) for family in families(lab[0]).values())
    assert samples > 10000
    assert promtool(lab[0], tmp_path / "blocks") == samples


def test_recordings_are_as_shown(tmp_path, recordings):
    for name in RECORDINGS:
        recording = recordings[name]
        path = export(recording, "openmetrics", tmp_path / name)
        found = families(path)
        fields = columns_of(recording)
        claimed = set()
        for frame in expected(recording):
            metrics = families_of(frame.name, fields[frame.name], claimed)
            known = pickle.loads((tables(recording, tmp_path / f"{name}.keys") / f"{frame.name}.pickle").read_bytes())
            keys = {column: values for column, values in known.items() if column not in metrics.values()}
            compare(frame, table_of(found, metrics, keys))
        assert set(found) <= claimed, name


def tables(recording, folder):
    return folder if folder.exists() else export(recording, "pickle", folder)


def test_prometheus_takes_recordings(tmp_path, recordings):
    for name in ("run", "hostile", "nodes"):
        path = export(recordings[name], "openmetrics", tmp_path / name)
        samples = set()
        for line in path.read_text().splitlines():
            series, value, stamp = line.rsplit(" ", 2) if line[0] != "#" else (None, None, "0")
            samples.add((series, int(float(stamp) * 1000)))  # its database has milliseconds: the end may be right behind a tick
        assert len(samples) > 1 and promtool(path, tmp_path / f"{name}.blocks") == len(samples) - 1


def test_nothing_is_still_a_whole_file(tmp_path, recordings):
    assert export(recordings["no_tick"], "openmetrics", tmp_path / "none").read_bytes().endswith(b"# EOF\n")


@pytest.mark.parametrize("seed", range(1, 13))
def test_hostile_names_and_values(tmp_path, seed):
    path = tmp_path / "fuzz"
    subprocess.run([tool("export_tool"), "fuzz", "openmetrics", str(seed), path], check=True)
    families(path)
