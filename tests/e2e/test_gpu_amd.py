"""AMD GPUs at their real paths: cards, sensors and KFD made of files are laid over /sys/class, and a job runs on them.

AMD's own library is asked on the same files where it is installed, and one of ours that falls in every way.
"""

import contextlib
import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

from recorder import TACHO, by_instance, job_of, run, show, until

TESTS = Path(__file__).resolve().parent.parent
BUILD = Path(TACHO).parent
WITH_SYS_CLASS = TESTS / "fakes" / "with-sys-class"
AMD_TREE = TESTS / "fakes" / "amd-tree"
FALLING = BUILD / "tests" / "fakes" / "librocm_smi64.so.fake"
NVML = BUILD / "tests" / "fakes" / "libnvidia-ml.so.1"
GPUS = ["0000:03:00.0", "0000:04:00.0"]
JOULE = 1 << 16


class Tree:
    """Two GPUs; files are written in place, as the reader has them open."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run([AMD_TREE, folder, "2"], check=True)

    def file(self, gpu, name):
        return self.folder / "drm" / ".pci" / GPUS[gpu] / name

    def write(self, gpu, name, content, at=0):
        fd = os.open(self.file(gpu, name), os.O_WRONLY)
        try:
            os.pwrite(fd, content if isinstance(content, bytes) else f"{content}\n".encode(), at)
        finally:
            os.close(fd)

    def use_energy(self, gpu, joules):
        self.write(gpu, "gpu_metrics", struct.pack("<Q", (100 + joules) * JOULE), at=24)

    def process(self, pid, gpu, size):
        subprocess.run([AMD_TREE, self.folder, "process", str(pid), str(gpu), str(size)], check=True)

    def __call__(self, *words, **variables):
        given = [f"{name}={value}" for name, value in variables.items()]
        return [str(word) for word in (WITH_SYS_CLASS, self.folder, "env", *given, *words)]


tried = []


def trouble_with(tree):
    """Why nothing can be laid over /sys/class, tried once: it is the same for all tests."""
    if not tried:
        trial = subprocess.run(tree("true"), stderr=subprocess.PIPE, text=True)
        tried.append(trial.returncode and (trial.stderr.strip() or f"status {trial.returncode}"))
    return tried[0]


@pytest.fixture
def tree(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("laying files over /sys/class needs root")
    tree = Tree(tmp_path / "sys-class")
    if trouble := trouble_with(tree):
        pytest.skip(f"no overlay over /sys/class here: {trouble}")
    return tree


@contextlib.contextmanager
def lasting(command, status=0, **kwargs):
    """A recording whose job reads what never comes: it lasts until the test has seen what it waits for."""
    kwargs.setdefault("stdout", subprocess.DEVNULL)
    job = subprocess.Popen(command, stdin=subprocess.PIPE, **kwargs)
    try:
        yield job
    finally:
        job.stdin.close()
        assert job.wait() == status


def says(recording):
    done = run("show", "--json", recording)
    return json.loads(done.stdout) if done.returncode == 0 else None


def gpus(recording):
    return [gpu for gpu in (says(recording) or {}).get("gpus") or [] if gpu["vendor"] == "amd"]


def test_a_job_on_two_gpus(tree, tmp_path):
    """Values that change while it runs; memory that a real process of it holds, and a stranger's that is not its."""
    recording = tmp_path / "run.tacho"
    command = tree(TACHO, "run", "-q", "-i", "20ms", "-o", recording, "--", "cat")
    with lasting(command) as job:
        first = until(lambda: len(found := gpus(recording)) == 2 and found[0]["util_max_percent"] and found, "two GPUs")
        assert [gpu["pci"] for gpu in first] == GPUS
        assert first[0]["name"] == "AMD Instinct MI210"
        assert first[1]["uuid"] == "GPU-abcdef0000000001"
        cat = job_of(job, "cat")
        tree.process(cat, 1, 7 << 30)
        tree.process(1, 0, 3 << 30)
        tree.write(0, "gpu_busy_percent", 97)
        tree.write(0, "mem_info_vram_used", 40 << 30)
        tree.use_energy(0, 250)
        until(lambda: gpus(recording)[0]["util_max_percent"] == 97, "it works harder")
        until(lambda: gpus(recording)[0]["energy_j"] == pytest.approx(250), "its energy is counted")
        until(lambda: gpus(recording)[1]["job_memory_peak_bytes"] == 7 << 30, "the job's memory is seen")
    one, two = gpus(recording)
    assert one["memory_peak_bytes"] == 40 << 30
    assert one["memory_total_bytes"] == 68702699520
    assert one["job_memory_peak_bytes"] in (0, None)
    assert one["energy_source"] == "counter"
    assert two["power_max_w"] == pytest.approx(91)
    assert two["util_max_percent"] == 51
    held = by_instance("gpu_process.memory", recording)
    assert set(held) == {f"amd-1/{cat}"}
    assert set(held[f"amd-1/{cat}"]) == {7 << 30}
    # 26 of its 104 compute units.
    assert set(by_instance("gpu_process.util", recording)[f"amd-1/{cat}"]) == {0.25}
    assert by_instance("gpu.pcie.rx", recording)["amd-0"][-1] == 1000 * 256
    assert by_instance("gpu.temperature", recording)["amd-1"][-1] == pytest.approx(41)


