"""On an overloaded machine: samples come in time, their rates are possible, and the job does not notice.

These tests load the machine on purpose, each for some seconds.
"""

import csv
import os
import subprocess
from pathlib import Path

import pytest

from recorder import BURNERS, run, show, start, until

HOGS, SECONDS = 1000, 8


def test_keeps_its_rhythm_among_hundreds_of_hogs(tmp_path):
    """All of them start and compute at once. Where the system gives a priority, next to no tick is missed."""
    if os.geteuid() != 0:
        pytest.skip("only root is sure to get a priority")
    file = tmp_path / "hogs.tacho"
    done = run("run", "-q", "-o", file, "--", BURNERS / "hogs", HOGS, SECONDS)
    assert done.returncode == 0, done.stderr
    told = show(file)
    ticks = told["ticks"]
    assert ticks["missed"] <= 1, ticks
    assert told["processes"]["peak"] > 50, "that was no crowd"


def curve(file, metric, *options):
    done = run("show", "--series", metric, "--csv", *options, file)
    assert done.returncode == 0, done.stderr
    return [float(row[metric]) for row in csv.DictReader(done.stdout.decode().splitlines()) if row[metric]]


def test_no_curve_exceeds_what_is_possible(tmp_path):
    """One thread at 100 Hz, among others that want its CPU: the kernel books its CPU time late, and we come late as well."""
    busy = ["python3", "-c", "i = 0\nwhile i < 10_000_000: i += 1"]
    file = tmp_path / "one.tacho"
    first = ["nice", "-n", "-15"] if os.geteuid() == 0 else []  # it has a CPU most of the time
    with subprocess.Popen([BURNERS / "hogs", "4", "600"], stdout=subprocess.DEVNULL) as hogs:
        try:
            done = run("run", "-q", "-i", "10ms", "-o", file, "--", *first, *busy)
        finally:
            hogs.terminate()
    assert done.returncode == 0, done.stderr
    for metric, options in ("tree.cores", []), ("proc.cpu.cores", ["--per", "instance"]):
        cores = curve(file, metric, *options)
        assert len(cores) > 10 and max(cores) < 1.001, metric


def threads(pid):
    """By name: policy and nice value of each."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        tid = int(task.name)
        scheduling = (os.sched_getscheduler(tid), os.getpriority(os.PRIO_PROCESS, tid))
        found.setdefault((task / "comm").read_text().strip(), []).append(scheduling)
    return found


def test_only_the_sampling_thread_has_a_priority(tmp_path):
    """Neither the job nor threads that wait for a GPU's driver."""
    if os.geteuid() != 0:
        pytest.skip("only root is sure to get a priority")
    fakes = BURNERS.parent / "fakes"
    (tmp_path / "values").write_text("devices 1\n")
    environment = dict(os.environ, TACHO_NVML=str(fakes / "libnvidia-ml.so.1"), FAKE_NVML=str(tmp_path / "values"))
    with start("run", "-q", "-m", "+gpu", "-o", tmp_path / "one.tacho", "--", "sleep", "100", env=environment) as tacho:
        try:
            until(lambda: os.sched_getscheduler(tacho.pid) == os.SCHED_RR | os.SCHED_RESET_ON_FORK, "a priority")
            ours = {"priority-watch": [(os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, -20)]}
            until(lambda: threads(tacho.pid).items() >= ours.items(), "a thread that watches over it")
            until(lambda: sum(map(len, threads(tacho.pid).values())) > 2, "a thread for the GPU")
            rest = threads(tacho.pid)
            assert rest.pop("priority-watch") == ours["priority-watch"]
            rest["tacho"].remove((os.SCHED_RR | os.SCHED_RESET_ON_FORK, -20))
            for policy, nice in sum(rest.values(), []):
                assert policy in (os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE) and nice >= 0
            children = Path(f"/proc/{tacho.pid}/task/{tacho.pid}/children").read_text().split()
            [job] = [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text() == "sleep\n"]
            assert (os.sched_getscheduler(job), os.getpriority(os.PRIO_PROCESS, job)) == (os.SCHED_OTHER, 0)
        finally:
            tacho.terminate()
