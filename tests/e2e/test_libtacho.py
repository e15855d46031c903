"""libtacho from Python: ctypes hands an ArrowArrayStream to pyarrow and, as a capsule, to polars. Values go from the
library's memory into theirs; no list of Python stands between them, and no file."""

import contextlib
import ctypes
import os
import re
import subprocess
import threading
from pathlib import Path

import pytest

from exported import compare, expected, export, reader, recordings  # noqa: F401
from recorder import TACHO, lasting, until

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(TACHO).parent / "libtacho.so.0"
NAMES = ctypes.POINTER(ctypes.c_char_p)


class Frame(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("help", ctypes.c_char_p), ("domain", ctypes.c_char_p), ("nr_fields", ctypes.c_size_t)]


class Field(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("name", "help", "type", "unit", "kind")]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("from_", ctypes.c_double), ("to", ctypes.c_double), ("every", ctypes.c_double),
                ("raw", ctypes.c_int), ("metrics", NAMES), ("nr_metrics", ctypes.c_size_t), ("wait", ctypes.c_double)]


class Stream(ctypes.Structure):
    """ArrowArrayStream: four functions and what is theirs."""

    _fields_ = [("get_schema", ctypes.c_void_p), ("get_next", ctypes.c_void_p), ("get_last_error", ctypes.c_void_p),
                ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


@pytest.fixture(scope="module")
def library():
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built")
    if "libasan" in subprocess.run(["ldd", LIBRARY], capture_output=True, text=True).stdout:
        pytest.skip("a library with AddressSanitizer cannot be loaded into Python")
    lib = ctypes.CDLL(str(LIBRARY))
    run = ctypes.c_void_p
    lib.tacho_version.restype = lib.tacho_error.restype = ctypes.c_char_p
    lib.tacho_open.argtypes = [NAMES, ctypes.c_size_t, ctypes.POINTER(run)]
    lib.tacho_close.argtypes = [run]
    lib.tacho_close.restype = None
    lib.tacho_nr_frames.argtypes = [run]
    lib.tacho_nr_frames.restype = ctypes.c_size_t
    lib.tacho_frame.argtypes = [run, ctypes.c_size_t]
    lib.tacho_frame.restype = ctypes.POINTER(Frame)
    lib.tacho_field.argtypes = [run, ctypes.c_size_t, ctypes.c_size_t]
    lib.tacho_field.restype = ctypes.POINTER(Field)
    lib.tacho_stream.argtypes = [run, ctypes.c_char_p, ctypes.POINTER(Options), ctypes.POINTER(Stream)]
    lib.tacho_follow.argtypes = lib.tacho_stream.argtypes
    return lib


def names(*words):
    return (ctypes.c_char_p * len(words))(*(os.fsencode(word) for word in words))


class Run:
    def __init__(self, library, *paths):
        self.lib, self.handle = library, ctypes.c_void_p()
        if library.tacho_open(names(*paths), len(paths), ctypes.byref(self.handle)) < 0:
            raise OSError(library.tacho_error().decode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.tacho_close(self.handle)

    def frames(self):
        frames = (self.lib.tacho_frame(self.handle, i).contents for i in range(self.lib.tacho_nr_frames(self.handle)))
        return [frame.name.decode() for frame in frames]

    def fields(self, frame):
        i = self.frames().index(frame)
        nr = self.lib.tacho_frame(self.handle, i).contents.nr_fields
        return [self.lib.tacho_field(self.handle, i, k).contents for k in range(nr)]

    def stream(self, frame, metrics=(), follow=False, **options):
        stream = Stream()
        make = self.lib.tacho_follow if follow else self.lib.tacho_stream
        wishes = Options(size=ctypes.sizeof(Options), nr_metrics=len(metrics), **options)
        if metrics:
            wishes.metrics = ctypes.cast(names(*metrics), NAMES)
        if make(self.handle, frame.encode(), ctypes.byref(wishes), ctypes.byref(stream)) < 0:
            raise OSError(self.lib.tacho_error().decode())
        return stream

    def table(self, frame, **options):
        """As pyarrow has it: batches of the library's own memory."""
        pa = reader("pyarrow")
        stream = self.stream(frame, **options)
        with pa.RecordBatchReader._import_from_c(ctypes.addressof(stream)) as batches:
            table = batches.read_all()
        assert not stream.release  # the reader took it
        table.validate(full=True)
        return table


class Capsule:
    """What polars, DuckDB and others take: an object that hands out a stream under Arrow's protocol."""

    def __init__(self, stream):
        self.stream = stream

    def __arrow_c_stream__(self, requested_schema=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.stream), b"arrow_array_stream", None)


def columns(table):
    pa = reader("pyarrow")
    return {field.name: (column.cast(pa.int64()) if pa.types.is_timestamp(field.type) else column).to_pylist()
            for field, column in zip(table.schema, table.columns)}


def test_pyarrow_reads_what_show_says(library, recordings):  # noqa: F811
    for recording in recordings.values():
        with Run(library, recording) as opened:
            for frame in expected(recording):
                compare(frame, columns(opened.table(frame.name)))


def test_the_same_as_the_file(library, recordings, tmp_path):  # noqa: F811
    """Schema, metadata and rows of every frame, those that are not of time included."""
    pa = reader("pyarrow")
    for name in ("run", "hostile", "nodes", "no_tick"):
        folder = export(recordings[name], "arrow", tmp_path / name)
        with Run(library, recordings[name]) as opened:
            for frame in opened.frames():
                file = pa.ipc.open_file(str(folder / f"{frame}.arrow")).read_all()
                table = opened.table(frame)
                assert table.schema.equals(file.schema, check_metadata=True)
                assert columns(table) == columns(file)


def test_polars_takes_the_capsule(library, recordings):  # noqa: F811
    pl = reader("polars")
    with Run(library, recordings["run"]) as opened:
        for name in ("cpu", "process", "processes", "group"):
            frame = pl.DataFrame(Capsule(opened.stream(name)))
            theirs = {c: (frame[c].to_physical() if frame[c].dtype == pl.Datetime else frame[c]).to_list() for c in frame.columns}
            assert theirs == columns(opened.table(name))


def test_memory_is_the_library_s_own_and_outlives_the_run(library, recordings):  # noqa: F811
    """Nothing is copied on the way: buffers are aligned pieces that live as long as someone holds a column of them."""
    pa = reader("pyarrow")
    with Run(library, recordings["long"]) as opened:
        stream = opened.stream("cpu")
    batches = pa.RecordBatchReader._import_from_c(ctypes.addressof(stream))
    before = pa.total_allocated_bytes()
    batch = batches.read_next_batch()
    kept = batch.column("time")
    assert pa.total_allocated_bytes() == before
    assert all(buffer.address % 64 == 0 for column in batch.columns for buffer in column.buffers() if buffer)
    values = kept.cast(pa.int64()).to_pylist()
    del batch, batches
    assert kept.cast(pa.int64()).to_pylist() == values and values == sorted(values)


def test_fields_are_described(library, recordings):  # noqa: F811
    with Run(library, recordings["run"]) as opened:
        assert {"summary", "phases", "process"} <= set(opened.frames())
        fields = {field.name: field for field in opened.fields("process")}
        assert list(fields)[:6] == [b"time", b"elapsed", b"host", b"instance", b"pid", b"process"]
        assert (fields[b"time"].type, fields[b"time"].kind, fields[b"host"].type) == (b"time", None, b"text")
        rss = fields[b"proc.mem.rss"]
        assert (rss.type, rss.unit, rss.kind) == (b"integer", b"bytes", b"gauge") and rss.help
        schema = opened.table("process").schema
        assert [f.name.encode() for f in schema] == list(fields)
        assert schema.field("proc.mem.rss").metadata[b"help"] == rss.help
        assert not library.tacho_field(opened.handle, 0, 10**6) and not library.tacho_frame(opened.handle, 10**6)


def test_options(library, recordings):  # noqa: F811
    with Run(library, recordings["long"]) as opened:
        every = opened.table("node")
        elapsed = every.column("elapsed").to_pylist()
        some = opened.table("node", from_=5.0, to=10.0)
        assert some.column("elapsed").to_pylist() == [e for e in elapsed if 5 <= e <= 10] != elapsed
        assert 0 < opened.table("node", every=10.0).num_rows < every.num_rows / 5
    with Run(library, recordings["run"]) as opened:
        one = opened.table("process", metrics=["proc.mem.rss"])
        assert one.column_names[-1] == "proc.mem.rss" and one.num_columns == 7
        raw = opened.table("process", metrics=["proc.mem.rss"], raw=1)
        scale = int(raw.schema.field("proc.mem.rss").metadata.get(b"scale", b"1"))
        assert [v and v * scale for v in raw.column("proc.mem.rss").to_pylist()] == one.column("proc.mem.rss").to_pylist()


def test_failures_say_why(library, recordings, tmp_path):  # noqa: F811
    with pytest.raises(OSError, match="nothing.tacho"):
        Run(library, tmp_path / "nothing.tacho")
    (tmp_path / "text.tacho").write_text("no recording")
    with pytest.raises(OSError, match="text.tacho"):
        Run(library, tmp_path / "text.tacho")
    with Run(library, recordings["run"]) as opened:
        with pytest.raises(OSError, match="proces"):
            opened.stream("proces")
        with pytest.raises(OSError, match="proc.mem.rsss"):
            opened.stream("process", metrics=["proc.mem.rsss"])
        with pytest.raises(OSError, match="seconds"):
            opened.stream("process", every=-1.0)
        stream = Stream()
        assert library.tacho_stream(opened.handle, b"cpu", ctypes.byref(Options()), ctypes.byref(stream)) < 0
        assert b"size" in library.tacho_error()


def test_threads(library, recordings):  # noqa: F811
    """Several at once, on runs of their own and on one that they share; errors stay with who made them."""
    reader("pyarrow")
    wrong = []
    with Run(library, recordings["long"]) as shared:
        truth = shared.table("cpu")

        def work(i):
            with Run(library, recordings["long"]) as own:
                if not own.table("cpu").equals(truth) or not shared.table("cpu").equals(truth):
                    wrong.append(f"thread {i} read something else")
            try:
                Run(library, f"/nowhere-{i}.tacho")
            except OSError as error:
                if f"/nowhere-{i}.tacho" not in str(error):
                    wrong.append(str(error))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_only_our_names_are_visible(library):
    said = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    functions = {line.split()[-1].split("@")[0] for line in said.splitlines() if " T " in line}
    header = (ROOT / "include" / "tacho.h").read_text()
    assert functions == set(re.findall(r"^TACHO_API .*?\b(tacho_\w+)\(", header, re.M))


def test_the_header_in_c_and_c_plus_plus(tmp_path):
    for compiler, language in (("gcc", "c"), ("g++", "c++")):
        try:
            done = subprocess.run([compiler, "-x", language, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only",
                                   "-I", ROOT / "include", "-"], input=b"#include <tacho.h>\nint main() { return !tacho_version(); }\n",
                                  capture_output=True)
        except FileNotFoundError:
            continue
        assert done.returncode == 0, done.stderr.decode()


def test_following_a_run(library, tmp_path):
    """Batches come while it is recorded, and all of them together are what the recording has in the end."""
    pa = reader("pyarrow")
    recording = tmp_path / "job.tacho"

    def opened():
        with contextlib.suppress(OSError), Run(library, recording) as young:
            return young.stream("tree", follow=True)

    with lasting(["cat"], "-i", "50ms", output=recording) as tacho:
        stream = until(opened, "a recording that has columns")
        with pa.RecordBatchReader._import_from_c(ctypes.addressof(stream)) as reading:
            batches = [reading.read_next_batch() for _ in range(3)]
            tacho.stdin.close()
            batches += list(reading)
    with Run(library, recording) as done:
        assert columns(pa.Table.from_batches(batches)) == columns(done.table("tree"))