def test_a_gpu_that_is_pulled(tree, tmp_path):
    recording = tmp_path / "run.tacho"
    command = tree(TACHO, "run", "-q", "-i", "20ms", "-o", recording, "--", "cat")
    with lasting(command):
        until(lambda: len(gpus(recording)) == 2, "two GPUs")
        # A file of an overlay stays readable when it is removed: the card is gone when its folder is.
        (tree.folder / "drm" / "card1").unlink()
        until(lambda: gpus(recording)[1]["lost"], "the loss is recorded")
        tree.write(0, "gpu_busy_percent", 77)
        until(lambda: gpus(recording)[0]["util_max_percent"] == 77, "the other goes on")
    assert gpus(recording)[0]["lost"] is None


# ---- two makers ----


def test_two_makers_at_once(tree, tmp_path):
    if not NVML.exists():
        pytest.skip(f"{NVML} is not built")
    values = tmp_path / "nvml"
    values.write_text(
        "count 1\n0.name NVIDIA FAKE-100\n0.uuid GPU-00000000-0000-0000\n0.pci 0 3b 0\n0.minor 0\n"
        "0.util 33\n0.memutil 12\n0.mem_total 40000\n0.mem_used 1000\n"
    )
    recording = tmp_path / "run.tacho"
    command = tree(TACHO, "run", "-q", "-i", "20ms", "-o", recording, "--", "cat", TACHO_NVML=NVML, FAKE_NVML=values)
    with lasting(command):
        until(lambda: len([g for g in (says(recording) or {}).get("gpus") or [] if g["util_max_percent"]]) == 3, "three GPUs")
    found = {gpu["instance"]: gpu for gpu in show(recording)["gpus"]}
    assert set(found) == {"nvidia-0", "amd-0", "amd-1"}
    assert [found[name]["util_max_percent"] for name in ("nvidia-0", "amd-0", "amd-1")] == [33, 50, 51]


# ---- ROCm SMI ----

# Rows of src/collect/gpu.h.
UTIL, MEM_UTIL, MEMORY_USED, MEMORY_TOTAL, GTT, TEMPERATURE, TEMPERATURE_MEMORY, POWER, LIMIT, ENERGY = (
    0, 1, 4, 5, 9, 17, 18, 20, 21, 22)  # fmt: skip


