"""Parquet as others read it: pyarrow, DuckDB, pandas and polars, each of which has a reader of its own, get every value
as it was given, and what the footer says of the values is true."""

import csv
import io
import json
import math
import random
import string
import struct
import subprocess

import pytest

from exported import ROOT, compare, expected, export, reader, recordings, tool  # noqa: F401 (a fixture)
from feed import Column, feed

READERS = ["pyarrow", "duckdb", "pandas", "polars"]
GROUP_ROWS = 128 * 1024
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
HOSTILE = [
    "", " ", "plain", "a,b;c", '"quoted"', "two\r\nlines", "\x01\x1f\x7f", "<script>", "'; DROP TABLE x; --", "\\xff\\\\x41",
    "\u65e5\u672c \U0001f680", "\ufeffbom", "\u202eback", "nan", "NULL", "None", "x" * 300, "PAR1",
]


# ---- the readers: columns as lists of Python values, times as ns ----


def by_pyarrow(path):
    parquet = reader("pyarrow.parquet")
    table = parquet.ParquetFile(path, page_checksum_verification=True).read()
    table.validate(full=True)
    whole = reader("pyarrow").int64()
    columns = [c.cast(whole) if "timestamp" in str(c.type) else c for c in table.columns]
    return dict(zip(table.column_names, (c.to_pylist() for c in columns)))


def by_duckdb(path):
    duckdb = reader("duckdb")
    source = f"read_parquet('{path}')"
    types = duckdb.sql(f"describe select * from {source}").fetchall()
    chosen = ", ".join(f'epoch_ns("{t[0]}")' if t[1].startswith("TIMESTAMP") else f'"{t[0]}"' for t in types)
    rows = duckdb.sql(f"select {chosen} from {source}").fetchall()
    return {t[0]: [row[i] for row in rows] for i, t in enumerate(types)}


def by_pandas(path):
    """With types that know what is missing: its own turn integers into doubles."""
    pandas = reader("pandas")
    reader("pyarrow")
    frame = pandas.read_parquet(path, engine="pyarrow", dtype_backend="numpy_nullable")
    columns = {}
    for name in frame.columns:
        values = frame[name]
        if "datetime64[ns, UTC]" in str(values.dtype):
            values = values.astype("int64").where(values.notna(), None).astype("Int64")
        columns[name] = [None if value is pandas.NA else value for value in values.tolist()]
    return columns


def by_polars(path):
    polars = reader("polars")
    frame = polars.read_parquet(path)
    return {
        name: (frame[name].cast(polars.Int64) if "Datetime" in str(frame[name].dtype) else frame[name]).to_list()
        for name in frame.columns
    }


def read(which, path):
    return {"pyarrow": by_pyarrow, "duckdb": by_duckdb, "pandas": by_pandas, "polars": by_polars}[which](path)


def same(a, b):
    """Also zeros have their sign."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b) or math.isnan(a) and math.isnan(b)
    return type(a) is type(b) and a == b


def bits(values):
    """Quickly compared, and exact: None, bool and int stay apart, and so do zeros with another sign."""
    return list(map(type, values)), [struct.pack("<d", v) if type(v) is float else v for v in values]


def check(found, name, values):
    assert len(found) == len(values), f"{name}: {len(found)} rows of {len(values)}"
    if bits(found) == bits(values):
        return
    wrong = [(i, a, b) for i, (a, b) in enumerate(zip(found, values)) if not same(a, b)]
    assert not wrong, f"{name}: rows are not what they were (row, read, given): {wrong[:3]}"


def check_all(which, path, columns):
    found = read(which, path)
    assert list(found) == [c.name for c in columns]
    for column in columns:
        check(found[column.name], column.name, column.values)


# ---- frames that were made by hand ----


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The frames of tests/unit/export_lab.h: name -> (path, columns)."""
    folder = tmp_path_factory.mktemp("lab")
    said = subprocess.run([tool("export_tool"), "expected"], check=True, stdout=subprocess.PIPE).stdout
    made = {}
    for frame in json.loads(said, parse_int=lambda text: -0.0 if text == "-0" else int(text)):
        path = folder / f"{frame['name']}.parquet"
        subprocess.run([tool("export_tool"), "parquet", frame["name"], path], check=True)
        columns = []
        for i, field in enumerate(frame["fields"]):
            values = [row[i] for row in frame["rows"]]
            if field["type"] == "real":
                values = [None if value is None else float(value) for value in values]
            columns.append(Column(field["name"], field["type"], values))
        made[frame["name"]] = path, columns
    return made


