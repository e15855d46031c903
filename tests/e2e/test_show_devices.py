"""`tacho show` of recordings with counters and GPUs, made by tests/unit/query_tool.c: every value is known."""

import csv
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from recorder import TACHO, check, on_terminal, run, show

TOOL = Path(TACHO).parent / "tests" / "unit" / "query_tool"

NUMBER = (int, float)
GPU = {
    "index": int,
    "vendor": str,
    "name": str,
    "uuid": str,
    "util_mean_percent": NUMBER,
    "util_max_percent": NUMBER,
    "mem_util_mean_percent": NUMBER,
    "mem_util_max_percent": NUMBER,
    "memory_peak_bytes": int,
    "memory_total_bytes": int,
    "power_mean_w": NUMBER,
    "power_max_w": NUMBER,
    "energy_j": NUMBER,
    "job_memory_peak_bytes": int,
    "job_util_mean_percent": NUMBER,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Makes a recording of a machine that this one is not."""
    if not TOOL.exists():
        pytest.skip(f"{TOOL} is not built: it makes the recordings")
    where = tmp_path_factory.mktemp("made")

    def make(host="n1", gpus=2):
        path = where / f"{host}-{gpus}.tacho"
        subprocess.run([TOOL, path, host, str(gpus)], check=True)
        return path

    return make


def text_of(*words):
    done = run("show", *words, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def screen_of(recording, columns, **env):
    """What a terminal of so many columns gets."""
    return on_terminal("show", recording, columns=columns, rows=50, **env)


def test_counters(made):
    summary = show(made())
    perf = summary["perf"]
    assert perf["cycles"] == {"value": 12_000_000_000, "unit": "count", "running_share": 1}
    assert perf["instructions"] == {"value": 24_000_000_000, "unit": "count", "running_share": 0.5}
    assert perf["task_clock"] == {"value": 4, "unit": "seconds", "running_share": 1}
    assert perf["ipc"] == {"value": 2, "unit": "count", "running_share": 0.5}
    assert perf["ghz"] == {"value": 3e9, "unit": "hertz", "running_share": 1}
    # (4 + 4 x 2) G operations in 4 s
    assert perf["flops_dp"] == {"value": 3e9, "unit": "flop/s", "running_share": 1}
    assert perf["cache_misses"] == {"value": None, "unit": "count", "running_share": None}
    assert summary["unavailable"]["perf.cache_misses"] == "needs the right to look"
    assert summary["unavailable"]["perf.cache_miss_rate"] == "needs the right to look"
    assert summary["cpu"]["counted_percent"] == pytest.approx(100 / 1.01)
    assert summary["memory_bandwidth"]["total_bytes"] == 6 << 30
    assert summary["memory_bandwidth"]["mean_bytes_per_s"] == 1.5 * (1 << 30)
    assert summary["memory_bandwidth"]["source"] == "skylake-x (built in): socket-0"
    assert any("1 formula of this recording cannot be used (perf.broken" in note for note in summary["notes"])


def test_gpus(made):
    summary = show(made())
    first, second = summary["gpus"]
    for gpu in summary["gpus"]:
        assert {name for name, kind in GPU.items() if not isinstance(gpu.get(name), kind)} == set()
    assert list(first)[: len(GPU)] == list(GPU)
    assert (first["index"], first["vendor"], first["name"]) == (0, "nvidia", "NVIDIA A100-SXM4-40GB")
    assert (first["util_mean_percent"], first["util_max_percent"]) == (40, 60)
    assert first["energy_j"] == 600 and first["energy_source"] == "counter"
    assert first["job_memory_peak_bytes"] == 512 << 20 and first["job_util_mean_percent"] == 25
    assert (first["job"], first["job_by"]) == ("yes", "CUDA_VISIBLE_DEVICES=0")
    assert second["job"] == "no" and second["job_memory_peak_bytes"] == 0
    assert first["unavailable"]["throttled_s"] and first["throttled_s"] is None
    assert first["lost_at_s"] is None and "lost_at_s" not in first["unavailable"]
    (used,) = summary["groups"]["train"]["gpus"]
    assert used["index"] == 0 and used["memory_peak_bytes"] == 512 << 20 and used["util_mean_percent"] == 25
    assert summary["energy"]["gpu_joules"] == 1200 and summary["energy"]["job_gpu_joules"] == 600
    assert summary["energy"]["node_joules"] is None


def test_several_nodes(made):
    run_of_two = json.loads(text_of("--json", made("n1"), made("n2")))
    assert [(gpu["host"], gpu["index"]) for gpu in run_of_two["gpus"]] == [("n1", 0), ("n1", 1), ("n2", 0), ("n2", 1)]
    assert run_of_two["perf"]["cycles"]["value"] == 24_000_000_000
    assert run_of_two["perf"]["ipc"]["value"] == 2
    assert run_of_two["perf"]["flops_dp"]["value"] == 6e9
    assert run_of_two["memory_bandwidth"]["total_bytes"] == 12 << 30
    assert run_of_two["memory_bandwidth"]["peak_bytes_per_s"] is None
    assert "see nodes" in run_of_two["unavailable"]["memory_bandwidth.peak_bytes_per_s"]
    assert all(node["perf"]["cycles"]["value"] == 12_000_000_000 for node in run_of_two["nodes"])


def test_words(made):
    text = screen_of(made(), 200, NO_COLOR="1")
    assert re.search(r"^  counters IPC 2 · 3 GHz · 3 GFLOP/s DP$", text, re.M)
    assert "counters saw 99 % of the CPU time; running 50 % of that" in text
    assert "not counted: cache_references, cache_misses (needs the right to look)" in text
    assert re.search(r"^  gpu 0    NVIDIA A100-SXM4-40GB  util 40 % mean \(job 25 %\), 60 % max ·", text, re.M)
    assert "1 other in the node, not the job's" in text and "gpu 1" not in text
    assert "\033" not in text
    assert "\033[36mcounters\033[0m" in screen_of(made(), 200, NO_COLOR="")
    assert "8 others in the node" in text_of(made("n1", 9))


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_narrow_terminals(made, columns):
    """Lines stay within the terminal; the path of the file is one word and may not."""
    text = screen_of(made(), columns, NO_COLOR="1")
    assert "gpu 0" in text
    assert [line for line in text.splitlines()[1:] if len(line) > columns and ".tacho" not in line] == []


def test_series(made):
    recording = made()
    rows = list(csv.DictReader(text_of("--series", "perf.flops_dp,perf.ipc", "--csv", recording).splitlines()))
    assert [row["perf.flops_dp.per_second"] for row in rows] == ["", *["3000000000"] * 4]
    assert [row["perf.ipc"] for row in rows][1:] == ["2"] * 4
    series = json.loads(text_of("--series", "perf.flops_dp", "--json", recording))
    assert series["recordings"][0]["units"] == ["FLOP/s"]
    of_group = text_of("--series", "gpu_process.memory", "--group", "train", "--csv", recording).splitlines()
    assert of_group[1].endswith(f",{512 << 20}")
    each = text_of("--series", "gpu.util", "--per", "instance", "--csv", recording).splitlines()
    assert [line.split(",")[2] for line in each[1:3]] == ["nvidia-0", "nvidia-1"]
    for metric, words in {
        "perf.flops_pd": "did you mean 'perf.flops_dp'?",
        "perf.broken": "its formula cannot be used",
        "perf.cache_miss_rate": None,
    }.items():
        done = run("show", "--series", metric, recording)
        assert done.returncode == (2 if words else 0), done.stderr
        assert not words or words in done.stderr.decode()


def test_the_recordings_are_whole(made):
    status, words = check(made())
    assert status == 0, words
