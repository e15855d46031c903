"""Which GPUs are the job's, as recordings have it: whose environment is asked, and who wins."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from recorder import TACHO, run, until

LIBRARY = Path(TACHO).parent / "tests" / "fakes" / "libnvidia-ml.so.1"
VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "OAR_USER_GPUDEVICE",
             "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "CUDA_DEVICE_ORDER")
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} was not built")


@pytest.fixture
def machine(tmp_path):
    """Its environment: two GPUs, and of the variables that claim some only those given."""
    values = ["count 2"]
    for n in range(2):
        values += [f"{n}.name NVIDIA-A100", f"{n}.uuid GPU-{n}{n}{n}", f"{n}.minor {n}", f"{n}.util 50", f"{n}.memutil 5"]
    (tmp_path / "nvml.txt").write_text("\n".join(values) + "\n")

    def make(**variables):
        clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        return dict(clean, TACHO_NVML=str(LIBRARY), FAKE_NVML=str(tmp_path / "nvml.txt"), **variables)

    return make


def claims(recording):
    gpus = json.loads(run("show", "--json", recording).stdout)["gpus"]
    return {gpu["uuid"]: (gpu["job"], gpu["job_by"]) for gpu in gpus}


def is_read(recording):
    return len(claims(recording)) == 2 if recording.exists() and recording.stat().st_size else False


@pytest.mark.parametrize("variables, first, second", [
    ({}, ("unclaimed", None), ("unclaimed", None)),
    ({"CUDA_VISIBLE_DEVICES": "GPU-1"}, ("no", "CUDA_VISIBLE_DEVICES=GPU-1"), ("yes", "CUDA_VISIBLE_DEVICES=GPU-1")),
    ({"CUDA_VISIBLE_DEVICES": ""}, ("no", "CUDA_VISIBLE_DEVICES="), ("no", "CUDA_VISIBLE_DEVICES=")),
    ({"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_GPUS": "1"}, ("no", "SLURM_JOB_GPUS=1"), ("yes", "SLURM_JOB_GPUS=1")),
])
def test_a_command(machine, tmp_path, variables, first, second):
    recording = tmp_path / "run.tacho"
    words = [TACHO, "run", "-q", "-i", "20ms", "-o", recording, "--", "cat"]
    running = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, env=machine(**variables))
    try:
        until(lambda: is_read(recording), "both GPUs are recorded")
    finally:
        running.stdin.close()
    assert running.wait() == 0
    assert claims(recording) == {"GPU-000": first, "GPU-111": second}


def test_a_running_process_has_its_own_environment(machine, tmp_path):
    recording = tmp_path / "attach.tacho"
    job = subprocess.Popen(["sleep", "1000"], env=machine(CUDA_VISIBLE_DEVICES="GPU-0"))
    words = [TACHO, "attach", job.pid, "-q", "-i", "20ms", "-o", recording]
    watching = subprocess.Popen(list(map(str, words)), env=machine(CUDA_VISIBLE_DEVICES="GPU-1"))
    try:
        until(lambda: is_read(recording), "both GPUs are recorded")
    finally:
        job.kill()
        job.wait()
    assert watching.wait() == 0
    by = "CUDA_VISIBLE_DEVICES=GPU-0"
    assert claims(recording) == {"GPU-000": ("yes", by), "GPU-111": ("no", by)}


def test_nothing_else_of_the_environment_is_kept(machine, tmp_path):
    recording = tmp_path / "run.tacho"
    environment = machine(CUDA_VISIBLE_DEVICES="GPU-1", MY_PASSWORD="open-sesame-4711")
    words = [TACHO, "run", "-q", "-i", "20ms", "-o", recording, "--", "cat"]
    running = subprocess.Popen(words, stdin=subprocess.PIPE, env=environment)
    try:
        until(lambda: is_read(recording), "both GPUs are recorded")
    finally:
        running.stdin.close()
    assert running.wait() == 0
    assert b"open-sesame" not in run("debug", "dump", recording).stdout
    assert b"GPU-1" in run("debug", "dump", recording).stdout
