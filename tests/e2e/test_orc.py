"""ORC, read by pyarrow, which has Apache's own reader. What that does not show, the statistics, is read here."""

import json
import math
import struct
import subprocess

import pytest

from exported import compare, expected, export, reader, recordings, tool  # noqa: F401
from recorder import run

FRAMES = ("mixed", "empty", "whole", "properties")
RECORDINGS = ("gpus", "hostile", "one_tick", "no_tick", "damaged", "nodes")
TYPE = {"time": "timestamp[ns, tz=UTC]", "integer": "int64", "real": "double", "text": "string", "flag": "bool"}


def orc_file(path):
    return reader("pyarrow.orc").ORCFile(str(path))


def columns_of_orc(path):
    pa = reader("pyarrow")
    table = orc_file(path).read()
    table.validate(full=True)
    return {field.name: (column.cast(pa.int64()) if pa.types.is_timestamp(field.type) else column).to_pylist()
            for field, column in zip(table.schema, table.columns)}


@pytest.fixture(scope="module")
def lab():
    said = subprocess.run([tool("export_tool"), "expected"], capture_output=True, check=True)
    return {frame["name"]: frame for frame in json.loads(said.stdout)}


def lab_write(frame, path, compression="zstd"):
    subprocess.run([tool("export_tool"), "orc", frame, path, "default", compression], check=True)
    return path


@pytest.mark.parametrize("compression", ["zstd", "zlib", "none"])
def test_every_value_comes_back(tmp_path, lab, compression):
    for name in FRAMES:
        path = lab_write(name, tmp_path / name, compression)
        file = orc_file(path)
        assert file.compression == {"none": "UNCOMPRESSED"}.get(compression, compression.upper())
        fields = lab[name]["fields"]
        assert {f.name: str(f.type) for f in file.schema} == {f["name"]: TYPE[f["type"]] for f in fields}
        found = columns_of_orc(path)
        for i, field in enumerate(fields):
            truth = [row[i] for row in lab[name]["rows"]]
            assert found[field["name"]] == truth, field["name"]
    zeros = [value for value in columns_of_orc(tmp_path / "mixed")["lab.level"] if value == 0]
    assert {math.copysign(1, zero) for zero in zeros} == {1, -1}


def test_columns_say_what_they_mean(tmp_path):
    schema = orc_file(lab_write("mixed", tmp_path / "mixed")).schema
    assert schema.field("lab.bytes").metadata == {b"unit": b"bytes", b"kind": b"counter", b"resample": b"last",
                                                  b"help": b"A counter of bytes."}
    assert schema.field("lab.raw").metadata[b"scale"] == b"0.01"
    assert schema.field("lab.level").metadata[b"help"] == b'A level, "quoted", and <bracketed>.'
    assert schema.metadata[b"tacho.frame"] == b"mixed" and schema.metadata[b"tacho.help"] == b"Everything at once."


# ---- what only the footer says ----


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def message(data):
    """A Protocol Buffers message: field -> list of values."""
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack("<d", data[at : at + 8])[0], at + 8
        else:
            assert key & 7 == 2
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        fields.setdefault(key >> 3, []).append(value)
    return fields


def signed(value):
    return value >> 1 ^ -(value & 1)


def statistics(data):
    """Of a file without compression: those of the file, and those of its stripes."""
    postscript = message(data[-1 - data[-1] : -1])
    at = len(data) - 1 - data[-1]
    footer = message(data[at - postscript[1][0] : at])
    at -= postscript[1][0]
    stripes = message(data[at - postscript[5][0] : at])
    return [message(one) for one in footer[7]], [[message(one) for one in message(s)[1]] for s in stripes.get(1, [])]


