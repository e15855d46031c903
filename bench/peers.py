"""What others cost who watch the same processes, for bench/run.py --peers: pidstat, atop, duct, psutil, the bare loop, tacho,
and an earlier tacho (--before).

All watch one herd at 1 Hz, one after the other, several times over, and each is charged what the kernel charged it and the
children it waited for. They do not record the same: the table says what each one keeps. duct can only watch what it started,
so it gets a herd of its own, of the same kind; none of its members ends while we measure, so their time is not in duct's."""

import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

import lab

CLOCK_TICK = os.sysconf("SC_CLK_TCK")
SETTLE_S = 3.5
# What each keeps of a process, for the table.
KEEPS = {
    "bare loop": "nothing: reads stat, statm, io, schedstat, fds of what ran",
    "tacho": "everything by default: every process, PSS and USS, the node, crash-safe",
    "tacho before": "as tacho",
    "pidstat": "CPU, memory, I/O, switches as text (pidstat -urdwh -p PIDS 1)",
    "atop": "every process and the node, compressed (atop -w FILE 1)",
    "duct": "CPU and memory by ps (duct --sample-interval 1 -- HERD)",
    "psutil": "nothing: reads the same metrics without PSS and USS",
}


def spent_s(pid):
    """CPU seconds of a process and of the children that it waited for."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return lab.cpu_clock_ns(pid) / 1e9 + (int(fields[13]) + int(fields[14])) / CLOCK_TICK


def charge(process, seconds):
    """Percent of one core that a running monitor costs, after it has settled."""
    time.sleep(SETTLE_S)
    begin, before = time.monotonic(), spent_s(process.pid)
    time.sleep(seconds)
    return 100 * (spent_s(process.pid) - before) / (time.monotonic() - begin)


def stop(process):
    process.terminate()
    process.wait()


def watched(command, seconds, folder):
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, **quiet)
    try:
        return charge(process, seconds)
    finally:
        stop(process)


def with_floor(herd, seconds):
    return herd.floor(1.0, seconds, lab.keep_limit())["ns"] * herd.size / 1e7


def with_psutil(herd, seconds):
    return herd.psutil(1.0, seconds)["ns"] * herd.size / 1e7


def with_tacho(binary):
    def cost(herd, seconds, folder=None):
        file = herd.folder / "peer.tacho"
        command = [str(binary), "attach", str(herd.root), "-i", "1s", "-q", "--force", "-o", str(file)]
        return watched(command, seconds, herd.folder)

    return cost


def with_pidstat(herd, seconds):
    pids = ",".join(map(str, herd.pids))
    return watched(["pidstat", "-u", "-r", "-d", "-w", "-h", "-p", pids, "1"], seconds, herd.folder)


def with_atop(herd, seconds):
    (herd.folder / "peer.atop").unlink(missing_ok=True)
    return watched(["atop", "-w", "peer.atop", "1"], seconds, herd.folder)


def duct_program():
    beside = pathlib.Path(__file__).resolve().parent.parent / ".dev/python/bin/con-duct"
    return str(beside) if beside.exists() else shutil.which("con-duct")


def with_duct(herd, seconds):
    command = [duct_program(), "run", "--sample-interval", "1", "--report-interval", "60", "-p", "duct-", "--clobber", "-q",
               str(herd.folder / "herd"), *herd.words]
    # A shell's background job ignores SIGINT, and so would duct.
    process = subprocess.Popen(command, cwd=herd.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        percent = charge(process, seconds)
        if process.poll() is not None:
            raise lab.Trouble(f"duct ended with status {process.returncode}")
        return percent
    finally:
        process.send_signal(signal.SIGINT)  # it passes this one on to its job
        process.wait()


def contenders(options):
    """Name and function of each that is here; the names of those that are not."""
    wanted = {
        "bare loop": with_floor,
        "tacho": with_tacho(options.tacho),
        "tacho before": with_tacho(options.before) if options.before else None,
        "pidstat": with_pidstat if shutil.which("pidstat") else None,
        "atop": with_atop if shutil.which("atop") else None,
        "duct": with_duct if duct_program() else None,
        "psutil": with_psutil,
    }
    return {name: cost for name, cost in wanted.items() if cost}, [name for name, cost in wanted.items() if not cost]


def measure(bench):
    """Percent of one core of each, by size of the herd, the median over rounds."""
    sizes, rounds, seconds = ((100,), 1, 5) if bench.options.quick else ((100, 1000), 3, 15)
    here, absent = contenders(bench.options)
    rows = []
    for size in sizes:
        taken = {name: [] for name in here}
        with lab.Herd(bench.folder, size, 40, 0.6) as herd:
            for turn in range(rounds):
                for name, cost in here.items():
                    bench.say(f"  {size} processes, round {turn + 1} of {rounds}: {name}")
                    taken[name].append(cost(herd, seconds))
        ours = statistics.median(taken["tacho"])
        rows += [{"processes": size, "monitor": name, "percent": statistics.median(values),
                  "per_tacho": statistics.median(values) / ours, "keeps": KEEPS[name]} for name, values in taken.items()]
    return {"rows": rows, "absent": absent}


if __name__ == "__main__":
    sys.exit("run bench/run.py --peers")
