"""Recordings that are read: a run, its summary, phases, findings and tables."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from . import _library
from ._table import Batch, Batches, Field, Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta

    Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
    Paths = Union[Path, Sequence[Path]]
    Time = Union[None, int, float, str, timedelta]


class Record(Dict[str, Any]):
    """An object of the summary's JSON: a dict whose members are attributes, too. docs/summary.md says what they mean; None is
    what could not be measured, and `unavailable` has the reason.

    >>> record = Record({"memory": {"peak_bytes": 4096}, "exit": None})
    >>> record.memory.peak_bytes, record["memory"]["peak_bytes"], record.exit
    (4096, 4096, None)
    """

    def __init__(self, members: Mapping[str, Any]) -> None:
        super().__init__((name, _wrap(value)) for name, value in members.items())

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r} here; there are: {', '.join(self)}") from None

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *(name for name in self if name.isidentifier())]


class Finding(Record):
    """Something that is worth knowing of a run: `weight` (serious, warning, note, fine), `title`, `text`, `evidence`, and where it is
    to be seen: `from_s`, `to_s`, `phase`, `panel`."""

    def __repr__(self) -> str:
        return f"<{self.get('weight')}: {self.get('title')}>"


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    return [_wrap(item) for item in value] if isinstance(value, list) else value


def _text(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "replace")


_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(time: "Time", what: str) -> float:
    """Seconds of a number, of a text such as "10s", "250ms" or "1m30s", or of a timedelta; 0 of None.

    >>> seconds("1m30s", "every"), seconds(2, "every"), seconds(None, "every")
    (90.0, 2.0, 0.0)
    """
    if time is None:
        return 0.0
    if isinstance(time, (int, float)):
        return float(time)
    if not isinstance(time, str):
        return float(time.total_seconds())
    import re

    text = time.strip()
    if re.fullmatch(r"[0-9.]+", text):
        text += "s"
    parts = re.findall(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]+)", text)
    if not parts or re.sub(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]+)\s*", "", text) or any(unit not in _UNITS for _, unit in parts):
        raise ValueError(f"{what} takes seconds, or a time as '10s', '250ms' or '1m30s', not {time!r}")
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))


def open(path: "Paths") -> "Run":  # noqa: A001 (as in tarfile.open)
    """Opens a recording, several, or a directory of them (those of a job on many nodes) as one run.

    A recording that is still being written, or was damaged, is opened as well: what can be read of it is there.

    >>> import tacho
    >>> run = tacho.open("example.tacho")
    >>> run.summary.complete, run.summary["cpu"]["total_s"] > 0
    (True, True)
    """
    return Run(path)


class Run:
    """A run: what `tacho.open()` returns. It may be used by several threads, and as a context manager that closes it.

    Batches and streams that it gives are for one thread at a time.
    """

    def __init__(self, path: "Paths") -> None:
        several = [path] if isinstance(path, (str, bytes, os.PathLike)) else list(path)
        if not several:
            raise ValueError("no recording is named")
        self.paths: List[str] = [os.fsdecode(one) for one in several]
        self._handle = _library.Handle(self.paths)
        self._summary: Optional[Record] = None

    # ---- what it says ----

    @property
    def summary(self) -> Record:
        """What `tacho show --json` says of it. Of a recording that is still being written it is read anew each time."""
        if self._summary is not None:
            return self._summary
        import json

        summary = Record(json.loads(self._handle.text("tacho_summary")))
        if summary.get("complete"):
            self._summary = summary
        return summary

    @property
    def phases(self) -> List[Record]:
        """The phases that the job told of, each with its numbers; repetitions of one are its `occurrences`."""
        return list(self.summary.get("phases", []))

    def phase(self, name: str) -> Record:
        """A phase, or one repetition of it, by name."""
        phases = self.phases
        for phase in phases:
            if phase["name"] == name:
                return phase
        for phase in phases:
            for one in phase.get("occurrences", []):
                if one["name"] == name:
                    return Record(one)
        known = ", ".join(phase["name"] for phase in phases) or "none"
        raise KeyError(f"there is no phase {name!r}; there are: {known}")

    def _read_findings(self) -> Record:
        import json

        return Record(json.loads(self._handle.text("tacho_findings")))

    @property
    def findings(self) -> List[Finding]:
        """What is to be found in it, the gravest first: the findings of `tacho report`."""
        return [Finding(one) for one in self._read_findings()["findings"]]

    @property
    def advice(self) -> Record:
        """Lines for the next job script, by batch system, and how their numbers were made."""
        advice = self._read_findings()["advice"]
        assert isinstance(advice, Record)
        return advice

    # ---- tables ----

    @property
    def tables(self) -> Dict[str, str]:
        """The tables that there are, and what each of them is."""
        return {_text(name): _text(help) for name, help, _ in self._handle.frames()}

    def _fields(self, name: str) -> Dict[str, Field]:
        for i, (frame, _, nr) in enumerate(self._handle.frames()):
            if _text(frame) == name:
                fields = (
                    Field(_text(title), _text(type), _text(unit), _text(kind) or None, _text(help))
                    for title, help, type, unit, kind in self._handle.fields(i, nr)
                )
                return {field.name: field for field in fields}
        raise KeyError(f"there is no table {name!r}; there are: {', '.join(self.tables)}")

    def table(
        self,
        name: str,
        *,
        every: "Time" = None,
        metrics: Sequence[str] = (),
        start: "Time" = None,
        end: "Time" = None,
        phase: Optional[str] = None,
        raw: bool = False,
    ) -> Table:
        """A table by its name: "process", "node", "cpu", "gpu", "processes", "events" … (`tables` lists them).

        `every`: a row stands for so much time, by mean, maximum or last value; else there is one for each sample. `metrics`: only these,
        by name or by the beginning of it. `start`, `end`: after the start of the run. `phase`: the time of this phase. `raw`: the
        stored integers, not scaled.
        """
        begin, until = seconds(start, "start"), seconds(end, "end")
        if phase is not None:
            found = self.phase(phase)
            begin = max(begin, float(found["begin_s"]))
            until = min(until or float(found["end_s"]), float(found["end_s"]))
        span = seconds(every, "every")
        wanted = [metrics] if isinstance(metrics, str) else list(metrics)
        handle = self._handle
        return Table(name, self._fields(name), lambda: handle.stream(name, wanted, begin, until, span, raw))

    def follow(
        self, name: str = "tree", *, every: "Time" = None, metrics: Sequence[str] = (), start: "Time" = None, wait: "Time" = None
    ) -> Iterator[Batch]:
        """Batches of rows of a recording that is still being written, as they come, to its end.

        `wait`: after so long without news a batch without rows comes, so that the caller gets its turn.

        >>> import tacho
        >>> sum(len(batch) for batch in tacho.open("example.tacho").follow("tree")) >= 2
        True
        """
        self._fields(name)
        wanted = [metrics] if isinstance(metrics, str) else list(metrics)
        span, begin, patience = seconds(every, "every"), seconds(start, "start"), seconds(wait, "wait")
        # Half a second at most in the library, so that Ctrl-C is heard.
        stream = self._handle.stream(name, wanted, begin, 0.0, span, False, follow=True, wait=min(patience or 0.5, 0.5))
        return self._patient(Batches(stream), patience)

    @staticmethod
    def _patient(batches: Batches, patience: float) -> Iterator[Batch]:
        from time import monotonic

        last = monotonic()
        for batch in batches:
            if len(batch) or (patience and monotonic() - last >= patience):
                last = monotonic()
                yield batch
            else:
                batch.release()

    # ---- pictures ----

    def plot(self, *metrics: str, per: str = "total", ax: Any = None) -> Any:
        """Metrics over time: the axes of matplotlib where that is installed, else a picture (SVG) that notebooks show.

        `per`: "total", or "instance" for a curve each. `ax`: axes of matplotlib to draw into.
        """
        from . import _plot

        return _plot.plot(self, metrics or ("tree.cores",), per, ax)

    def _repr_html_(self) -> str:
        from . import _plot

        return _plot.run_html(self)

    # ---- the rest ----

    def close(self) -> None:
        """Streams and tables that were read already stay valid, and calls in other threads go on to their end; later ones fail."""
        self._handle.close()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return f"<tacho.Run {self.paths[0]!r}{more}>"
