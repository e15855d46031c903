"""HDF5, read by h5py, pandas (with PyTables) and HDF5's own h5dump."""

import shutil
import subprocess
import warnings

import pytest

from exported import bytes_of, columns_of, export, need_export, reader, recordings  # noqa: F401 (a fixture)
from feed import Column, feed
from recorder import TACHO, run
from stored import check_recording, lab, lab_file, lab_random, same_values


def nodes_of(group):
    """The groups with tables: its own, or one a node, in the order in which they were made."""
    return [group] if "table" in group else list(group.values())


def read_group(group, fields):
    """Columns as lists, None where `valid` says so; and that what stands there instead is what the format promises."""
    table, valid = group["table"][:], group["valid"][:]
    assert valid.shape == (len(table), len(fields))
    columns = {}
    for i, field in enumerate(fields):
        name = field["name"]
        raw = table[name].tolist() if name in table.dtype.names else list(group[name][:])
        assert len(raw) == len(valid)
        values = []
        for value, known in zip(raw, valid[:, i]):
            if not known:
                least = {"time": -(2**63), "integer": -(2**63), "flag": -1, "text": b""}
                assert value != value if field["type"] == "real" else value == least[field["type"]]
                values.append(None)
            elif field["type"] == "text":
                values.append(value.decode())
            elif field["type"] == "flag":
                values.append(bool(value))
            else:
                values.append(value)
        columns[name] = values
    return columns


def read_frame(group, fields):
    whole = {f["name"]: [] for f in fields}
    for node in nodes_of(group):
        for name, values in read_group(node, fields).items():
            whole[name] += values
    return whole


def texts(attribute):
    return [text.decode() for text in attribute]


def test_every_value_of_the_lab(tmp_path):
    h5py = reader("h5py")
    for compression in ("zlib", "none"):
        path = lab_file("hdf5", tmp_path / f"{compression}.h5", "default", compression)
        with h5py.File(path, "r") as file:
            for name, (fields, truth) in lab().items():
                found = read_frame(file[name], fields)
                for column in found:
                    same_values(found[column], truth[column], f"{name}.{column}")


def test_groups_are_nodes(tmp_path):
    h5py = reader("h5py")
    with h5py.File(lab_file("hdf5", tmp_path / "lab.h5"), "r") as file:
        assert set(file["mixed"]) == {"node1", "node2.example.org"}
        assert len(file["mixed/node1/table"]) == 1500 and len(file["mixed/node2.example.org/table"]) == 1000
        assert file["mixed/node1"].attrs["host"].decode() == "node1"
        assert len(file["empty/table"]) == 0 and file["empty/table"].dtype.names == file["mixed/node1/table"].dtype.names


def test_chunked_shuffled_compressed(tmp_path):
    h5py = reader("h5py")
    with h5py.File(lab_file("hdf5", tmp_path / "lab.h5"), "r") as file:
        for name in ("table", "valid"):
            data = file[f"mixed/node1/{name}"]
            assert data.chunks and data.shuffle and data.compression == "gzip" and data.maxshape[0] is None
    with h5py.File(lab_file("hdf5", tmp_path / "plain.h5", "default", "none"), "r") as file:
        assert file["mixed/node1/table"].compression is None


def test_attributes_say_what_columns_are(tmp_path):
    h5py = reader("h5py")
    with h5py.File(lab_file("hdf5", tmp_path / "lab.h5"), "r") as file:
        said = file["mixed"].attrs
        columns = texts(said["columns"])
        assert columns == [f["name"] for f in lab()["mixed"][0]]
        unit, kind, help = (dict(zip(columns, texts(said[key]))) for key in ("units", "kinds", "helps"))
        assert unit["lab.bytes"] == "bytes" and unit["lab.bytes.rate"] == "bytes/s" and unit["lab.raw"] == "0.01 s"
        assert unit["time"] == "ns since 1970" and kind["lab.bytes"] == "counter" and kind["host"] == ""
        assert help == {f["name"]: f["help"] for f in lab()["mixed"][0]}
        assert texts(file["mixed/node1/table"].attrs["units"]) == list(unit.values())
        assert said["help"].decode() == "Everything at once."


def test_every_recording(tmp_path, recordings):  # noqa: F811
    h5py = reader("h5py")
    for name, recording in recordings.items():
        with h5py.File(export(recording, "hdf5", tmp_path / f"{name}.h5"), "r") as file:
            check_recording(
                recording, {table: read_frame(file[table], fields) for table, fields in columns_of(recording).items()}
            )
            if name == "nodes":
                assert set(file["process"]) == {"n1", "n2"}


