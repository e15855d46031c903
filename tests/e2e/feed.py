"""Frames made up in Python, pushed through an exporter by export_feed (tests/unit/export_feed.c).

    frame = [Column("time", "time", [1, 2, None]), Column("name", "text", ["a", None, "b"])]
    feed("parquet", frame, tmp_path / "x.parquet", batch=2)

A column has one type: time, integer, real, text, flag; None is missing. What stands where something is missing is
rubbish on purpose.
"""

import struct
import subprocess
from dataclasses import dataclass

import pytest

from exported import tool

TYPES = ["time", "integer", "real", "text", "flag"]
LAYOUT = {"time": "q", "integer": "q", "real": "d", "text": "I", "flag": "B"}
RUBBISH = {"time": -7, "integer": 0x5A5A5A5A5A5A5A5A, "real": float("nan"), "text": 0xFFFFFFFF, "flag": 77}


@dataclass
class Column:
    name: str
    type: str
    values: list


def heading(column):
    name = column.name.encode()
    out = struct.pack("<BH", TYPES.index(column.type), len(name)) + name
    if column.type != "text":
        return out, None
    numbers = {}
    for value in column.values:
        if value is not None:
            numbers.setdefault(value, len(numbers))
    encoded = [text.encode() for text in numbers]
    parts = [part for text in encoded for part in (struct.pack("<I", len(text)), text)]
    return b"".join([out, struct.pack("<I", len(numbers)), *parts]), numbers


def cells(column, numbers, start, end):
    values = column.values[start:end]
    out = b"\0"
    if None in values:
        bits = bytearray((len(values) + 7) // 8)
        for i, value in enumerate(values):
            bits[i // 8] |= (value is not None) << i % 8
        if len(values) % 8:
            bits[-1] |= 0xFF << len(values) % 8 & 0xFF  # behind the last row: nobody's business
        out = b"\1" + bits
        values = [RUBBISH[column.type] if v is None else numbers[v] if numbers else v for v in values]
    elif numbers:
        values = [numbers[v] for v in values]
    return out + struct.pack(f"<{len(values)}{LAYOUT[column.type]}", *values)


def feed(format, columns, path, batch=8192, compression=None, table=None):
    """`batch`: rows of each, or a function that tells how many come next. `table`: the name of one that is not of time."""
    rows = len(columns[0].values)
    assert all(len(c.values) == rows for c in columns)
    headings = [heading(c) for c in columns]
    source = path.with_name(path.name + ".fed")
    with source.open("wb") as out:
        out.write(struct.pack("<I", len(columns)) + b"".join(h for h, _ in headings))
        at = 0
        while at < rows:
            end = min(rows, at + (batch() if callable(batch) else batch))
            out.write(struct.pack("<I", end - at))
            for column, (_, numbers) in zip(columns, headings):
                out.write(cells(column, numbers, at, end))
            at = end
    done = subprocess.run([tool("export_feed"), format, source, path, *([compression or "none"] if compression or table else []), *([table] if table else [])])
    source.unlink()
    if done.returncode == 77:
        pytest.skip(f"{format} is not in this build")
    assert done.returncode == 0
    return path
