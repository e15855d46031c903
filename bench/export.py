#!/usr/bin/python3
"""What an export costs: rows per second, bytes per row and memory of each format, beside pandas with pyarrow that makes
Parquet of our CSV, all of the same recording and in one run: `./dev bench --export [--quick]`.

The pandas route is timed twice: given its CSV for nothing, only reading it and writing Parquet (zstd); and from the
recording, with the CSV that has to be made first. Its reader is pandas' fastest. Every program runs in a process of its own, seen from outside (peak.c); the best of several runs counts, since
the machine is not ours alone.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

PANDAS = """
import sys, pathlib, pandas
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.csv")):
    frame = pandas.read_csv(path, engine="pyarrow")
    frame.to_parquet(pathlib.Path(sys.argv[2]) / (path.stem + ".parquet"), compression="zstd", index=False)
"""


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tacho", type=Path, default=ROOT / "build" / "tacho")
    parser.add_argument("--quick", action="store_true", help="a shorter recording, one run of each")
    parser.add_argument("--formats", help="only these, with commas")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser.parse_args()


def die(text):
    sys.exit(f"bench/export.py: {text}")


class Bench:
    def __init__(self, options, folder):
        self.tacho, self.folder, self.runs = options.tacho.resolve(), folder, 1 if options.quick else 3
        self.recording = folder / "long.tacho"
        tool = self.tacho.parent / "tests" / "unit" / "query_tool"
        if not tool.exists():
            die(f"{tool} is not there, which makes the recording: build with -Dtests=enabled")
        seconds, processes = ("600", "50") if options.quick else ("3600", "100")
        subprocess.run([tool, "long", self.recording, seconds, "1", processes], check=True)
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", folder / "peak", HERE / "peak.c"], check=True)

    def measure(self, output, *command):
        """The fastest of several runs; output is a folder that is empty before each."""
        best = None
        for _ in range(self.runs):
            shutil.rmtree(output, ignore_errors=True)
            output.mkdir()
            done = subprocess.run([self.folder / "peak", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                return None
            cost = json.loads(done.stdout)
            best = min(best or cost, cost, key=lambda one: one["seconds"])
        best["bytes"] = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
        return best

    def formats(self):
        lines = subprocess.check_output([self.tacho, "export", "--formats"], text=True).splitlines()
        missing = {lines[i - 1].split()[0] for i, line in enumerate(lines) if "not in this build" in line}
        return [line.split()[0] for line in lines if line[0] != " " and line.split()[0] not in missing]

    def export(self, format):
        output = self.folder / format
        return self.measure(output, self.tacho, "export", "--to", format, "-o", f"{output}/", self.recording)

    def rows(self):
        """Of all tables: lines of JSON have no line breaks within."""
        output = self.folder / "rows"
        subprocess.run([self.tacho, "export", "--to", "jsonl", "-o", f"{output}/", self.recording], check=True,
                       stdout=subprocess.DEVNULL)
        count = sum(path.read_bytes().count(b"\n") for path in output.iterdir())
        shutil.rmtree(output)
        return count

    def pandas(self):
        for python in (ROOT / ".dev" / "python" / "bin" / "python", Path("/usr/bin/python3")):
            trial = [python, "-c", "import pandas, pyarrow"]
            if python.exists() and subprocess.run(trial, stderr=subprocess.DEVNULL).returncode == 0:
                (self.folder / "route.py").write_text(PANDAS)
                output = self.folder / "pandas"
                return self.measure(output, python, self.folder / "route.py", self.folder / "csv", output)
        return None


def print_table(rows, results):
    print(f"{rows} rows in all tables\n")
    print(f"{'':24} {'seconds':>8} {'rows/s':>10} {'MiB':>8} {'bytes/row':>10} {'memory':>10}")
    for name, cost in results.items():
        if not cost:
            print(f"{name:24} failed")
            continue
        print(f"{name:24} {cost['seconds']:8.2f} {rows / max(cost['seconds'], 1e-3):10.0f} {cost['bytes'] / 2**20:8.2f} "
              f"{cost['bytes'] / rows:10.1f} {cost['peak_bytes'] / 2**20:6.0f} MiB")


def ratios(results):
    """Parquet of ours beside theirs: the goal is at least 5 times as fast, and no larger."""
    ours, theirs = results.get("parquet"), results.get("pandas + pyarrow")
    if not ours or not theirs:
        return {}
    return {
        "parquet_times_as_fast": theirs["seconds"] / ours["seconds"],
        "parquet_times_as_fast_from_recording": (theirs["seconds"] + results["csv"]["seconds"]) / ours["seconds"],
        "parquet_cpu_ratio": theirs["cpu_s"] / ours["cpu_s"],
        "parquet_size_ratio": ours["bytes"] / theirs["bytes"],
        "parquet_memory_ratio": ours["peak_bytes"] / theirs["peak_bytes"],
    }


def main():
    options = options_of()
    with tempfile.TemporaryDirectory(prefix="tacho-bench-", dir="/var/tmp") as folder:
        bench = Bench(options, Path(folder))
        wanted = options.formats.split(",") if options.formats else bench.formats()
        rows, results = bench.rows(), {}
        for name in dict.fromkeys(["csv", *wanted]):
            results[name] = bench.export(name)
            if name != "csv":
                shutil.rmtree(bench.folder / name, ignore_errors=True)
        results["pandas + pyarrow"] = bench.pandas()
    compared = ratios(results)
    if options.json:
        print(json.dumps({"rows": rows, "formats": results, **compared}))
        return
    print_table(rows, results)
    if not compared:
        print("\npandas and pyarrow are not there: nothing to compare Parquet with")
        return
    print(f"\nParquet, beside pandas and pyarrow: {compared['parquet_times_as_fast']:.1f} times as fast (goal: at least 5), "
          f"{compared['parquet_times_as_fast_from_recording']:.1f} times when the CSV must be made first;\n"
          f"CPU time 1/{compared['parquet_cpu_ratio']:.1f}, size {compared['parquet_size_ratio']:.2f} (goal: at most 1), "
          f"memory {compared['parquet_memory_ratio']:.2f} of theirs")


main()
