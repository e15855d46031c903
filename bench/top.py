#!/usr/bin/python3
"""What it costs to look: `tacho top`, htop, btop and atop, each on a terminal of its own, watching the same herd at one frame a second.

    bench/top.py [--quick] [--json] [--tacho FILE] [--doc FILE]     (./dev bench --top)

A viewer is charged the CPU time of its process after it has settled, and the bytes that it writes to its terminal, which we read. tacho top reads
a recording, and its recorder is charged in a row of its own: others look at all processes of the machine, and keep nothing (atop without -w)."""

import argparse
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402
import run  # noqa: E402

COLUMNS, ROWS = 120, 40
OTHERS_MOST = 1000  # processes: with more of them the machine has time for nothing else
SETTLE_S = 4
UTF8 = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


class Viewer:
    """A program on a terminal whose other side we read, as fast as it comes."""

    def __init__(self, words, env):
        self.ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(list(map(str, words)), stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL,
                                        env={**os.environ, **UTF8, **env}, start_new_session=True)
        os.close(theirs)
        self.bytes = 0

    def look(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.ours], [], [], left)[0]:
                try:
                    self.bytes += len(os.read(self.ours, 1 << 16))
                except OSError:
                    break
        if self.process.poll() is not None:
            raise lab.Trouble(f"{self.process.args[0]} ended with status {self.process.returncode}")

    def press(self, key):
        os.write(self.ours, key)

    def charge(self, seconds):
        """CPU milliseconds and bytes in a second, that is in a frame."""
        begin, before, bytes_before = time.monotonic(), lab.cpu_clock_ns(self.process.pid), self.bytes
        self.look(seconds)
        took = time.monotonic() - begin
        return (lab.cpu_clock_ns(self.process.pid) - before) / 1e6 / took, (self.bytes - bytes_before) / took

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)


class Bench:
    def __init__(self, options, folder):
        self.tacho, self.quick, self.folder = options.tacho, options.quick, folder
        lab.compile_tools(folder)

    def viewers(self, recording, size):
        settings = self.folder / "config"
        (settings / "btop").mkdir(parents=True, exist_ok=True)
        (settings / "btop/btop.conf").write_text("update_ms = 1000\n", encoding="utf-8")
        home = {"XDG_CONFIG_HOME": str(settings), "HOME": str(self.folder)}
        yield "tacho top", [self.tacho, "top", recording], {}
        yield "tacho top, paused", [self.tacho, "top", recording], {}
        if size > OTHERS_MOST:
            return
        yield "htop", ["htop", "-d", "10"], home
        yield "btop", ["btop"], home
        yield "atop", ["atop", "1"], home

    def watched(self, name, words, env, seconds):
        if not shutil.which(str(words[0])):
            return None
        viewer = Viewer(words, env)
        try:
            viewer.look(SETTLE_S)
            if name.endswith("paused"):
                viewer.press(b"Z")
                viewer.look(1)
            return viewer.charge(seconds)
        finally:
            viewer.close()

    def one_size(self, size, rounds, seconds):
        recording = self.folder / f"herd-{size}.tacho"
        taken = {}
        with lab.Herd(self.folder, size, 40, 0.6) as herd:
            recorder = subprocess.Popen([str(self.tacho), "attach", "-q", "-i", "1s", "-o", str(recording), str(herd.root)])
            try:
                time.sleep(SETTLE_S)
                for turn in range(rounds):
                    before, begin = lab.cpu_clock_ns(recorder.pid), time.monotonic()
                    for name, words, env in self.viewers(recording, size):
                        print(f"  {size} processes, round {turn + 1} of {rounds}: {name}", file=sys.stderr)
                        cost = self.watched(name, words, env, seconds)
                        if cost:
                            taken.setdefault(name, []).append(cost)
                    own = (lab.cpu_clock_ns(recorder.pid) - before) / 1e6 / (time.monotonic() - begin)
                    taken.setdefault("tacho's recorder", []).append((own, 0))
            finally:
                recorder.terminate()
                recorder.wait()
        for name, costs in taken.items():
            yield {"processes": size, "viewer": name, "cpu_ms": statistics.median(c[0] for c in costs),
                   "bytes": statistics.median(c[1] for c in costs)}

    def run(self):
        begin = time.monotonic()
        busy = lab.busy_share()
        sizes, rounds, seconds = ((100, 1000, 10000), 1, 8) if self.quick else ((100, 1000, 10000), 3, 10)
        rows = [row for size in sizes for row in self.one_size(size, rounds, seconds)]
        return {"machine": lab.describe_machine(), "busy": busy, "rows": rows, "seconds": round(time.monotonic() - begin)}


def render(result):
    rows = [[str(r["processes"]), r["viewer"], f"{r['cpu_ms']:.2f} ms", f"{r['cpu_ms'] / 10:.2f} %", f"{r['bytes']:,.0f}"] for r in result["rows"]]
    return (f"{result['machine']}, {run.state_of(result)}; a terminal of {COLUMNS} × {ROWS}, one frame a second\n\n"
            + run.table(["processes", "viewer", "CPU a second", "of a core", "bytes a second"], rows, words=(1,)) + "\n")


def main():
    parser = argparse.ArgumentParser(description="the cost of looking")
    parser.add_argument("--top", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="one round instead of three; rougher")
    options = lab.parse(parser)
    result = lab.measure(Bench, options, place="/var/tmp")
    text = render(result)
    print(json.dumps(result, indent=2) if options.json else text)
    if options.doc:
        run.write_doc(options.doc, "top", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
