"""Benchmark files of Snakemake, read as its users read them (pandas) and as its own writer would have written them."""

import ast
import datetime
import os
import re
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import hostile
from exported import ROOT, export, need_export, reader, recordings, tool  # noqa: F401
from recorder import TACHO, run

HEADER = ["s", "h:m:s", "max_rss", "max_vms", "max_uss", "max_pss", "io_in", "io_out", "mean_load", "cpu_time"]
MIB = 1 << 20


def said(*arguments):
    done = run("show", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def truth(summary):
    """The ten columns, from what show says of the run."""
    def mib(value):
        return None if value is None else value / MIB

    memory, io, wall, cpu = summary["memory"], summary["io"], summary["wall_s"], summary["cpu"]["total_s"]
    rss, hwm = memory["peak_rss_bytes"], memory["max_process_hwm_bytes"]
    most = hwm if hwm is not None and (rss is None or hwm > 1.05 * rss) else rss
    return {"s": wall, "h:m:s": hours(wall), "max_rss": mib(most), "max_vms": mib(memory["peak_vms_bytes"]),
            "max_uss": mib(memory["peak_uss_bytes"]), "max_pss": mib(memory["peak_pss_bytes"]), "io_in": mib(io["read_bytes"]),
            "io_out": mib(io["write_bytes"]), "mean_load": None if cpu is None or not wall else 100 * cpu / wall, "cpu_time": cpu}


def hours(seconds):
    """timedelta_to_str() of snakemake/benchmark.py (MIT)."""
    x = datetime.timedelta(seconds=seconds)
    mm, ss = divmod(x.seconds, 60)
    hh, mm = divmod(mm, 60)
    text = "%d:%02d:%02d" % (hh, mm, ss)
    return ("%d day%s, " % (x.days, "s" if abs(x.days) != 1 else "") if x.days else "") + text


@pytest.mark.parametrize("name", ("run", "gpus", "tree", "one_tick", "unfinished"))
def test_the_table_has_the_numbers_of_the_summary(recordings, tmp_path, name):
    pandas = reader("pandas")
    path = export(recordings[name], "snakemake", tmp_path / "bench.tsv")
    expected = truth(said(recordings[name]))
    table = pandas.read_csv(path, sep="\t")
    assert list(table.columns) == HEADER and len(table) == 1
    for column, value in expected.items():
        found = table[column][0]
        if value is None:
            assert pandas.isna(found), column
        elif column == "h:m:s":
            assert found == value
        else:
            assert float(found) == round(value, 4 if column == "s" else 2), column


@pytest.mark.parametrize("name", ("run", "gpus"))
def test_lines_of_json_have_every_digit(recordings, tmp_path, name):
    path = export(recordings[name], "snakemake", tmp_path / "bench.jsonl")
    row = json.loads(path.read_text())
    assert list(row) == sorted(HEADER)
    for column, value in truth(said(recordings[name])).items():
        assert row[column] == ("NA" if value is None else value if isinstance(value, str) else pytest.approx(value, rel=1e-15)), column


def test_several_recordings_are_several_rows(recordings, tmp_path):
    pandas = reader("pandas")
    table = pandas.read_csv(export(recordings["nodes"], "snakemake", tmp_path / "bench.tsv"), sep="\t")
    nodes = [truth(said(recordings["nodes"] / name)) for name in ("a.tacho", "b.tacho")]
    assert list(table["cpu_time"]) == [round(node["cpu_time"], 2) for node in nodes]
    assert list(table["max_rss"]) == [round(node["max_rss"], 2) for node in nodes]


def test_a_run_of_more_than_a_day(tmp_path):
    subprocess.run([tool("query_tool"), "long", tmp_path / "long.tacho", "90061", "1", "1"], check=True)
    row = json.loads(export(tmp_path / "long.tacho", "snakemake", tmp_path / "x.jsonl").read_text())
    assert row["h:m:s"] == hours(row["s"]) and row["h:m:s"].startswith("1 day, 1:01:0")


def test_memory_between_two_samples_counts(tmp_path):
    """Snakemake sees what lives at its samples, every half a second at first and then every 30 s."""
    code = "b = bytearray(200 << 20); b[::4096] = b'x' * len(b[::4096])"
    done = run("run", "-q", "-i", "30s", "-o", tmp_path / "short.tacho", "--", "sh", "-c", f"{sys.executable} -c \"{code}\"; true")
    assert done.returncode == 0, done.stderr
    row = json.loads(export(tmp_path / "short.tacho", "snakemake", tmp_path / "x.jsonl").read_text())
    assert 200 <= row["max_rss"] < 400 and row["cpu_time"] > 0


def test_damage_is_said(tmp_path):
    """The numbers are those of what is left, and look like any other."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.tacho").write_bytes(hostile.ticks())
    done = need_export(run("export", "--to", "snakemake", "-o", "-", tmp_path / "a.tacho", tmp_path / "b.tacho"))
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3
    assert done.stderr.count(b"of the recording lost to damage: these are the numbers of what is left") == 1


def test_names_and_options(recordings, tmp_path):
    """The ending chooses it; one that other formats have needs --to. A part of a run is refused, not ignored."""
    assert run("export", "-o", tmp_path / "a.benchmark.tsv", recordings["run"]).returncode == 0
    assert (tmp_path / "a.benchmark.tsv").read_text().split("\n")[0].split("\t") == HEADER
    streamed = run("export", "--to", "snakemake", "-o", "-", recordings["run"])
    assert streamed.stdout == (tmp_path / "a.benchmark.tsv").read_bytes()
    part = run("export", "--to", "snakemake", "--from", "10%", "-o", tmp_path / "part.tsv", recordings["run"])
    assert part.returncode == 1 and b"whole run" in part.stderr and not (tmp_path / "part.tsv").exists()
    assert b"--phase" in part.stderr
    both = run("export", "--to", "snakemake,json", "-o", f"{tmp_path}/both/", recordings["run"])
    assert both.returncode == 0 and sorted(path.suffix for path in (tmp_path / "both").iterdir()) == [".json", ".tsv"]


def test_the_recipe_of_the_documentation(tmp_path):
    """The shell command of the rule, with its wildcards filled in as Snakemake does."""
    rule = re.search(r"```\n(rule .*?)```", (ROOT / "docs" / "export.md").read_text(), re.S).group(1)
    files = {name: path.format(sample="s1") for name, path in re.findall(r'^ +(\w+)="(.*?)"', rule, re.M)}
    command = ast.literal_eval("(" + rule.split("shell:")[1].strip() + ")")
    for path in files.values():
        (tmp_path / path).parent.mkdir(exist_ok=True)
    script = tmp_path / "align.sh"
    script.write_text('#!/bin/sh\necho "$1" >"$2"\n')
    script.chmod(0o755)
    filled = command.format(output=SimpleNamespace(**files), wildcards=SimpleNamespace(sample="s1"))
    done = subprocess.run(["sh", "-c", filled], cwd=tmp_path, env={**os.environ, "PATH": f"{Path(TACHO).parent}:{os.environ['PATH']}"})
    assert done.returncode == 0
    assert (tmp_path / files["bam"]).read_text() == "s1\n" and (tmp_path / files["run"]).exists()
    heading, row = (tmp_path / files["bench"]).read_text().splitlines()
    assert heading.split("\t") == HEADER and len(row.split("\t")) == len(HEADER)