def check_statistics(said, kind, values):
    there = [value for value in values if value is not None]
    assert said[1] == [len(there)]
    assert said[10] == [int(len(there) < len(values))]
    if not there:
        assert set(said) == {1, 10}
        return
    if kind == "integer":
        bounds = message(said[2][0])
        assert [signed(bounds[1][0]), signed(bounds[2][0])] == [min(there), max(there)]
        if 3 in bounds:
            assert signed(bounds[3][0]) == sum(there)
        elif abs(sum(there)) < 2**62:
            partial, ok = 0, True
            for value in there:  # only left out when it did not fit on the way
                partial += value
                ok = ok and -(2**63) <= partial < 2**63
            assert not ok
    elif kind == "real":
        bounds = message(said[3][0])
        assert [bounds[1][0], bounds[2][0]] == [min(there), max(there)]
    elif kind == "text":
        bounds = message(said[4][0])
        there = [value.encode() for value in there]
        assert [bounds[1][0], bounds[2][0]] == [min(there), max(there)]
        assert signed(bounds[3][0]) == sum(map(len, there))
    elif kind == "flag":
        assert varint(message(said[5][0])[1][0], 0)[0] == sum(there)
    else:
        bounds = message(said[9][0])
        assert [signed(bounds[3][0]), signed(bounds[4][0])] == [min(there) // 10**6, max(there) // 10**6]


def test_statistics_are_those_of_the_values(tmp_path, lab):
    for name in FRAMES:
        of_file, of_stripes = statistics(lab_write(name, tmp_path / name, "none").read_bytes())
        rows, fields = lab[name]["rows"], lab[name]["fields"]
        assert len(of_stripes) == (1 if rows else 0)
        for said in (of_file, *of_stripes):
            assert said[0][1] == [len(rows)] and len(said) == len(fields) + 1
            for i, field in enumerate(fields):
                if rows:
                    check_statistics(said[i + 1], field["type"], [row[i] for row in rows])


# ---- recordings ----


def test_recordings_are_as_shown(tmp_path, recordings):
    for name in RECORDINGS:
        folder = export(recordings[name], "orc", tmp_path / name)
        for frame in expected(recordings[name]):
            compare(frame, columns_of_orc(folder / f"{frame.name}.orc"))


def test_several_stripes(tmp_path):
    """More rows than one stripe has; CSV has the same."""
    recording = tmp_path / "long.tacho"
    subprocess.run([tool("query_tool"), "long", recording, "300", "10", "50"], check=True)
    path = export(recording, "orc", tmp_path / "long.orc", "--domain", "process", "--metric", "proc.mem.rss,proc.cpu.time")
    done = run("export", "--to", "csv", "--domain", "process", "--metric", "proc.mem.rss,proc.cpu.time", "-o", "-", recording)
    file = orc_file(path)
    assert file.nstripes == 2 and file.nrows == done.stdout.count(b"\r\n") - 1 > 131072
    names = [name.split(b" [")[0].decode() for name in done.stdout.split(b"\r\n", 1)[0].split(b",")]
    said = list(zip(*(line.split(b",") for line in done.stdout.split(b"\r\n")[1:-1])))
    found = columns_of_orc(path)
    for name in ("proc.mem.rss", "pid", "instance"):
        assert ["" if value is None else str(value) for value in found[name]] == [
            text.decode() for text in said[names.index(name)]], name
    stripe = file.read_stripe(1)
    assert stripe.num_rows < file.nrows


def test_a_stream_is_the_file(tmp_path, recordings):
    path = export(recordings["gpus"], "orc", tmp_path / "gpu.orc", "--domain", "gpu")
    done = run("export", "--to", "orc", "--domain", "gpu", "-o", "-", recordings["gpus"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == path.read_bytes()


@pytest.mark.parametrize("seed", range(1, 9))
def test_hostile_names_and_values(tmp_path, seed):
    path = tmp_path / "fuzz"
    subprocess.run([tool("export_tool"), "fuzz", "orc", str(seed), path], check=True)
    table = orc_file(path).read()
    table.validate(full=True)
