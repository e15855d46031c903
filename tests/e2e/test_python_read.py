"""Reading from Python: the same numbers as everywhere else, in pandas, polars, Arrow, DuckDB and plain Python."""

import ctypes
import gc
import json
import os
import sys
import threading
import xml.etree.ElementTree
from html.parser import HTMLParser

import pytest

from exported import export, reader, recordings  # noqa: F401 (a fixture)
from python_package import environment, in_venv, script, tacho  # noqa: F401 (a fixture)
from recorder import lasting, run, show, until

READ = ("run", "hostile", "nodes", "no_tick")


# ---- the same numbers ----


def test_summary_phases_and_findings(tacho, recordings):  # noqa: F811
    for name in (*READ, "unfinished", "long"):
        opened = tacho.open(recordings[name])
        assert opened.summary == show(recordings[name]) and opened.phases == show(recordings[name]).get("phases", [])
        assert opened.summary.memory.peak_bytes == opened.summary["memory"]["peak_bytes"]
        done = run("report", "--format", "json", "-o", "-", recordings[name])
        if done.returncode == 0:
            page = json.loads(done.stdout)
            assert opened.findings == page["findings"] and opened.advice == page["advice"]
        opened.close()
        with pytest.raises(tacho.TachoError, match="closed"):
            opened.tables  # noqa: B018


def plain(columns):
    """Of pandas, polars and pyarrow: None, int, float, str, bool."""
    return {name: [None if value is None or value != value else value for value in values] for name, values in columns.items()}


def of_pandas(frame):
    pandas = reader("pandas")
    columns = {}
    for name in frame.columns:
        column, known = frame[name], frame[name].notna()
        if isinstance(column.dtype, pandas.DatetimeTZDtype):
            column = column.astype("int64")
        columns[name] = column.astype(object).where(known, None).tolist()
    return columns


def test_every_table_in_every_package(tacho, recordings):  # noqa: F811
    pandas, pl, pa = reader("pandas"), reader("polars"), reader("pyarrow")
    for name in READ:
        with tacho.open(recordings[name]) as opened:
            for table_name in opened.tables:
                table = opened.table(table_name)
                truth = plain(table.to_dict())
                assert list(truth) == table.columns and list(table.rows()) == [dict(zip(truth, row)) for row in zip(*table.to_dict().values())]
                arrow = table.to_arrow()
                assert plain({f.name: (c.cast(pa.int64()) if pa.types.is_timestamp(f.type) else c).to_pylist() for f, c in zip(arrow.schema, arrow.columns)}) == truth
                polars = table.to_polars()
                assert plain({c: (polars[c].to_physical() if polars[c].dtype == pl.Datetime else polars[c]).to_list() for c in polars.columns}) == truth
                frame = table.to_pandas()
                assert plain(of_pandas(frame)) == truth
                for field in table.fields:
                    kind = {"integer": "Int64", "real": "float64", "flag": "boolean", "text": "category", "time": "datetime64[ns, UTC]"}[field.type]
                    assert str(frame[field.name].dtype) == kind
    assert isinstance(frame, pandas.DataFrame)


def test_integers_beyond_doubles_stay_exact(tacho, recordings):  # noqa: F811
    """2**53 + 1 and the like, also where others are missing."""
    reader("pandas")
    large = 0
    with tacho.open(recordings["hostile"]) as opened:
        for table in map(opened.table, opened.tables):
            frame = table.to_pandas()
            for name, values in table.to_dict().items():
                odd = [i for i, value in enumerate(values) if isinstance(value, int) and abs(value) > 2**53 and table.field(name).type == "integer"]
                assert all(int(frame[name][i]) == values[i] for i in odd)
                large += len(odd)
    assert large


def test_duckdb_by_name(tacho, recordings):  # noqa: F811
    duckdb = reader("duckdb")
    processes = tacho.open(recordings["run"]).table("process", metrics=["proc.mem.rss"])
    most = max(value for value in processes.to_dict()["proc.mem.rss"] if value is not None)
    for _ in range(2):  # a table is read as often as it is asked
        assert duckdb.sql('select max("proc.mem.rss") from processes').fetchall() == [(most,)]


