#!/usr/bin/python3
"""The cost of recording, measured in one run against the floor and against psutil.

    bench/run.py [--quick] [--collectors | --reports | --peers | --hogs] [--json] [--tacho FILE] [--before FILE] [--doc FILE]

Prints the recorder's CPU per process and tick for trees of 10 to 5,000 processes beside a bare loop that only reads
the same files and beside psutil reading the same metrics, and then each goal with the measured ratio and a verdict.
The contenders look at the same herd, at the same interval, in turn (floor, recorder, psutil, floor, recorder, ...), and
ratios are taken between neighbours, since the machine these run on is never quiet. Nothing here fails a build: the
budget test counts what can be counted, this shows what it costs."""

import argparse
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hogs  # noqa: E402
import lab  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402

RUNNING, LIVELY, MOSTLY_ASLEEP, ASLEEP = "all running", "40 % running", "5 % running", "all asleep"
ACTIVE_PERCENT = {RUNNING: 100, LIVELY: 40, MOSTLY_ASLEEP: 5, ASLEEP: 0}
FAST = ["--budget", "100", "-m", "-smaps"]  # without the tier of page-table walks, which has a budget of its own
DOC_MARK = "<!-- {}: {} -->"  # what is measured, and begin or end

# Processes, mix, seconds between ticks, seconds of a window of the bare loop and of the recorder, rounds. The recorder
# reads status every 5 s and looks at sleepers every 10 s: from 1,000 processes on its windows hold one such tick.
FULL_PLAN = [
    (10, RUNNING, 0.05, 5, 5, 1),
    (10, ASLEEP, 0.05, 2, 5, 1),
    (100, RUNNING, 0.05, 5, 5, 1),
    (100, ASLEEP, 0.05, 2, 5, 1),
    (1000, RUNNING, 0.25, 5, 5, 3),
    (1000, LIVELY, 0.25, 5, 10, 1),
    (1000, MOSTLY_ASLEEP, 0.25, 5, 10, 1),
    (1000, ASLEEP, 0.25, 2, 10, 2),
    (5000, RUNNING, 1.0, 5, 5, 1),
    (5000, ASLEEP, 1.0, 3, 10, 1),
]
QUICK_PLAN = [
    (10, RUNNING, 0.05, 1, 1, 1),
    (100, RUNNING, 0.05, 1, 1, 1),
    (1000, RUNNING, 0.25, 1, 1, 1),
    (1000, MOSTLY_ASLEEP, 0.25, 1, 1, 1),
    (1000, ASLEEP, 0.25, 1, 1, 1),
]
PSUTIL_TICKS = 3


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.tacho = lab.Tacho(options.tacho, folder)
        self.costs, self.goals, self.facts, self.by_collector = [], [], [], {}

    def say(self, text):
        if not self.options.json:
            print(text, file=sys.stderr, flush=True)

    def goal(self, *what, **how):
        self.goals.append(lab.goal(*what, **how))

    def fact(self, what, value, unit):
        self.facts.append({"what": what, "value": value, "unit": unit})

    # ---- CPU per process and tick ----

    def herd(self, size, mix, interval_s):
        """Active members wake a little more often than the tick, so that each of them moved at each tick."""
        return lab.Herd(self.folder, size, ACTIVE_PERCENT[mix], interval_s * 0.6)

    def cost(self, size, mix, interval_s, floor_s, our_s, rounds):
        floor_ticks, our_ticks = round(floor_s / interval_s), round(our_s / interval_s)
        self.say(f"  {size} processes, {mix}")
        floors, ours, peers = [], [], []
        with self.herd(size, mix, interval_s) as herd:
            floors.append(herd.floor(interval_s, floor_ticks, lab.keep_limit()))
            for _ in range(rounds):
                ours.append(self.tacho.cost(herd, interval_s, our_ticks, FAST))
                peers.append(herd.psutil(interval_s, PSUTIL_TICKS))
                floors.append(herd.floor(interval_s, floor_ticks, lab.keep_limit()))
            default, peer = None, None
            if size == 1000 and mix in (RUNNING, LIVELY):
                default = self.tacho.cost(herd, interval_s, floor_ticks)
                peer = herd.psutil(interval_s, 2, full_per_tick=size)
        between = [(a["ns"] + b["ns"]) / 2 for a, b in zip(floors, floors[1:])]

        def median(values):
            return statistics.median(list(values))

        self.costs.append({
            "processes": size, "mix": mix, "interval_s": interval_s, "moved": median(f["moved"] for f in floors),
            "kept": floors[0]["kept"],
            "tacho_us": median(o["ns"] for o in ours) / 1e3,
            "default_us": default["ns"] / 1e3 if default else None,
            "psutil_full_per_default": peer["ns"] / default["ns"] if default else None,
            "floor_us": median(f["ns"] for f in floors) / 1e3,
            "psutil_us": median(p["ns"] for p in peers) / 1e3,
            "psutil_find_us": median(p["find_ns"] for p in peers) / 1e3,
            "tacho_per_floor": median(o["ns"] / f for o, f in zip(ours, between)),
            "psutil_per_tacho": median(p["ns"] / o["ns"] for p, o in zip(peers, ours)),
            "psutil_tree_per_tacho": median((p["ns"] + p["find_ns"]) / o["ns"] for p, o in zip(peers, ours)),
            "psutil_per_floor": median(p["ns"] / f for p, f in zip(peers, between)),
            "missed": sum(o["summary"]["ticks"]["missed"] for o in ours),
            "own_account": median(o["summary"]["self"]["cpu_s"] / o["summary"]["kernel_cpu_s"] for o in ours),
        })

    def row(self, size, mix):
        return next((c for c in self.costs if c["processes"] == size and c["mix"] == mix), None)

    def cost_goals(self):
        running, mostly, asleep = (self.row(1000, mix) for mix in (RUNNING, MOSTLY_ASLEEP, ASLEEP))
        self.goal("CPU, 1,000 processes, all running, beside the bare loop", running["tacho_per_floor"], " ×", 1.3)
        self.goal("CPU, 1,000 processes, all asleep, beside the clocks alone", asleep["tacho_per_floor"], " ×", 3)
        for row, limit in ((running, 20), (mostly, 100)):
            for key, who in (("psutil_per_tacho", "given the pids"), ("psutil_tree_per_tacho", "finding them")):
                self.goal(f"psutil {who}, 1,000 processes, {row['mix']}, beside our CPU", row[key], " ×", limit,
                          at_least=True)
        self.fact("psutil (given the pids) beside the bare loop itself, 1,000 processes, all running",
                  running["psutil_per_floor"], " ×")
        self.fact("psutil with PSS and USS at every tick beside our defaults, 1,000 processes, all running",
                  running["psutil_full_per_default"], " ×")
        self.fact("our own account of our CPU beside the kernel's", running["own_account"], " ×")

    # ---- the other goals ----

    def sizes(self):
        """Growth over a whole minute, so that each recording restates its rows once, as it does in real life."""
        quick = self.options.quick
        size, seconds = (200, 10) if quick else (1000, 60)
        self.say(f"  bytes on disk over {seconds} s")
        with self.herd(size, LIVELY, 0.1) as lively, self.herd(size, ASLEEP, 0.1) as idle, \
                self.herd(1, ASLEEP, 0.1) as lone:
            per_tick = self.tacho.growth([lively, idle, lone], 0.1, seconds)
        node = per_tick[2]
        # The node's part differs by a few bytes between two recordings: sleepers may seem to cost less than nothing.
        awake, asleep = (max(0.0, (total - node) / (size - 1)) for total in per_tick[:2])
        self.goal(f"bytes per process and tick, {size:,} processes, {LIVELY}", awake, " B", 3)
        self.goal(f"bytes per process and tick, {size:,} processes, {ASLEEP}", asleep, " B", 0.1, strict=True)
        self.fact("bytes per tick for the node, the tree, ourselves and one process", node, " B")
        self.fact(f"whole recording per process and tick, {size:,} processes, {LIVELY}", per_tick[0] / size, " B")

    def ticks(self):
        quick = self.options.quick
        plan = [(100, 2), (1000, 1)] if quick else [(10, 3), (100, 8), (1000, 3)]
        with self.herd(100, LIVELY, 0.02) as herd:
            for rate, seconds in plan:
                self.say(f"  ticks at {rate} Hz")
                # A shared machine takes the CPU away from us now and then: the best of three is what we can do.
                runs = [self.tacho.watch(herd, 1 / rate, seconds) for _ in range(3 if rate == 100 else 1)]
                summary, peak = min(runs, key=lambda run: run[0]["ticks"]["missed"])
                missed, taken = summary["ticks"]["missed"], summary["ticks"]["taken"]
                if rate == 100:
                    self.goal("ticks missed at 100 Hz, 100 processes, least of three runs", missed, "", 0)
                    self.goal("memory at 100 processes, RSS", peak / 2**20, " MiB", 4,
                              strict=True)
                self.fact(f"ticks missed at {rate} Hz, 100 processes, of {taken + missed}", missed, "")
                self.fact(f"CPU at {rate} Hz, 100 processes, {LIVELY}, defaults", summary["self"]["cpu_percent"],
                          " % of one core")

    def defaults(self):
        """The recorder with its defaults. Processes, mix, rate, seconds before, seconds, goal in percent of a core. The start
        counts where there are no seconds before. 15,000 processes are measured with their first round of readings and after it."""
        plan = [(100, LIVELY, 1, 0, 20, 0.5), (1000, LIVELY, 100, 0, 10, 10), (15000, ASLEEP, 1, 0, 30, 1),
                (15000, ASLEEP, 1, 15, 30, 1)]
        binaries = {"": self.tacho} | ({" by the earlier tacho": lab.Tacho(self.options.before, self.folder)}
                                       if self.options.before else {})
        for size, mix, rate, before_s, seconds, most in plan[:1] if self.options.quick else plan:
            self.say(f"  defaults, {size} processes at {rate} Hz")
            with self.herd(size, mix, 1 / rate) as herd:
                for who, tacho in binaries.items():
                    percent, missed = tacho.share(herd, 1 / rate, before_s, seconds)
                    when = f"after {before_s} s" if before_s else f"first {seconds} s"
                    what = f"at {rate} Hz, {size:,} processes, {mix}, defaults, {when}{who}"
                    if who:
                        self.fact(f"CPU {what}", percent, " % of one core")
                    else:
                        self.goal(f"CPU {what}", percent, " % of one core", most)
                    self.fact(f"ticks missed {what}", missed, "")

    def startup(self):
        self.say("  start-up")
        pairs, file = 20 if self.options.quick else 100, self.folder / "true.tacho"
        binaries = {"": self.options.tacho, " by the earlier tacho": self.options.before}
        added = {who: [] for who, binary in binaries.items() if binary}
        for _ in range(pairs):
            plain = lab.run_timed(["/bin/true"])
            for who, taken in added.items():
                recorded = lab.run_timed([str(binaries[who]), "run", "-q", "-o", str(file), "--", "/bin/true"])
                taken.append([b - a for a, b in zip(plain, recorded)])
                file.unlink()
        median = {who: [statistics.median(times) * 1e3 for times in zip(*taken)] for who, taken in added.items()}
        self.goal("time added to /bin/true", median[""][0], " ms", 3, strict=True)
        for who, (wall, cpu) in median.items():
            self.fact(f"CPU added to /bin/true{who}", cpu, " ms")
            if who:
                self.fact(f"time added to /bin/true{who}", wall, " ms")

    def collectors(self):
        """What is read every five seconds is in it twice."""
        self.say("  everything on, by collector")
        with self.herd(100, LIVELY, 0.1) as herd:
            self.by_collector = self.tacho.collectors(herd, 0.1, 11, lab.two_gpus(self.folder, herd.pids[:4]))

    def gpus(self):
        """Two GPUs, by the tests' stand-in for NVML: what the tick itself spends, and what the thread beside it does."""
        self.say("  two GPUs")
        interval_s, ticks = 0.1, 20 if self.options.quick else 100
        log = self.folder / "calls"
        with self.herd(10, ASLEEP, interval_s) as herd:
            env = lab.two_gpus(self.folder, herd.pids[:4])
            spent = self.tacho.collectors(herd, interval_s, (ticks + 5) * interval_s, env)
            beside = self.tacho.beside(herd, interval_s, ticks, env)
            self.tacho.collectors(herd, interval_s, (ticks + 5) * interval_s, dict(env, FAKE_NVML_LOG=str(log)))
        calls = len(log.read_text(encoding="utf-8").splitlines()) / (ticks + 5)
        self.goal("a tick's time for two GPUs with four processes on each",
                  (spent["gpu"] + spent["gpu_process"]) / 1e3, " µs", 100, strict=True)
        for name in ("gpu", "gpu_process"):
            self.fact(f"two GPUs: of a tick's time in the collector {name}", spent[name] / 1e3, " µs")
        self.fact("two GPUs: CPU of the thread beside a tick, the stand-in for NVML included", beside / 1e3, " µs")
        self.fact("two GPUs: calls of NVML beside a tick", calls, "")

    def counters(self):
        """What -m perf costs the job (fork and exit), and what it costs a tick. Runs alternate: the machine drifts."""
        self.say("  hardware and software counters")
        forks, rounds = (1000, 3) if self.options.quick else (4000, 9)
        storm = [str(self.folder / "storm"), str(forks)]
        plain, recorded, counted = [], [], []
        for _ in range(rounds):
            plain.append(lab.run_timed(storm)[0])
            for times, options in ((recorded, ["-m", "none,proc.mem.rss"]), (counted, ["-m", "none,proc.mem.rss,perf"])):
                file, seconds = self.tacho.run(storm, 0.25, options)
                times.append(seconds)
                file.unlink()
        median = statistics.median
        self.fact(f"{forks:,} forks and exits recorded, beside unrecorded",
                  median(r / p for r, p in zip(recorded, plain)), " ×")
        self.fact(f"{forks:,} forks and exits with -m perf, beside recorded without it",
                  median(c / r for c, r in zip(counted, recorded)), " ×")
        for size in (1, 100):
            seconds = 3 if self.options.quick else 8
            script = f"{self.folder / 'herd'} {size} 40 100 >/dev/null & sleep {seconds}; kill $!; wait"
            file, _ = self.tacho.run(["/bin/sh", "-c", script], 0.1, ["-m", "perf"])
            self.fact(f"a tick's time for the inherited counters of -m perf, {size} process{'es' if size > 1 else ''}",
                      self.tacho.account(file)["perf"] / 1e3, " µs")

    def run(self):
        start = time.monotonic()
        lab.compile_tools(self.folder)
        if self.options.collectors:
            self.collectors()
            return {"machine": lab.describe_machine(), "busy": lab.busy_share(), "collectors": self.by_collector}
        if self.options.reports:
            busy = lab.busy_share()
            return {"machine": lab.describe_machine(), "busy": busy, "reports": report.measure(self)}
        if self.options.peers:
            busy = lab.busy_share()
            return {"machine": lab.describe_machine(), "busy": busy, "peers": peers.measure(self)}
        if self.options.hogs:
            busy = lab.busy_share()
            return {"machine": lab.describe_machine(), "busy": busy, "hogs": hogs.measure(self)}
        lab.recording_maker(self.options.tacho)  # before anything is measured, so that nothing is lost without it
        busy = [lab.busy_share()]
        forks = lab.forks_so_far()
        for line in QUICK_PLAN if self.options.quick else FULL_PLAN:
            self.cost(*line)
        # Those of strangers reach us too where we hear the kernel's events: on a busy machine that is part of the cost.
        forks = (lab.forks_so_far() - forks) / (time.monotonic() - start)
        self.fact("processes started per second on this machine meanwhile, herds included", forks, "")
        self.cost_goals()
        busy.append(lab.busy_share())
        self.startup()
        self.ticks()
        self.defaults()
        self.sizes()
        self.gpus()
        self.counters()
        self.collectors()
        reports = report.measure(self)
        return {"machine": lab.describe_machine(), "quick": self.options.quick, "busy": max(busy),
                "seconds": round(time.monotonic() - start), "costs": self.costs, "goals": self.goals,
                "facts": self.facts, "collectors": self.by_collector, "reports": reports}


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def table(head, rows, words=(0,)):
    """Aligned as Markdown, so that the terminal and the document show the same; `words` are columns of no numbers."""
    width = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells):
        return "| " + " | ".join(cell.ljust(w) if i in words else cell.rjust(w)
                                 for i, (cell, w) in enumerate(zip(cells, width))) + " |"

    rule = "|" + "|".join("-" * (w + 2) if i in words else "-" * (w + 1) + ":" for i, w in enumerate(width)) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


