"""pytyche's run_monitor: the same names, arguments and files.

Different from there: the hardware is sampled by a recorder outside of the process, the CPUs too, so no thread runs here; GPUs of all
makers are in the files, not those of nvidia-smi alone; the recording itself is kept beside them (`hardware.tacho`) for everything else that tacho
can show; and what is not known of a GPU is left out of means instead of counting as zero.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from .._record import Recording, _warn


def _now() -> str:
    return datetime.now(tz=timezone.utc).isoformat(timespec="milliseconds")


class RunLog:
    """A log of phases and events, a line of JSON each, for `tail -f` and `jq`.

    With a path each entry is appended to that file at once; without one they are kept until `write()`.

    >>> from pathlib import Path
    >>> log = RunLog()
    >>> log.log_phase("fit", 1.23456, draws=500)
    >>> log.log_event("start", {"seed": 1})
    >>> log.write(Path("run.jsonl"))
    >>> [json.loads(line)["type"] for line in open("run.jsonl")]
    ['phase', 'event']
    """

    def __init__(self, path: "Union[None, str, os.PathLike[str]]" = None) -> None:
        self._entries: List[Dict[str, Any]] = []
        self._path = path

    def _add(self, entry: Dict[str, Any]) -> None:
        self._entries.append(entry)
        if self._path is not None:
            line = json.dumps(entry, default=str) + "\n"
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, line.encode())  # one write: lines of several processes stay whole
            finally:
                os.close(fd)

    def log_phase(self, name: str, seconds: float, **extra: Any) -> None:
        """A phase that has ended, with its duration."""
        self._add({"ts": _now(), "type": "phase", "name": name, "seconds": round(seconds, 3), **extra})

    def log_event(self, event_type: str, data: Optional[Dict[str, Any]] = None) -> None:
        """Something that happened now."""
        self._add({"ts": _now(), "type": "event", "event": event_type, **({"data": data} if data else {})})

    def write(self, path: "Union[str, os.PathLike[str]]") -> None:
        """All entries, into a file that is replaced."""
        with open(path, "w", encoding="utf-8") as file:
            for entry in self._entries:
                file.write(json.dumps(entry, default=str) + "\n")


class HWMonitor:
    """Samples CPUs and GPUs of the machine between `start()` and `stop()`, in a process outside of this one.

    `why` says why nothing is sampled, and a warning does once; nothing is raised.
    """

    def __init__(self) -> None:
        self._recording: Optional[Recording] = None
        self._folder = Path()

    @property
    def why(self) -> Optional[str]:
        return self._recording.why if self._recording else "it was not started yet"

    def start(self, output_dir: "Union[str, os.PathLike[str]]", interval_sec: float = 2) -> None:
        if self._recording is not None and self._recording.active:
            _warn(f"this HWMonitor was started already and writes to {self._folder}: nothing is started twice")
            return
        self._folder = Path(output_dir)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._recording = Recording(self._folder / "hardware.tacho", interval=interval_sec, force=True).start()

    def stop(self) -> Tuple[Optional[Path], Optional[Path], Optional[Path]]:
        """The files of GPUs, CPUs and of the GPUs' memory controllers (dmon); None for what there is not."""
        recording, self._recording = self._recording, None
        if recording is None or not recording.active:
            return None, None, None
        recording.stop()
        made = self._export(str(recording.path))
        return made("hw_metrics.csv", 0), made("cpu_metrics.csv", 1), made("hw_dmon.csv", 2)

    def _export(self, recording: str) -> Any:
        from .._error import TachoError
        from .._plot import _ask

        names = ("hw_metrics.csv", "cpu_metrics.csv", "hw_dmon.csv")
        for name in names:
            (self._folder / name).unlink(missing_ok=True)  # of an earlier run with a GPU
        try:
            _ask("export", "--to=tyche-csv", "--force", f"--output={self._folder}", "--", recording)
        except (TachoError, OSError) as error:
            _warn(f"the files of HWMonitor cannot be made of {recording}: {error}")

        def made(name: str, heading: int) -> Optional[Path]:
            path = self._folder / name
            try:
                with open(path, "rb") as file:
                    return path if len(file.read(4096).splitlines()) > heading else None
            except OSError:
                return None

        return made