def test_a_batch_is_handed_on_once(tacho, recordings):  # noqa: F811
    pa = reader("pyarrow")
    batches = list(tacho.open(recordings["run"]).table("tree").batches())
    columns = batches[0].to_dict()
    theirs = pa.record_batch(batches[0])
    assert theirs.num_rows == len(columns["time"]) > 0 and theirs.column("elapsed").to_pylist() == columns["elapsed"]
    with pytest.raises(tacho.TachoError, match="handed"):
        batches[0].to_dict()


def test_streams_are_released_once(tacho, recordings, monkeypatch):  # noqa: F811
    """Whatever the consumer does with its capsule: nothing, take the stream, or give it up half read."""
    from tacho import _library

    pa = reader("pyarrow")
    calls, kept = [], []
    make = _library.Handle.stream

    def counted(*args, **kwargs):
        stream = make(*args, **kwargs)
        release = _library._RELEASE(stream.release)

        def count(address):
            calls.append(address)
            release(address)

        kept.append(_library._RELEASE(count))
        stream.release = ctypes.cast(kept[-1], ctypes.c_void_p).value
        return stream

    monkeypatch.setattr(_library.Handle, "stream", counted)
    with tacho.open(recordings["long"]) as opened:
        table = opened.table("cpu")
        assert len(calls) == 1  # it was looked at
        capsule = table.__arrow_c_stream__()
        assert len(_library._held) == 1 and len(calls) == 1
        del capsule
        assert len(calls) == 2 and not _library._held
        half = pa.RecordBatchReader.from_stream(table)
        half.read_next_batch()
        assert len(calls) == 2
        del half
        assert len(calls) == 3
        assert table.to_arrow().num_rows == sum(len(batch) for batch in table.batches()) and len(calls) == 5
        batches = table.batches()
        next(batches)
        batches.close()
        assert len(calls) == 6 and not _library._held
        opened.table("cpu").batches()  # never begun
        opened.follow("cpu")
        gc.collect()
        assert len(calls) == 9 == len(kept)


def test_capsules_that_outlive_everything(tmp_path, recordings):  # noqa: F811
    """The interpreter ends while there are some."""
    text = "import builtins, sys, tacho; builtins.kept = tacho.open(sys.argv[1]).table('tree').__arrow_c_stream__()"
    script(text, recordings["run"])


# ---- threads ----


def test_close_waits_for_calls_of_other_threads(tacho, recordings, monkeypatch):  # noqa: F811
    """The run is freed after the last call that uses it: each function is held inside the library until the run was closed."""
    from tacho import _library

    lib = _library.library()
    order, entered, closed = [], threading.Event(), threading.Event()

    def held(name, real):
        def call(*args):
            entered.set()
            assert closed.wait(60)
            order.append(name)
            return -9 if order[0] == "tacho_close" else real(*args)  # never into memory that is freed

        return call

    def noted(*args, close=lib.tacho_close):
        order.append("tacho_close")
        close(*args)

    monkeypatch.setattr(lib, "tacho_close", noted)
    for name, use in (
        ("tacho_summary", lambda run: run.summary),
        ("tacho_findings", lambda run: run.findings),
        ("tacho_nr_frames", lambda run: run.tables),
        ("tacho_frame", lambda run: run.tables),
        ("tacho_field", lambda run: run._fields("tree")),
        ("tacho_stream", lambda run: run.table("tree")),
        ("tacho_follow", lambda run: run.follow("tree")),
    ):
        run, real = tacho.open(recordings["run"]), getattr(lib, name)
        order.clear(), entered.clear(), closed.clear()
        with monkeypatch.context() as patch:
            patch.setattr(lib, name, held(name, real))
            thread = threading.Thread(target=lambda: use(run))  # noqa: B023
            thread.start()
            assert entered.wait(60)
            run.close()
            freed = list(order)
            with pytest.raises(tacho.TachoError, match="closed"):
                use(run)
            closed.set()
            thread.join()
        assert not freed, f"the run was freed within {name}()"
        assert order[0] == name and order[-1] == "tacho_close" and order.count("tacho_close") == 1