def is_busy(result):
    return result["busy"] > 0.15


def state_of(result):
    return f"busy with other things: {result['busy']:.0%}" + (", too much for times" if is_busy(result) else "")


def render_goals(goals):
    return table(["goal", "measured", "wanted", "verdict"],
                 [[g["what"], number(g["value"]) + g["unit"], g["goal"], "met" if g["met"] else "not met"]
                  for g in goals])


def render(result):
    costs = table(
        ["processes", "interval", "tacho", "bare loop", "ratio", "psutil", "+ tree", "ratio", "with PSS/USS"],
        [[f"{c['processes']:,}, {c['mix']}", f"{c['interval_s'] * 1e3:.0f} ms", number(c["tacho_us"]),
          number(c["floor_us"]), number(c["tacho_per_floor"]), number(c["psutil_us"]), number(c["psutil_find_us"]),
          number(c["psutil_per_tacho"]), number(c["default_us"]) if c["default_us"] else "–"] for c in result["costs"]])
    goals = render_goals(result["goals"])
    facts = table(["also", "measured"], [[f["what"], number(f["value"]) + f["unit"]] for f in result["facts"]])
    kind = "quick run" if result["quick"] else "full run"
    return (f"{result['machine']}, {kind} of {result['seconds']} s, {state_of(result)}\n\n"
            f"CPU microseconds per process and tick:\n\n{costs}\n\n{goals}\n\n{facts}\n")


