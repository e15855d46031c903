#!/usr/bin/python3
"""What it costs to push: CPU of the pusher beside a run, points per second of a long one, and what a dead server costs the job.

    bench/push.py [--quick] [--json] [--tacho FILE] [--doc FILE]     (./dev bench --push)

The server is a loop in this program that takes everything and keeps nothing; its CPU time is its own. CPU times are those that the kernel charged,
so other load on the machine changes them little; times are of one run."""

import argparse
import gzip
import http.server
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab  # noqa: E402
import run  # noqa: E402


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = self.bytes = self.points = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests += 1
        self.server.bytes += len(body)
        if "influx" in self.path or "/write?" in self.path:
            text = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            self.server.points += text.count(b"=") - text.count(b"host=") - text.count(b"run=") - text.count(b"instance=")
        self.send_response(204)
        self.end_headers()


class Bench:
    def __init__(self, options, folder):
        self.tacho, self.quick, self.folder = options.tacho, options.quick, folder

    def used(self, words):
        """CPU seconds and wall seconds of a command."""
        begin = time.monotonic()
        pid = os.posix_spawn(words[0], list(map(str, words)), os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
        _, status, used = os.wait4(pid, 0)
        if status:
            raise lab.Trouble(f"{' '.join(map(str, words))} failed")
        return used.ru_utime + used.ru_stime, time.monotonic() - begin

    def live(self, server):
        """CPU of a pusher beside a recorder at 1 Hz, start and end left out."""
        seconds = 20 if self.quick else 120
        path = self.folder / "live.tacho"
        recorder = subprocess.Popen([self.tacho, "run", "-q", "-o", path, "--", "/bin/sleep", str(seconds + 8)])
        while not path.exists():
            time.sleep(0.05)
        pusher = subprocess.Popen([self.tacho, "push", "--follow", "--to", f"influx={server.address}?db=x", path], stderr=subprocess.DEVNULL)
        time.sleep(4)
        before = lab.cpu_clock_ns(pusher.pid)
        time.sleep(seconds)
        spent = lab.cpu_clock_ns(pusher.pid) - before
        peak = lab.peak_rss_bytes(pusher.pid)
        recorder.wait()
        pusher.wait()
        yield lab.goal("a live push of the usual metrics at 1 Hz, CPU of the pusher", 100 * spent / 1e9 / seconds, " % of one core", 0.1)
        yield {"what": "its memory at most", "value": peak / 2**20, "unit": " MiB"}

    def backfill(self, server):
        hours = 1 if self.quick else 10
        path = self.folder / "long.tacho"
        subprocess.run([lab.recording_maker(self.tacho), "long", path, str(3600 * hours), "1", "20"], check=True)
        for what, words in ((f"a run of {hours} h at 1 Hz, each sample", ["--every", "0"]), (f"a run of {hours} h, every 10 s", [])):
            server.requests = server.bytes = server.points = 0
            cpu, wall = self.used([self.tacho, "push", *words, "--to", f"influx={server.address}?db={len(words)}", path])
            yield {"what": what, "value": wall, "unit": " s"}
            yield {"what": "points", "value": server.points, "unit": ""}
            yield {"what": "points a second", "value": server.points / wall, "unit": ""}
            yield {"what": "CPU a point", "value": 1e6 * cpu / server.points, "unit": " µs"}
            yield {"what": "bytes a point", "value": server.bytes / server.points, "unit": " B"}

    def dead(self):
        """Wall time of a job, and CPU of its recorder, with a push to nowhere beside without one."""
        spent = {False: [], True: []}
        for number in range(3 if self.quick else 15):
            for pushes in spent:
                push = ["--push", "influx=http://127.0.0.1:1?db=x --linger 1s"] if pushes else []
                words = [self.tacho, "run", "-q", "-f", *push, "-o", self.folder / f"{number}.tacho", "--", "/bin/sleep", "0.5"]
                spent[pushes].append(self.used(words))
        for index, what, unit in ((1, "wall time of a job of 0.5 s", " s"), (0, "CPU of its recorder, the job's included", " s")):
            without, beside = (statistics.median(v[index] for v in spent[side]) for side in (False, True))
            yield {"what": what, "value": without, "unit": unit}
            yield {"what": "the same with a push to a server that is not there", "value": beside / without, "unit": " ×"}

    def run(self):
        begin = time.monotonic()
        busy = lab.busy_share()
        server = Server()
        rows = [*self.live(server), *self.backfill(server), *self.dead()]
        return {"machine": lab.describe_machine(), "busy": busy, "push": rows, "seconds": round(time.monotonic() - begin)}


def render(result):
    rows = [[r["what"], run.number(r["value"]) + r["unit"], r.get("goal", ""), {True: "met", False: "not met"}.get(r.get("met"), "")]
            for r in result["push"]]
    return f"{result['machine']}, {run.state_of(result)}\n\n" + run.table(["pushing", "measured", "wanted", "verdict"], rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description="the cost of pushing")
    parser.add_argument("--push", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes; rougher")
    options = lab.parse(parser)
    result = lab.measure(Bench, options)
    text = render(result)
    print(json.dumps(result, indent=2) if options.json else text)
    if options.doc:
        run.write_doc(options.doc, "push", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