CLOSED_WHILE_READ = """
import sys, threading, tacho

def read(run, barrier):
    barrier.wait()
    try:
        while True:
            run.tables, run.findings, run.summary, run.table("tree").to_dict()
            run._summary = None  # read it again
    except tacho.TachoError as error:
        assert "closed" in str(error), error

for _ in range(60):
    run, barrier = tacho.open(sys.argv[1]), threading.Barrier(4)
    threads = [threading.Thread(target=read, args=(run, barrier)) for _ in range(3)]
    for thread in threads:
        thread.start()
    barrier.wait()
    run.table("tree").to_dict()  # they are at work meanwhile
    run.close()
    for thread in threads:
        thread.join()
"""


def test_a_run_is_closed_while_threads_read(recordings):  # noqa: F811
    done = script(CLOSED_WHILE_READ, recordings["run"], check=False)
    assert (done.returncode, done.stderr) == (0, "")  # what a thread raises is printed there


# ---- names of files ----


def test_paths_of_all_kinds(tacho, recordings, tmp_path):  # noqa: F811
    """Bytes are names of files, too; a name is not cut off at a null character."""
    path = os.fspath(recordings["run"])
    truth = show(path)
    for one in (path, os.fsencode(path), [os.fsencode(path)]):
        with tacho.open(one) as run:
            assert run.summary == truth and run.paths == [path]
            with pytest.raises(ValueError, match="null"):
                run.table("tree", metrics=["tree.cores\0x"])
    os.symlink(path, b"\xff.tacho")
    with tacho.open(b"\xff.tacho") as run:
        assert {**run.summary, "path": path} == truth
    for one in (path + "\0b", os.fsencode(path) + b"\0b"):
        with pytest.raises(ValueError, match="null"):
            tacho.open(one)


# ---- what is asked for ----


def test_parts_of_a_table(tacho, recordings):  # noqa: F811
    from datetime import timedelta

    with tacho.open(str(recordings["long"])) as opened:
        whole = opened.table("node").to_dict()["elapsed"]
        for ten in (10, "10s", timedelta(seconds=10), "0m10s"):
            assert 0 < len(opened.table("node", every=ten).to_dict()["elapsed"]) < len(whole) / 5
        assert opened.table("node", start="5s", end=10).to_dict()["elapsed"] == [e for e in whole if 5 <= e <= 10] != whole
    with tacho.open([recordings["run"]]) as opened:
        one = opened.table("process", metrics=["proc.mem.rss"])
        assert one.columns[-1] == "proc.mem.rss" and one.field("proc.mem.rss").kind == "gauge" and "bytes" in one.field("proc.mem.rss").unit
        with pytest.raises(KeyError, match="there are: node"):
            opened.table("proces")
        with pytest.raises(tacho.TachoError, match="proc.mem.rsss"):
            opened.table("process", metrics=["proc.mem.rsss"])
        with pytest.raises(ValueError, match="every"):
            opened.table("process", every="10 parsecs")
        with pytest.raises(KeyError, match="no phase"):
            opened.phase("x")
    for name, reason in (("nothing.tacho", "nothing.tacho"), (__file__, "not a recording")):
        with pytest.raises(tacho.TachoError, match=reason):
            tacho.open(name)


def test_a_phase_is_a_part_of_the_time(tacho):  # noqa: F811
    with tacho.record("a.tacho", interval=0.02) as recording:
        for i in range(2):
            with recording.phase(f"epoch {i}"):
                seen = recording.summary.ticks.taken
                until(lambda: recording.open().summary.ticks.taken > seen + 2, "samples")
    opened = recording.open()
    second = opened.phase("epoch 1")
    assert [phase.name for phase in opened.phases] == ["epoch"] and second.number == 2
    rows = opened.table("tree", phase="epoch 1").to_dict()["elapsed"]
    assert rows and all(second.begin_s <= time <= second.end_s for time in rows)


# ---- live ----