def asked(tree, library, **variables):
    """What the library fills of two devices of which nothing is known."""
    tool = BUILD / "tests" / "unit" / "rocm_tool"
    done = subprocess.run(
        tree(tool, *GPUS, TACHO_ROCM=library, **variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if done.returncode == 77:
        pytest.skip("librocm_smi64 is not installed (librocm-smi64-1)")
    found = {pci: {} for pci in GPUS}
    for line in done.stdout.splitlines():
        pci, row, value = line.split(" ", 2)
        found[pci][row if row == "model" else int(row)] = value if row == "model" else int(value)
    return done, found


def test_the_real_library_says_the_same(tree):
    """AMD's library through our own loading of it, on the same files that we read."""
    done, found = asked(tree, "yes")
    assert done.returncode == 0, done.stderr
    for i, pci in enumerate(GPUS):
        rows = found[pci]
        assert rows[UTIL] == 50 + i
        assert rows[MEM_UTIL] == 20 + i
        assert rows[MEMORY_USED] == 11534336 + i
        assert rows[MEMORY_TOTAL] == 68702699520
        assert rows[GTT] == 2203648
        assert rows[TEMPERATURE] == 40000 + 1000 * i
        assert rows[TEMPERATURE_MEMORY] == 42000
        assert rows[POWER] == 90000 + 1000 * i
        assert rows[LIMIT] == 300000
        # It takes 15.3 microjoules for 2^-16 joules.
        assert rows[ENERGY] == pytest.approx(100_000, rel=0.01)


def test_what_no_file_tells(tree, tmp_path):
    """The energy of a GPU whose table is of a version that we do not know."""
    tree.write(0, "gpu_metrics", bytes([99]), at=3)
    recording = tmp_path / "run.tacho"
    for rocm, expected in (("", set()), (FALLING, {15.3})):
        command = tree(TACHO, "run", "-q", "-i", "20ms", "-o", recording, "--", "cat", TACHO_ROCM=rocm)
        with lasting(command):
            until(lambda: "amd-1" in by_instance("gpu.energy", recording, young=True), "a reading")
            if expected:
                until(lambda: "amd-0" in by_instance("gpu.energy", recording, young=True), "the library is asked")
        values = set(by_instance("gpu.energy", recording).get("amd-0", []))
        assert {round(value, 3) for value in values} == expected
        recording.unlink()


@pytest.mark.parametrize("fall", ["abort:init", "hang:init", "fail:init", "fault:energy", "hang:energy", "fail:energy", "abort:name"])
def test_a_library_that_falls(tree, tmp_path, fall):
    """The recording goes on without it, the job ends as it would, and nothing is printed."""
    for gpu in (0, 1):
        tree.file(gpu, "gpu_metrics").unlink()
    recording, printed = tmp_path / "run.tacho", tmp_path / "printed"
    command = tree(TACHO, "run", "-i", "20ms", "-q", "-o", recording, "--", "sh", "-c", "cat; exit 3",
                   TACHO_ROCM=FALLING, FAKE_ROCM=fall)  # fmt: skip
    with open(printed, "wb") as stderr, lasting(command, status=3, stderr=stderr):
        until(lambda: [gpu["util_max_percent"] for gpu in gpus(recording)] == [50, 51], "both are read")
    assert printed.read_bytes() == b""
    assert run("check", recording).returncode == 0


def test_a_file_that_is_no_library(tree, tmp_path):
    wrong = tmp_path / "librocm_smi64.so"
    wrong.write_text("no library")
    recording = tmp_path / "run.tacho"
    with lasting(tree(TACHO, "run", "-i", "20ms", "-q", "-o", recording, "--", "cat", TACHO_ROCM=wrong)):
        until(lambda: [gpu["util_max_percent"] for gpu in gpus(recording)] == [50, 51], "both are read")


def test_without_being_asked_it_is_not_loaded(tree, tmp_path):
    """It would lock files that every other tool waits for."""
    recording = tmp_path / "run.tacho"
    command = tree(TACHO, "run", "-i", "20ms", "-q", "-o", recording, "--", "cat")
    with lasting(command) as job:
        until(lambda: len(gpus(recording)) == 2, "two GPUs")
        assert "rocm" not in Path(f"/proc/{job.pid}/maps").read_text()


# ---- films ----


def test_a_film_of_gpus(tmp_path):
    recording = tmp_path / "film.tacho"
    done = run("debug", "play", TESTS / "films" / "gpu-amd.txt", recording, "1s", 1000)
    assert done.returncode == 0, done.stderr
    one, two = gpus(recording)
    assert one["energy_j"] == pytest.approx(250) and one["energy_source"] == "counter"
    # The second one's meter never moves, though its power is known: 213 W over the 11 s for which it was told.
    assert two["energy_j"] == pytest.approx(213 * 11) and two["energy_source"] == "power over time"
    assert show(recording)["energy"]["gpu_joules"] == pytest.approx(250 + 213 * 11)
    # Its process was busy all the time, by the driver: not more than the device.
    assert two["job_util_mean_percent"] <= two["util_mean_percent"] < 98
    assert two["job_busy_s"] <= two["util_mean_percent"] / 100 * two["observed_s"] * (1 + 1e-9)
    assert one["job_memory_peak_bytes"] == 6442450944
    assert two["job_memory_peak_bytes"] == 8589934592
    # 1005 ms to 1505 ms of the first process; its child goes on from 1700 ms to 1900 ms.
    busy = by_instance("gpu_process.busy", recording)
    assert busy["amd-0/1000"][0] == pytest.approx(1.005)
    assert busy["amd-0/1000"][-1] == pytest.approx(1.505)
    assert busy["amd-0/1001"] == pytest.approx(sorted(busy["amd-0/1001"]))