def render_collectors(result):
    """The dearest first; those that this machine has nothing for in a line below."""
    spent = sorted(((ns, name) for name, ns in result["collectors"].items() if ns is not None), reverse=True)
    total = sum(ns for ns, _ in spent)
    rows = [[name, number(ns / 1e3), f"{ns / total:.1%}"] for ns, name in spent]
    absent = sorted(name for name, ns in result["collectors"].items() if ns is None)
    return (f"{result['machine']}, 100 processes, {LIVELY}, 10 Hz, `-m all`, two GPUs by a stand-in for NVML, "
            f"{state_of(result)}\n\n"
            + table(["collector", "µs per tick", "share"], [*rows, ["all", number(total / 1e3), "100%"]])
            + (f"\n\nNothing to read on this machine: {', '.join(absent)}.\n" if absent else "\n"))


def render_reports(result):
    rows = [[f"{r['recording']}, {r['processes']} processes", f"{r['bytes'] / 2**20:.1f} MiB", r["command"],
             "–" if is_busy(result) else number(r["seconds"]), number(r["cpu_s"]), f"{r['peak_bytes'] / 2**20:.1f} MiB"] for r in result["reports"]]
    head = ["recording", "its size", "command", "seconds", "CPU seconds", "memory, peak"]
    return (f"{result['machine']}, {state_of(result)}\n\n{table(head, rows, words=(0, 2))}\n\n"
            f"{render_goals(report.goals(result['reports']))}\n")


