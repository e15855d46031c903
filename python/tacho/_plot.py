"""Curves of a run: axes of matplotlib, a picture by `tacho plot`, and what a notebook shows of a run.

Values are those of `tacho show --series`, so that a curve here and one in a report are the same numbers.
"""

from __future__ import annotations

from html import escape
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ._find import executable
from ._error import TachoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._run import Record, Run


class Curve(NamedTuple):
    label: str
    unit: str
    times: List[float]
    values: List[Optional[float]]


def _ask(*words: str) -> bytes:
    import subprocess

    done = subprocess.run([executable(), *words], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise TachoError(0, said.removeprefix("tacho: ") if hasattr(said, "removeprefix") else said)
    return done.stdout


def curves(run: "Run", metric: str, per: str = "total") -> List[Curve]:
    """One for each recording, or with per="instance" for each instance."""
    import json

    if per not in ("total", "instance"):
        raise ValueError(f"per is 'total' or 'instance', not {per!r}")
    said = json.loads(_ask("show", "--json", f"--series={metric}", f"--per={per}", "--", *run.paths))
    found: Dict[Tuple[str, ...], Curve] = {}
    for one in said["recordings"]:
        several = [one["host"]] if len(said["recordings"]) > 1 else []
        for time, *who, value in one["points"]:
            key = (one["host"], *(str(word) for word in who))
            if key not in found:
                words = [str(who[-1])] if who else [metric]
                found[key] = Curve(" ".join(words + several), one["units"][-1], [], [])
            found[key].times.append(time)
            found[key].values.append(value)
    return list(found.values())


# ---- pictures ----


class Picture:
    """A picture as SVG, which notebooks show; `save()` writes it into a file."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def __repr__(self) -> str:
        return f"<tacho picture: {len(self.svg)} characters of SVG>"


def plot(run: "Run", metrics: Sequence[str], per: str, ax: Any) -> Any:
    try:
        import matplotlib.pyplot as pyplot
    except ImportError:
        if ax is not None:
            raise
        return Picture(_ask("plot", "--format=svg", "--output=-", f"--per={per}", "--", *run.paths, *metrics).decode("utf-8", "replace"))
    if ax is None:
        ax = pyplot.subplots()[1]
    units = []
    for metric in metrics:
        for curve in curves(run, metric, per):
            ax.plot(curve.times, [float("nan") if value is None else value for value in curve.values], label=curve.label)
            units.append(curve.unit)
    for phase in run.phases:
        for one in phase.get("occurrences") or [phase]:
            ax.axvspan(one["begin_s"], one["end_s"], alpha=0.08)
    ax.set_xlabel("seconds")
    ax.set_ylabel(", ".join(dict.fromkeys(unit for unit in units if unit)) or ", ".join(metrics))
    if len(ax.get_lines()) > 1:
        ax.legend()
    else:
        ax.set_title(", ".join(metrics))
    return ax


# ---- notebooks ----

_WIDTH, _HEIGHT = 560, 90


def _line(curve: Curve, most: float, end: float) -> str:
    """A path with gaps where nothing is known."""
    parts, open_ = [], False
    for time, value in zip(curve.times, curve.values):
        if value is None:
            open_ = False
            continue
        x = _WIDTH * time / end if end > 0 else 0.0
        y = _HEIGHT * (1 - value / most) if most > 0 else float(_HEIGHT)
        parts.append(f"{'L' if open_ else 'M'}{x:.1f} {y:.1f}")
        open_ = True
    return "".join(parts)


def _thin(curve: Curve, points: int = 600) -> Curve:
    """At most so many spans, each with its largest value: a picture has no more columns."""
    n = len(curve.times)
    if n <= points:
        return curve
    times: List[float] = []
    values: List[Optional[float]] = []
    for i in range(points):
        part = slice(i * n // points, (i + 1) * n // points)
        known = [value for value in curve.values[part] if value is not None]
        times.append(curve.times[part.start])
        values.append(max(known) if known else None)
    return Curve(curve.label, curve.unit, times, values)


def _curve_html(run: "Run", metric: str, title: str) -> str:
    try:
        drawn = [_thin(curve) for curve in curves(run, metric)]
    except (TachoError, OSError, ValueError):
        return ""  # not recorded, or there is no executable: the numbers above still hold
    known = [value for curve in drawn for value in curve.values if value is not None]
    if not known:
        return ""
    most, end = max(known), max(curve.times[-1] for curve in drawn if curve.times)
    paths = "".join(f'<path d="{_line(curve, most, end)}" fill="none" stroke="#2a78c2" stroke-width="1.5"/>' for curve in drawn)
    label = f"{title}: at most {human(most, drawn[0].unit)}, over {human(end, 's')}"
    return (
        f'<figure style="margin:8px 0"><figcaption>{escape(label)}</figcaption><svg role="img" aria-label="{escape(label, quote=True)}" '
        f'viewBox="0 -2 {_WIDTH} {_HEIGHT + 4}" width="{_WIDTH}" height="{_HEIGHT}">{paths}'
        f'<path d="M0 {_HEIGHT}H{_WIDTH}" stroke="#888"/></svg></figure>'
    )


def human(value: Optional[float], unit: str) -> str:
    """A number with its unit, for people.

    >>> human(3 * 2**30, "bytes"), human(0.25, "s"), human(5000.0, "s"), human(None, "s")
    ('3.00 GiB', '0.25 s', '1 h 23 min', 'unknown')
    """
    if value is None:
        return "unknown"
    if unit == "bytes":
        size = float(value)
        for name in ("B", "KiB", "MiB", "GiB", "TiB"):
            if abs(size) < 1024 or name == "TiB":
                break
            size /= 1024
        return f"{size:.0f} B" if name == "B" else f"{size:.3g} {name}" if size >= 100 else f"{size:.2f} {name}"
    if unit == "s" and value >= 120:
        minutes = round(value / 60)
        return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {round(value) % 60} s"
    return f"{value:.3g} {unit}".rstrip()


def _figures(summary: "Record") -> List[Tuple[str, str]]:
    cpu, memory, io = summary.cpu, summary.memory, summary.io
    exit_ = summary.exit
    how = f"exit {exit_.code}" if exit_.code is not None else f"signal {exit_.signal}" if exit_.signal is not None else str(summary.ended or "runs")
    return [
        ("command", str(summary.command)),
        ("host, start", f"{summary.host}, {summary.start}"),
        ("wall", f"{human(summary.wall_s, 's')} ({how})"),
        ("CPU", f"{human(cpu.total_s, 's')}, {human(cpu.mean_cores, 'cores')} mean of {human(cpu.available_cores, '')}"),
        ("memory", f"{human(memory.peak_bytes, 'bytes')} peak"),
        ("storage", f"{human(io.read_bytes, 'bytes')} read, {human(io.write_bytes, 'bytes')} written"),
        ("processes", str(summary.processes.seen)),
    ]


def run_html(run: "Run") -> str:
    """Summary, phases, notes and curves. Whatever is in the recording is shown as text."""
    summary = run.summary
    rows = "".join(f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>' for name, text in _figures(summary))
    parts = [f"<table>{rows}</table>"]
    if run.phases:
        lines = "".join(
            f"<tr><td>{escape(str(p['name']))}</td><td>{escape(human(p['duration_s'], 's'))}</td><td>{escape(human(p['cpu_s'], 's'))}</td>"
            f"<td>{escape(human(p['peak_memory_bytes'], 'bytes'))}</td></tr>" for p in run.phases[:20]
        )  # fmt: skip
        parts.append(f"<table><tr><th>phase</th><th>wall</th><th>CPU</th><th>peak memory</th></tr>{lines}</table>")
    parts.append(_curve_html(run, "tree.cores", "CPUs in use"))
    parts.append(_curve_html(run, "proc.mem.rss", "memory (RSS)"))
    notes = "".join(f"<li>{escape(str(note))}</li>" for note in summary.notes[:10])
    if notes:
        parts.append(f"<ul>{notes}</ul>")
    return f'<div class="tacho">{"".join(parts)}</div>'
