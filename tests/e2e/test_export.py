"""`tacho export`: files, places, failures, and CSV and JSON as Python, pandas, DuckDB and jq read them.

Other formats have tests of their own; exported.py has the recordings and the comparison.
"""

import csv
import io
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from exported import bytes_of, cell, compare, expected, export, make, need_export, reader, recordings, tool  # noqa: F401
from recorder import TACHO, need_mounts, run, until

UNIT = re.compile(r" \[[^]]*\]$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$")


def exported(*words, **kwargs):
    return need_export(run("export", *words, **kwargs))


def value_of(text, type):
    """Python's reader does not tell an empty text from a missing one."""
    if text == "" and type != "text":
        return None
    return {"integer": int, "real": float, "flag": lambda t: t == "true"}.get(type, cell)(text)


def types_of(recording):
    """Table -> column -> type, as the JSON has them."""
    done = exported("--to", "json", "-o", "-", recording)
    assert done.returncode == 0, done.stderr
    tables = json.loads(done.stdout)["tables"]
    return {name: {f["name"]: f["type"] for f in table["fields"]} for name, table in tables.items()}


def read_csv(path, types):
    """Columns by name, without units."""
    with open(path, newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file, strict=True)
    names = [UNIT.sub("", name) for name in head]
    assert all(len(row) == len(names) for row in rows)
    return {name: [value_of(row[i], types[name]) for row in rows] for i, name in enumerate(names)}


def left_behind(folder):
    """Everything below a folder but recordings."""
    return sorted(str(p.relative_to(folder)) for p in Path(folder).rglob("*") if p.suffix != ".tacho")


# ---- values ----


def test_csv_has_what_show_says(tmp_path, recordings):
    for name, recording in recordings.items():
        folder = export(recording, "csv", tmp_path / name)
        types = types_of(recording)
        assert sorted(types) == sorted(p.stem for p in folder.iterdir())
        for frame in expected(recording):
            columns = read_csv(folder / f"{frame.name}.csv", types[frame.name])
            compare(frame, columns)
            assert all(TIME.match(t) for t in columns["time"] if t is not None)


def test_json_has_what_show_says(tmp_path, recordings):
    for name, recording in recordings.items():
        tables = json.loads(export(recording, "json", tmp_path / f"{name}.json").read_bytes())["tables"]
        lines = export(recording, "jsonl", tmp_path / name)
        for frame in expected(recording):
            table = tables[frame.name]
            names = [field["name"] for field in table["fields"]]
            compare(frame, {column: [row[i] for row in table["rows"]] for i, column in enumerate(names)})
        for table_name, table in tables.items():
            rows = [json.loads(line) for line in (lines / f"{table_name}.jsonl").read_text().splitlines()]
            names = [field["name"] for field in table["fields"]]
            assert rows == [dict(zip(names, row)) for row in table["rows"]]


def test_64_bits_are_exact(tmp_path, recordings):
    """Beyond 2^53, where doubles have gaps."""
    folder = export(recordings["hostile"], "csv,jsonl", f"{tmp_path}/out/", "-d", "process")
    columns = read_csv(folder / "process.csv", types_of(recordings["hostile"])["process"])
    lines = [json.loads(line) for line in (folder / "process.jsonl").read_text().splitlines()]
    for read, written in ((columns["proc.io.read_chars"], columns["proc.io.write_chars"]),
                          ([r["proc.io.read_chars"] for r in lines], [r["proc.io.write_chars"] for r in lines])):
        last = max(i for i, value in enumerate(columns["elapsed"]) if value < 2)
        second = [v for v, t in zip(read, columns["elapsed"]) if 1 < t < 2]
        assert second == [2**60 + 1 + 3 * (i + 1) if (1 + i) % 4 else None for i in range(17)]
        assert written[last] == 2**63 - 1 - 100 + 1
    grown = [(int(p) - 1000, v) for p, v in zip(columns["pid"], columns["proc.io.read_chars.rate"]) if v is not None]
    assert len(grown) > 50 and all(v == pytest.approx(3 * (i + 1), rel=1e-6) for i, v in grown)


