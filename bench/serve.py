"""What it costs to show recordings: 50 viewers of a run in progress at 1 Hz, and pages of long and large runs.

    ./dev bench --serve [--quick]

Prints a table for docs/overhead.md. The recordings are those of bench/report.py."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import lab
import report

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))


def answer(server, path):
    """First byte, whole answer, text."""
    start = time.monotonic()
    reply = server.open(path)
    first = time.monotonic() - start
    text = reply.read().decode()
    return first, time.monotonic() - start, text


def pages(serve, name, folder):
    with serve.serving(folder) as server:
        run_id, worst, start = server.ids()[0], 0, time.monotonic()
        while True:
            first, _, text = answer(server, f"run/{run_id}/")
            worst = max(worst, first)
            if 'id="data"' in text:
                break
            time.sleep(1)
        made = time.monotonic() - start
        again = answer(server, f"run/{run_id}/")[1]
        return {"run": name, "first_byte_s": worst, "page_s": made, "again_s": again, "page_mib": len(text) / 2**20,
                "memory_mib": server.memory() / 2**20}


def viewers(serve, folder, count, seconds):
    """CPU time of the server while so many watch a run at 1 Hz, its memory, and how many bytes each was sent."""
    recording = folder / "live.tacho"
    job = subprocess.Popen([serve.TACHO, "run", "-q", "-i", "1s", "-o", str(recording), "--", "sleep", "1000"], stdin=subprocess.DEVNULL)
    try:
        serve.grown(recording, 5)
        with serve.serving(folder) as server:
            run_id = server.ids()[0]
            after = server.data(run_id)["live"]["after"]
            alone = server.memory()
            streams = [server.events(run_id, after) for _ in range(count)]
            told = [0] * count

            def listen(i):
                for kind, _, _ in streams[i]:
                    told[i] += kind == "data"

            for i in range(count):
                threading.Thread(target=listen, args=(i,), daemon=True).start()
            time.sleep(3)
            before, had = lab.cpu_clock_ns(server.pid), sum(told)
            time.sleep(seconds)
            return {"viewers": count, "cpu_percent": (lab.cpu_clock_ns(server.pid) - before) / 1e7 / seconds,
                    "events_each_s": (sum(told) - had) / max(count, 1) / seconds, "memory_mib": server.memory() / 2**20,
                    "each_kib": (server.memory() - alone) / 1024 / max(count, 1)}
    finally:
        job.terminate()
        job.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tacho", type=Path, default=ROOT / "build" / "tacho")
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    os.environ["TACHO"] = str(options.tacho)
    import serve
    folder = Path(tempfile.mkdtemp(prefix="tacho-bench-"))
    try:
        rows = []
        for count in (0, 1, 50):
            place = folder / f"live{count}"
            place.mkdir()
            rows.append(viewers(serve, place, count, options.seconds or (5 if options.quick else 30)))
            print("{viewers:3} viewers: {cpu_percent:.2f} % of a core, {events_each_s:.2f} events/s each, {memory_mib:.1f} MiB, "
                  "{each_kib:.0f} KiB a viewer".format(**rows[-1]))
        for plan in [("a week at 1 Hz", 604800, 1, 20)] if not options.quick else [("1 h at 10 Hz", 3600, 10, 100)]:
            place = folder / "long"
            place.mkdir()
            report.make(options.tacho, place, plan)
            rows.append(pages(serve, plan[0], place))
            shutil.rmtree(place)
        if not options.quick:
            place = folder / "job"
            place.mkdir()
            report.make_nodes(options.tacho, place)
            rows.append(pages(serve, report.NODES, place))
        for row in rows[3:]:
            print("{run}: first byte {first_byte_s:.2f} s, page {page_s:.1f} s, again {again_s:.3f} s, {page_mib:.1f} MiB, "
                  "server {memory_mib:.0f} MiB".format(**row))
        print(json.dumps(rows))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
