"""What bench/run.py measures with: herds, the bare loop, psutil, and the recorder seen from outside.

The recorder's cost is read by us from its CPU clock, not taken from its own recording: who is measured does not hold
the watch. Readings fall in the middle between two ticks, so that a window holds a known number of them."""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
NVML = "libnvidia-ml.so.1"
WARM_UP_TICKS = 3  # of the recorder: the first opens the files, the next ones still grow tables and caches


class Trouble(Exception):
    """Something that makes the numbers worthless; its text is for people."""


def parse(parser):
    """What is asked for: the options of every bench beside those of this one."""
    parser.add_argument("--json", action="store_true", help="the numbers for programs")
    parser.add_argument("--tacho", type=pathlib.Path, default=os.environ.get("TACHO", HERE.parent / "build/tacho"))
    parser.add_argument("--doc", type=pathlib.Path, help="also put the tables into this document")
    options = parser.parse_args()
    options.tacho = pathlib.Path(options.tacho).resolve()
    if not options.tacho.exists():
        parser.error(f"{options.tacho} is not there: build it first")
    return options


def measure(bench, options, place=None):
    """What bench(options, folder) finds, in a folder of its own; when it cannot, that is the end."""
    with tempfile.TemporaryDirectory(prefix="tacho-bench-", dir=place) as folder:
        try:
            return bench(options, pathlib.Path(folder)).run()
        except Trouble as trouble:
            sys.exit(f"bench: {trouble}")


def recording_maker(tacho):
    """The program that makes long recordings, beside the recorder."""
    tool = tacho.parent / "tests" / "unit" / "query_tool"
    if not tool.exists():
        raise Trouble(f"{tool} is not there, which makes long recordings: build with -Dtests=enabled")
    return tool


def cpu_clock_ns(pid):
    """CPU time of a process, exact to the nanosecond, as the recorder itself reads those of others."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def peak_rss_bytes(pid):
    """VmHWM. Not ru_maxrss, which survives exec: the child of a Python program would begin with Python's."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise Trouble("this kernel keeps no high-water mark")


def goal(what, value, unit, limit, at_least=False, strict=False):
    """What was measured beside what is wanted."""
    if at_least:
        met = value >= limit
    else:
        met = value < limit if strict else value <= limit
    sign = "at least" if at_least else "under" if strict else "at most"
    return {"what": what, "value": value, "unit": unit, "goal": f"{sign} {limit:g}{unit}", "limit": limit, "met": met}


def sleep_until(deadline):
    time.sleep(max(0.0, deadline - time.monotonic()))


def compile_tools(folder):
    """herd (static: 5,000 of them must be cheap), floor and peak, as fast as the compiler can make them; the tests' storm
    of forks, and their stand-in for NVML."""
    flags = ["-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra"]
    tests = HERE.parent / "tests"
    for name, source, extra in (
            ("herd", HERE / "herd.c", ["-static"]), ("floor", HERE / "floor.c", []),
            ("peak", HERE / "peak.c", []),
            ("storm", tests / "burners" / "storm.c", ["-static"]),
            (NVML, tests / "fakes" / "nvml.c", ["-shared", "-fPIC"])):
        command = [os.environ.get("CC", "cc"), *flags, *extra, "-o", str(folder / name), str(source)]
        subprocess.run(command, check=True)


def two_gpus(folder, pids):
    """Environment of a machine with two NVIDIA GPUs that have everything and on which these processes are."""
    lines = ["count 2"]
    for n in range(2):
        lines += [f"{n}.name NVIDIA-A100", f"{n}.uuid GPU-{n}", f"{n}.pci 0 {n + 1} 0", f"{n}.minor {n}"]
        lines += [f"{n}.{key} 50" for key in (
            "util memutil bar1_used clock0 clock1 clock2 clock3 maxclock0 maxclock1 maxclock2 maxclock3 ecc_0 ecc_1 temp "
            "memtemp fan power power_limit energy reasons viol_0 viol_1 viol_2 viol_3 viol_4 viol_5 enc dec pcie_tx "
            "pcie_rx replays mem_used mem_reserved").split()]
        lines += [f"{n}.pstate 0", f"{n}.mem_total 42949672960", f"{n}.bar1_total 65536"]
        lines += [f"{n}.proc {pid} 1048576 10 5 0 0" for pid in pids]
    file = folder / "nvml.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return dict(os.environ, TACHO_NVML=str(folder / NVML), FAKE_NVML=str(file))