def render_peers(result):
    rows = [[f"{r['processes']:,}", r["monitor"], number(r["percent"]) + " %", number(r["per_tacho"]), r["keeps"]]
            for r in result["peers"]["rows"]]
    absent = result["peers"]["absent"]
    return (f"{result['machine']}, 40 % of the processes running, 1 Hz, {state_of(result)}\n\n"
            + table(["processes", "monitor", "of one core", "beside tacho", "what it keeps"], rows, words=(1, 4))
            + (f"\n\nNot measured here: {', '.join(absent)}.\n" if absent else "\n"))


def render_hogs(result):
    def of(values):
        return f"{values[1]:.3f} ({values[0]:.3f}–{values[2]:.3f})"

    rows = [[r["recorder"], r["user"], str(r["taken"] + r["missed"]), str(r["missed"]), of(r["pace"]), of(r["part"]), of(r["work"])]
            for r in result["hogs"]]
    return (f"{result['machine']}, {hogs.HOGS:,} processes that compute, 1 Hz, {state_of(result)}\n\n"
            + table(["recorder", "user", "ticks", "missed", "work in a CPU second", "CPU time", "both"], rows, words=(0, 1))
            + "\n\nThe last three are of the runs without a recorder before and after: median, least and most. Other programs do not count: "
            "the CPU time is the part of what job and recorder used and what was idle.\n")


