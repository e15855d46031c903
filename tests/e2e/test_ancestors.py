"""Files for the scripts of older tools. They are read here as those tools read them: a number that is none drops the
line, names of columns are exact; and what comes of it is compared with the tables that every other format has."""

import csv
import json
import math
from collections import defaultdict
from datetime import datetime

import pytest
from exported import export, need_export, recordings  # noqa: F401 (a fixture)
from recorder import TACHO, run, start, until
from test_gpu import FAKES, FAST, Driver, end, gpus


def table(recording, name):
    """Rows of a table as dicts."""
    done = need_export(run("export", "--to", "json", "-d", name, "-o", "-", recording))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["tables"][name]
    names = [field["name"] for field in found["fields"]]
    return [dict(zip(names, row)) for row in found["rows"]]


def seconds(text):
    """Of a time in UTC with nine digits."""
    return datetime.fromisoformat(text[:19] + "+00:00").timestamp() + float("0" + text[19:-1])


def tools(recording):
    """The last group of each process, by number."""
    return {row["process"]: row["groups"].split(",")[-1] for row in table(recording, "processes") if row["groups"]}


# ---- ResourceMonitor of oasislmf ----

OASIS = {"timestamp": float, "tool": str, "pid": int, "cpu_pct": float, "cpu_user_s": float, "cpu_sys_s": float,
         "rss_kb": int, "uss_kb": int, "pss_kb": int}


def oasis_rows(path):
    rows = []
    with open(path, newline="") as file:
        lines = csv.DictReader(file)
        assert lines.fieldnames == list(OASIS)
        for line in lines:
            try:
                rows.append({name: kind(line[name]) for name, kind in OASIS.items()})
            except ValueError:
                continue
    return rows


def peak_uss_mb(rows):
    at = defaultdict(int)
    for row in rows:
        at[row["timestamp"]] += row["uss_kb"]
    return max(at.values()) / 1024


def known(row):
    return all(row.get(name) is not None for name in ("proc.cpu.user", "proc.mem.uss_now", "proc.mem.rss"))


def test_oasis_has_every_process_of_every_tick(tmp_path, recordings):
    path = export(recordings["run"], "oasis-csv", tmp_path / "out") / "resource_monitor.csv"
    rows = oasis_rows(path)
    ours = [row for row in table(recordings["run"], "process") if known(row)]
    assert rows and len(rows) == len(ours)
    for row, our in zip(rows, ours):
        assert (row["tool"], row["pid"]) == (our["instance"], our["pid"])
        assert row["rss_kb"] == our["proc.mem.rss"] // 1024 and row["uss_kb"] == our["proc.mem.uss_now"] // 1024
        assert row["pss_kb"] == our["proc.mem.pss_now"] // 1024
        assert math.isclose(row["cpu_pct"], 100 * (our["proc.cpu.cores"] or 0), abs_tol=0.001)
        assert math.isclose(row["cpu_user_s"], our["proc.cpu.user"], abs_tol=0.001)
        assert abs(row["timestamp"] - seconds(our["time"])) < 1e-5
    ticks = defaultdict(float)
    for our in ours:
        ticks[our["time"]] += our["proc.mem.uss_now"] // 1024
    assert peak_uss_mb(rows) == max(ticks.values()) / 1024
    first = [our for our in ours if our["proc.cpu.cores"] is None]
    assert first, "of the first tick of a process no CPU use is known, and its line must count all the same"
    assert {row["pid"] for row in rows} == {our["pid"] for our in table(recordings["run"], "process")}


