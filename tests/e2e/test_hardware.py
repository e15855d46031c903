"""What a recording says of the machine and of the job's variables: as lscpu and the kernel say, and no secrets."""

import ctypes
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from recorder import record, run, show

TESTS = Path(__file__).resolve().parent.parent
SECRETS = ("PBS_JOBCOOKIE", "SLURM_JWT", "SLURM_EXPORT_ENV", "SLURM_SPANK_TOKEN", "AWS_SECRET_ACCESS_KEY", "OAR_KEY", "PMIX_SERVER_URI4")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recording made with variables of a job and with secrets beside them; its words and its records."""
    output = tmp_path_factory.mktemp("hardware") / "run.tacho"
    variables = {**os.environ, **{name: "hunter2" for name in SECRETS}, "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "m\u00fc n",
                 "OMPI_COMM_WORLD_RANK": "3", "OMP_NUM_THREADS": "2"}
    done = record(["sleep", "0.1"], "-q", output=output, env=variables)
    assert done.returncode == 0, done.stderr
    return show(output), run("debug", "dump", output).stdout.decode()


def lscpu():
    """What lscpu says, by field; nested fields come out flat."""
    if not shutil.which("lscpu"):
        pytest.skip("lscpu is not installed")
    said = {}

    def take(fields):
        for field in fields:
            said[field["field"].rstrip(":")] = field["data"]
            take(field.get("children", []))

    done = subprocess.run(["lscpu", "-J"], stdout=subprocess.PIPE, check=True, env={**os.environ, "LC_ALL": "C"})
    take(json.loads(done.stdout)["lscpu"])
    return said


def test_the_processor_is_the_one_of_lscpu(recorded):
    hardware, theirs = recorded[0]["hardware"], lscpu()
    assert hardware["threads"] == os.cpu_count()
    assert hardware["architecture"] == theirs["Architecture"]
    numbers = {"threads_per_core": "Thread(s) per core", "sockets": "Socket(s)", "numa_nodes": "NUMA node(s)"}
    if platform.machine() == "x86_64":
        numbers |= {"cpu_family": "CPU family", "cpu_model_number": "Model", "cpu_stepping": "Stepping"}
        assert hardware["cpu_vendor"] == theirs["Vendor ID"]
        assert " ".join(hardware["cpu_model"].split()) == " ".join(theirs["Model name"].split())
        flags = theirs["Flags"].split()
        assert set(hardware["cpu_flags"].split(", ")) <= set(flags)
        assert hardware["cpu_all_flags"].split() == flags
        assert hardware["cpu_modes"] == theirs["CPU op-mode(s)"] and hardware["cpu_address_sizes"] == theirs["Address sizes"]
        assert hardware["byte_order"] == theirs["Byte Order"].split()[0].lower() and hardware["cpu_bogomips"] == round(float(theirs["BogoMIPS"]))
        found = [name for name in theirs if name.startswith("Vulnerability ")]
        assert bool(found) == ("cpu_vulnerabilities" in hardware)
        for name in found:
            word = name.removeprefix("Vulnerability ").lower().replace(" ", "_")
            said = [part for part in hardware["cpu_vulnerabilities"].split(" | ") if part.startswith(f"{word}: ")]
            assert len(said) == (theirs[name] != "Not affected"), name
        for flag in ("avx2", "avx512f", "fma", "hypervisor"):
            assert (flag in hardware["cpu_flags"].split(", ")) == (flag in flags)
    compared = 0
    for ours, name in numbers.items():
        if theirs.get(name, "-").isdigit() and ours in hardware:
            assert hardware[ours] == int(theirs[name]), ours
            compared += 1
    assert compared, "nothing was compared"
    if theirs.get("Core(s) per socket", "-").isdigit() and theirs.get("Socket(s)", "-").isdigit():
        assert hardware["cores"] == int(theirs["Core(s) per socket"]) * int(theirs["Socket(s)"])


def test_caches_are_those_of_lscpu(recorded):
    """The amounts are totals there, one each here."""
    hardware = recorded[0]["hardware"]
    if not shutil.which("lscpu"):
        pytest.skip("lscpu is not installed")
    done = subprocess.run(["lscpu", "-B", "-J", "-C=NAME,ONE-SIZE,ALL-SIZE"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    caches = json.loads(done.stdout)["caches"] if done.returncode == 0 and done.stdout else []
    if not caches:
        pytest.skip("lscpu shows no caches here")
    for cache in caches:
        name = f"cache_{cache['name'].lower()}"
        if f"{name}_bytes" not in hardware:
            continue
        assert hardware[f"{name}_bytes"] == int(cache["one-size"])
        if f"{name}_count" in hardware:
            assert hardware[f"{name}_bytes"] * hardware[f"{name}_count"] == int(cache["all-size"])


def test_the_system_is_this_one(recorded):
    hardware = recorded[0]["hardware"]
    assert hardware["kernel"] == platform.release()
    assert hardware["memory_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    release = next((path for path in (Path("/etc/os-release"), Path("/usr/lib/os-release")) if path.exists()), None)
    if release:
        name = [line for line in release.read_text().splitlines() if line.startswith("PRETTY_NAME=")]
        assert hardware["distribution"] == name[0].partition("=")[2].strip("\"'")
    boot = next(int(line.split()[1]) for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
    told = subprocess.run(["date", "-ud", hardware["boot_time"], "+%s"], stdout=subprocess.PIPE, check=True).stdout
    assert abs(int(told) - boot) <= 2


def test_variables_that_name_the_job_and_no_secret(recorded):
    says, records = recorded
    assert says["environment"]["SLURM_JOB_ID"] == "4711"
    assert says["environment"]["SLURM_JOB_NAME"] == "m\u00fc n"
    assert says["environment"]["OMPI_COMM_WORLD_RANK"] == "3"
    assert says["environment"]["OMP_NUM_THREADS"] == "2"
    assert "4711" in records
    assert "hunter2" not in records
    for name in SECRETS:
        assert name not in records


def test_a_machine_of_256_cpus_plays_as_what_it_is(tmp_path):
    """The machine and, on it, the processes of a film."""
    film, output = tmp_path / "film.txt", tmp_path / "film.tacho"
    machine = (TESTS / "machines" / "numa-256.txt").read_text()
    processes = (TESTS / "films" / "tree.txt").read_text().splitlines(keepends=True)
    film.write_text(machine + "".join(line for line in processes if not line.startswith(("page_size", "clock_tick", "clock "))))
    done = run("debug", "play", film, output, "1s", 100)
    assert done.returncode == 0, done.stderr
    hardware = show(output)["hardware"]
    assert (hardware["sockets"], hardware["cores"], hardware["threads"], hardware["numa_nodes"]) == (2, 128, 256, 8)
    assert hardware["microarchitecture"] == "zen3"
    assert hardware["gpu_models"] == "4 x NVIDIA A100-SXM4-40GB"
    assert hardware["cache_l3_bytes"] * hardware["cache_l3_count"] == 512 << 20
    assert hardware["virtualization"] == "none"


def test_a_capture_holds_the_machine_and_no_secret(tmp_path):
    film, live, played = tmp_path / "film.txt", tmp_path / "live.tacho", tmp_path / "played.tacho"
    variables = {**os.environ, "SLURM_JOB_ID": "4711", **{name: "hunter2" for name in SECRETS}}
    job = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=variables)
    try:
        done = run("debug", "capture", film, live, "100ms", "300ms", job.pid, env=variables)
        assert done.returncode == 0, done.stderr
    finally:
        job.kill()
        job.wait()
    assert b"hunter2" not in film.read_bytes()
    done = run("debug", "play", film, played, "100ms", job.pid, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    ours, theirs = show(live), show(played)
    assert ours["hardware"]["kernel"] == platform.release()
    assert ours["hardware"] == theirs["hardware"]
    assert ours["environment"] == theirs["environment"]
    assert theirs["environment"]["SLURM_JOB_ID"] == "4711"


def test_the_kernels_verdict_on_its_clock(recorded):
    class Timex(ctypes.Structure):
        _fields_ = [("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long), ("maxerror", ctypes.c_long),
                    ("esterror", ctypes.c_long), ("status", ctypes.c_int), ("rest", ctypes.c_long * 40)]

    clock = Timex()
    assert ctypes.CDLL(None).adjtimex(ctypes.byref(clock)) >= 0
    hardware = recorded[0]["hardware"]
    assert hardware["clock_synchronized"] == ("no" if clock.status & 0x40 else "yes")
    assert ("clock_error_us" in hardware) == (hardware["clock_synchronized"] == "yes")
