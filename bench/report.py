"""What a report costs: time and memory by the length of the recording, for bench/run.py.

The recordings are made by the tests' query_tool: the same bytes on every machine. Long ones hold the same job for longer, so
that what memory depends on shows; those who read them are measured from outside, each in a process of its own."""

import json
import subprocess

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


def measure(bench):
    """A row for each recording and command."""
    tacho, folder, rows = bench.options.tacho, bench.folder, []
    for plan in QUICK_PLAN if bench.options.quick else FULL_PLAN:
        bench.say(f"  reports of {plan[0]}, {plan[3]} processes")
        recording = make(tacho, folder, plan)
        for name, words in COMMANDS:
            if plan[0] != HOUR and name not in LONG_ONES:
                continue
            cost = read(tacho, folder, recording, words)
            rows.append({"recording": plan[0], "processes": plan[3], "bytes": recording["bytes"], "command": name, **cost})
        recording["file"].unlink()
    return rows


def goals(rows):
    def of(recording):
        return next((row for row in rows if row["recording"] == recording and row["command"] == "report, HTML"), None)

    hour, longer = of(HOUR), of(TEN_HOURS)
    # Of CPU time, which a busy machine does not change much; there is one thread.
    yield lab.goal("CPU time of the HTML report of 1 h at 10 Hz, 100 processes", hour["cpu_s"], " s", 10)
    if longer:
        yield lab.goal("memory for the HTML report of a recording ten times as long",
                       longer["peak_bytes"] / hour["peak_bytes"], " ×", 1.5)