class Herd:
    """A tree of processes to look at; a context manager, so that none is left behind."""

    def __init__(self, folder, size, active_percent, period_s):
        self.words = [str(size), str(active_percent), str(max(1.0, period_s * 1000))]
        self.process = subprocess.Popen([str(folder / "herd"), *self.words], stdout=subprocess.PIPE, text=True)
        self.pids = []
        for line in self.process.stdout:
            if line.strip() == "ready":
                break
            self.pids.append(int(line))
        if len(self.pids) != size:
            self.stop()
            raise Trouble(f"could not start {size} processes (limits on processes or memory?)")
        self.folder, self.size, self.root = folder, size, self.pids[0]
        self.pid_text = "".join(f"{pid}\n" for pid in self.pids)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def ask(self, command):
        """Runs a measuring program on the pids; its answer is one JSON object."""
        done = subprocess.run(command, input=self.pid_text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Trouble(f"{command[0]}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def floor(self, interval_s, ticks, keep):
        """The bare loop: ns of CPU per process and tick, and the share of processes that had moved."""
        answer = self.ask([str(self.folder / "floor"), str(interval_s * 1000), str(ticks), str(keep)])
        if answer["failed"]:
            raise Trouble(f"floor: {answer['failed']} reads failed: did processes of the herd die?")
        rows = self.size * ticks
        return {"ns": answer["cpu_ns"] / rows, "moved": answer["moved"] / rows, "kept": answer["kept"]}

    def psutil(self, interval_s, ticks, full_per_tick=0.0):
        """psutil, given the pids; and what finding the tree would cost it on top."""
        command = [sys.executable, str(HERE / "peer_psutil.py"), str(interval_s), str(ticks), str(full_per_tick)]
        answer = self.ask(command)
        return {"ns": answer["cpu_ns"] / (self.size * ticks), "find_ns": answer["find_ns"] / self.size}


class Tacho:
    """The recorder and its reader."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.serial = str(binary), folder, 0

    def new_file(self):
        self.serial += 1
        return self.folder / f"bench-{self.serial}.tacho"

    def show(self, file):
        done = subprocess.run([self.binary, "show", "--json", str(file)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Trouble(f"tacho show: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def attach(self, herd, interval_s, duration_s, options=(), env=None):
        file = self.new_file()
        command = [self.binary, "attach", str(herd.root), "-i", f"{interval_s * 1000:g}ms", "-o", str(file), "-q",
                   "--duration", f"{duration_s * 1000:.0f}ms", *options]
        return file, subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env)

    def finish(self, file, process, herd):
        """Ends with its summary, kept honest: it must have seen the whole herd."""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise Trouble(f"tacho attach ended with status {process.returncode}")
        summary = self.show(file)
        if summary["processes"]["peak"] != herd.size:
            raise Trouble(f"tacho saw {summary['processes']['peak']} of {herd.size} processes")
        summary["kernel_cpu_s"] = usage.ru_utime + usage.ru_stime
        file.unlink()
        return summary

    def cost(self, herd, interval_s, ticks, options=()):
        """CPU ns per process and tick in the steady state, with the summary of that recording."""
        start = time.monotonic()
        file, process = self.attach(herd, interval_s, (ticks + WARM_UP_TICKS + 1.8) * interval_s, options)
        sleep_until(start + (WARM_UP_TICKS + 0.5) * interval_s)
        before = cpu_clock_ns(process.pid)
        sleep_until(start + (WARM_UP_TICKS + 0.5 + ticks) * interval_s)
        after = cpu_clock_ns(process.pid)
        summary = self.finish(file, process, herd)
        return {"ns": (after - before) / (herd.size * ticks), "summary": summary}

    def watch(self, herd, interval_s, seconds):
        """Its summary after so many seconds, and the kernel's high-water mark of its memory in bytes."""
        file, process = self.attach(herd, interval_s, seconds)
        time.sleep(seconds - 0.2)
        peak = peak_rss_bytes(process.pid)
        return self.finish(file, process, herd), peak

    def share(self, herd, interval_s, before_s, seconds):
        """Percent of a core in these seconds, start and end included where nothing is before them; and ticks missed."""
        file, process = self.attach(herd, interval_s, before_s + seconds + (2 if before_s else 0))
        if before_s:
            time.sleep(before_s)
            from_ns = cpu_clock_ns(process.pid)
            time.sleep(seconds)
            percent = (cpu_clock_ns(process.pid) - from_ns) / 1e7 / seconds
        summary = self.finish(file, process, herd)
        return percent if before_s else 100 * summary["kernel_cpu_s"] / seconds, summary["ticks"]["missed"]

    def account(self, file):
        """Of a finished recording, ns per tick in each collector, as it has them itself; of those that are not on this
        machine None."""
        done = subprocess.run([self.binary, "debug", "dump", str(file)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Trouble(f"tacho debug dump: {done.stderr.strip()}")
        names, first, last, sets = {}, None, None, []
        for line in map(json.loads, done.stdout.splitlines()):
            if line["type"] == "schema":
                sets = line["sets"]
                account = next(i for i, one in enumerate(sets) if one["domain"] == "collector")
            elif line["type"] == "instance" and line["set"] == account:
                names[line["row"]] = dict(line["pairs"])["name"]
            elif line["type"] == "tick":
                cells = {row["row"]: row["cells"][0] for row in line["rows"] if row["set"] == account}
                if cells:
                    first = first or {"number": line["number"], "cells": cells}
                    last = {"number": line["number"], "cells": {**(last["cells"] if last else {}), **cells}}
        if not last or last["number"] == first["number"]:
            raise Trouble("the recording is too short for an account by collector")
        file.unlink()
        ticks = last["number"] - first["number"]
        absent = {one["name"] for one in sets if all(m["availability"] != "available" for m in one["metrics"])}
        spent = {name: (last["cells"][row] - first["cells"].get(row, 0)) / ticks for row, name in names.items()}
        return {name: None if name in absent else ns for name, ns in spent.items()}

    def collectors(self, herd, interval_s, seconds, env=None):
        """With everything on, ns per tick in each collector."""
        file, process = self.attach(herd, interval_s, seconds, ["-m", "all"], env)
        if process.wait():
            raise Trouble(f"tacho attach -m all ended with status {process.returncode}")
        return self.account(file)

    def beside(self, herd, interval_s, ticks, env):
        """CPU ns per tick in the threads beside the ticks, by the kernel's account."""
        start = time.monotonic()
        file, process = self.attach(herd, interval_s, (ticks + WARM_UP_TICKS + 1.8) * interval_s, env=env)

        def others():
            every = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
            tasks = [task for task in every if task.name != str(process.pid)]
            return sum(int((task / "schedstat").read_text(encoding="utf-8").split()[0]) for task in tasks)

        sleep_until(start + (WARM_UP_TICKS + 0.5) * interval_s)
        before = others()
        sleep_until(start + (WARM_UP_TICKS + 0.5 + ticks) * interval_s)
        after = others()
        self.finish(file, process, herd)
        return (after - before) / ticks

    def run(self, command, interval_s, options=()):
        """Records a command; the file, and the seconds that it all took."""
        file = self.new_file()
        words = [self.binary, "run", "-q", "-i", f"{interval_s * 1000:g}ms", "-o", str(file), *options, "--", *command]
        return file, run_timed(words)[0]

    def growth(self, herds, interval_s, seconds, settle_s=2.5):
        """Bytes the recordings of several herds grow by per tick, all recorded at once."""
        running = [self.attach(herd, interval_s, seconds + settle_s + 1.5) for herd in herds]
        time.sleep(settle_s)
        before = [file.stat().st_size for file, _ in running]
        time.sleep(seconds)
        after = [file.stat().st_size for file, _ in running]
        for (file, process), herd in zip(running, herds):
            self.finish(file, process, herd)
        return [(b - a) * interval_s / seconds for a, b in zip(before, after)]


def run_timed(command):
    """Wall and CPU seconds of a command and all it waited for."""
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    if status:
        raise Trouble(f"{' '.join(command)}: status {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime


def busy_share(seconds=1.0):
    """Share of all CPUs' time that is used now, while we only wait: by others, that is."""
    def read():
        text = pathlib.Path("/proc/stat").read_text(encoding="utf-8")
        times = [int(word) for word in text.split("\n", 1)[0].split()[1:9]]
        return sum(times), times[3] + times[4]

    total, idle = read()
    time.sleep(seconds)
    total_after, idle_after = read()
    return 1 - (idle_after - idle) / max(1, total_after - total)


def forks_so_far():
    """Of the whole machine since it booted."""
    for line in pathlib.Path("/proc/stat").read_text(encoding="utf-8").splitlines():
        if line.startswith("processes "):
            return int(line.split()[1])
    return 0


def keep_limit():
    """Descriptors that a recorder with its limit raised may keep open, with a few left for other things."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 40


def describe_machine():
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    kind = "VM" if " hypervisor" in text else "machine"
    release = os.uname().release.split("-")[0].split(".")
    return f"{os.cpu_count()}-core {kind}, Linux {'.'.join(release[:2])}"


