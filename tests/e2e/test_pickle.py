"""Pickles: what Python and pandas make of them, and that there is nothing in them that could run."""

import io
import json
import pickle
import pickletools
import subprocess

import pytest

from exported import compare, expected, export, reader, recordings, tool  # noqa: F401
from recorder import run

FRAMES = ("mixed", "empty", "whole", "properties")
RECORDINGS = ("gpus", "hostile", "one_tick", "no_tick", "unfinished", "nodes")
# All that may be in them: none of these looks up a name, calls or builds anything but the plain types.
OPCODES = {"PROTO", "STOP", "MARK", "EMPTY_DICT", "SETITEM", "EMPTY_LIST", "APPENDS", "NONE", "NEWTRUE", "NEWFALSE", "BININT",
           "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "LONG_BINPUT", "BINGET", "LONG_BINGET"}


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"the pickle asks for {module}.{name}")


def load(path):
    data = path.read_bytes()
    used = {opcode.name for opcode, _, _ in pickletools.genops(data)}
    assert used <= OPCODES, used - OPCODES
    assert data[:2] == b"\x80\x04"
    pickletools.dis(data, out=io.StringIO())  # complains of a stack or a memo that is not in order
    return Plain(io.BytesIO(data)).load()


def exact(values):
    """Types count, and so does the sign of zero."""
    return [(type(value), repr(value)) for value in values]


@pytest.fixture(scope="module")
def lab():
    said = subprocess.run([tool("export_tool"), "expected"], capture_output=True, check=True)
    return {frame["name"]: frame for frame in json.loads(said.stdout)}


def test_every_value_comes_back(tmp_path, lab):
    for name in FRAMES:
        subprocess.run([tool("export_tool"), "pickle", name, tmp_path / name], check=True)
        found = load(tmp_path / name)
        fields = lab[name]["fields"]
        assert list(found) == [field["name"] for field in fields]
        for i, field in enumerate(fields):
            truth = [row[i] for row in lab[name]["rows"]]
            if field["type"] == "real":
                truth = [value if value is None else float(value) for value in truth]
                assert found[field["name"]] == truth and {type(v) for v in found[field["name"]]} <= {float, type(None)}
            else:
                assert exact(found[field["name"]]) == exact(truth), field["name"]


def test_pandas_takes_it(tmp_path, lab):
    pandas = reader("pandas")
    for name in FRAMES:
        subprocess.run([tool("export_tool"), "pickle", name, tmp_path / name], check=True)
        with open(tmp_path / name, "rb") as file:
            table = pandas.DataFrame(pickle.load(file))
        assert table.shape == (len(lab[name]["rows"]), len(lab[name]["fields"]))
    with open(tmp_path / "mixed", "rb") as file:
        times = pandas.to_datetime(pandas.DataFrame(pickle.load(file))["time"], utc=True)
    assert times[0] == pandas.Timestamp(1763200000123456789, tz="UTC")


def test_texts_that_repeat_are_one(tmp_path):
    subprocess.run([tool("export_tool"), "pickle", "mixed", tmp_path / "mixed"], check=True)
    hosts = load(tmp_path / "mixed")["host"]
    assert len({id(host) for host in hosts}) == len(set(hosts)) == 2


def test_recordings_are_as_shown(tmp_path, recordings):
    for name in RECORDINGS:
        folder = export(recordings[name], "pickle", tmp_path / name)
        for frame in expected(recordings[name]):
            compare(frame, load(folder / f"{frame.name}.pickle"))


def test_a_stream_is_the_file(tmp_path, recordings):
    folder = export(recordings["gpus"], "pickle", tmp_path / "files")
    done = run("export", "--to", "pickle", "--domain", "gpu", "-o", "-", recordings["gpus"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == (folder / "gpu.pickle").read_bytes()


def test_columns_longer_than_memory_holds(tmp_path):
    """A hundred thousand rows, so that every column goes through the spool."""
    recording = tmp_path / "long.tacho"
    subprocess.run([tool("query_tool"), "long", recording, "200", "10", "50"], check=True)
    folder = tmp_path / "to"
    folder.mkdir()
    path = export(recording, "pickle", folder / "long.pickle", "--domain", "process")
    done = run("export", "--to", "csv", "--domain", "process", "-o", "-", recording)
    with open(path, "rb") as file:
        table = Plain(file).load()
    assert {len(values) for values in table.values()} == {done.stdout.count(b"\r\n") - 1}
    assert len(table["time"]) >= 100000
    assert table["elapsed"] == sorted(table["elapsed"])
    names = [name.split(b" [")[0].decode() for name in done.stdout.split(b"\r\n", 1)[0].split(b",")]
    column, rss = names.index("proc.mem.rss"), table["proc.mem.rss"]
    said = [line.split(b",")[column] for line in done.stdout.split(b"\r\n")[1:-1]]
    assert said == [b"" if value is None else str(value).encode() for value in rss]
    assert list(folder.iterdir()) == [path]  # and nothing of the spool


@pytest.mark.parametrize("seed", range(1, 9))
def test_hostile_names_and_values(tmp_path, seed):
    path = tmp_path / "fuzz"
    subprocess.run([tool("export_tool"), "fuzz", "pickle", str(seed), path], check=True)
    assert len({len(values) for values in load(path).values()}) == 1
