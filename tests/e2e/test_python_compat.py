"""pytyche's classes: programs that use them run unchanged but for the import."""

import json
import os
import subprocess
import sys
import types
from datetime import datetime

import pytest

from exported import run
from python_package import environment, tacho  # noqa: F401 (a fixture)
from recorder import until
from test_ancestors import resource_summary
from test_gpu import FAKES, Driver

# The program of their documentation: phases and events into a log, hardware sampled beside it, a summary of both at the end.
PROGRAM = """
import sys, time
from pathlib import Path
from tacho.compat import HWMonitor, RunLog, build_resource_summary, probe_jax_peak_memory_mb

out = Path(sys.argv[1])
log, monitor = RunLog(), HWMonitor()
log.log_event("start", {"seed": 42, "where": out})
monitor.start(out / "hw", interval_sec=1)
t0 = time.perf_counter()
input()
log.log_phase("fit", time.perf_counter() - t0, draws=500)
gpu_csv, cpu_csv, dmon_csv = monitor.stop()
summary = build_resource_summary(gpu_csv, cpu_csv, dmon_csv)
summary.jax_peak_bytes_mb = probe_jax_peak_memory_mb()
log.log_event("resources", summary.to_dict())
log.log_event("end")
log.write(out / "run.jsonl")
print(gpu_csv, cpu_csv, dmon_csv)
"""


@pytest.mark.parametrize("with_gpus", [True, False])
def test_their_program(tmp_path, with_gpus):
    if with_gpus and not (FAKES / "libnvidia-ml.so.1").exists():
        pytest.skip(f"{FAKES} is not built")
    driver = Driver(tmp_path)
    env = environment(**({"TACHO_NVML": str(FAKES / "libnvidia-ml.so.1"), "FAKE_NVML": str(driver.path)} if with_gpus else {}))
    (tmp_path / "hw").mkdir()
    (tmp_path / "hw/hw_metrics.csv").write_text("of an earlier run\n")
    with subprocess.Popen([sys.executable, "-c", PROGRAM, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as program:
        recording = tmp_path / "hw" / "hardware.tacho"

        def rows(name):
            done = run("show", "--csv", "--series", name, recording)
            return [line for line in done.stdout.decode().splitlines()[1:] if not line.endswith(",")] if done.returncode == 0 else []

        until(lambda: len(rows("cpu.user_ratio")) >= 1 and (not with_gpus or len(rows("gpu.util")) >= 1), "samples")
        said = program.communicate("\n")[0].split()
        assert program.returncode == 0
    folder = tmp_path / "hw"
    files = [str(folder / "hw_metrics.csv"), str(folder / "cpu_metrics.csv"), str(folder / "hw_dmon.csv")]
    assert said == (files if with_gpus else ["None", files[1], "None"])
    entries = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [(e["type"], e.get("event", e.get("name"))) for e in entries] == [("event", "start"), ("phase", "fit"), ("event", "resources"), ("event", "end")]
    assert entries[0]["data"] == {"seed": 42, "where": str(tmp_path)} and entries[1]["draws"] == 500 and entries[1]["seconds"] > 0
    assert all(datetime.fromisoformat(e["ts"]).utcoffset().total_seconds() == 0 and len(e["ts"]) == 29 for e in entries)
    theirs = {name: round(value, 1) for name, value in resource_summary(folder).items() if name != "lists"}
    if not with_gpus:
        del theirs["mem_util_mean_pct"], theirs["mem_util_max_pct"]
    assert entries[2]["data"] == theirs and theirs["cpu_idle_mean_pct"] + theirs["cpu_usr_mean_pct"] > 0
    assert (theirs["peak_vram_mb"] == 1024) == with_gpus


def test_a_log_that_is_appended_at_once(tacho, tmp_path):  # noqa: F811
    from tacho.compat import RunLog

    log = RunLog("live.jsonl")
    log.log_phase("a", 1)
    assert json.loads((tmp_path / "live.jsonl").read_text())["name"] == "a"
    RunLog("live.jsonl").log_event("b")
    assert len((tmp_path / "live.jsonl").read_text().splitlines()) == 2


def test_what_nvidia_smi_writes_is_read_too(tacho, tmp_path):  # noqa: F811
    from tacho.compat import ResourceSummary, build_resource_summary

    (tmp_path / "gpu").write_text("2025/01/01 00:00:00.000, 50, 10, 1000, 4000, 100.5, 40, 1500, 5000\nbroken\nx, [N/A], 1, [N/A], 1, [N/A], 1, 1, 1\n"
                                  "2025/01/01 00:00:02.000, 100, 10, 3000, 4000, 200.5, 40, 1500, 5000\n")
    (tmp_path / "dmon").write_text("# gpu  sm mem fb\n# Idx % % MB\n 0 50 10 1000\n 0 - - -\n 0 60 30 1000\n")
    (tmp_path / "cpu").write_text("timestamp,usr_pct,idle_pct\nt,10.0,80.0\nt,30.0,60.0\n")
    found = build_resource_summary(tmp_path / "gpu", tmp_path / "cpu", tmp_path / "dmon")
    assert found == ResourceSummary(3000, 0, 75, 100, 20, 30, 150.5, 200.5, 20, 70)
    assert found.to_dict() == {
        "peak_vram_mb": 3000, "gpu_util_mean_pct": 75, "gpu_util_max_pct": 100, "power_watts_mean": 150.5, "power_watts_max": 200.5,
        "cpu_usr_mean_pct": 20, "cpu_idle_mean_pct": 70, "mem_util_mean_pct": 20, "mem_util_max_pct": 30,
    }
    assert build_resource_summary(None, tmp_path / "nothing") == ResourceSummary() and "mem_util_mean_pct" not in ResourceSummary().to_dict()


def test_jax_is_asked_where_it_is(tacho, monkeypatch):  # noqa: F811
    from tacho.compat import probe_jax_peak_memory_mb

    class Device:
        platform = "gpu"

        def memory_stats(self):
            return {"peak_bytes_in_use": 3 << 20}

    monkeypatch.setitem(sys.modules, "jax", None)
    assert probe_jax_peak_memory_mb() == 0.0
    monkeypatch.setitem(sys.modules, "jax", types.SimpleNamespace(local_devices=lambda: [Device()]))
    assert probe_jax_peak_memory_mb() == 3.0
    monkeypatch.setitem(sys.modules, "jax", types.SimpleNamespace(local_devices=lambda: [types.SimpleNamespace(platform="cpu")]))
    assert probe_jax_peak_memory_mb() == 0.0


def test_a_monitor_that_cannot_run_or_runs(tacho, monkeypatch, tmp_path):  # noqa: F811
    from tacho.compat import HWMonitor

    monitor = HWMonitor()
    assert monitor.stop() == (None, None, None) and "not started" in monitor.why
    monitor.start(tmp_path / "out")
    assert monitor.why is None
    with pytest.warns(tacho.TachoWarning, match="started already"):
        monitor.start(tmp_path / "other")
    assert not (tmp_path / "other").exists() and monitor.stop()[0] is None
    monkeypatch.setenv("TACHO_BIN", "/nonexistent")
    monkeypatch.setenv("PATH", "/nonexistent")
    broken = HWMonitor()
    with pytest.warns(tacho.TachoWarning, match="no executable"):
        broken.start(tmp_path / "out")
    assert "no executable" in broken.why and broken.stop() == (None, None, None) and os.environ.get("TACHO_SOCKET") is None