def test_names_of_any_bytes_come_back(tmp_path, recordings):
    folder = export(recordings["hostile"], "csv,jsonl", f"{tmp_path}/out/", "-d", "process")
    names = set(read_csv(folder / "process.csv", types_of(recordings["hostile"])["process"])["instance"])
    lines = {json.loads(line)["instance"] for line in (folder / "process.jsonl").read_text().splitlines()}
    assert names == lines
    for name in (b"\xff\xfe not utf8", b"\\xff", b"\\\xff", b"\\", b"two\nlines", b"\x01\x1b[31mred", b'a,b"c"', b"\xe2\x82"):
        assert name in {bytes_of(text) for text in names}


def test_pandas_reads_the_csv(tmp_path, recordings):
    pandas = reader("pandas")
    folder = export(recordings["hostile"], "csv", f"{tmp_path}/out/", "-d", "process")
    frame = pandas.read_csv(folder / "process.csv", parse_dates=["time"], keep_default_na=False, na_values=[""],
                            dtype={"proc.io.read_chars [bytes]": "Int64"})
    assert str(frame["time"].dt.tz) == "UTC"
    assert frame["time"].iloc[-1].nanosecond == 6
    assert frame["proc.io.read_chars [bytes]"].max() == 2**60 + 1 + 6 * 3 * 17
    assert "NULL" in set(frame["instance"]) and " spaces " in set(frame["instance"])


def test_duckdb_reads_the_csv_and_the_lines(tmp_path, recordings):
    duckdb = reader("duckdb")
    folder = export(recordings["long"], "csv,jsonl", tmp_path / "out")
    frame = next(f for f in expected(recordings["long"]) if f.name == "process")
    truth = sum(row.get("proc.mem.rss") or 0 for row in frame.rows.values())
    for path in (folder / "process.csv", folder / "process.jsonl"):
        column = "proc.mem.rss [bytes]" if path.suffix == ".csv" else "proc.mem.rss"
        table = f"read_csv('{path}', sample_size=-1)" if path.suffix == ".csv" else f"read_json('{path}')"
        rows, total = duckdb.sql(f'select count(*), sum("{column}") from {table}').fetchall()[0]
        assert (rows, total) == (len(frame.rows), truth)
        assert "TIMESTAMP" in str(duckdb.sql(f"select typeof(time) from {table} limit 1").fetchall()[0][0])


def test_jq_reads_the_json(tmp_path, recordings):
    if not shutil.which("jq"):
        pytest.skip("jq is not installed")
    path = export(recordings["run"], "json", tmp_path / "run.json")
    question = '.tables.process | [(.fields | map(.name) | index("pid")), (.rows | length)]'
    at, rows = json.loads(subprocess.check_output(["jq", "-c", question, path]))
    table = json.loads(path.read_bytes())["tables"]["process"]
    assert (table["fields"][at]["name"], rows) == ("pid", len(table["rows"]))


# ---- forms ----


