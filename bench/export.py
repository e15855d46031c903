#!/usr/bin/python3
"""What an export costs: rows per second, bytes per row and memory of each format, beside pandas with pyarrow that makes
Parquet of our CSV, all of the same recordings and in one run.

    bench/export.py [--quick] [--formats FORMAT,…] [--json] [--tacho FILE] [--doc FILE]     (./dev bench --export)

pandas is given its CSV for nothing: only reading it, times as times, and writing Parquet (zstd) is timed; once with its own
reader and once with pyarrow's, which takes all CPUs. Every program runs in a process of its own, seen from outside (peak.c).
Parquet of ours and of theirs are made in turn, and the fastest of several runs counts, since the machine is not ours alone.
The recordings are made by the tests' query_tool: the same bytes on every machine."""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402
import run  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PANDAS = """
import sys, pathlib, pandas
reader, source, target = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
for path in sorted(source.glob("*.csv")):
    with path.open() as file:
        times = ["time"] if file.readline().startswith("time,") else None
    frame = pandas.read_csv(path, engine=reader, parse_dates=times)
    frame.to_parquet(target / (path.stem + ".parquet"), compression="zstd", index=False)
"""
PEERS = {"pandas + pyarrow": "c", "pandas + pyarrow, which reads the CSV, too": "pyarrow"}
RACE = ("parquet", *PEERS)

# Name, seconds, ticks per second, processes at once; who takes part: all formats, the two that are compared, or only those of
# ours whose memory must not grow with the recording (pandas would need all of it in memory). Buffers are full after some 16,000
# ticks, so the shorter of these is longer than that.
SHORT, LONG = "10 h at 1 Hz", "50 h at 1 Hz"
ALL, COMPARED, OURS = "all", "compared", "ours"
FULL_PLAN = [("1 h at 1 Hz", 3600, 1, 100, ALL), ("10 min at 10 Hz", 600, 10, 100, COMPARED),
             ("8 h at 1 Hz", 28800, 1, 5, COMPARED), (SHORT, 36000, 1, 5, OURS), (LONG, 180000, 1, 5, OURS)]
QUICK_PLAN = [("10 min at 1 Hz", 600, 1, 50, ALL)]
LONG_ONES = ("csv", "parquet", "arrow")