def test_following_a_run(tacho, tmp_path):  # noqa: F811
    out = tmp_path / "live.tacho"
    with lasting(["cat"], "-i", "20ms", output=out) as job:
        until(lambda: run("show", "--json", out).returncode == 0 and show(out)["ticks"]["taken"], "a sample")

        def young():
            try:
                return tacho.open(out).follow("tree", wait=0.2)
            except (tacho.TachoError, KeyError):
                return None

        batches = until(young, "a recording that has columns")
        rows, counted = [], [0]
        stop = threading.Event()

        def count():
            while not stop.wait(0.001):
                counted[0] += 1

        for batch in batches:
            rows += batch.rows()
            if len(rows) > 5:
                break
        thread = threading.Thread(target=count)
        thread.start()
        switch = sys.getswitchinterval()
        sys.setswitchinterval(3600)  # from here on it runs only while the library has given the interpreter's lock away
        try:
            before = counted[0]
            for batch in batches:
                rows += batch.rows()
                if counted[0] > before:
                    break
        finally:
            sys.setswitchinterval(switch)
            stop.set()
            thread.join()
        job.stdin.close()
        rows += [row for batch in batches for row in batch.rows()]
    assert rows == list(tacho.open(out).table("tree").rows())


# ---- pictures ----


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.attributes = [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]

    def handle_data(self, data):
        self.text += data


def test_a_notebook_s_view(tacho, recordings):  # noqa: F811
    for name in ("run", "hostile", "no_tick", "unfinished", "nodes"):
        opened = tacho.open(recordings[name])
        page = Page(opened._repr_html_())
        assert "table" in page.tags and set(page.tags) <= {"div", "table", "tr", "th", "td", "figure", "figcaption", "svg", "path", "ul", "li"}
        assert set(page.attributes) <= {"class", "style", "role", "aria-label", "viewbox", "width", "height", "d", "fill", "stroke", "stroke-width"}
        assert str(opened.summary.host) in page.text
        assert Page(opened.table("meta")._repr_html_()).tags.count("tr") > 1
    assert Page(tacho.open(recordings["run"])._repr_html_()).tags.count("svg") == 2


def test_hostile_names_are_text(tacho, tmp_path):  # noqa: F811
    evil = "<script>alert(1)</script>"
    (tmp_path / evil.replace("/", "-")).write_text("")
    with tacho.record("a.tacho", name=evil, interval=0.05) as recording, recording.phase(evil):
        pass
    html = recording.open()._repr_html_()
    assert "<script" not in html and "&lt;script&gt;" in html


def test_a_plot_by_tacho(tacho, recordings, monkeypatch):  # noqa: F811
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    if run("plot", "-o", "-", "-f", "svg", recordings["run"], "tree.cores").returncode == 127:
        pytest.skip("tacho-report is not built")
    picture = tacho.open(recordings["run"]).plot("tree.cores")
    assert xml.etree.ElementTree.fromstring(picture._repr_svg_()).tag.endswith("svg")
    picture.save("p.svg")
    assert os.path.getsize("p.svg") > 1000
    with pytest.raises(tacho.TachoError, match="no.such"):
        tacho.open(recordings["run"]).plot("no.such")


def test_a_plot_by_matplotlib(tacho, recordings):  # noqa: F811
    """In an interpreter of its own: the lines have the numbers that show has."""
    python = in_venv()
    text = """import json, sys
import matplotlib; matplotlib.use("Agg")
import tacho
axes = tacho.open(sys.argv[1]).plot("tree.cores")
line, = axes.get_lines()
print(json.dumps([[float(x), None if y != y else float(y)] for x, y in zip(line.get_xdata(), line.get_ydata())]))
print(len(tacho.open(sys.argv[1]).plot("cpu.user_ratio", per="instance").get_lines()))
"""
    import subprocess

    if subprocess.run([python, "-c", "import matplotlib"], capture_output=True).returncode:
        pytest.skip("matplotlib is not in .dev/python: `./dev test` installs it")
    done = subprocess.run([python, "-c", text, recordings["run"]], capture_output=True, text=True, env=environment(MPLCONFIGDIR=os.getcwd()))
    assert done.returncode == 0, done.stderr
    points, lines = done.stdout.splitlines()
    said = json.loads(run("show", "--json", "--series", "tree.cores", recordings["run"]).stdout)["recordings"][0]["points"]
    assert json.loads(points) == said and int(lines) > 1
