"""Arrow IPC, file and stream, read by pyarrow and by polars, which share no code: value by value what was put in."""

import json
import subprocess

import pytest

from exported import compare, expected, export, need_export, reader, recordings, tool  # noqa: F401
from recorder import run

SUFFIX = {"arrow": ".arrow", "feather": ".feather", "arrow-stream": ".arrows"}
FRAMES = ("mixed", "empty", "whole", "properties")
ARROW_TYPE = {"time": "timestamp[ns, tz=UTC]", "integer": "int64", "real": "double", "flag": "bool",
              "text": "dictionary<values=string, indices=int32, ordered=0>"}


def with_pyarrow(path, format):
    pa = reader("pyarrow")
    ipc = pa.ipc
    with (ipc.open_stream if format == "arrow-stream" else ipc.open_file)(pa.memory_map(str(path))) as opened:
        table = opened.read_all()
    table.validate(full=True)
    return table


def columns_of_pyarrow(table):
    pa = reader("pyarrow")
    return {field.name: (column.cast(pa.int64()) if pa.types.is_timestamp(field.type) else column).to_pylist()
            for field, column in zip(table.schema, table.columns)}


def columns_of_polars(path, format):
    pl = reader("polars")
    frame = (pl.read_ipc_stream if format == "arrow-stream" else pl.read_ipc)(path)
    return {name: (frame[name].to_physical() if frame[name].dtype == pl.Datetime else frame[name]).to_list()
            for name in frame.columns}


@pytest.fixture(scope="module")
def lab():
    said = subprocess.run([tool("export_tool"), "expected"], capture_output=True, check=True)
    return {frame["name"]: frame for frame in json.loads(said.stdout)}


def lab_write(format, frame, path, compression="zstd"):
    subprocess.run([tool("export_tool"), format, frame, path, "default", compression], check=True)
    return path


def lab_columns(frame):
    return {field["name"]: [row[i] for row in frame["rows"]] for i, field in enumerate(frame["fields"])}


@pytest.mark.parametrize("compression", ["zstd", "none"])
@pytest.mark.parametrize("format", SUFFIX)
def test_every_type_comes_back(tmp_path, lab, format, compression):
    for name in FRAMES:
        path = lab_write(format, name, tmp_path / name, compression)
        table = with_pyarrow(path, format)
        assert {f.name: str(f.type) for f in table.schema} == {
            f["name"]: ARROW_TYPE[f["type"]] for f in lab[name]["fields"]}
        assert columns_of_pyarrow(table) == lab_columns(lab[name])
        assert columns_of_polars(path, format) == lab_columns(lab[name])


def test_columns_say_what_they_mean(tmp_path):
    schema = with_pyarrow(lab_write("arrow", "mixed", tmp_path / "x"), "arrow").schema
    assert schema.metadata[b"tacho.frame"] == b"mixed"
    assert schema.field("lab.bytes.rate").metadata == {
        b"unit": b"bytes/s", b"kind": b"gauge", b"resample": b"mean", b"help": b"Its growth."}
    assert schema.field("lab.raw").metadata[b"scale"] == b"0.01"
    assert b"kind" not in schema.field("pid").metadata


def test_buffers_are_aligned_and_compressed(tmp_path):
    """Bodies lie on multiples of 64 bytes of the file, so that whoever maps it can use them as they are."""
    pa = reader("pyarrow")
    plain, packed = lab_write("arrow", "mixed", tmp_path / "a", "none"), lab_write("arrow", "mixed", tmp_path / "b")
    assert packed.stat().st_size < plain.stat().st_size / 2
    mapped = pa.memory_map(str(plain))
    start = pa.py_buffer(mapped.read_buffer(8)).address
    for batch in (pa.ipc.open_file(mapped).get_batch(i) for i in range(3)):
        for column in batch.columns:
            for buffer in filter(None, column.buffers()):
                assert (buffer.address - start) % 64 == 0


def test_a_stream_sends_no_text_twice_in_a_batch(tmp_path):
    """Dictionaries are of the batch, so that none grows with the run; one that has all that is needed is kept."""
    pa = reader("pyarrow")
    with pa.ipc.open_stream(str(lab_write("arrow-stream", "mixed", tmp_path / "x"))) as stream:
        batches = list(stream)
        hosts = [batch.column("host").dictionary.to_pylist() for batch in batches]
    assert len(batches) == 3
    assert hosts == [["node1"], ["node1", "node2.example.org"], ["node1", "node2.example.org"]]
    for batch in batches:
        assert len(set(texts := batch.column("instance").dictionary.to_pylist())) == len(texts) == 5


def test_hostile_frames(tmp_path):
    """Names, numbers and texts made of noise: both readers take them all, and find the same."""
    pa = reader("pyarrow")
    for seed in range(40):
        for format in ("arrow", "arrow-stream"):
            path = tmp_path / f"{seed}.{format}"
            subprocess.run([tool("export_tool"), "fuzz", format, str(seed), path], check=True)
            table = with_pyarrow(path, format)
            assert table.schema.field(0).type == pa.timestamp("ns", "UTC")
            if len(set(table.column_names)) == table.num_columns:
                theirs, ours = columns_of_polars(path, format), columns_of_pyarrow(table)
                assert repr(theirs) == repr(ours)


@pytest.mark.parametrize("format", ["arrow", "arrow-stream"])
def test_what_show_says(tmp_path, recordings, format):  # noqa: F811
    reader("pyarrow")
    for name, recording in recordings.items():
        folder = export(recording, format, tmp_path / name)
        for frame in expected(recording):
            compare(frame, columns_of_pyarrow(with_pyarrow(folder / (frame.name + SUFFIX[format]), format)))


def test_polars_reads_a_whole_run(tmp_path, recordings):  # noqa: F811
    reader("polars")
    for name in ("run", "hostile", "no_tick"):
        for format in ("feather", "arrow-stream"):
            folder = export(recordings[name], format, tmp_path / format / name)
            files = sorted(folder.iterdir())
            assert files
            for path in files:
                assert columns_of_polars(path, format) == columns_of_pyarrow(with_pyarrow(path, format))


def test_a_pipe(recordings):  # noqa: F811
    pa = reader("pyarrow")
    done = need_export(run("export", "--to", "arrow-stream", "--domain", "node", "-o", "-", recordings["run"]))
    assert done.returncode == 0, done.stderr
    table = pa.ipc.open_stream(done.stdout).read_all()
    assert table.num_rows > 0 and "time" in table.column_names