@pytest.mark.parametrize("which", READERS)
def test_frames_of_the_lab(lab, which):
    assert {len(columns[0].values) for _, columns in lab.values()} == {0, 10, 40, 2500}
    for path, columns in lab.values():
        check_all(which, path, columns)


def test_empty_frame_has_no_row_groups(lab):
    meta = reader("pyarrow.parquet").ParquetFile(lab["empty"][0]).metadata
    assert (meta.num_rows, meta.num_row_groups, meta.num_columns) == (0, 0, 14)


def test_meaning_is_in_the_footer(lab):
    meta = reader("pyarrow.parquet").ParquetFile(lab["mixed"][0]).metadata
    assert meta.created_by.startswith("tacho version ")
    said = {key.decode(): value.decode() for key, value in meta.metadata.items()}
    assert (said["tacho.frame"], said["tacho.help"], said["tacho.summary"]) == ("mixed", "Everything at once.", "{}")
    columns = {column["name"]: column for column in json.loads(said["tacho.columns"])}
    assert list(columns) == [c.name for c in lab["mixed"][1]]
    assert columns["lab.bytes.rate"] == {
        "name": "lab.bytes.rate", "type": "real", "unit": "bytes/s", "kind": "gauge", "resample": "mean",
        "help": "Its growth.",
    }
    assert columns["lab.raw"]["unit"] == "0.01 s" and columns["lab.raw"]["scale"] == 0.01
    assert columns["lab.bytes"]["kind"] == "counter" and "kind" not in columns["time"]
    assert columns["lab.level"]["help"] == 'A level, "quoted", and <bracketed>.'


def test_types_are_logical_ones(lab):
    schema = reader("pyarrow.parquet").ParquetFile(lab["mixed"][0]).schema
    found = {}
    for i in range(len(schema)):
        column = schema.column(i)
        found[column.name] = column.physical_type, str(column.logical_type)
        assert column.max_definition_level == 1
    assert found["time"][0] == "INT64"
    assert "Timestamp(isAdjustedToUTC=true, timeUnit=nanoseconds" in found["time"][1]
    assert found["pid"] == ("INT64", "Int(bitWidth=64, isSigned=true)")
    assert found["lab.level"] == ("DOUBLE", "None")
    assert found["lab.on"] == ("BOOLEAN", "None")
    assert found["lab.state"] == ("BYTE_ARRAY", "String")


# ---- statistics ----


def bounds(values):
    """As the format has them: not a number counts for nothing, zeros are within whatever their sign."""
    values = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    if not values:
        return None
    low, high = min(values), max(values)
    if isinstance(low, str):
        low, high = (f(values, key=str.encode) for f in (min, max))
    return low, high


def check_statistics(path, columns):
    parquet = reader("pyarrow.parquet").ParquetFile(path)
    at = 0
    for group in range(parquet.metadata.num_row_groups):
        meta = parquet.metadata.row_group(group)
        for i, column in enumerate(columns):
            values = column.values[at : at + meta.num_rows]
            said = meta.column(i).statistics
            assert said.null_count == values.count(None), column.name
            assert said.num_values == len(values) - said.null_count
            truth = bounds(values)
            if column.type == "text" and truth and max(len(text.encode()) for text in truth) > 256:
                truth = None
            assert said.has_min_max == (truth is not None), column.name
            if truth and column.type == "time":
                assert (said.min.value, said.max.value) == truth
            elif truth:
                assert (said.min, said.max) == truth, column.name
                if truth == (0, 0) and column.type == "real":
                    assert math.copysign(1, said.min) == -1 and math.copysign(1, said.max) == 1
        at += meta.num_rows
    assert at == len(columns[0].values)


def test_statistics_of_the_lab(lab):
    reader("pandas")
    for path, columns in lab.values():
        check_statistics(path, columns)


