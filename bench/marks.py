#!/usr/bin/python3
"""What it costs a job to speak: a mark in C, `tacho mark` in a script, and a recorder that listens while nothing is told.

    bench/marks.py [--quick] [--json] [--tacho FILE] [--doc FILE]     (./dev bench --marks)

Processes are timed from their start to their end, one after the other in turn with `true` and `logger`, and the time that a tenth of them
stay below counts: the machine is not ours alone. A recorder that cannot listen is one whose directories for sockets are read-only, in a mount namespace."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402
import run  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
BURST = 100_000


class Bench:
    def __init__(self, options, folder):
        self.tacho, self.quick, self.folder = options.tacho, options.quick, folder
        self.env = {k: v for k, v in os.environ.items() if k != "TACHO_SOCKET"}

    def recorded(self, command, **kwargs):
        """The command under a recorder with its defaults; its standard output."""
        out = self.folder / "a.tacho"
        words = [self.tacho, "run", "-q", "-f", "-o", out, "--", *map(str, command)]
        return subprocess.run(words, stdout=subprocess.PIPE, check=True, env=self.env, **kwargs).stdout.decode(), out

    def in_c(self):
        program = self.folder / "marks"
        subprocess.run(["gcc", "-O2", "-I", ROOT / "include", "-o", program, ROOT / "bench/marks.c"], check=True)
        alone = subprocess.run([program, "100000"], env=self.env, stdout=subprocess.PIPE, check=True).stdout.decode().split()
        slow, _ = self.recorded([program, "2000" if self.quick else "20000", "100"])
        burst, out = self.recorded([program, str(BURST)])
        dump = subprocess.run([self.tacho, "debug", "dump", out], stdout=subprocess.PIPE, check=True).stdout.decode(errors="replace")
        events = [json.loads(line) for line in dump.splitlines() if line.startswith('{"type":"event"')]
        marks = sum(e["kind"] == "mark" for e in events)
        dropped = sum(int(dict(e["pairs"])["number"]) for e in events if e["kind"] == "marks.dropped")
        if marks + dropped != BURST:
            raise lab.Trouble(f"{marks} marks and {dropped} that were dropped are not {BURST}")
        yield {"what": "a mark in C without a recorder", "value": int(alone[0]), "unit": " ns"}
        yield {"what": "a mark in C, one every 0.1 ms", "value": int(slow.split()[0]), "unit": " ns"}
        yield {"what": "the same, median", "value": int(slow.split()[1]), "unit": " ns"}
        yield {"what": f"a mark in C of {BURST:,} at once", "value": int(burst.split()[0]), "unit": " ns"}
        yield {"what": f"{BURST:,} marks at once: the time of all", "value": int(burst.split()[2]) / 1e9, "unit": " s"}
        yield {"what": "of these, recorded", "value": marks, "unit": ""}
        yield {"what": "of these, counted as dropped", "value": dropped, "unit": ""}

    def in_scripts(self):
        """Times of a process, in milliseconds: a tenth of them stay below the first, half of them below the second."""
        bare = self.folder / "datagram"
        subprocess.run(["gcc", "-O2", "-o", bare, ROOT / "bench/datagram.c"], check=True)
        loop = f"""
import json, os, time
commands = {{"true": ["/bin/true"], "bare": [{str(bare)!r}, "mark x"], "mark": [{str(self.tacho)!r}, "mark", "loss=0.31"],
    "phase": [{str(self.tacho)!r}, "phase", "p", "--", "/bin/true"], "logger": [{shutil.which("logger") or ""!r}, "--socket", "/nonexistent", "x"]}}
took = {{name: [] for name, words in commands.items() if words[0]}}
with open(os.devnull, "w") as null:
    for _ in range({50 if self.quick else 400}):
        for name in took:
            begin = time.perf_counter()
            os.waitpid(os.posix_spawn(commands[name][0], commands[name], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null.fileno(), 2)]), 0)
            took[name].append(time.perf_counter() - begin)