def test_pandas_reads_tables(tmp_path, recordings):  # noqa: F811
    pandas, h5py = reader("pandas"), reader("h5py")
    reader("tables")
    path = export(recordings["gpus"], "hdf5", tmp_path / "g.h5")
    columns = columns_of(recordings["gpus"])
    found = {}
    with h5py.File(path, "r") as file:
        tables = [node["table"] for name in columns for node in nodes_of(file[name])]
        rows = {table.name: len(table) for table in tables}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTables, about names with dots
        for name in rows:
            found[name] = pandas.read_hdf(path, name)
            assert list(found[name].columns) == [f["name"] for f in columns[name.split("/")[1]]]
        assert pandas.read_hdf(path, "process/n1").equals(found["/process/n1/table"])
    assert {name: len(table) for name, table in found.items()} == rows and 0 in rows.values()
    process, processes = found["/process/n1/table"], found["/processes/table"]
    assert process["proc.mem.rss"].max() == 104857600 and set(process["instance"]) == {"worker"}
    assert pandas.to_datetime(process["time"], utc=True).dt.year.iloc[0] == 2023
    assert processes["command"].iloc[0] == "worker -v"


def test_pandas_has_the_same_texts(tmp_path, recordings):  # noqa: F811
    pandas = reader("pandas")
    reader("tables")
    path = export(recordings["hostile"], "hdf5", tmp_path / "h.h5", "-d", "processes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = set(pandas.read_hdf(path, "processes/table")["name"])
    assert {bytes_of(name) for name in names} >= {b"\xff\xfe not utf8", b"\\xff", b"\\\xff", "ünï日".encode(), b" spaces "}


def test_pandas_without_pytables(tmp_path):
    h5py, pandas = reader("h5py"), reader("pandas")
    with h5py.File(lab_file("hdf5", tmp_path / "lab.h5"), "r") as file:
        table = pandas.DataFrame(file["whole/node1/table"][:])
    same_values(table["lab.count"].tolist(), lab()["whole"][1]["lab.count"], "lab.count")


def test_long_texts_stand_beside_the_table(tmp_path):
    h5py = reader("h5py")
    recording = tmp_path / "words.tacho"
    done = run("run", "-q", "-o", recording, "--", "sh", "-c", "sleep 0.3", "w" * 40000)
    assert done.returncode == 0, done.stderr
    with h5py.File(export(recording, "hdf5", tmp_path / "words.h5"), "r") as file:
        assert "value" not in file["meta/table"].dtype.names and "command" in file["processes/table"].dtype.names
        meta = read_group(file["meta"], columns_of(recording)["meta"])
        assert dict(zip(meta["key"], meta["value"]))["command"].endswith("w" * 30000)


def fed(rows, length):
    """Two nodes that take turns, each of whose texts is longer than the one before."""
    return [
        Column("time", "time", [10**18 + i for i in range(rows)]),
        Column("host", "text", ["b" if i // 30 % 2 else "a" for i in range(rows)]),
        Column("name", "text", [None if i % 7 == 3 else f"{i:06}" + "é" * length(i) for i in range(rows)]),
        Column("n", "integer", [None if i % 5 == 4 else 2**60 + i for i in range(rows)]),
    ]


@pytest.mark.parametrize("longest", [1000, 6000])  # 6000 are 12,000 bytes, and so beside the table
def test_texts_that_grow(tmp_path, longest):
    """The longest text comes last: what was written before is made wider, and nothing is lost."""
    h5py = reader("h5py")
    columns = fed(200, lambda i: 4093 if longest > 1000 and i == 120 else longest * i // 199)  # 8192 bytes fill it
    with h5py.File(feed("hdf5", columns, tmp_path / "x.h5", batch=13), "r") as file:
        for host in "ab":
            rows = [i for i, name in enumerate(columns[1].values) if name == host]
            node = file[f"fed/{host}"]
            found = read_group(node, [{"name": c.name, "type": c.type} for c in columns])
            for c in columns:
                same_values(found[c.name], [c.values[i] for i in rows], f"{host}: {c.name}")
            assert ("name" in node["table"].dtype.names) == (longest == 1000)
            assert texts(node["table"].attrs["units"]) == ["ns since 1970", "", "", ""]
            assert set(node) == {"table", "valid"} | ({"name"} if longest > 1000 else set())


def test_h5dump_reads_it(tmp_path, recordings):  # noqa: F811
    dump = shutil.which("h5dump")
    if not dump:
        pytest.skip("h5dump (hdf5-tools) is not installed")
    for name in ("hostile", "no_tick", "nodes"):
        path = export(recordings[name], "hdf5", tmp_path / f"{name}.h5")
        done = subprocess.run([dump, path], capture_output=True)
        assert done.returncode == 0 and b"error" not in done.stderr, done.stderr
        assert b'GROUP "processes"' in done.stdout


def test_random_frames(tmp_path):
    h5py = reader("h5py")
    lab_file("hdf5", tmp_path / "lab.h5")
    for seed in range(20):
        with h5py.File(lab_random("hdf5", seed, tmp_path / f"{seed}.h5"), "r") as file:
            for frame in file.values():
                for node in nodes_of(frame):
                    if "table" in node:
                        assert len(node["table"][:]) == len(node["valid"][:])


def test_a_file_that_cannot_grow_is_no_file(tmp_path, recordings):  # noqa: F811
    out = tmp_path / "small.h5"
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 40; exec "$@"', "sh", TACHO, "export", "--to", "hdf5", "-o", out, recordings["run"]],
        capture_output=True,
    )
    need_export(done)
    assert done.returncode == 1 and b"small.h5" in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []
