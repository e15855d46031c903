"""Data for the page whose every number is known, in the form of docs/page-data.md.

A run of two minutes with phases, events, gaps, a leak, processes that come and go; or of several nodes, or reduced.
"""

import base64
import math
import struct

NOTHING = 65535
MOST = 65534
END_S = 120


def packed(values):
    """Numbers with None where there is nothing, as the page's data has them."""
    known = [i for i, v in enumerate(values) if v is not None]
    if not known:
        return {"at": 0, "n": 0, "lo": 0, "hi": 0, "q": ""}
    at, end = known[0], known[-1] + 1
    low, high = min(values[i] for i in known), max(values[i] for i in known)
    step = (high - low) / MOST or 1
    cells = [NOTHING if v is None else round((v - low) / step) for v in values[at:end]]
    return {"at": at, "n": end - at, "lo": low, "hi": high,
            "q": base64.b64encode(struct.pack(f"<{len(cells)}H", *cells)).decode()}


def unpacked(line, length):
    """And back."""
    values = [None] * length
    for i, (q,) in enumerate(struct.iter_unpack("<H", base64.b64decode(line["q"]))):
        if q != NOTHING:
            values[line["at"] + i] = line["lo"] + q * (line["hi"] - line["lo"]) / MOST
    return values


def line(name, values, *, node=0, color=0, spread=0, **more):
    known = [v for v in values if v is not None]
    made = {"name": name, "node": node, "color": color, "dashed": False, "process": None, "group": None,
            "average": sum(known) / len(known) if known else None, "most": max(known, default=0) * (1 + spread) if known else None,
            "mean": packed(values)}
    if spread:
        made["low"] = packed([None if v is None else max(v * (1 - spread), 0) for v in values])
        made["high"] = packed([None if v is None else v * (1 + spread) for v in values])
    return {**made, **more}


def panel(name, title, section, form, unit, lines, **more):
    return {"id": name, "title": title, "section": section, "form": form, "quantity": None, "unit": unit,
            "per_second": False, "node": -1, "subtitle": None, "y_most": None, "levels": [], "peaks": [],
            "lines": lines, "spans": [], **more}


def column(name, title, unit, **more):
    return {"name": name, "title": title, "help": title + ".", "unit": unit, "per_second": False, "whole": False,
            "moment": False, **more}


def wave(times, base, swing, period, gap=None):
    return [None if gap and gap[0] <= t <= gap[1] else base + swing * math.sin(2 * math.pi * t / period) for t in times]


def process_rows(number, times):
    """Rows of the table: process k is born at k seconds and uses k + 1 seconds of CPU time."""
    rows = []
    for k in range(number):
        name = ("python3", "gcc", "ld", "<b>sh</b>")[k % 4]
        born = k * (END_S - 10) / number
        rows.append([1000 + k, 999 + k, name, f"{name} --worker {k} </script>", "ann" if k % 3 else "bob",
                     ["build"] if k % 2 else ["build", "test"], 0, born, None if k % 7 == 0 else born + 8, "exit 0", k,
                     k + 1.0, 8.0, (k + 1) / 8, 2**20 * (k + 1), None if k % 5 == 0 else 2**19 * (k + 1)])
    return rows


def timeline(number, times):
    lines, spans = [], []
    for k in range(number):
        born, died = k * (END_S - 10) / number, k * (END_S - 10) / number + 8
        busy = [0.2 + 0.8 * ((t + k) % 4) / 4 if born <= t <= died else None for t in times]
        lines.append(line(f"python3 {1000 + k}", busy, color=k % 12, process=k))
        spans.append({"name": ("python3", "gcc", "ld", "<b>sh</b>")[k % 4], "from_s": born, "to_s": died, "lane": k % 16, "color": k % 12,
                      "process": k, "line": k})
    return panel("timeline", "Processes", "processes", "timeline", "count", lines, spans=spans)


def sample(processes=40, points=1200, spread=0):
    """The whole object."""
    step = END_S / points
    times = [(i + 0.5) * step for i in range(points)]
    gib = 2**30
    leak = [0.4 * gib + 0.02 * gib * t for t in times]
    per_process = [line(f"python3 {1000 + k}", [0.3 + 0.2 * math.sin(t / 5 + k) if 10 * k <= t <= 10 * k + 40 else None for t in times],
                        color=k, process=k) for k in range(6)]
    per_process.append(line("others", [0.1] * points, color=-1))
    panels = [
        panel("cpu", "CPU use", "cpu", "lines", "count",
              [line("cores used", wave(times, 2, 1.5, 30, (50, 58)), spread=spread)], quantity="cores",
              subtitle="mean 2.0, max 3.5 of 4 cores", levels=[{"value": 4, "label": "allocated: 4 cores", "stretch": True}],
              peaks=[{"time_s": 7.5, "value": 3.5, "text": "3.5"}]),
        panel("cpu-processes", "CPU by process", "cpu", "stacked", "count", per_process, quantity="cores"),
        panel("heat", "Busy cores", "cpu", "heat", "ratio",
              [line(f"cpu{c}", [0.5 + 0.5 * math.sin(t / 9 + c) for t in times], color=c) for c in range(16)], y_most=1),
        panel("memory", "Memory", "memory", "lines", "bytes",
              [line("RSS", leak, color=0, spread=spread), line("PSS", [v * 0.8 for v in leak], color=1, spread=spread),
               line("available", [8 * gib - v for v in leak], color=2, dashed=True)],
              levels=[{"value": 16 * gib, "label": "limit 16 GiB", "stretch": False}],
              peaks=[{"time_s": times[-1], "value": leak[-1], "text": "peak 2.8 GiB"}]),
        panel("io", "Storage", "io", "lines", "bytes",
              [line("read", wave(times, 5e7, 4e7, 11), color=0), line("written", wave(times, 2e7, 2e7, 17), color=1)], per_second=True),
        timeline(processes, times),
    ]
    columns = [{"name": n} for n in ("pid", "ppid", "name", "command", "user", "groups", "node", "start_s", "end_s", "ended", "index")]
    columns += [column("cpu_s", "CPU", "seconds"), column("duration_s", "duration", "seconds"),
                column("cores_mean", "cores", "count"), column("rss_peak_bytes", "RSS peak", "bytes"),
                column("pss_peak_bytes", "PSS peak", "bytes")]
    return {
        "format": 1, "generator": "tacho 0.1.0", "title": "make -j4", "summary": {}, "findings": [], "advice": {}, "unmeasured": [],
        "nodes": [{"host": "n1", "offset_s": 0, "end_s": END_S, "step_s": step, "reduced": bool(spread), "ticks": points,
                   "times": {"n": points, "from": times[0], "step": step}}],
        "phases": [{"time_s": 0, "end_s": 30, "node": 0, "kind": "phase", "label": "compile"},
                   {"time_s": 30, "end_s": 95, "node": 0, "kind": "phase", "label": "link <i>"}],
        "events": [{"time_s": 62, "end_s": None, "node": 0, "kind": "stopped", "label": "stopped by SIGSTOP"}],
        "panels": panels, "stats": {},
        "processes": {"columns": columns, "rows": process_rows(processes, times), "total": processes, "shown": processes},
        "note": "each point is the mean" if spread else None,
    }
