"""xlsx, read by openpyxl. What a spreadsheet cannot hold is compared as docs say it stands: reals to 16 digits, integers
beyond 2^53 as texts, times to the millisecond, an empty text as nothing."""

import copy
import re
import subprocess
import warnings
import zipfile
from datetime import datetime, timezone

from exported import cell, columns_of, compare, expected, export, need_export, reader, recordings  # noqa: F401 (a fixture)
from feed import Column, feed
from recorder import TACHO, run
from stored import lab, lab_file, lab_random, same_values

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def open_book(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return reader("openpyxl").load_workbook(path, read_only=True)


def unescape(text):
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda m: chr(int(m[1], 16)), text)


def ns_of(value):
    return round((value.replace(tzinfo=timezone.utc) - EPOCH).total_seconds() * 1000) * 10**6


def digits(value):
    return float("%.16G" % value) if isinstance(value, float) else value


def read_sheet(book, name, fields):
    """Columns by name, as integers, floats, bools, texts and ns; None where a cell is empty."""
    rows = list(book[name].iter_rows(values_only=True))
    headings = [re.sub(r" \[[^]]*\]$", "", unescape(cell)) for cell in rows[0]]
    assert headings == [f["name"] for f in fields]
    columns = {}
    for i, field in enumerate(fields):
        values = [row[i] for row in rows[1:]]
        if field["type"] == "time":
            values = [v if v is None else ns_of(v) for v in values]
        elif field["type"] == "integer":
            values = [v if v is None else int(v) for v in values]
        elif field["type"] == "text":
            values = [v if v is None else unescape(v) for v in values]
        columns[field["name"]] = values
    return columns


def as_held(values, field):
    """What a spreadsheet can hold of them."""
    if field["type"] == "text":
        return [v or None for v in values]
    if field["type"] == "time":
        return [v if v is None else round(v / 10**6) * 10**6 for v in values]
    return [digits(v) for v in values]


def test_every_value_of_the_lab(tmp_path):
    book = open_book(lab_file("xlsx", tmp_path / "lab.xlsx"))
    for name, (fields, truth) in lab().items():
        found = read_sheet(book, name, fields)
        for field in fields:
            column = field["name"]
            same_values(found[column], as_held(truth[column], field), f"{name}.{column}")
    numbers = [row[5] for row in book["mixed"].iter_rows(min_row=2, max_row=20)]
    assert {c.data_type for c in numbers if c.value is not None} <= {"s", "inlineStr"}  # 2^60 and more


def test_every_recording(tmp_path, recordings):  # noqa: F811
    for name, recording in recordings.items():
        book = open_book(export(recording, "xlsx", tmp_path / f"{name}.xlsx"))
        columns = columns_of(recording)
        assert book.sheetnames[0] == "summary" and set(book.sheetnames) == set(columns)
        for frame in expected(recording):
            held = copy.copy(frame)
            reals = {f["name"] for f in columns[frame.name] if f["type"] == "real"}
            held.rows = {k: {n: digits(v) if n in reals else v for n, v in row.items()} for k, row in frame.rows.items()}
            found = read_sheet(book, frame.name, columns[frame.name])
            for key in ("host", "instance"):
                found[key] = [cell(text or "") for text in found[key]]
            compare(held, found)


def test_it_is_made_for_people(tmp_path, recordings):  # noqa: F811
    path = export(recordings["gpus"], "xlsx", tmp_path / "g.xlsx")
    book = reader("openpyxl").load_workbook(path)
    for sheet in book:
        assert sheet.freeze_panes == "A2" and sheet.auto_filter.ref, sheet.title
        assert sheet["A1"].font.bold
    process = book["process"]
    heading = {cell.value: cell.column for cell in process[1]}
    assert process.cell(2, heading["proc.mem.rss [bytes]"]).number_format == "#,##0"
    assert process.cell(2, heading["pid"]).number_format == "General"
    assert process.cell(2, heading["time"]).is_date
    assert process.cell(2, heading["time"]).value == datetime(2023, 11, 14, 22, 13, 20)
    assert process.column_dimensions["A"].width > 20
    gpu = book["gpu"]
    (ratio,) = [cell.column for cell in gpu[1] if cell.value == "gpu.util [ratio]"]
    assert gpu.cell(2, ratio).number_format == "0.0%" and gpu.cell(2, ratio).value <= 1
    names = {row[1].value: row[2] for row in book["summary"].iter_rows(min_row=2)}
    assert names["wall_s"].value == 4 and names["wall_s"].number_format == "General"
    assert names["memory.peak_rss_bytes"].number_format == "#,##0"
    assert book["summary"].column_dimensions["B"].width > max(map(len, names))  # nothing is hidden by its neighbour


def test_rows_that_do_not_fit_go_on_in_another_sheet(tmp_path):
    """A sheet has 1,048,576 of them. Counted in the file itself: openpyxl would take half a minute for the first."""
    rows = 1048575 + 3
    columns = [Column("n", "integer", list(range(rows))), Column("of", "text", [None] * (rows - 1) + ["the last"])]
    path = feed("xlsx", columns, tmp_path / "x.xlsx")
    with zipfile.ZipFile(path) as file:
        first = file.read("xl/worksheets/sheet1.xml")
    assert first.count(b"<row ") == 1048576 and b'<c r="A1048576"><v>1048574</v></c>' in first[-2000:]
    assert b'<autoFilter ref="A1:B1048576"/>' in first[-2000:]
    book = open_book(path)
    assert book.sheetnames == ["fed", "fed (2)"]
    assert list(book["fed (2)"].iter_rows(values_only=True)) == [
        ("n", "of"), (1048575, None), (1048576, None), (1048577, "the last")]


def test_texts_that_are_too_long(tmp_path):
    words = "w" * 40000
    done = run("run", "-q", "-o", tmp_path / "words.tacho", "--", "sh", "-c", "sleep 0.3", words)
    assert done.returncode == 0, done.stderr
    book = open_book(export(tmp_path / "words.tacho", "xlsx", tmp_path / "words.xlsx"))
    longest = max((len(v) for sheet in book for row in sheet.iter_rows(values_only=True) for v in row if isinstance(v, str)))
    assert longest <= 32767
    meta = [row for row in book["meta"].iter_rows(min_row=2, values_only=True) if row[2] == "command"]
    assert len(meta) == 1 and meta[0][3].startswith("sh") and meta[0][3].endswith("ww…") and len(meta[0][3]) == 32767


def test_random_frames(tmp_path):
    lab_file("xlsx", tmp_path / "lab.xlsx")
    for seed in range(20):
        book = open_book(lab_random("xlsx", seed, tmp_path / f"{seed}.xlsx"))
        for sheet in book:
            for row in sheet.iter_rows(values_only=True):
                assert row is not None


def test_a_file_that_cannot_grow_is_no_file(tmp_path, recordings):  # noqa: F811
    out = tmp_path / "small.xlsx"
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 40; exec "$@"', "sh", TACHO, "export", "--to", "xlsx", "-o", out, recordings["run"]],
        capture_output=True,
    )
    need_export(done)
    assert done.returncode == 1 and b"small.xlsx" in done.stderr, done.stderr
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert list(tmp_path.iterdir()) == []