def test_not_a_number_is_in_no_statistics(tmp_path):
    """Frames have none; a file with wrong bounds would lose rows in silence."""
    nan = float("nan")
    columns = [
        Column("some", "real", [nan, 1.0, None, -2.0, nan]),
        Column("all", "real", [nan] * 5),
        Column("zero", "real", [0.0, -0.0, 0.0, None, 0.0]),
        Column("infinite", "real", [math.inf, 1.0, -math.inf, None, 2.0]),
    ]
    path = feed("parquet", columns, tmp_path / "x.parquet")
    check_all("pyarrow", path, columns)
    check_statistics(path, columns)


# ---- large ----


def large_columns(rows, instances):
    """As recordings have it: rows of many instances follow one another, most of them as they were a tick ago."""
    dice = random.Random(7)
    level = [dice.randrange(2**40) for _ in range(instances)]
    counter = [2**53 + dice.randrange(2**50) for _ in range(instances)]
    out = {name: [] for name in ("time", "elapsed", "host", "instance", "counter", "level", "noise", "few", "many", "on", "never", "seldom")}
    for row in range(rows):
        k, tick = row % instances, row // instances
        if dice.random() < 0.2:
            counter[k] += dice.randrange(2**20)
        if dice.random() < 0.01:
            level[k] = dice.randrange(2**40)
        out["time"].append(1763200000 * 10**9 + tick * 10**9 + tick * 7919 % 1000)
        out["elapsed"].append(tick + 0.25)
        out["host"].append("a" if row < rows // 2 else "b")
        out["instance"].append(f"process {k} of {row // GROUP_ROWS}")
        out["counter"].append(counter[k])
        out["level"].append(None if k == 3 else level[k])
        out["noise"].append(dice.random() if row % 5 else None)
        out["few"].append(dice.randrange(5) * 2**61 - 2**62)
        out["many"].append(dice.randrange(3000) * 2**45 + row // 133_019)  # as many rows are in a group
        out["on"].append(None if row % 11 == 0 else row % 3 == 0)
        out["never"].append(None)
        out["seldom"].append(row if row % 1000 == 999 else None)
    types = dict(time="time", elapsed="real", host="text", instance="text", noise="real", on="flag")
    return [Column(name, types.get(name, "integer"), values) for name, values in out.items()]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    columns = large_columns(270_000, 70)
    return feed("parquet", columns, tmp_path_factory.mktemp("large") / "large.parquet", batch=7001), columns


@pytest.mark.parametrize("which", READERS)
def test_many_row_groups(large, which):
    check_all(which, *large)


def test_row_groups_are_spans_of_time(large):
    path, columns = large
    check_statistics(path, columns)
    meta = reader("pyarrow.parquet").ParquetFile(path).metadata
    assert meta.num_row_groups == 3
    spans = [meta.row_group(g).column(0).statistics for g in range(3)]
    assert spans[0].max.value <= spans[1].min.value and spans[1].max.value <= spans[2].min.value
    # Its dictionary has what occurs in the group and nothing else.
    parquet = reader("pyarrow.parquet").ParquetFile(path, read_dictionary=["instance"])
    for group in range(3):
        first = parquet.read_row_group(group, columns=["instance"]).column(0).chunk(0).dictionary.to_pylist()
        start = sum(meta.row_group(g).num_rows for g in range(group))
        rows = columns[3].values[start : start + meta.row_group(group).num_rows]
        assert set(first) <= set(rows)
    many = [c.name for c in columns].index("many")
    sizes = [meta.row_group(group).column(many).total_uncompressed_size for group in range(2)]
    assert meta.row_group(0).column(many).has_dictionary_page and sizes[1] < sizes[0] * 1.05


def test_encodings_fit_the_values(large, tmp_path):
    parquet = reader("pyarrow.parquet")

    def encodings(path):
        meta = parquet.ParquetFile(path).metadata
        group = meta.row_group(0)
        assert {group.column(i).compression for i in range(meta.num_columns)} == {"ZSTD"}
        return {group.column(i).path_in_schema: set(group.column(i).encodings) - {"RLE"} for i in range(meta.num_columns)}

    found = encodings(large[0])
    for name in ("host", "instance", "few"):
        assert "RLE_DICTIONARY" in found[name], name
    assert found["noise"] == {"BYTE_STREAM_SPLIT"} or found["noise"] == {"PLAIN"}
    dice = random.Random(3)
    at, rising, smooth, turns = 2**60, [], [], []
    each = [dice.randrange(2**60) for _ in range(100)]
    for i in range(16_000):
        at += 1000 + dice.randrange(64)
        rising.append(at)
        smooth.append(1000 + math.sin(i / 500) + dice.random() / 1e6)
        each[i % 100] += dice.randrange(200) if dice.random() < 0.7 else 0
        turns.append(each[i % 100])
    columns = [Column("rising", "integer", rising), Column("smooth", "real", smooth), Column("turns", "integer", turns)]
    path = feed("parquet", columns, tmp_path / "x.parquet")
    check_all("pyarrow", path, columns)
    # Instances that take turns are alike a tick ago, not to their neighbours.
    assert encodings(path) == {"rising": {"DELTA_BINARY_PACKED"}, "smooth": {"BYTE_STREAM_SPLIT"}, "turns": {"PLAIN"}}


def test_no_larger_than_by_pyarrow(large, tmp_path):
    parquet = reader("pyarrow.parquet")
    table = parquet.read_table(large[0]).replace_schema_metadata(None)
    parquet.write_table(table, tmp_path / "theirs.parquet", compression="zstd")
    assert large[0].stat().st_size <= (tmp_path / "theirs.parquet").stat().st_size


def test_dictionary_that_overflows_within_a_row_group(tmp_path):
    """Few values at first, then so many that no dictionary is worth it; those before keep theirs."""
    dice = random.Random(5)
    rows = 120_000
    values = [dice.randrange(50) if i < 40_000 else dice.randrange(2**62) for i in range(rows)]
    columns = [Column("number", "integer", values), Column("real", "real", [value / 7 for value in values])]
    path = feed("parquet", columns, tmp_path / "x.parquet")
    meta = reader("pyarrow.parquet").ParquetFile(path).metadata
    assert meta.num_row_groups == 1
    assert len({"RLE_DICTIONARY", "DELTA_BINARY_PACKED", "PLAIN"} & set(meta.row_group(0).column(0).encodings)) >= 2
    for which in ("pyarrow", "duckdb", "polars"):
        check_all(which, path, columns)


def test_long_texts_have_smaller_row_groups(tmp_path):
    """What waits for its row group to end is bounded by bytes, too."""
    texts = [f"{i} " + "x" * 10_000 for i in range(7_500)]
    columns = [Column("number", "integer", list(range(len(texts)))), Column("text", "text", texts)]
    path = feed("parquet", columns, tmp_path / "x.parquet", batch=1000)
    parquet = reader("pyarrow.parquet").ParquetFile(path)
    assert parquet.metadata.num_row_groups == 2
    assert path.stat().st_size < 2_000_000
    check_all("pyarrow", path, columns)
    check_statistics(path, columns)


# ---- edges ----


@pytest.mark.parametrize("which", READERS)
@pytest.mark.parametrize("compression", [None, "none"])
def test_edges(tmp_path, which, compression):
    edges = [INT64_MIN, INT64_MAX, 0, -1, 1, 2**53, 2**53 + 1, -(2**53) - 1, None] * 40
    times = [-(2**62), 2**62 + 1, 0, -1, 1763200000123456789] * 72  # years 1823 and 2116; DuckDB has infinities beyond
    reals = [0.0, -0.0, 5e-324, -1.7976931348623157e308, 0.1, None, 1 / 3, 1e22, 2.5] * 40
    texts = [HOSTILE[i % len(HOSTILE)] for i in range(360)]
    for rows in (1, 7, 8, 9, 33, 129, 130, 360):
        columns = [
            Column("time", "time", times[:rows]),
            Column("integer", "integer", edges[:rows]),
            Column("real", "real", reals[:rows]),
            Column("text", "text", texts[:rows]),
            Column("flag", "flag", [bool(i % 2) for i in range(rows)]),
            Column("missing", "text", [None] * rows),
            Column("gone", "real", [None] * rows),
        ]
        path = feed("parquet", columns, tmp_path / "x.parquet", batch=5, compression=compression)
        check_all(which, path, columns)


def random_column(dice, name, rows):
    type = dice.choice(["time", "integer", "real", "text", "flag"])
    span = dice.choice([1, 2, 3, 17, 300, 70_000, 2**62])
    step = dice.choice([0, 1, 1000, 2**45])
    period = dice.choice([1, 3, 50])
    missing = dice.choice([0, 0, 0.01, 0.5, 0.99, 1])
    run = dice.choice([1, 1, 9, 500])
    values, gone, value = [], False, None
    for i in range(rows):
        if i % run == 0:
            gone = dice.random() < missing
            value = dice.randrange(span) + i // period * step - span // 2
        if gone:
            values.append(None)
        elif type == "real":
            values.append(value / dice.choice([1, 4]))
        elif type == "text":
            values.append("".join(dice.choice(string.printable + "\u00fc\U0001f680") for _ in range(value % 7)) if span < 300 else str(value))
        elif type == "flag":
            values.append(value % 3 == 0)
        else:
            values.append(max(INT64_MIN, min(INT64_MAX, value)))
    return Column(name, type, values)


@pytest.mark.parametrize("seed", range(12))
def test_random_frames(tmp_path, seed):
    dice = random.Random(seed)
    rows = dice.choice([1, 2, 100, 5000, 40_000])
    columns = [random_column(dice, f"{'c' * (i + 1)}", rows) for i in range(6)]
    path = feed("parquet", columns, tmp_path / "x.parquet", batch=lambda: dice.choice([1, 13, 1000, 8191, 8192]) if rows > 5000 else dice.randrange(1, 700))
    check_all("pyarrow", path, columns)
    check_all("polars", path, columns)
    check_all("duckdb", path, columns)


# ---- recordings ----


@pytest.mark.parametrize("name", ["run", "gpus", "long", "infiniband", "energy", "tree", "hostile", "one_tick", "no_tick", "unfinished", "damaged", "nodes"])
def test_recordings_hold_what_show_says(tmp_path, recordings, name):  # noqa: F811
    folder = export(recordings[name], "parquet", tmp_path / name)
    for frame in expected(recordings[name]):
        compare(frame, by_pyarrow(folder / f"{frame.name}.parquet"))


def test_all_readers_see_the_same_recording(tmp_path, recordings):  # noqa: F811
    folder = export(recordings["hostile"], "parquet", tmp_path / "hostile")
    files = sorted(folder.glob("*.parquet"))
    assert files
    for path in files:
        truth = by_pyarrow(path)
        for which in READERS[1:]:
            found = read(which, path)
            assert list(found) == list(truth)
            for column, values in truth.items():
                check(found[column], f"{path.name} {column} by {which}", values)


@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_pages_have_checksums(tmp_path, recordings, compression):  # noqa: F811
    path = export(recordings["long"], "parquet", tmp_path / "long", "--compression", compression) / "process.parquet"
    parquet = reader("pyarrow.parquet")
    parquet.ParquetFile(path, page_checksum_verification=True).read()
    column = parquet.ParquetFile(path).metadata.row_group(0).column(0)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(OSError, match="(?i)crc"):
        parquet.ParquetFile(path, page_checksum_verification=True).read()


def test_parquet_tools_read_it(tmp_path, recordings):  # noqa: F811
    program = ROOT / ".dev" / "python" / "bin" / "parquet-tools"
    if not program.exists():
        pytest.skip("parquet-tools is not there: `./dev test` installs it into .dev/python")
    path = export(recordings["gpus"], "parquet", tmp_path / "gpus") / "process.parquet"
    truth = by_pyarrow(path)
    said = subprocess.run([program, "inspect", path], capture_output=True, text=True, check=True).stdout
    assert f"num_rows: {len(truth['time'])}\n" in said and f"num_columns: {len(truth)}\n" in said
    assert "created_by: tacho version" in said and "compression: ZSTD" in said
    rows = list(csv.DictReader(io.StringIO(subprocess.run([program, "csv", path], capture_output=True, text=True, check=True).stdout)))
    assert list(rows[0]) == list(truth)
    assert [row["instance"] for row in rows] == truth["instance"]
    known = [None if value is None else float(value) for value in truth["proc.mem.rss"]]
    assert [float(row["proc.mem.rss"]) if row["proc.mem.rss"] else None for row in rows] == known


def test_summary_is_in_the_footer(tmp_path, recordings):  # noqa: F811
    folder = export(recordings["run"], "parquet", tmp_path / "run")
    meta = reader("pyarrow.parquet").ParquetFile(folder / "process.parquet").metadata.metadata
    assert json.loads(meta[b"tacho.summary"])["exit"]["code"] == 0
