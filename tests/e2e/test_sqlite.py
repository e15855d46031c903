"""SQLite, read by Python's own module and by SQLite's shell."""

import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from datetime import datetime, timezone

import pytest

from exported import export, need_export, recordings  # noqa: F401 (a fixture)
from feed import Column, feed
from recorder import TACHO, run
from stored import check_recording, lab, lab_file, lab_random, same_values


def open_base(path):
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert base.execute("PRAGMA foreign_key_check").fetchall() == []
    return closing(base)


def names(base, kind):
    return [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = ? ORDER BY name", (kind,))]


def columns(base, table):
    cursor = base.execute(f'SELECT * FROM "{table}" ORDER BY rowid')
    rows = cursor.fetchall()
    return {d[0]: [row[i] for row in rows] for i, d in enumerate(cursor.description)}


def test_every_value_of_the_lab(tmp_path):
    with open_base(lab_file("sqlite", tmp_path / "lab.sqlite")) as base:
        for name, (fields, truth) in lab().items():
            found = columns(base, name)
            assert list(found) == [f["name"] for f in fields]
            for column in found:
                same_values(found[column], truth[column], f"{name}.{column}")
        kinds = {t for (t,) in base.execute('SELECT DISTINCT typeof("lab.bytes") FROM mixed')}
        assert kinds == {"integer", "null"}
        assert base.execute('SELECT typeof("lab.level"), typeof("lab.state") FROM mixed WHERE rowid = 3').fetchone() == (
            "real",
            "text",
        )


def test_columns_are_described(tmp_path):
    with open_base(lab_file("sqlite", tmp_path / "lab.sqlite")) as base:
        said = {
            row[0]: row[1:]
            for row in base.execute("SELECT name, type, unit, kind, scale, help FROM tacho_columns WHERE table_name = 'mixed'")
        }
        assert said["lab.bytes"] == ("integer", "bytes", "counter", 1, "A counter of bytes.")
        assert said["lab.bytes.rate"][1] == "bytes/s"
        assert said["lab.raw"][1] == "0.01 s" and said["lab.raw"][3] == 0.01
        assert said["host"] == ("text", "", None, 1, "On which node.")
        assert base.execute("SELECT domain, help FROM tacho_tables WHERE name = 'properties'").fetchone() == (
            None,
            "Not of time.",
        )


def test_every_recording(tmp_path, recordings):  # noqa: F811
    for name, recording in recordings.items():
        path = export(recording, "sqlite", tmp_path / f"{name}.sqlite")
        with open_base(path) as base:
            check_recording(recording, {table: columns(base, table) for table in names(base, "table")})
            for view in names(base, "view"):
                base.execute(f'SELECT * FROM "{view}"').fetchall()


def test_views_answer_what_they_are_called(tmp_path, recordings):  # noqa: F811
    path = export(recordings["run"], "sqlite", tmp_path / "run.sqlite")
    with open_base(path) as base:
        ((wall, code, cpu),) = base.execute('SELECT wall_s, "exit.code", "cpu.total_s" FROM v_run').fetchall()
        assert wall > 0 and code == 0 and cpu > 0
        top = base.execute("SELECT name, cpu, memory_peak FROM v_top_processes").fetchall()
        assert [row[1] for row in top] == sorted((row[1] for row in top), reverse=True)
        assert {"gzip", "sh"} <= {row[0] for row in top}
        shares = base.execute("SELECT name, processes, share FROM v_cpu_by_process").fetchall()
        assert abs(sum(row[2] or 0 for row in shares) - 1) < 1e-9
        named = dict(base.execute("SELECT name, count(*) FROM processes GROUP BY name"))
        assert {name: count for name, count, _ in shares} == named
        peak = base.execute("SELECT max(ifnull(rss_peak, 0), ifnull(hwm, 0)) FROM v_peak_memory").fetchall()
        assert peak == sorted(peak, reverse=True) and peak[0][0] > 0
        mean, most = base.execute('SELECT "mean of proc.mem.rss", "max of proc.mem.rss" FROM v_process').fetchone()
        assert 0 < mean <= most
        (start,) = base.execute("SELECT min(time) FROM node").fetchone()
        assert abs(start / 1e9 - time.time()) < 86400
        assert datetime.fromtimestamp(start / 1e9, timezone.utc)


def test_what_is_unknown_is_null(tmp_path, recordings):  # noqa: F811
    path = export(recordings["gpus"], "sqlite", tmp_path / "g.sqlite")
    with open_base(path) as base:
        assert base.execute("SELECT count(*) FROM v_unknown WHERE name = 'cpu.user_s'").fetchone()[0] == 1
        assert base.execute("SELECT count(*) FROM v_missing_metrics WHERE frame = 'perf'").fetchone()[0] == 2


def test_some_tables_only(tmp_path, recordings):  # noqa: F811
    path = export(recordings["run"], "sqlite", tmp_path / "cpu.sqlite", "--domain", "cpu")
    with open_base(path) as base:
        assert set(names(base, "table")) == {"tacho_tables", "tacho_columns", "cpu"}
        assert names(base, "view") == ["v_cpu"]


def test_keys_are_used(tmp_path, recordings):  # noqa: F811
    with open_base(export(recordings["run"], "sqlite", tmp_path / "run.sqlite")) as base:
        plan = base.execute("EXPLAIN QUERY PLAN SELECT * FROM process WHERE process = 1 ORDER BY time").fetchall()
        assert len(plan) == 1 and "USING INDEX key of process (process=?)" in plan[0][3]
        plan = base.execute("EXPLAIN QUERY PLAN SELECT * FROM processes WHERE process = 1").fetchall()
        assert "USING INDEX key of processes" in plan[0][3]


def keys(base):
    """Table -> the columns of its key, which no two rows have alike."""
    found = {}
    for table in names(base, "table"):
        for _, index, unique, origin, _ in base.execute(f'PRAGMA index_list("{table}")'):
            if origin == "c":
                assert unique, f"{index} is no key"
                found[table] = [column for _, _, column in base.execute(f'PRAGMA index_info("{index}")')]
    return found


def test_keys_are_keys(tmp_path, recordings):  # noqa: F811
    with open_base(export(recordings["nodes"], "sqlite", tmp_path / "nodes.sqlite")) as base:
        found = keys(base)
        assert found["process"] == ["process", "time", "instance"] and found["processes"] == ["process"]
        assert found["gpu"] == ["host", "instance", "time"] and found["metrics"] == ["frame", "name"]
        plan = base.execute("EXPLAIN QUERY PLAN SELECT * FROM gpu WHERE host = 'n1' AND instance = 'nvidia-0' AND time > 0")
        assert "USING INDEX key of gpu (host=? AND instance=? AND time>?)" in plan.fetchall()[0][3]
    with open_base(export(recordings["nodes"], "sqlite", tmp_path / "per.sqlite", "--per", "node")) as base:
        assert keys(base)["gpu"] == ["host", "time"]


def test_two_of_one_name_are_both_there(tmp_path):
    """Then it is no key, and nothing is lost."""
    path = feed("sqlite", [Column("time", "time", [1, 1, 2]), Column("host", "text", ["a"] * 3)], tmp_path / "x.sqlite")
    with open_base(path) as base:
        assert columns(base, "fed")["time"] == [1, 1, 2]
        assert [row[2] for row in base.execute('PRAGMA index_list("fed")')] == [0]


def test_random_frames(tmp_path):
    lab_file("sqlite", tmp_path / "lab.sqlite")
    for seed in range(20):
        with open_base(lab_random("sqlite", seed, tmp_path / f"{seed}.sqlite")) as base:
            assert names(base, "table")


def test_the_shell_reads_it(tmp_path, recordings):  # noqa: F811
    shell = shutil.which("sqlite3")
    if not shell:
        pytest.skip("sqlite3 is not installed")
    path = export(recordings["hostile"], "sqlite", tmp_path / "h.sqlite")
    done = subprocess.run([shell, "-readonly", path, "SELECT count(*) FROM process"], capture_output=True, text=True)
    assert done.returncode == 0 and int(done.stdout) > 0, done.stderr


def test_a_file_that_cannot_grow_is_no_file(tmp_path, recordings):  # noqa: F811
    out = tmp_path / "small.sqlite"
    need_export(run("export", "--formats"))
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 40; exec "$@"', "sh", TACHO, "export", "--to", "sqlite", "-o", out]
        + [recordings["run"]],
        capture_output=True,
    )
    need_export(done)
    assert done.returncode == 1 and b"small.sqlite" in done.stderr
    assert list(tmp_path.iterdir()) == []