def test_long_has_a_line_for_each_value(tmp_path, recordings):
    plain = export(recordings["gpus"], "csv", tmp_path / "plain")
    tidy = export(recordings["gpus"], "csv", tmp_path / "tidy", "--long")
    types = types_of(recordings["gpus"])
    for name in ("process", "gpu", "cpu", "perf"):
        columns = read_csv(plain / f"{name}.csv", types[name])
        metrics = [c for c in columns if "." in c]
        values = {
            (columns["time"][i], columns["instance"][i], metric): columns[metric][i]
            for metric in metrics for i in range(len(columns["time"])) if columns[metric][i] is not None
        }
        with open(tidy / f"{name}.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert {(r["time"], r["instance"], r["metric"]): value_of(r["value"], types[name][r["metric"]]) for r in rows} == values
        assert len(rows) == len(values)
    assert (plain / "processes.csv").read_bytes() == (tidy / "processes.csv").read_bytes()


def test_wide_has_a_line_for_each_tick(tmp_path, recordings):
    plain = export(recordings["nodes"], "csv", f"{tmp_path}/plain/", "-d", "gpu")
    wide = export(recordings["nodes"], "csv", f"{tmp_path}/wide/", "-d", "gpu", "--wide")
    columns = read_csv(plain / "gpu.csv", types_of(recordings["nodes"])["gpu"])
    with open(wide / "gpu.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(set(zip(columns["host"], columns["time"])))
    by_line = {(row["host"], row["time"]): row for row in rows}
    for i, host in enumerate(columns["host"]):
        row = by_line[host, columns["time"][i]]
        said = row[f"{columns['instance'][i]} gpu.memory.used [bytes]"]
        assert int(said) == columns["gpu.memory.used"][i]
    # The second node has no second GPU.
    assert {row["nvidia-1 gpu.memory.used [bytes]"] == "" for row in rows if row["host"] == "n2"} == {True}
    folded = exported("--wide", "--per", "node", "-d", "gpu", "-m", "gpu.memory.used", "-o", "-", recordings["nodes"])
    assert folded.stdout.splitlines()[0] == b"time,elapsed [s],host,gpu.memory.used [bytes]"


def test_wide_begins_a_line_with_each_tick(tmp_path):
    """Also when nobody of the last one is there any more."""
    crowd = make("crowd", tmp_path / "crowd.tacho", 300)
    done = exported("--wide", "-d", "process", "-m", "proc.mem.rss", "-o", "-", crowd)
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode(), newline="")))
    assert [float(row["elapsed [s]"]) for row in rows] == [0, 1, 2]
    known = [[name for name in row if name.endswith("[bytes]") and row[name]] for row in rows]
    assert [len(names) for names in known] == [100, 100, 100] and len(set(sum(known, []))) == 300


def test_wide_refuses_what_no_program_takes(tmp_path):
    crowd = make("crowd", tmp_path / "crowd.tacho", 20000)
    done = exported("--wide", "-d", "process", "-o", tmp_path / "wide.csv", crowd)
    assert done.returncode == 1
    assert b"--per node or --long" in done.stderr
    assert left_behind(tmp_path) == []


# ---- places ----


def test_places(tmp_path, recordings):
    job = tmp_path / "job.tacho"
    job.write_bytes(recordings["gpus"].read_bytes())
    done = exported(job)
    paths = [Path(line) for line in done.stdout.decode().splitlines()]
    assert done.returncode == 0, done.stderr
    assert {path.parent for path in paths} == {tmp_path / "job-export"}
    assert {path.suffix for path in paths} == {".csv"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in paths)
    assert sorted(path.name for path in paths) == sorted(os.listdir(tmp_path / "job-export"))
    assert exported("--to", "json", job).stdout.decode() == f"{tmp_path}/job.json\n"
    assert exported("-o", tmp_path / "x.json", job).stdout.decode() == f"{tmp_path}/x.json\n"
    assert need_export(exported("-o", tmp_path / "x.db", job)).returncode == 0
    assert (tmp_path / "x.db").read_bytes().startswith(b"SQLite format 3")
    assert exported("-o", tmp_path / "gpu.csv", "-d", "gpu", job).stdout.decode() == f"{tmp_path}/gpu.csv\n"
    assert exported("--to", "csv,json", "-d", "gpu", "-o", f"{tmp_path}/new/er/", job).returncode == 0
    assert sorted(os.listdir(tmp_path / "new/er")) == ["gpu.csv", "job.json"]


def test_standard_output(recordings):
    whole = exported("--to", "csv", "-d", "gpu", "-o", "-", recordings["gpus"])
    assert whole.returncode == 0 and whole.stdout.startswith(b"time,")
    assert json.loads(exported("--to", "json", "-o", "-", recordings["gpus"]).stdout)["tables"]["gpu"]
    done = exported("--to", "csv", "-o", "-", recordings["gpus"])
    assert done.returncode == 2 and b"--domain" in done.stderr
    with open("/dev/full", "w") as full:
        done = exported("-d", "gpu", "-o", "-", recordings["gpus"], stdout=full)
    assert done.returncode == 1 and b"standard output" in done.stderr


