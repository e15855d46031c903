"""GPUs as people record them: a fake of NVIDIA's library says what a test writes into a file, while a real job runs."""

import contextlib
import csv
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from recorder import TACHO, children, dump, job_of, lasting, need_mounts, run, show, shown, start, until

FAKES = Path(TACHO).parent / "tests" / "fakes"
FAST = ["-q", "-i", "100ms", "--flush", "100ms"]
MIB = 1 << 20
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

GPUS = """\
count 2
0.name NVIDIA FAKE-100
0.uuid GPU-00000000
0.pci 0 3b 0
0.util 40
0.memutil 10
0.mem_total 42949672960
0.mem_used 1073741824
0.power 150000
0.power_limit 400000
0.temp 55
1.name NVIDIA FAKE-200
1.uuid GPU-11111111
1.util 0
1.memutil 0
1.mem_total 85899345920
1.mem_used 0
1.power 60000
"""


class Driver:
    """The fake's values, replaced at once while others read them."""

    def __init__(self, folder, values=GPUS):
        self.path = folder / "values"
        self.log = folder / "calls"
        self.say(values)

    def say(self, values):
        new = self.path.with_suffix(".new")
        new.write_text(values)
        new.rename(self.path)

    def calls(self, name):
        return self.log.read_text().split().count(name) if self.log.exists() else 0

    def environment(self, library="libnvidia-ml.so.1", **more):
        return dict(os.environ, TACHO_NVML=str(FAKES / library), FAKE_NVML=str(self.path), FAKE_NVML_LOG=str(self.log), **more)


@pytest.fixture
def driver(tmp_path):
    return Driver(tmp_path)


def pairs(item):
    return dict(item["pairs"])


def reasons(recording, metric):
    """Told while it recorded; nothing while there is no recording yet."""
    if run("show", "--json", recording).returncode:
        return []
    return [pairs(item) for item in dump(recording) if item.get("kind") == "unavailable" and pairs(item)["metric"] == metric]


def instances(recording, key):
    """What is said of the instances that have this key, by name."""
    found = [pairs(item) for item in dump(recording) if item["type"] == "instance"]
    return {item["name"]: item for item in found if key in item and "name" in item}


def gpus(recording):
    """By name of the instance; nothing while there is no recording yet."""
    done = run("show", "--json", recording)
    return {gpu["instance"]: gpu for gpu in json.loads(done.stdout)["gpus"]} if done.returncode == 0 else {}


