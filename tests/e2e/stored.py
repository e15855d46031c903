"""What the tests of SQLite, HDF5 and xlsx share: the frames made by hand (tests/unit/export_lab.h) in a file, and each of
their values against what is read back."""

import functools
import json
import math
import subprocess

import pytest

from exported import columns_of, compare, expected, is_missing, tool


@functools.lru_cache(maxsize=None)
def lab():
    """Table -> (its fields, columns by name)."""
    said = json.loads(subprocess.run([tool("export_tool"), "expected"], check=True, capture_output=True).stdout)
    return {
        table["name"]: (
            table["fields"],
            {f["name"]: [row[i] for row in table["rows"]] for i, f in enumerate(table["fields"])},
        )
        for table in said
    }


def lab_file(format, path, *options):
    done = subprocess.run([tool("export_tool"), format, "mixed", path, *options], capture_output=True, text=True)
    if done.returncode == 2:
        pytest.skip(f"{format} is not in this build")
    assert done.returncode == 0, done.stderr
    return path


def lab_random(format, seed, path):
    done = subprocess.run([tool("export_tool"), "fuzz", format, str(seed), path], capture_output=True, text=True)
    assert done.returncode == 0, (seed, done.stderr)
    return path


def same_values(found, truth, what):
    """Exact: integers as integers; a text that is empty is not one that is missing."""
    assert len(found) == len(truth), f"{what}: {len(found)} rows, not {len(truth)}"
    for row, (a, b) in enumerate(zip(found, truth)):
        a = None if is_missing(a) else a
        b = None if is_missing(b) else b
        if isinstance(a, float) and isinstance(b, (int, float)) and not isinstance(b, bool):
            assert a == float(b) or math.isclose(a, b, rel_tol=0, abs_tol=0), f"{what}: row {row} is {a!r}, not {b!r}"
        else:
            assert a == b and (a is None) == (b is None), f"{what}: row {row} is {a!r}, not {b!r}"


def check_recording(recording, tables):
    """Table -> columns as they were read back: every table is there with every column, and what show says is in it."""
    columns = columns_of(recording)
    assert set(columns) <= set(tables)
    for name, fields in columns.items():
        assert [f["name"] for f in fields] == list(tables[name]), name
    for frame in expected(recording):
        compare(frame, tables[frame.name])


__all__ = ["check_recording", "lab", "lab_file", "lab_random", "same_values"]