def find_pandas():
    """The Python that has both, or None."""
    for python in (ROOT / ".dev" / "python" / "bin" / "python", pathlib.Path("/usr/bin/python3")):
        trial = [python, "-c", "import pandas, pyarrow"]
        if python.exists() and subprocess.run(trial, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return python
    return None


class Bench:
    def __init__(self, options, folder):
        self.options, self.tacho, self.folder = options, options.tacho, folder
        self.python, self.rows = find_pandas(), []
        (folder / "route.py").write_text(PANDAS, encoding="utf-8")

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def formats(self):
        if self.options.formats:
            return self.options.formats.split(",")
        lines = subprocess.check_output([self.tacho, "export", "--formats"], text=True).splitlines()
        missing = {lines[i - 1].split()[0] for i, line in enumerate(lines) if "not in this build" in line}
        return [line.split()[0] for line in lines if line[0] != " " and line.split()[0] not in missing]

    def command(self, name, recording, output):
        if name in PEERS:
            return [self.python, self.folder / "route.py", PEERS[name], self.folder / "csv", output]
        return [self.tacho, "export", "--force", "--to", name, "-o", f"{output}/", recording]

    def once(self, name, recording):
        """The cost of one run, into a folder that is empty before it."""
        output = self.folder / "output"
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()
        done = subprocess.run([self.folder / "peak", *self.command(name, recording, output)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise lab.Trouble(f"{name}: {done.stderr.strip()}")
        cost = json.loads(done.stdout)
        cost["bytes"] = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
        return cost

    def race(self, names, recording, rounds):
        """In turn, so that all see the same of the machine's moods; the fastest of each."""
        best = {}
        for _ in range(rounds):
            for name in names:
                cost = self.once(name, recording)
                best[name] = min(best.get(name, cost), cost, key=lambda one: one["seconds"])
        return best

    def make_csv(self, recording):
        """What pandas is given; and how many rows there are: names in these recordings have no line breaks."""
        output = self.folder / "csv"
        shutil.rmtree(output, ignore_errors=True)
        subprocess.run(self.command("csv", recording, output), check=True, stdout=subprocess.DEVNULL)
        count = 0
        for path in output.iterdir():
            with path.open("rb") as file:
                count += sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b"")) - 1
        return count

    def measure(self, name, seconds, hz, processes, who):
        self.say(f"  exports of {name}, {processes} processes")
        recording = self.folder / "long.tacho"
        subprocess.run([lab.recording_maker(self.tacho), "long", recording, str(seconds), str(hz), str(processes)], check=True)
        nr_rows = self.make_csv(recording)
        wanted = self.formats()
        costs = {}
        if who == ALL:
            costs.update(self.race([one for one in wanted if one not in RACE], recording, 1))
        if who == OURS:
            costs.update(self.race([one for one in LONG_ONES if one in wanted], recording, 1))
        elif "parquet" in wanted:
            names = RACE if self.python else RACE[:1]
            costs.update(self.race(names, recording, 2 if self.options.quick else 7))
        for one, cost in costs.items():
            self.rows.append({"recording": name, "processes": processes, "rows": nr_rows, "format": one, **cost})

    def run(self):
        lab.compile_tools(self.folder)
        busy = lab.busy_share()
        for line in QUICK_PLAN if self.options.quick else FULL_PLAN:
            self.measure(*line)
        return {"machine": lab.describe_machine(), "busy": busy, "exports": self.rows}


def goals(rows):
    def of(recording, name):
        return next((row for row in rows if row["recording"] == recording and row["format"] == name), None)

    for recording in dict.fromkeys(row["recording"] for row in rows):
        ours = of(recording, "parquet")
        for peer in PEERS:
            theirs = of(recording, peer)
            if not ours or not theirs:
                continue
            yield lab.goal(f"Parquet beside {peer}, {recording}: times as fast", theirs["seconds"] / ours["seconds"], " ×", 5, at_least=True)
            yield lab.goal(f"Parquet beside {peer}, {recording}: size", ours["bytes"] / theirs["bytes"], " ×", 1)
    for name in LONG_ONES:
        short, long = of(SHORT, name), of(LONG, name)
        if short and long:
            yield lab.goal(f"memory for {name}, {LONG} beside {SHORT}", long["peak_bytes"] / short["peak_bytes"], " ×", 1.2)


def render(result):
    rows = [[f"{r['recording']}, {r['processes']} processes", f"{r['rows']:,}", r["format"], run.number(r["rows"] / max(r["seconds"], 1e-3)),
             run.number(r["bytes"] / r["rows"]), run.number(r["seconds"]), run.number(r["cpu_s"]), f"{r['peak_bytes'] / 2**20:.0f} MiB"]
            for r in result["exports"]]
    head = ["recording", "rows", "format", "rows/s", "bytes/row", "seconds", "CPU seconds", "memory, peak"]
    judged = list(goals(result["exports"]))
    text = f"{result['machine']}, {run.state_of(result)}\n\n{run.table(head, rows, words=(0, 2))}\n"
    return text + (f"\n{run.render_goals(judged)}\n" if judged else "\npandas and pyarrow are not there: nothing to compare with.\n")


def main():
    parser = argparse.ArgumentParser(description="the cost of exports, beside pandas and pyarrow")
    parser.add_argument("--quick", action="store_true", help="one short recording")
    parser.add_argument("--formats", help="only these, with commas")
    options = lab.parse(parser)
    result = lab.measure(Bench, options, place="/var/tmp")
    text = render(result)
    print(json.dumps({**result, "goals": list(goals(result["exports"]))}, indent=2) if options.json else text)
    if options.doc:
        run.write_doc(options.doc, "exports", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