def write_doc(path, what, text):
    begin, end = DOC_MARK.format(what, "begin"), DOC_MARK.format(what, "end")
    old = path.read_text(encoding="utf-8")
    before, rest = old.split(begin)
    after = rest.split(end)[1]
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="the cost of recording, beside the floor and beside psutil")
    parser.add_argument("--quick", action="store_true", help="under two minutes; rougher, and without 5,000 processes")
    parser.add_argument("--collectors", action="store_true", help="only the cost by collector with everything on")
    parser.add_argument("--reports", action="store_true", help="only time and memory of reports")
    parser.add_argument("--peers", action="store_true", help="only beside pidstat, atop, duct and psutil, at 1 Hz")
    parser.add_argument("--hogs", action="store_true", help="only on an overloaded machine: the job's work, and ticks missed")
    parser.add_argument("--before", type=pathlib.Path, help="an earlier tacho, measured beside this one")
    options = lab.parse(parser)
    options.before = options.before and options.before.resolve()
    if options.before and not options.before.exists():
        parser.error(f"{options.before} is not there: build it first")
    result = lab.measure(Bench, options)
    parts = {"measured": (render, "costs"), "by collector": (render_collectors, "collectors"),
             "reports": (render_reports, "reports"), "peers": (render_peers, "peers"),
             "hogs": (render_hogs, "hogs")}
    parts = {what: show(result) for what, (show, key) in parts.items() if key in result}
    print(json.dumps(result, indent=2) if options.json else "\n".join(parts.values()))
    for what, text in parts.items() if options.doc else ():
        write_doc(options.doc, what, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