def kill_children(tacho, number):
    """The job; its witness may be gone by then."""
    for pid in children(tacho.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


@pytest.fixture
def recorder(tmp_path, driver):
    """Starts `tacho run` of a job that lasts until it is told to end; returns it with its recording."""
    started = []

    def begin(command, *options, **environment):
        recording = tmp_path / "a.tacho"
        tacho = start("run", "-o", recording, *FAST, *options, "--", *command, env=driver.environment(**environment))
        started.append(tacho)
        return tacho, recording

    yield begin
    for tacho in started:
        if tacho.poll() is None:
            kill_children(tacho, signal.SIGKILL)
            tacho.wait()


def end(tacho):
    """Ends the job, and with it the recording."""
    kill_children(tacho, signal.SIGTERM)
    return tacho.wait()


def test_two_gpus(driver, recorder):
    # Energy of the first grows by 20 J with every reading.
    driver.say(GPUS + "0.energy " + " ".join(str(20000 * i) for i in range(1, 20)) + "\n")
    tacho, recording = recorder(["sleep", "1000"])
    until(lambda: (gpus(recording).get("nvidia-0", {}).get("energy_j") or 0) >= 20, "it uses energy")
    end(tacho)
    found = gpus(recording)
    assert list(found) == ["nvidia-0", "nvidia-1"]
    first, second = found["nvidia-0"], found["nvidia-1"]
    assert (first["name"], first["uuid"], first["vendor"], first["index"]) == ("NVIDIA FAKE-100", "GPU-00000000", "nvidia", 0)
    assert first["util_mean_percent"] == pytest.approx(40) and first["util_max_percent"] == 40
    assert first["mem_util_max_percent"] == 10
    assert first["memory_peak_bytes"] == 1024 * MIB and first["memory_total_bytes"] == 40960 * MIB
    assert first["power_mean_w"] == pytest.approx(150) and second["power_max_w"] == 60
    assert first["energy_j"] % 20 == 0
    assert second["util_max_percent"] == 0, "idle is 0, not unknown"
    assert driver.calls("nvmlShutdown") == 1


@needs_root
def test_the_library_by_its_own_name(driver, tmp_path):
    """As on a machine with a driver: /dev/nvidiactl is there and the loader finds libnvidia-ml.so.1."""
    need_mounts()
    recording = tmp_path / "a.tacho"
    environment = driver.environment(LD_LIBRARY_PATH=str(FAKES))
    del environment["TACHO_NVML"]
    script = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && : >/dev/nvidiactl && exec \"$@\""
    command = [TACHO, "run", "-o", recording, *FAST, "--", "cat"]
    tacho = subprocess.Popen(["unshare", "--mount", "sh", "-c", script, "sh", *command], env=environment, stdin=subprocess.PIPE)
    try:
        until(lambda: gpus(recording).get("nvidia-0", {}).get("util_max_percent") == 40, "it is read")
    finally:
        tacho.stdin.close()
        assert tacho.wait() == 0


def test_memory_of_a_real_tree(driver, recorder):
    # Two children of a shell, on two devices, and somebody else's process on the first.
    tacho, recording = recorder(["sh", "-c", "sleep 1000 & sleep 1001 & wait"])
    job = job_of(tacho, "sh")
    one, two = until(lambda: len(children(job)) == 2 and sorted(children(job)), "the job has two children")
    driver.say(GPUS + f"0.proc {one} {100 * MIB} 30 5 0 0\n0.proc {two} {50 * MIB} 10 0 0 0\n"
               f"0.proc {os.getpid()} {900 * MIB} 60 0 0 0\n1.proc {two} {7 * MIB} 0 0 0 0\n")
    until(lambda: gpus(recording).get("nvidia-0", {}).get("job_memory_peak_bytes") == 150 * MIB, "their memory is known")
    until(lambda: (gpus(recording)["nvidia-0"]["job_util_mean_percent"] or 0) > 0, "their utilisation is known")
    # One leaves the GPU, the other grows.
    driver.say(GPUS + f"0.proc {one} {200 * MIB} 30 5 0 0\n")
    until(lambda: gpus(recording)["nvidia-0"]["job_memory_peak_bytes"] == 200 * MIB, "it has grown")
    end(tacho)
    found = gpus(recording)
    assert found["nvidia-0"]["job_memory_peak_bytes"] == 200 * MIB
    assert found["nvidia-1"]["job_memory_peak_bytes"] == 7 * MIB
    on = instances(recording, "gpu")
    assert set(on) == {f"nvidia-0/{one}", f"nvidia-0/{two}", f"nvidia-1/{two}"}
    # Each is joined to its process by the number of that instance.
    process = {pairs(item).get("pid"): item["id"] for item in dump(recording) if item["type"] == "instance" and item["set"] == 0}
    assert {int(item["process"]) for item in on.values()} == {process[str(one)], process[str(two)]}


def test_gpu_use_of_a_group(driver, recorder, tmp_path):
    tool = tmp_path / "trainer"
    tool.symlink_to("/bin/sleep")
    tacho, recording = recorder(["sh", "-c", f"{tool} 1000 & sleep 1001 & wait"], "--also", f"match:^({tool})")
    job = job_of(tacho, "sh")
    both = until(lambda: len(children(job)) == 2 and children(job), "the job has two children")
    trainer = until(lambda: [pid for pid in both if Path(f"/proc/{pid}/comm").read_text().strip() == "trainer"], "a trainer")[0]
    other = [pid for pid in both if pid != trainer][0]
    driver.say(GPUS + f"0.proc {trainer} {64 * MIB} 30 5 0 0\n0.proc {other} {16 * MIB} 0 0 0 0\n")
    until(lambda: gpus(recording).get("nvidia-0", {}).get("job_memory_peak_bytes") == 80 * MIB, "both are known")
    end(tacho)
    groups = show(recording)["groups"]
    assert [gpu["memory_peak_bytes"] for gpu in groups[str(tool)]["gpus"] if gpu["memory_peak_bytes"]] == [64 * MIB]


def utils(recording):
    """Utilisation at every tick so far, of 1."""
    lines = run("show", "--series", "gpu.util", "--csv", recording).stdout.decode().splitlines()[1:]
    return [float(line.split(",")[-1]) for line in lines if line.split(",")[-1]]


def test_gpus_by_phase(driver, recorder, tmp_path):
    """One phase in which the GPU works, one in which it idles: in the summary's table, its JSON and the export."""
    job = "".join(f"until [ -e {tmp_path}/go-{name} ]; do sleep 0.02; done; {TACHO} phase begin {name}; touch {tmp_path}/in-{name}; "
                  f"until [ -e {tmp_path}/end-{name} ]; do sleep 0.02; done; {TACHO} phase end {name}; touch {tmp_path}/out-{name}; "
                  for name in ("train", "save"))
    tacho, recording = recorder(["sh", "-c", job + "sleep 1000"])
    for name, util, used in (("train", 90, 8192), ("save", 5, 2048)):
        driver.say(GPUS.replace("count 2", "count 1").replace("0.util 40", f"0.util {util}")
                   .replace("0.mem_used 1073741824", f"0.mem_used {used * MIB}"))
        until(lambda: utils(recording)[-3:] == 3 * [util / 100], f"three samples of {util} %")
        (tmp_path / f"go-{name}").touch()
        until((tmp_path / f"in-{name}").exists, f"{name} has begun")
        before = len(utils(recording))
        until(lambda: len(utils(recording)) > before + 3, "more samples")
        (tmp_path / f"end-{name}").touch()
        until((tmp_path / f"out-{name}").exists, f"{name} has ended")
        ended = len(utils(recording))
        until(lambda: len(utils(recording)) > ended + 2, "samples behind it")
    end(tacho)
    phases = {phase["name"]: phase for phase in show(recording)["phases"]}
    assert phases["train"]["gpu_util_percent"] == pytest.approx(90) and phases["save"]["gpu_util_percent"] == pytest.approx(5)
    assert phases["train"]["gpu_memory_peak_bytes"] == 8192 * MIB and phases["save"]["gpu_memory_peak_bytes"] == 2048 * MIB
    for phase in phases.values():
        assert 0 < phase["gpu_observed_s"] <= 1.01 * phase["duration_s"]
        assert phase["gpu_energy_joules"] == pytest.approx(150 * phase["gpu_observed_s"], rel=0.01)
    table = run("show", recording).stdout.decode().split("by phase")[1].splitlines()
    assert " GPU " in table[0] and " 90 %" in table[1] and " 5 %" in table[2]
    exported = run("export", "--to", "csv", "-d", "phases", "-o", "-", recording).stdout.decode()
    rows = {(row["level"], row["phase"]): row for row in csv.DictReader(exported.splitlines())}
    assert float(rows["occurrence", "train"]["gpu_util_percent"]) == pytest.approx(90), "of the repetition, too"


def test_a_driver_that_blocks_does_not_delay_ticks(driver, tmp_path):
    # From its second call on, asking for the power takes a day.
    driver.say(GPUS.replace("0.power 150000", "0.power 150000 ~100000000:150000"))
    recording = tmp_path / "a.tacho"
    with lasting(["cat"], "-i", "100ms", output=recording, env=driver.environment()):
        until(lambda: driver.calls("nvmlDeviceGetPowerUsage") >= 2, "the driver blocks")
        # A tick that waited for the driver would be the last.
        before = shown(recording)["ticks"]["taken"]
        until(lambda: shown(recording)["ticks"]["taken"] > before + 5, "ticks go on")
        # What was known is known, what could not be read is said to be so.
        until(lambda: any("has not answered for" in item["why"] for item in reasons(recording, "gpu.util")), "it is told")
    assert gpus(recording)["nvidia-0"]["util_max_percent"] == 40


def test_a_gpu_falls_off_the_bus_and_comes_back(driver, recorder):
    tacho, recording = recorder(["sleep", "1000"])
    until(lambda: gpus(recording).get("nvidia-1", {}).get("power_max_w") == 60, "both are read")
    driver.say(re.sub(r"(?m)^1\.(util|power|mem_total) .*", r"1.\1 !15", GPUS) + "1.handle !15\n")
    until(lambda: any("nvidia-1: it has fallen off the bus" in item["why"] for item in reasons(recording, "gpu.util")), "it is told")
    driver.say(GPUS.replace("1.power 60000", "1.power 61000"))
    until(lambda: gpus(recording)["nvidia-1"]["power_max_w"] == 61, "it is read again")
    assert gpus(recording)["nvidia-0"]["util_max_percent"] == 40
    end(tacho)
    assert set(gpus(recording)) == {"nvidia-0", "nvidia-1"}


def test_a_gpu_that_is_lost_from_the_start(driver, tmp_path):
    driver.say(re.sub(r"(?m)^1\.(util|power|mem_total) .*", r"1.\1 !15", GPUS))
    recording = tmp_path / "a.tacho"
    with lasting(["cat"], *FAST, output=recording, env=driver.environment()):
        until(lambda: (found := gpus(recording)) and found["nvidia-1"]["lost"] and found["nvidia-0"]["util_max_percent"] == 40
              and found["nvidia-0"]["job_memory_peak_bytes"] is not None, "both were asked")
    first, second = gpus(recording).values()
    assert first["job_memory_peak_bytes"] == 0 and first["lost"] is None, "nobody of the job is on it"
    assert second["lost"] == "it has fallen off the bus (GPU is lost)" and second["lost_at_s"] is not None
    for name in ("util_mean_percent", "job_memory_peak_bytes", "job_util_mean_percent", "job_busy_s"):
        assert second[name] is None and second["unavailable"][name] == second["lost"]
    assert any(second["lost"] in note and "nvidia-1" in note for note in show(recording)["notes"])
    # It does not stand there as the job's only GPU.
    text = run("show", recording).stdout.decode()
    assert re.search(r"(?m)^  gpu +1 in the node, not used by the job; 1 more could not be read$", text), text
    assert "nothing could be read" not in text and "GPU nvidia-1 could not be read at any time" in text


MISSING = {
    "library": ("is-not-there.so", GPUS, "not its library libnvidia-ml.so.1"),
    "driver": ("libnvidia-ml.so.1", "# nothing\n", "the NVIDIA driver is not loaded"),
    "match": ("libnvidia-ml.so.1", GPUS + "init !18\n", "different versions"),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_told_and_the_rest_goes_on(driver, recorder, what):
    library, values, words = MISSING[what]
    driver.say(values)
    tacho, recording = recorder(["sleep", "1000"], library=library)
    until(lambda: reasons(recording, "gpu.util") and reasons(recording, "gpu_process.memory"), "it is told")
    end(tacho)
    told = reasons(recording, "gpu.util") + reasons(recording, "gpu_process.memory")
    assert len(told) == 2 and all(words in item["why"] and item["remedy"] for item in told)
    assert show(recording)["cpu"]["total_s"] is not None


@pytest.mark.parametrize("library, stride", [("libnvidia-ml-old.so.1", "24"), ("libnvidia-ml-v3.so.1", "32")])
def test_drivers_of_other_ages(driver, recorder, library, stride):
    tacho, recording = recorder(["sh", "-c", "sleep 1000 & wait"], library=library, FAKE_NVML_STRIDE=stride)
    job = job_of(tacho, "sh")
    child = until(lambda: children(job), "the job has a child")[0]
    driver.say(GPUS + f"0.proc {job} {10 * MIB} 0 0 0 0\n0.proc {child} {20 * MIB} 0 0 0 0\n")
    until(lambda: gpus(recording).get("nvidia-0", {}).get("job_memory_peak_bytes") == 30 * MIB, "their memory is known")
    end(tacho)


def test_either_collector_alone(driver, recorder):
    driver.say(GPUS + f"0.proc {os.getpid()} 1000 0 0 0 0\n")
    for choice, called, idle in [("none,gpu_process", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetUtilizationRates"),
                                 ("none,gpu.util", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetComputeRunningProcesses_v2")]:
        driver.log.unlink(missing_ok=True)
        tacho, recording = recorder(["sleep", "1000"], "-m", choice)
        until(lambda: driver.calls(called) > 1, "it is asked")
        end(tacho)
        recording.unlink()
        assert driver.calls(idle) == 0


def test_without_a_gpu_there_is_no_thread_and_no_library(tmp_path):
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    if subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("strace may not trace here (ptrace is forbidden)")
    vendors = [path.read_text().strip() for path in Path("/sys/class/drm").glob("card*/device/vendor")]
    if Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists() or {"0x1002", "0x8086"} & set(vendors):
        pytest.skip("this machine has a GPU")
    log = tmp_path / "strace"
    environment = {name: value for name, value in os.environ.items() if name not in ("TACHO_NVML", "TACHO_ROCM")}
    command = [TACHO, "run", "-o", tmp_path / "a.tacho", *FAST, "--", "sleep", "0.3"]
    subprocess.run(["strace", "-f", "-e", "trace=openat,clone,clone3,prctl", "-o", log, *command], check=True, env=environment)
    own = log.read_text().split()[0]
    calls = [line for line in log.read_text().splitlines() if line.split()[0] == own]
    assert any("clone" in line for line in calls), "the trace shows the job's birth"
    # Where it has a real-time priority, a thread watches over it: the only one.
    assert sum("CLONE_THREAD" in line for line in calls) == log.read_text().count('"priority-watch"')
    assert not [line for line in calls if "nvidia-ml" in line or "rocm" in line]
    why = [metric["why"] for item in dump(tmp_path / "a.tacho") if item["type"] == "schema" for group in item["sets"]
           for metric in group["metrics"] if metric["name"] == "gpu.util"]
    assert len(why) == 1 and why[0].startswith("no GPU: no NVIDIA driver")