print(json.dumps({{name: [1e3 * sorted(times)[len(times) // part] for part in (10, 2)] for name, times in took.items()}}))
"""
        without = json.loads(subprocess.run([sys.executable, "-c", loop], env=self.env, stdout=subprocess.PIPE, check=True).stdout)
        recorded = json.loads(self.recorded([sys.executable, "-c", loop])[0])
        yield lab.goal("tacho mark, from its start to its end", recorded["mark"][0], " ms", 1, strict=True)
        yield lab.goal("the same, median", recorded["mark"][1], " ms", 1, strict=True)
        yield {"what": "of the median more than /bin/true, beside it", "value": recorded["mark"][1] - recorded["true"][1], "unit": " ms"}
        yield {"what": "of the median more than a C program that sends one datagram", "value": recorded["mark"][1] - recorded["bare"][1], "unit": " ms"}
        yield lab.goal("tacho mark without a recorder", without["mark"][0], " ms", 1, strict=True)
        yield {"what": "/bin/true", "value": without["true"][0], "unit": " ms"}
        if "logger" in without:
            yield {"what": "logger, without a log to write to", "value": without["logger"][0], "unit": " ms"}
        yield {"what": "tacho phase NAME -- /bin/true", "value": recorded["phase"][0], "unit": " ms"}

    def one_silent(self, listens, seconds):
        """CPU microseconds a tick of a recorder at 100 Hz to which nothing is told."""
        words = [self.tacho, "run", "-q", "-f", "-i", "100Hz", "-o", self.folder / "s.tacho", "--", "/bin/sleep", str(seconds)]
        closed = "mount -t tmpfs -o ro none /tmp && exec \"$@\"" if not listens else "exec \"$@\""
        env = {k: v for k, v in self.env.items() if k not in ("XDG_RUNTIME_DIR", "TMPDIR")}
        pid = os.posix_spawnp("unshare", ["unshare", "-m", "sh", "-c", closed, "sh", *map(str, words)], env)
        _, status, used = os.wait4(pid, 0)
        if status:
            raise lab.Trouble("the recorder failed")
        return (used.ru_utime + used.ru_stime) * 1e6 / (seconds * 100)

    def silent(self):
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "-o", "ro", "none", "/tmp"], stderr=subprocess.DEVNULL).returncode:
            return
        pairs = [(self.one_silent(True, 5), self.one_silent(False, 5)) for _ in range(1 if self.quick else 8)]
        listening, deaf = (statistics.median(side) for side in zip(*pairs))
        yield {"what": "a recorder at 100 Hz that listens and hears nothing, CPU a tick", "value": listening, "unit": " µs"}
        yield {"what": "the same without a socket", "value": deaf, "unit": " µs"}
        yield lab.goal("listening, beside not listening", listening / deaf, " ×", 1.05)

    def run(self):
        begin = time.monotonic()
        busy = lab.busy_share()
        rows = [*self.in_c(), *self.in_scripts(), *self.silent()]
        return {"machine": lab.describe_machine(), "busy": busy, "marks": rows, "seconds": round(time.monotonic() - begin)}


def render(result):
    rows = [[r["what"], run.number(r["value"]) + r["unit"], r.get("goal", ""), {True: "met", False: "not met"}.get(r.get("met"), "")]
            for r in result["marks"]]
    return (f"{result['machine']}, {run.state_of(result)}; times that a tenth of the calls and processes stay below\n\n" + run.table(["speaking", "measured", "wanted", "verdict"], rows) + "\n")


def main():
    parser = argparse.ArgumentParser(description="the cost of marks and phases")
    parser.add_argument("--marks", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="seconds instead of two minutes; rougher")
    options = lab.parse(parser)
    result = lab.measure(Bench, options, place="/var/tmp")
    text = render(result)
    print(json.dumps(result, indent=2) if options.json else text)
    if options.doc:
        run.write_doc(options.doc, "marks", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