@dataclass
class ResourceSummary:
    """What `build_resource_summary()` makes of the files; 0 is what no file had."""

    peak_vram_mb: float = 0.0
    jax_peak_bytes_mb: float = 0.0
    gpu_util_mean_pct: float = 0.0
    gpu_util_max_pct: float = 0.0
    mem_util_mean_pct: float = 0.0
    mem_util_max_pct: float = 0.0
    power_watts_mean: float = 0.0
    power_watts_max: float = 0.0
    cpu_usr_mean_pct: float = 0.0
    cpu_idle_mean_pct: float = 0.0

    def to_dict(self) -> Dict[str, float]:
        always = (
            "peak_vram_mb", "gpu_util_mean_pct", "gpu_util_max_pct", "power_watts_mean", "power_watts_max", "cpu_usr_mean_pct", "cpu_idle_mean_pct"
        )  # fmt: skip
        names = [*always]
        if self.jax_peak_bytes_mb > 0:
            names.append("jax_peak_bytes_mb")
        if self.mem_util_mean_pct > 0:
            names += ["mem_util_mean_pct", "mem_util_max_pct"]
        return {name: round(getattr(self, name), 1) for name in names}


def _number(text: str) -> Optional[float]:
    try:
        return float(text)
    except ValueError:
        return None  # "[N/A]", "-", a heading


def _lines(path: "Union[None, str, os.PathLike[str]]", separator: Optional[str], columns: int) -> Iterator[List[Optional[float]]]:
    """Lines with so many columns at least, as numbers."""
    if path is None or not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            words = [word.strip() for word in line.split(separator)]
            if len(words) >= columns and not line.startswith("#"):
                yield [_number(word) for word in words]


def _known(rows: List[List[Optional[float]]], column: int) -> List[float]:
    return [value for value in (row[column] for row in rows) if value is not None]


def _mean(values: List[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def build_resource_summary(
    gpu_csv_path: "Union[None, str, os.PathLike[str]]",
    cpu_csv_path: "Union[None, str, os.PathLike[str]]",
    dmon_csv_path: "Union[None, str, os.PathLike[str]]" = None,
) -> ResourceSummary:
    """The files of `HWMonitor.stop()`, or those of nvidia-smi itself, in a few numbers."""
    gpu, cpu = list(_lines(gpu_csv_path, ",", 9)), list(_lines(cpu_csv_path, ",", 3))
    dmon = list(_lines(dmon_csv_path, None, 4))
    util, memory, power, controller = _known(gpu, 1), _known(gpu, 3), _known(gpu, 5), _known(dmon, 2)
    return ResourceSummary(
        peak_vram_mb=max(memory, default=0.0),
        gpu_util_mean_pct=_mean(util),
        gpu_util_max_pct=max(util, default=0.0),
        mem_util_mean_pct=_mean(controller),
        mem_util_max_pct=max(controller, default=0.0),
        power_watts_mean=_mean(power),
        power_watts_max=max(power, default=0.0),
        cpu_usr_mean_pct=_mean(_known(cpu, 1)),
        cpu_idle_mean_pct=_mean(_known(cpu, 2)),
    )


def probe_jax_peak_memory_mb() -> float:
    """The most memory that JAX had in use on its first GPU, in MiB, as its own allocator counts; 0 without JAX or a GPU.

    >>> probe_jax_peak_memory_mb() >= 0
    True
    """
    try:
        import jax  # type: ignore[import-not-found,unused-ignore]

        gpus = [device for device in jax.local_devices() if device.platform == "gpu"]
        stats = gpus[0].memory_stats() if gpus else None
        return float((stats or {}).get("peak_bytes_in_use", 0)) / (1 << 20)
    except Exception:
        return 0.0
