"""A hundred thousand processes, in every format: each is read back whole by its reader."""

import csv
import json
import pickle
import re
import shutil
import sqlite3
import subprocess
import zipfile
from contextlib import closing
from xml.parsers.expat import ParserCreate

import pytest

from exported import export, make, need_export, reader, tool
from recorder import TACHO, run

PROCESSES, AT_ONCE, PAGE = 100000, 100, 4096
RSS = PAGE * PROCESSES * (PROCESSES + 1) // 2  # the n-th has n pages
MEMORY_MOST = 600000  # KiB of addresses, for all formats at once
METRIC = "proc.mem.rss"
# Files of their own making, of metrics of their own choice.
OF_OTHERS = ("oasis-csv", "tyche-csv", "perfmon-json", "perfetto", "snakemake", "runlog", "tensorboard")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    tool("export_recording")
    return make("crowd", tmp_path_factory.mktemp("crowd") / "crowd.tacho", PROCESSES)


def formats():
    """Those that are in this build."""
    lines = need_export(run("export", "--formats")).stdout.decode().splitlines()
    missing = {name.split()[0] for name, more in zip(lines, [*lines[1:], ""]) if more.startswith(" ")}
    return [line.split()[0] for line in lines if line[0] != " " and line.split()[0] not in missing]


@pytest.fixture(scope="module")
def exported(crowd):
    """All formats of tables from one pass, in memory that does not hold the recording: the directory, and their names."""
    folder = crowd.parent / "tables"
    names = [name for name in formats() if name not in OF_OTHERS]
    words = [TACHO, "export", "--to", ",".join(names), "-d", "process", "-m", METRIC, "-o", f"{folder}/", crowd]
    limited = ["sh", "-c", f'ulimit -v {MEMORY_MOST}; exec "$@"', "sh", *words]
    done = subprocess.run(limited, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return folder, names


def of_arrow(table):
    return table.column("process").to_pylist(), table.column(METRIC).to_pylist()


def read_csv(folder):
    with open(folder / "process.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return [int(row["process"]) for row in rows], [int(row[f"{METRIC} [bytes]"]) for row in rows]


def read_json(folder):
    table = json.loads((folder / "crowd.json").read_bytes())["tables"]["process"]
    columns = dict(zip((field["name"] for field in table["fields"]), zip(*table["rows"])))
    return columns["process"], columns[METRIC]


def read_jsonl(folder):
    rows = [json.loads(line) for line in (folder / "process.jsonl").read_bytes().splitlines()]
    return [row["process"] for row in rows], [row[METRIC] for row in rows]


def read_parquet(folder):
    return of_arrow(reader("pyarrow.parquet").read_table(folder / "process.parquet"))


def read_arrow(folder):
    return of_arrow(reader("pyarrow.ipc").open_file(folder / "process.arrow").read_all())


def read_feather(folder):
    return of_arrow(reader("pyarrow.feather").read_table(folder / "process.feather"))


def read_arrow_stream(folder):
    return of_arrow(reader("pyarrow.ipc").open_stream(folder / "process.arrows").read_all())


def read_orc(folder):
    return of_arrow(reader("pyarrow.orc").read_table(folder / "process.orc"))


def read_hdf5(folder):
    with reader("h5py").File(folder / "crowd.h5", "r") as file:
        table = file["process/n1/table"][:]
    return table["process"].tolist(), table[METRIC].tolist()


def read_sqlite(folder):
    with closing(sqlite3.connect(folder / "crowd.sqlite")) as base:
        return list(zip(*base.execute(f'SELECT process, "{METRIC}" FROM process')))


def read_xlsx(folder):
    """As XML: openpyxl, which test_xlsx.py has, takes ten seconds for so many cells."""
    with zipfile.ZipFile(folder / "crowd.xlsx") as file:
        sheet = file.read("xl/worksheets/sheet1.xml")
    ParserCreate().Parse(sheet, True)
    assert b"proc.mem.rss [bytes]" in sheet[:5000]
    return [[int(n) for n in re.findall(rb'<c r="%c\d+"[^>]*><v>(\d+)</v>' % column, sheet)] for column in b"FG"]


def read_pickle(folder):
    columns = pickle.loads((folder / "process.pickle").read_bytes())
    return columns["process"], columns[METRIC]


def read_openmetrics(folder):
    """By the line; promtool says whether it takes all of them."""
    path = folder / "crowd.openmetrics"
    samples = [line for line in path.read_text().splitlines() if line[0] != "#"]
    program = shutil.which("promtool")
    if program:
        done = subprocess.run([program, "tsdb", "create-blocks-from", "openmetrics", path, folder / "blocks"], capture_output=True)
        assert done.returncode == 0 and b" 100000 " in done.stdout, done.stdout + done.stderr
    return [int(line.split('process="')[1].split('"')[0]) for line in samples], [int(line.split()[-2]) for line in samples]


READERS = {"csv": read_csv, "json": read_json, "jsonl": read_jsonl, "parquet": read_parquet, "arrow": read_arrow,
           "feather": read_feather, "arrow-stream": read_arrow_stream, "orc": read_orc, "hdf5": read_hdf5,
           "sqlite": read_sqlite, "xlsx": read_xlsx, "pickle": read_pickle, "openmetrics": read_openmetrics}


def test_no_format_is_forgotten(exported):
    _, names = exported
    assert set(names) <= set(READERS)


@pytest.mark.parametrize("format", READERS)
def test_everyone_comes_back(exported, format):
    folder, names = exported
    if format not in names:
        pytest.skip(f"{format} is not in this build")
    processes, memory = READERS[format](folder)
    assert len(processes) == PROCESSES and set(processes) == set(range(PROCESSES))
    assert sum(memory) == RSS


def test_files_of_others(tmp_path, crowd):
    names = [name for name in OF_OTHERS if name in formats()]
    folder = export(crowd, ",".join(names), f"{tmp_path}/out/")
    with open(folder / "resource_monitor.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == PROCESSES and sum(int(row["rss_kb"]) for row in rows) * 1024 == RSS
    node = json.loads((folder / "cpu_metrics.json").read_bytes())["n1"]
    assert len(node["time_stamps"]) == PROCESSES // AT_ONCE and sum(node["memory_info"]["rss"]) == RSS
    assert len(node["parent_proc_md"]) + len(node["child_proc_md"]) == PROCESSES
    assert (folder / "cpu_metrics.csv").read_text().startswith("timestamp,")
    assert (folder / "crowd.pftrace").stat().st_size > PROCESSES
    assert (folder / "crowd.tfevents").stat().st_size > 1000
    assert len((folder / "crowd.benchmark.tsv").read_text().splitlines()) == 2
    assert json.loads((folder / "crowd.runlog.jsonl").read_text().splitlines()[0])["event"] == "start"
