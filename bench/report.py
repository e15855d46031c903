"""What a report costs: time and memory by the length of the recording, for bench/run.py.

The recordings are made by the tests' query_tool: the same bytes on every machine. Long ones hold the same job for longer, so
that what memory depends on shows; those who read them are measured from outside, each in a process of its own."""

import json
import shutil
import subprocess
import time

import lab

# Name, seconds, ticks per second, processes at once.
HOUR, TEN_HOURS, WEEK = "1 h at 10 Hz", "10 h at 10 Hz", "a week at 1 Hz"
FULL_PLAN = [(HOUR, 3600, 10, 100), (TEN_HOURS, 36000, 10, 100), (WEEK, 604800, 1, 20)]
QUICK_PLAN = [("6 min at 10 Hz", 360, 10, 100), (HOUR, 3600, 10, 100)]
COMMANDS = [
    ("show", ["show"]),
    ("show --stats", ["show", "--stats"]),
    ("report, HTML", ["report", "--force", "-o", "{folder}/report.html"]),
    ("report, PDF", ["report", "--force", "-o", "{folder}/report.pdf"]),
    ("report, every plot as PNG", ["report", "--force", "--format", "png", "-o", "{folder}/plots/"]),
]
NODES, NODE_PLAN = "1,000 nodes, 10 min at 1 Hz", (1000, 600, 1, 20)  # recordings, then as above
OF_NODES = ("show", "show --stats", "report, HTML")
IN_PROGRESS = "a run in progress at 1 Hz"
FOLLOW = "show --follow"
EARLIER = " by the earlier tacho"
LONG_ONES = ("show", "report, HTML")  # of the longer recordings: the rest reads them in the same way


def make(tacho, folder, plan):
    name, seconds, rate, processes = plan
    file = folder / "long.tacho"
    subprocess.run([str(lab.recording_maker(tacho)), "long", str(file), str(seconds), str(rate), str(processes)], check=True)
    return {"name": name, "processes": processes, "file": file, "bytes": file.stat().st_size}


def read(tacho, folder, recording, words):
    command = [word.format(folder=folder) for word in words]
    done = subprocess.run([str(folder / "peak"), str(tacho), *command, str(recording["file"])],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise lab.Trouble(f"tacho {' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def make_nodes(tacho, folder):
    """The same recording many times: files of their own are nodes of their own."""
    nodes = folder / "nodes"
    nodes.mkdir()
    count, *plan = NODE_PLAN
    first = nodes / "0.tacho"
    subprocess.run([str(lab.recording_maker(tacho)), "long", str(first), *map(str, plan)], check=True)
    for i in range(1, count):
        shutil.copy(first, nodes / f"{i}.tacho")
    return {"name": NODES, "processes": plan[-1], "file": nodes, "bytes": count * first.stat().st_size}


def follow(bench, size=1000, interval_s=1.0):
    """What a follower of a herd that runs costs over some ticks, from its line of the one to that of the other."""
    ticks = 5 if bench.options.quick else 30
    recorder = lab.Tacho(bench.options.tacho, bench.folder)
    with lab.Herd(bench.folder, size, 100, 0.7 * interval_s) as herd:
        file, process = recorder.attach(herd, interval_s, (ticks + 10) * interval_s)
        while not file.exists() and process.poll() is None:
            time.sleep(0.05)
        command = [str(bench.options.tacho), "show", "--follow", "--json", str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:

            def after(lines):
                if not all(follower.stdout.readline() for _ in range(lines)):
                    raise lab.Trouble("the follower ended before its time")
                return time.monotonic(), lab.cpu_clock_ns(follower.pid)

            try:
                start, before = after(lab.WARM_UP_TICKS)
                end, cpu = after(ticks)
                row = {"recording": IN_PROGRESS, "processes": size, "bytes": file.stat().st_size, "command": f"{FOLLOW}, {ticks} lines",
                       "seconds": end - start, "cpu_s": (cpu - before) / 1e9, "peak_bytes": lab.peak_rss_bytes(follower.pid), "ticks": ticks}
            finally:
                follower.terminate()
        recorder.finish(file, process, herd)
    return row


def measure(bench):
    """A row for each recording and command, and where there is an earlier binary one of that."""
    folder, rows = bench.folder, []
    binaries = {"": bench.options.tacho} | ({EARLIER: bench.options.before} if bench.options.before else {})

    def add(recording, commands):
        for name, words in commands:
            for who, binary in binaries.items():
                cost = read(binary, folder, recording, words)
                rows.append({"recording": recording["name"], "processes": recording["processes"], "bytes": recording["bytes"],
                             "command": name + who, **cost})

    for plan in QUICK_PLAN if bench.options.quick else FULL_PLAN:
        bench.say(f"  reports of {plan[0]}, {plan[3]} processes")
        recording = make(bench.options.tacho, folder, plan)
        add(recording, [row for row in COMMANDS if plan[0] == HOUR or row[0] in LONG_ONES])
        recording["file"].unlink()
    bench.say(f"  a follower of {IN_PROGRESS}")
    rows.append(follow(bench))
    if not bench.options.quick:
        bench.say(f"  reports of {NODES}")
        recording = make_nodes(bench.options.tacho, folder)
        add(recording, [row for row in COMMANDS if row[0] in OF_NODES])
        shutil.rmtree(recording["file"])
    return rows


def goals(rows):
    def of(recording, command="report, HTML"):
        return next((row for row in rows if row["recording"] == recording and row["command"] == command), None)

    def faster(recording, command, least):
        now, before = of(recording, command), of(recording, command + EARLIER)
        if now and before:
            yield lab.goal(f"time of {command} of {recording}: the earlier tacho beside this one",
                           before["seconds"] / now["seconds"], " ×", least, at_least=True)

    hour, longer = of(HOUR), of(TEN_HOURS)
    # Of CPU time, which a busy machine does not change much; a recording is read by one thread.
    yield lab.goal("CPU time of the HTML report of 1 h at 10 Hz, 100 processes", hour["cpu_s"], " s", 10)
    if longer:
        yield lab.goal("memory for the HTML report of a recording ten times as long",
                       longer["peak_bytes"] / hour["peak_bytes"], " ×", 1.5)
    for row in rows:
        if row["recording"] == IN_PROGRESS:
            yield lab.goal(f"CPU time of {FOLLOW} for a tick of {row['processes']:,} processes at 1 Hz", row["cpu_s"] / row["ticks"] * 1e3, " ms", 1)
    yield from faster(HOUR, "report, HTML", 2)
    yield from faster(NODES, "show", 3)
    yield from faster(NODES, "report, HTML", 2.5)
    for command, most in (("show", 150), ("report, HTML", 300)):
        if of(NODES, command):
            yield lab.goal(f"memory for {command} of {NODES}", of(NODES, command)["peak_bytes"] / 2**20, " MiB", most)