def test_whoever_has_seen_enough_may_go(recordings):
    shell = f"'{TACHO}' export -d process -o - '{recordings['long']}' | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", shell], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stdout.startswith(b"time,") and done.stderr == b""


@pytest.mark.parametrize("reads", ["true", "cat >/dev/full"])
def test_files_are_there_whoever_reads_their_names(tmp_path, recordings, reads):
    shell = f"'{TACHO}' export --to csv -o '{tmp_path}/out/' '{recordings['gpus']}' | {reads}"
    subprocess.run(["bash", "-c", shell], stderr=subprocess.DEVNULL)
    names = sorted(types_of(recordings["gpus"]))
    assert left_behind(tmp_path) == ["out"] + sorted(f"out/{name}.csv" for name in names)


def test_nothing_is_replaced_unless_asked(tmp_path, recordings):
    target = tmp_path / "gpu.csv"
    target.write_text("mine")
    done = exported("-d", "gpu", "-o", target, recordings["gpus"])
    assert done.returncode == 2 and b"--force" in done.stderr
    assert target.read_text() == "mine" and left_behind(tmp_path) == ["gpu.csv"]
    assert exported("-d", "gpu", "-o", target, "--force", recordings["gpus"]).returncode == 0
    assert target.read_text().startswith("time,")


def test_a_recording_is_never_replaced(tmp_path, recordings):
    job = tmp_path / "job.tacho"
    job.write_bytes(recordings["gpus"].read_bytes())
    done = exported("-d", "gpu", "-o", job, "--force", job)
    assert done.returncode == 2
    assert b"is a recording, and is not replaced" in done.stderr
    assert job.read_bytes() == recordings["gpus"].read_bytes()


@pytest.mark.parametrize("words, says", [
    (["--to", "cvs"], b"did you mean 'csv'"),
    (["--to", "sheet"], b"there are csv"),
    (["-d", "proces"], b"proces"),
    (["-m", "proc.mem.rs"], b"proc.mem.rs"),
    (["--from", "20s", "--until", "10s"], b"--until must come after --from"),
    (["--until", "soon"], b"--until: 'soon' is no time"),
    (["--until", "101%"], b"is no time"),
    (["--long", "--wide"], b"not both"),
    (["--to", "json", "--long"], b"one form"),
    (["--to", "csv", "--compression", "zstd"], b"takes --compression none"),
    (["--to", "csv", "-o", "table.csv"], b"directory"),
    (["--to", "12q"], b"neither a format nor a time"),
    (["--to", "PARQUET", "--compression", "lz4"], b"parquet takes --compression zstd,none, not 'lz4'"),
    (["-d", "process", "-m", "gpu.memory.used"], b"no table is left"),
    (["-d", "gpu", "--per", "group"], b"gpu is not of processes"),
    (["-d", "gpu", "-o", "/dev/null"], b"is no regular file"),
    (["-d", "process,group", "--per", "node"], b"no table group per node"),
    (["-m", "cpu.busy", "--raw"], b"--raw has none that are computed"),
    (["-o", "job.txt"], b"job.txt/"),
    (["--to", "parquet", "-o", "job.csv"], b"job.csv/"),
])
def test_questions_that_make_no_sense(tmp_path, recordings, words, says):
    done = exported(*words, recordings["gpus"], cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert says in done.stderr
    assert left_behind(tmp_path) == []


def test_ranges(recordings):
    def elapsed(*words):
        done = exported("-d", "process", "-m", "proc.mem.rss", "-o", "-", *words, recordings["long"])
        assert done.returncode == 0, done.stderr
        return sorted({float(row["elapsed [s]"]) for row in csv.DictReader(io.StringIO(done.stdout.decode(), newline=""))})

    everything = elapsed()
    part = elapsed("--from", "5s", "--until", "10s")
    assert part == [t for t in everything if 5 <= t <= 10] and 3 < len(part) < len(everything)
    assert elapsed("--to", "csv", "--from", "5s", "--to", "10s") == part
    # As other commands take them: times in parts, and shares of the whole.
    assert elapsed("--from", "0m5s", "--until", "10") == part
    half = elapsed("--until", "50%")
    assert half == [time for time in elapsed() if time <= half[-1]] and len(half) < len(elapsed())
    every = elapsed("--every", "5s")
    assert 5 <= len(every) <= 8


def test_metrics_tell_of_every_table(recordings):
    """Also when none but they are asked for."""
    whole = exported("--to", "json", "-o", "-", recordings["gpus"])
    tables = json.loads(whole.stdout)["tables"]
    columns = {(name, field["name"]) for name, table in tables.items() for field in table["fields"] if "kind" in field}
    alone = exported("--to", "json", "-d", "metrics", "-o", "-", recordings["gpus"])
    assert json.loads(alone.stdout)["tables"] == {"metrics": tables["metrics"]}
    assert {(row[0], row[1]) for row in tables["metrics"]["rows"]} >= columns and columns
    few = exported("-d", "metrics", "-m", "gpu.memory", "-o", "-", recordings["gpus"])
    assert {row["frame"] for row in csv.DictReader(io.StringIO(few.stdout.decode(), newline=""))} == {"gpu"}


def test_formats_are_listed():
    done = exported("--formats")
    assert done.returncode == 0
    assert {"csv", "json", "jsonl"} <= {line.split()[0] for line in done.stdout.decode().splitlines() if line[0] != " "}


def test_what_needs_no_recording_says_so(tmp_path):
    done = exported(cwd=tmp_path)
    assert done.returncode == 2 and b"no recording" in done.stderr


# ---- failures ----


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))


