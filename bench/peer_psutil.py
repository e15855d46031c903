"""The same metrics through psutil: python3 peer_psutil.py INTERVAL_S TICKS FULL_PER_TICK < pids

Written as a careful user of psutil would: Process objects are kept, each reading is one oneshot() block, nothing is
stored. FULL_PER_TICK processes, in turn, are also asked for PSS and USS, as often as the recorder does it. INTERVAL_S 0
runs tick after tick, which is kind to psutil (its caches stay warm) and is used where a tick takes it seconds.

Prints CPU seconds of this process after one warming tick, and what finding the tree costs on top of it, which is not
counted against psutil in the verdicts although the recorder's figures contain its own following of the tree."""

import json
import sys
import time

import psutil


def read_process(process, full):
    with process.oneshot():
        process.cpu_times()
        process.memory_info()
        process.io_counters()
        process.num_ctx_switches()
        process.num_threads()
        process.num_fds()
        process.status()
        if full:
            process.memory_full_info()


def main():
    interval, ticks, full_per_tick = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    processes = [psutil.Process(int(line)) for line in sys.stdin]
    owed, turn, cpu_start = 0.0, 0, 0.0
    deadline = time.monotonic()
    for tick in range(ticks + 1):
        if tick == 1:
            cpu_start = time.process_time()
        owed += full_per_tick
        full = {(turn + i) % len(processes) for i in range(min(int(owed), len(processes)))}
        turn, owed = turn + int(owed), owed - int(owed)
        for number, process in enumerate(processes):
            read_process(process, number in full)
        deadline += interval
        time.sleep(max(0.0, deadline - time.monotonic()))
    cpu = time.process_time() - cpu_start
    find_start = time.process_time()
    processes[0].children(recursive=True)
    find = time.process_time() - find_start
    print(json.dumps({"processes": len(processes), "ticks": ticks, "cpu_ns": cpu * 1e9, "find_ns": find * 1e9}))


if __name__ == "__main__":
    main()
