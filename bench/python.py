#!/usr/bin/python3
"""What the Python package costs: importing it, a phase and a mark, beginning and ending a recording, and reading the table of processes into
pandas beside pandas that reads our CSV of the same table.

    bench/python.py [--quick] [--json] [--tacho FILE] [--doc FILE]     (./dev bench --python)

pandas is given its CSV for nothing, and reads it with its own reader and with pyarrow's, which takes all CPUs. Each reading is an interpreter of
its own; the contenders read in turn, and of several rounds the one with least CPU time counts, since the machine is not ours alone. Seconds are those of the
reading, without the imports of pandas. Making the CSV is measured, too: a recording is none."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import export  # noqa: E402
import lab  # noqa: E402
import run  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
FULL = ("1 h at 10 Hz, 100 processes", 3600, 10, 100)
QUICK = ("1 min at 10 Hz, 100 processes", 60, 10, 100)
PACKAGE, CSV = "tacho", ("pandas", "pandas with pyarrow's reader")

# Prints seconds, CPU seconds, rows and columns.
TIMED = """
import sys, time, pandas{0}
begin, cpu = time.perf_counter(), time.process_time()
frame = {1}
print(time.perf_counter() - begin, time.process_time() - cpu, len(frame), len(frame.columns))
"""
READERS = {
    PACKAGE: TIMED.format(", tacho", 'tacho.open(sys.argv[1]).table("process").to_pandas()'),
    **{name: TIMED.format(extra, f"pandas.read_csv(sys.argv[2], engine={engine!r}, parse_dates=['time'])")
       for name, engine, extra in zip(CSV, ("c", "pyarrow"), ("", ", pyarrow.csv"))},
}

# Medians of many, in us.
SPEAKING = """
import json, statistics, sys, time, tacho
recordings = [tacho.record(f"{sys.argv[1]}/{i}.tacho") for i in range(9)]
def took(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
starts, ends = [], []
for recording in recordings:
    starts.append(took(recording.start))
    ends.append(took(recording.stop))
def one_phase():
    with recording.phase("x"):
        pass
with tacho.record(f"{sys.argv[1]}/a.tacho") as recording:
    marks, phases = [], []
    for _ in range(400):
        marks.append(took(lambda: recording.mark("loss", 0.3)))
        phases.append(took(one_phase))
        time.sleep(0.001)
print(json.dumps({"begin a recording": statistics.median(starts), "end it": statistics.median(ends), "a mark": statistics.median(marks),
                  "a phase, begin and end": statistics.median(phases)}))
"""
IMPORT = "import time; begin = time.perf_counter(); import tacho{}; print(time.perf_counter() - begin)"


class Bench:
    def __init__(self, options, folder):
        self.options, self.tacho, self.folder = options, options.tacho, folder
        self.python = export.find_pandas()
        self.env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TACHO_BIN": str(pathlib.Path(options.tacho).resolve().parent)}

    def ask(self, text, *words):
        python = self.python or sys.executable
        return subprocess.run([python, "-c", text, *map(str, words)], env=self.env, capture_output=True, text=True, check=True).stdout

    def read(self):
        name, seconds, hz, processes = QUICK if self.options.quick else FULL
        print(f"  reading of {name}", file=sys.stderr, flush=True)
        recording, tables = self.folder / "long.tacho", self.folder / "csv"
        subprocess.run([lab.recording_maker(self.tacho), "long", recording, str(seconds), str(hz), str(processes)], check=True)
        lab.compile_tools(self.folder)
        export_words = [self.folder / "peak", self.tacho, "export", "--force", "--to", "csv", "-d", "process", "-o", f"{tables}/", recording]
        made = [json.loads(subprocess.run(export_words, check=True, capture_output=True, text=True).stdout) for _ in range(2)]
        best = {"making the CSV": min((one["cpu_s"], one["seconds"]) for one in made)}
        for _ in range(2):
            for reader, text in READERS.items():
                took, cpu, rows, columns = self.ask(text, recording, tables / "process.csv").split()
                best[reader] = min(best.get(reader, (float(cpu), float(took))), (float(cpu), float(took)))
        size = (tables / "process.csv").stat().st_size
        return {"recording": name, "rows": int(rows), "columns": int(columns), "csv_bytes": size, "recording_bytes": recording.stat().st_size,
                "cpu_s": {who: cost[0] for who, cost in best.items()}, "seconds": {who: cost[1] for who, cost in best.items()}}

    def run(self):
        busy = lab.busy_share()
        calls = {}
        for name, what in (("import tacho", ""), ("import, and all that recording needs", "; tacho.record")):
            calls[name] = sorted(float(self.ask(IMPORT.format(what))) for _ in range(15))[7]
        calls.update(json.loads(self.ask(SPEAKING, self.folder)))
        return {"machine": lab.describe_machine(), "busy": busy, "calls": calls, "reading": self.read() if self.python else None}


def goals(result):
    yield lab.goal("import tacho", 1000 * result["calls"]["import tacho"], " ms", 30)
    reading = result["reading"]
    for name in CSV if reading else ():
        for what, cost in (("times as fast", reading["seconds"]), ("CPU time", reading["cpu_s"])):
            yield lab.goal(f"to pandas, beside {name} of a CSV that is there: {what}", cost[name] / cost[PACKAGE], " ×", 5, at_least=True)
            whole = cost["making the CSV"] + cost[name]
            yield lab.goal(f"to pandas, beside making the CSV and {name}: {what}", whole / cost[PACKAGE], " ×", 5, at_least=True)


def render(result):
    calls = [[name, f"{1e6 * seconds:,.0f} us" if seconds < 1e-3 else f"{1e3 * seconds:.1f} ms"] for name, seconds in result["calls"].items()]
    text = f"{result['machine']}, {run.state_of(result)}\n\n{run.table(['in the process', 'time'], calls, words=(0,))}\n"
    reading = result["reading"]
    if reading:
        rows = [[name, run.number(seconds), run.number(reading["cpu_s"][name]), run.number(reading["rows"] / seconds)]
                for name, seconds in reading["seconds"].items()]
        text += (f"\nTable of processes of {reading['recording']}: {reading['rows']:,} rows of {reading['columns']} columns, "
                 f"{reading['csv_bytes'] / 2**20:,.0f} MiB as CSV, {reading['recording_bytes'] / 2**20:.0f} MiB as recording\n\n"
                 f"{run.table(['read by', 'seconds', 'CPU seconds', 'rows/s'], rows, words=(0,))}\n")
    return text + f"\n{run.render_goals(list(goals(result)))}\n"


def main():
    parser = argparse.ArgumentParser(description="the cost of the Python package, beside pandas that reads CSV")
    parser.add_argument("--quick", action="store_true", help="a short recording")
    options = lab.parse(parser)
    result = lab.measure(Bench, options, place="/var/tmp")
    text = render(result)
    print(json.dumps({**result, "goals": list(goals(result))}, indent=2) if options.json else text)
    if options.doc:
        run.write_doc(options.doc, "python", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