@pytest.mark.parametrize("format", ["csv", "json", "csv,jsonl"])
def test_a_failure_half_way_leaves_nothing(tmp_path, recordings, format):
    before = tmp_path / "out"
    done = exported("--to", format, "-o", f"{tmp_path}/out/", recordings["long"], preexec_fn=limit_files)
    assert done.returncode == 1, done.stdout
    assert b"cannot write" in done.stderr and b"file size limit" in done.stderr
    assert left_behind(tmp_path) == [] and not before.exists()


def test_every_format_survives_a_limit(tmp_path, recordings):
    """Whatever a library does about a file that may not grow: nothing half made gets a name."""
    names = [line.split()[0] for line in exported("--formats").stdout.decode().splitlines() if line[0] != " "]
    for name in names:
        folder = tmp_path / name
        done = run("export", "--to", name, "-o", f"{folder}/", recordings["long"], preexec_fn=limit_files)
        if done.returncode == 0:
            assert all(path.stat().st_size <= 20000 for path in folder.iterdir()), name
        else:
            assert done.returncode in (1, 2), (name, done.stderr)
            assert left_behind(tmp_path) == [], name
        shutil.rmtree(folder, ignore_errors=True)


def test_a_full_disk_leaves_nothing(tmp_path, recordings):
    need_mounts()
    script = (
        f"mkdir '{tmp_path}/small' && mount -t tmpfs -o size=100k tmpfs '{tmp_path}/small' && "
        f"'{TACHO}' export --to csv,json -o '{tmp_path}/small/out' '{recordings['long']}'; status=$?; "
        f"find '{tmp_path}/small' -mindepth 1; exit $status"
    )
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    need_export(done)
    assert done.returncode == 1 and b"No space left" in done.stderr, done.stderr
    assert done.stdout == b""


def start_long_export(tmp_path, seconds):
    """An export that writes into tmp_path/out, or has ended already."""
    made, out = tmp_path / "long.tacho", tmp_path / "out"
    subprocess.run([tool("query_tool"), "long", made, str(seconds), "2", "40"], check=True)
    process = subprocess.Popen([TACHO, "export", "--to", "csv,json", "-o", f"{out}/", made],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: process.poll() is not None or (out.exists() and any(out.glob(".tacho-stage-*/*.csv"))), "it writes")
    return process, out