def test_oasis_says_minus_one_for_unknown_pss_and_nothing_for_the_rest(tmp_path, recordings):
    folder = export(recordings["run"], "oasis-csv", tmp_path / "out", "-m", "proc.mem.rss")
    with open(folder / "resource_monitor.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert lines and {line["pss_kb"] for line in lines} == {"-1"}
    assert {line["uss_kb"] for line in lines} == {line["cpu_user_s"] for line in lines} == {""}
    known = [line["rss_kb"] for line in lines if line["rss_kb"]]  # of a process that was just ending it is not
    assert known and all(int(value) >= 0 for value in known)


def test_oasis_calls_tools_by_their_groups(tmp_path):
    recording = tmp_path / "g.tacho"
    done = run("run", "-q", "-i", "50ms", "--also", r"match:^sleep (0\.61)", "-o", recording, "--", "sh", "-c",
               "sleep 0.61 & sleep 0.62 & wait")
    assert done.returncode == 0, done.stderr
    rows = oasis_rows(export(recording, "oasis-csv", tmp_path / "out") / "resource_monitor.csv")
    named = {row["pid"]: row["command"] for row in table(recording, "processes")}
    assert {named[row["pid"]] for row in rows if row["tool"] == "0.61"} == {"sleep 0.61"}
    assert {row["tool"] for row in rows if named[row["pid"]] == "sleep 0.62"} == {"sh"}


def test_oasis_quotes_hostile_names(tmp_path, recordings):
    for name in ("hostile", "one_tick", "no_tick", "unfinished", "damaged", "nodes"):
        done = need_export(run("export", "--to", "oasis-csv", "-o", tmp_path / name, recordings[name]))
        if done.returncode:
            assert b"made of tables that are not there" in done.stderr, done.stderr
            assert not (tmp_path / name).exists()
            continue
        with open(tmp_path / name / "resource_monitor.csv", newline="") as file:
            lines = list(csv.DictReader(file, strict=True))
        of, ours = tools(recordings[name]), table(recordings[name], "process")
        expected = [of[row["process"]] for row in ours if row["process"] in of] if of else [row["instance"] for row in ours]
        assert [line["tool"] for line in lines] == expected
        assert all(None not in line for line in lines)


# ---- HWMonitor of pytyche ----


def numbers(path, columns, parts_of, least, skip=0):
    """Lists of columns; a line in which one of them is no number, or that is too short, is passed over."""
    found = []
    for line in path.read_text().splitlines()[skip:] if path.exists() else ():
        parts = parts_of(line)
        if len(parts) < least:
            continue
        try:
            found.append([float(parts[column]) for column in columns])
        except ValueError:
            continue
    return [list(column) for column in zip(*found)] or [[] for _ in columns]


def mean(values):
    return sum(values) / len(values) if values else 0.0


def resource_summary(folder):
    """What pytyche makes of the files, under its names; without values it says 0."""
    util, used, power = numbers(folder / "hw_metrics.csv", (1, 3, 5), lambda line: [part.strip() for part in line.split(",")], 9)
    (mem,) = numbers(folder / "hw_dmon.csv", (2,), lambda line: [] if line.strip().startswith("#") else line.split(), 4)
    usr, idle = numbers(folder / "cpu_metrics.csv", (1, 2), lambda line: line.strip().split(","), 3, skip=1)
    return {"peak_vram_mb": max(used, default=0), "gpu_util_mean_pct": mean(util), "gpu_util_max_pct": max(util, default=0),
            "mem_util_mean_pct": mean(mem), "mem_util_max_pct": max(mem, default=0), "power_watts_mean": mean(power),
            "power_watts_max": max(power, default=0), "cpu_usr_mean_pct": mean(usr), "cpu_idle_mean_pct": mean(idle),
            "lists": {"util": util, "mem": mem, "power": power, "usr": usr, "idle": idle}}


def test_tyche_has_gpus(tmp_path, recordings):
    folder = export(recordings["gpus"], "tyche-csv", tmp_path / "out")
    ours = table(recordings["gpus"], "gpu")
    found, peak = resource_summary(folder)["lists"], resource_summary(folder)["peak_vram_mb"]
    assert len(ours) > 4
    assert found["util"] == pytest.approx([100 * row["gpu.util"] for row in ours], abs=0.5)
    assert found["mem"] == pytest.approx([100 * row["gpu.mem_util"] for row in ours], abs=0.5)
    assert found["power"] == pytest.approx([row["gpu.power"] for row in ours], abs=0.005)
    assert peak == max(row["gpu.memory.used"] for row in ours) >> 20
    lines = (folder / "hw_metrics.csv").read_text().splitlines()
    assert lines[0].split(", ")[0] == ours[0]["time"][:23].replace("-", "/").replace("T", " ")
    assert all(len(line.split(", ")) == 9 for line in lines)
    unknown = [row.get("gpu.clock.memory") is None for row in ours]
    assert [line.split(", ")[8] == "[N/A]" for line in lines] == unknown and any(unknown)
    gpus = [line.split()[0] for line in (folder / "hw_dmon.csv").read_text().splitlines()[2:]]
    names = list(dict.fromkeys(row["instance"] for row in ours))
    assert gpus == [str(names.index(row["instance"])) for row in ours]


def test_tyche_has_cpus_and_no_files_of_gpus_that_are_not_there(tmp_path, recordings):
    folder = export(recordings["run"], "tyche-csv", tmp_path / "out", "-d", "cpu")
    assert sorted(path.name for path in folder.iterdir()) == ["cpu_metrics.csv", "resource_summary.json"]
    written = json.loads((folder / "resource_summary.json").read_text())
    assert set(written) == {"cpu_usr_mean_pct", "cpu_idle_mean_pct"}  # absent, not 0, without GPUs
    assert (folder / "cpu_metrics.csv").read_text().startswith("timestamp,usr_pct,idle_pct\n")
    found = resource_summary(folder)["lists"]
    ours = [row for row in table(recordings["run"], "cpu") if row["instance"] == "total" and row["cpu.user_ratio"] is not None]
    assert ours
    assert found["usr"] == pytest.approx([100 * row["cpu.user_ratio"] for row in ours], abs=0.051)
    assert found["idle"] == pytest.approx([100 * row["cpu.idle_ratio"] for row in ours], abs=0.051)


def of_gpus(gpus, name, which):
    """A figure of `tacho show`, over all GPUs."""
    values = [gpu[name] for gpu in gpus]
    return max(values) if which == "max" else sum(values) / len(values)


def test_tyche_and_show_come_to_the_same(tmp_path):
    """A job on two GPUs, as a fake of NVIDIA's library has them: pytyche's own figures against ours."""
    if not (FAKES / "libnvidia-ml.so.1").exists():
        pytest.skip(f"{FAKES} is not built")
    driver = Driver(tmp_path)
    recording = tmp_path / "a.tacho"
    log = tmp_path / "log.jsonl"
    job = ["sh", "-c", f"{TACHO} mark jax_peak_bytes_mb=99.25; {TACHO} mark peak jax_peak_bytes=104857600 jax_peak_bytes_mb=x; exec sleep 1000"]
    tacho = start("run", "-o", recording, "--run-log", log, *FAST, "--", *job, env=driver.environment())
    try:
        until(lambda: [gpu["power_max_w"] for gpu in gpus(recording).values()] == [150, 60], "both are read")
    finally:
        end(tacho)
    folder = export(recording, "tyche-csv", tmp_path / "out")
    found = resource_summary(folder)
    # Live, later and beside the files: the numbers that pytyche computes from the files, and what the job reported.
    of_pytyche = {name: round(value, 1) for name, value in found.items() if name != "lists"}
    last = json.loads(log.read_text().splitlines()[-1])
    assert last["event"] == "end" and last["data"]["resources"] == {**of_pytyche, "jax_peak_bytes_mb": 100.0}
    assert json.loads((folder / "resource_summary.json").read_text()) == last["data"]["resources"]
    assert run("export", "--to", "runlog", "-o", "-", recording).stdout == log.read_bytes()
    part = export(recording, "tyche-csv", tmp_path / "part", "--from", "50%")
    assert json.loads((part / "resource_summary.json").read_text())["cpu_usr_mean_pct"] == round(resource_summary(part)["cpu_usr_mean_pct"], 1)
    ours = list(gpus(recording).values())
    assert found["peak_vram_mb"] == of_gpus(ours, "memory_peak_bytes", "max") / (1 << 20) == 1024
    assert found["gpu_util_max_pct"] == of_gpus(ours, "util_max_percent", "max") == 40
    assert found["gpu_util_mean_pct"] == pytest.approx(of_gpus(ours, "util_mean_percent", "mean")) == 20
    assert found["mem_util_max_pct"] == of_gpus(ours, "mem_util_max_percent", "max") == 10
    assert found["mem_util_mean_pct"] == pytest.approx(5)
    assert found["power_watts_max"] == of_gpus(ours, "power_max_w", "max") == 150
    assert found["power_watts_mean"] == pytest.approx(of_gpus(ours, "power_mean_w", "mean")) == 105
    busy = [row for row in table(recording, "cpu") if row["instance"] == "total" and row["cpu.user_ratio"] is not None]
    assert busy and found["cpu_usr_mean_pct"] == pytest.approx(100 * mean([row["cpu.user_ratio"] for row in busy]), abs=0.06)
    assert found["cpu_idle_mean_pct"] == pytest.approx(100 * mean([row["cpu.idle_ratio"] for row in busy]), abs=0.06)


def test_a_choice_that_leaves_nothing_is_refused(tmp_path, recordings):
    done = need_export(run("export", "--to", "tyche-csv", "-d", "process", "-o", tmp_path / "out", recordings["run"]))
    assert done.returncode == 1 and b"made of tables that are not there, or not chosen: gpu, cpu" in done.stderr
    assert not (tmp_path / "out").exists()