def test_a_signal_leaves_nothing(tmp_path):
    process, _ = start_long_export(tmp_path, 600)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    if process.returncode == 127:
        pytest.skip("tacho-export was not built")
    assert process.returncode in (-signal.SIGTERM, 0), errors
    if process.returncode:
        assert left_behind(tmp_path) == []


def test_what_a_killed_export_left_is_removed(tmp_path, recordings):
    process, out = start_long_export(tmp_path, 6000)
    process.send_signal(signal.SIGSTOP)
    stage, = out.glob(".tacho-*")
    assert stage.stat().st_mode & 0o7777 == 0o700
    # While it lives, even stopped, its stage stays; when it was killed, the next export removes it.
    exported("--to", "csv", "-d", "node", "-o", f"{out}/", recordings["run"])
    assert stage.exists() and left_behind(out).count("node.csv") == 1
    process.kill()
    process.communicate()
    exported("--force", "--to", "csv", "-d", "node", "-o", f"{out}/", recordings["run"])
    assert left_behind(out) == ["node.csv"]


def test_exporters_at_once_do_not_disturb_each_other(tmp_path, recordings):
    alone = export(recordings["long"], "csv,json", tmp_path / "alone")
    together = [
        subprocess.Popen([TACHO, "export", "--force", "--to", "csv,json", "-o", tmp_path / "together/", recordings["long"]],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in together:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    assert left_behind(tmp_path / "together") == left_behind(tmp_path / "alone")
    for path in alone.iterdir():
        assert path.read_bytes() == (tmp_path / "together" / path.name).read_bytes()


def test_damage_is_told(tmp_path, recordings):
    done = exported("-d", "tree", "-o", "-", recordings["long"])
    assert done.returncode == 0 and b"damaged" not in done.stderr
    part = exported("-d", "tree", "-o", "-", recordings["damaged"])
    assert part.returncode == 0 and b"lost in 1 damaged place" in part.stderr
    assert 10 < part.stdout.count(b"\n") < done.stdout.count(b"\n")
    data = recordings["long"].read_bytes()
    cut = tmp_path / "cut.tacho"
    cut.write_bytes(data[: len(data) * 2 // 3])
    assert b"has no end" in exported("-d", "tree", "-o", "-", cut).stderr


def test_what_is_left_out_is_told(tmp_path, recordings):
    (tmp_path / "a.tacho").write_bytes(recordings["gpus"].read_bytes())
    assert exported("-d", "gpu", "-o", "-", tmp_path).stderr == b""
    for name in ("b.tacho", "c.tacho"):
        (tmp_path / name).write_text("no recording")
        done = exported("-d", "gpu", "-o", "-", tmp_path)
        assert done.returncode == 0 and b"b.tacho" in done.stderr and b"left out" in done.stderr
    assert b"and 1 more" in done.stderr


def test_tables_without_rows_are_told(recordings):
    beyond = exported("-d", "gpu", "--from", "1h", "-o", "-", recordings["gpus"])
    assert beyond.returncode == 0 and b"nothing was recorded in this part of the run" in beyond.stderr
    assert len(beyond.stdout.splitlines()) == 1
    alone = exported("-d", "process", "--per", "group", "-o", "-", recordings["run"])
    assert alone.returncode == 0 and b"no groups were recorded" in alone.stderr
    assert exported("-d", "meta", "--from", "1h", "-o", "-", recordings["gpus"]).stderr == b""


# ---- many ----


def test_many_processes_do_not_take_much_memory(tmp_path):
    """100,000 in all; a hundred at a time."""
    crowd = make("crowd", tmp_path / "crowd.tacho", 100000)
    need_export(run("export", "--formats"))
    script = f"ulimit -v 400000; exec '{TACHO}' export --to csv,jsonl -o '{tmp_path}/out/' -d process,processes -m proc.mem,proc.cpu.time '{crowd}'"
    done = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "out" / "processes.csv", newline="") as file:
        assert sum(1 for _ in csv.reader(file)) == 100001
    with open(tmp_path / "out" / "process.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 100000
    assert {int(row["process"]) for row in rows} == set(range(100000))
