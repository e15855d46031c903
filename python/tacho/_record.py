"""Recording of the process that runs, by a recorder outside of it.

`tacho attach --background` is started; it returns when the first sample is written, and the recorder goes on in a session of its own. It is
no child of this process, so nothing here has to wait for it, and it ends by itself when this process has ended, in whatever way.
Nothing is sampled in this process; no thread runs and no descriptor stays open.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, TypeVar, Union

from . import _marks
from ._error import TachoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._run import Record, Run

F = TypeVar("F", bound=Callable[..., Any])

_START_S = 60.0  # the recorder has begun by then, or is given up
_END_S = 60.0


class TachoWarning(RuntimeWarning):
    """The process is not recorded, or twice; or something else about its recording is worth knowing."""


class Unknown(float):
    """A number that is not known, with members that are not known either: what `summary` has of a recording that does not
    exist, so that a program goes on.

    >>> from tacho._record import Unknown
    >>> unknown = Unknown("nan")
    >>> unknown.memory.peak_bytes, unknown["cpu"]["total_s"] / 60, bool(unknown)
    (unknown, nan, False)
    """

    def __getattr__(self, name: str) -> "Unknown":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, name: object) -> "Unknown":
        if isinstance(name, int):
            raise IndexError(name)
        return self

    def get(self, name: object, default: object = None) -> object:
        return default

    def __iter__(self) -> "Any":
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "unknown"


def _warn(text: str) -> None:
    """Where the caller's own code stands; a filter that makes errors of warnings does not end the job."""
    import warnings

    depth = 1
    frame: Any = sys._getframe()
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
        frame, depth = frame.f_back, depth + 1
    try:
        warnings.warn(text, TachoWarning, stacklevel=depth)
    except TachoWarning:
        print(f"tacho: {text}", file=sys.stderr)


# ---- the recorder ----


class _Recorder:
    """A recorder that runs: where, and how it is ended."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.path = variables["TACHO_RECORDING"]
        self.socket = variables.get("TACHO_SOCKET") or None
        self.pid = int(variables["TACHO_RECORDER"])
        self.born = self._birth()

    def _birth(self) -> Optional[bytes]:
        """When the process with its number began; None: there is none, or it is a zombie."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            return None if fields[0] in (b"Z", b"X") else fields[19]
        except (OSError, IndexError):
            return None

    def runs(self) -> bool:
        return self.born is not None and self._birth() == self.born

    def end(self) -> bool:
        """Asks it to end and waits until it has."""
        import select
        import signal
        from time import monotonic, sleep

        fd = -1
        try:
            fd = os.pidfd_open(self.pid)  # Linux 5.3; opened now, since a program may close all that it has open
        except (AttributeError, OSError):
            pass
        until = monotonic() + _END_S
        try:
            if self.runs():  # it is the process that fd means, and not a later one of its number
                os.kill(self.pid, signal.SIGTERM)
            while self.runs() and monotonic() < until:
                if fd >= 0:
                    poll = select.poll()
                    poll.register(fd, select.POLLIN)
                    poll.poll(1000)
                else:
                    sleep(0.01)
        except ProcessLookupError:
            pass
        finally:
            if fd >= 0:
                os.close(fd)
        ended = not self.runs()
        if ended:
            try:
                os.waitpid(self.pid, os.WNOHANG)  # where this process is the one that gets orphans, as in a container
            except OSError:
                pass
        return ended


def _begin(words: List[str]) -> "tuple[_Recorder, str]":
    """Starts it; what it had to say. OSError with the reason when it cannot be."""
    import subprocess

    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=_START_S, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        raise TachoError(0, f"the recorder has not begun within {_START_S:.0f} s") from None
    said = "; ".join(line[7:] if line.startswith("tacho: ") else line for line in os.fsdecode(done.stderr).strip().splitlines())
    variables = {}
    text = os.fsdecode(done.stdout)
    for name in ("TACHO_RECORDER", "TACHO_SOCKET", "TACHO_RECORDING"):  # from the end: a path may have any bytes
        text, found, value = text.rpartition(name + "=")
        if found:
            variables[name] = value[:-1] if value.endswith("\n") else value
    if "TACHO_RECORDER" not in variables or "TACHO_RECORDING" not in variables:
        raise TachoError(0, said or f"{words[0]} ended with status {done.returncode}")
    return _Recorder(variables), said


def _interval(interval: Union[None, int, float, str]) -> List[str]:
    return [] if interval is None else ["--interval", interval if isinstance(interval, str) else f"{interval:.9f}".rstrip("0").rstrip(".")]


def _name_of_script() -> Optional[str]:
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    return name if name not in ("", "-c", "-m") else None


# ---- recordings ----

_running: "List[Recording]" = []


class Recording:
    """What `tacho.record()` makes. It starts as a context manager, as a decorator, or by `start()`.

    `why` says why nothing is recorded; it is None while all is well. `path` is the recording's file.
    """

    def __init__(
        self,
        path: "Union[None, str, bytes, os.PathLike[str], os.PathLike[bytes]]" = None,
        *,
        interval: Union[None, int, float, str] = None,
        strict: bool = False,
        join: bool = False,
        force: bool = False,
        name: Optional[str] = None,
        tags: Optional[Mapping[str, object]] = None,
        message: Optional[str] = None,
        metrics: Iterable[str] = (),
        children: bool = True,
        options: Iterable[str] = (),
    ) -> None:
        self.path: Optional[str] = None if path is None else os.path.abspath(os.fsdecode(path))
        self.why: Optional[str] = "it was not started yet"
        self.strict = strict
        self._join = join
        self._warned = False
        self._recorder: Optional[_Recorder] = None
        self._socket: Optional[str] = None
        self._owner = os.getpid()
        self._before: Dict[str, Optional[str]] = {}
        self._joined = False
        self._ended = False
        words = _interval(interval)
        if self.path is not None:
            # Braces are placeholders of --output; here a path is a path.
            words += ["--output", self.path.replace("{", "{{").replace("}", "}}")]
        name = name or _name_of_script()
        if name:
            words += ["--name", name]
        for key, value in (tags or {}).items():
            words += ["--tag", f"{key}={value}"]
        if message is not None:
            words += ["--message", message]
        metrics = [metrics] if isinstance(metrics, str) else list(metrics)
        if metrics:
            words += ["--metrics", ",".join(metrics)]
        if not children:
            words += ["--children", "no"]
        if force:
            words += ["--force"]
        self._words = [*words, *options]

    # ---- start and end ----

    def _command(self) -> List[str]:
        from ._find import executable

        return [executable(), "attach", "--background", "--until-exit", *self._words, "--", str(os.getpid())]

    def _may_start(self) -> bool:
        """Whether there is something to do; also joins a recording that this process runs in."""
        if self.active:
            _warn(f"this recording ({self.path}) was started already: nothing is started twice")
            return False
        socket = os.environ.get("TACHO_SOCKET")
        if self._join and (socket or _running):
            self._socket = _marks.current_socket()
            self.path = os.environ.get("TACHO_RECORDING") or self.path
            self.why, self._joined = None, True
            return False
        running = [one for one in _running if one.active]
        if running:
            _warn(f"this process is recorded already, in {running[-1].path}: it will be in both recordings")
        return True

    def _take(self, began: "tuple[_Recorder, str]") -> None:
        self._recorder, said = began
        self._owner = os.getpid()
        self.path, self._socket = self._recorder.path, self._recorder.socket
        self.why, self._warned, self._ended = None, False, False
        for variable, value in (("TACHO_RECORDING", self.path), ("TACHO_SOCKET", self._socket or "")):
            self._before[variable] = os.environ.get(variable)
            os.environ[variable] = value
        _running.append(self)
        if self._socket:
            _marks.sockets.append(self._socket)
        if said and not len(_running) > 1:
            _warn(said)

    def _failed(self, error: BaseException) -> None:
        if self.strict:
            if isinstance(error, TachoError):
                raise error
            raise TachoError(getattr(error, "errno", None) or 0, str(error)) from error
        self.why = str(error) or type(error).__name__
        self._complain()

    def _complain(self) -> None:
        """Once: at the first use."""
        if self.why and not self._warned and not self._joined:
            self._warned = True
            _warn(f"this process is not recorded: {self.why}")

    def start(self) -> "Recording":
        """Returns when the first sample is written."""
        if not self._may_start():
            return self
        try:
            self._take(_begin(self._command()))
        except Exception as error:
            self._failed(error)
        return self

    async def _start_async(self) -> None:
        """The loop goes on meanwhile: a thread, which ends when the recorder has begun, waits for it."""
        import asyncio
        import threading

        if not self._may_start():
            return
        loop = asyncio.get_running_loop()
        done: "asyncio.Future[tuple[_Recorder, str]]" = loop.create_future()

        def settle(result: "Optional[tuple[_Recorder, str]]", error: Optional[BaseException]) -> None:
            if done.cancelled():
                if result:
                    result[0].end()
            elif result:
                done.set_result(result)
            elif error:
                done.set_exception(error)

        def work() -> None:
            try:
                result = _begin(self._command())
            except Exception as error:
                loop.call_soon_threadsafe(settle, None, error)
            else:
                loop.call_soon_threadsafe(settle, result, None)

        threading.Thread(target=work, name="tacho-start", daemon=True).start()
        try:
            self._take(await done)
        except Exception as error:
            self._failed(error)

    def stop(self) -> "Recording":
        """Returns when the recording is complete. In a child of the process that began it, nothing happens."""
        recorder, self._recorder = self._recorder, None
        self._joined = False
        if recorder is None:
            self._complain()
            return self
        if self._owner != os.getpid():
            return self
        early = not recorder.runs()
        if self in _running:
            _running.remove(self)
        if self._socket in _marks.sockets:
            _marks.sockets.remove(self._socket or "")
        for variable, value in self._before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
        if not recorder.end():
            self.why = f"the recorder (process {recorder.pid}) does not end"
            self._complain()
        self._ended = True
        self._socket = None
        if early and not self._is_complete():  # it may have been given a duration
            self.why = "the recorder ended before it was asked to: what it recorded until then can be read"
            self._complain()
        return self

    def _is_complete(self) -> bool:
        try:
            with self.open() as run:
                return bool(run.summary.get("complete"))
        except OSError:
            return False

    @property
    def active(self) -> bool:
        """Whether this process is being recorded by it now."""
        if self._joined:
            return True
        recorder = self._recorder
        if recorder is None:
            return False
        if recorder.runs():
            return True
        self.why = "the recorder has ended: it was killed, or could not go on"
        self._complain()
        return False

    def __enter__(self) -> "Recording":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> "Recording":
        await self._start_async()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, function: F) -> F:
        """As a decorator: each call of the function is a recording. A literal path is one file, which a second call cannot make again
        unless `force` is given."""
        return _marks.around(function, lambda: self)

    # ---- what the program tells ----

    def _find_socket(self) -> Optional[str]:
        if not self._socket:
            self._complain()
        return self._socket

    def phase(self, name: str, /, **data: Any) -> _marks.Phase:
        """A phase of this recording: a context manager (also `async with`), or a decorator."""
        return _marks.Phase(name, data, self._find_socket)

    def mark(self, text: str, /, *value: Any, **data: Any) -> bool:
        """`mark("loss", 0.3)`, `mark("saved", size="3.1G")`: as `tacho.mark()`, for this recording."""
        return _marks.marked(self._find_socket, text, value, data)

    # ---- what is recorded ----

    def open(self) -> "Run":
        """What is recorded so far; after the end, all of it."""
        from ._run import Run

        if self.path is None or not (self._recorder or self._ended or self._joined):
            raise TachoError(0, f"there is no recording: {self.why}")
        return Run(self.path)

    @property
    def summary(self) -> "Union[Record, Unknown]":
        """The summary of what is recorded so far (as of the last second), or an unknown one when nothing is: `why` says why."""
        try:
            with self.open() as run:
                return run.summary
        except OSError as error:
            if self.strict:
                raise
            self.why = self.why or str(error)
            self._complain()
            return Unknown("nan")

    def _repr_html_(self) -> str:
        try:
            with self.open() as run:
                return run._repr_html_()
        except OSError as error:
            from html import escape

            return f"<p>{escape(str(error))}</p>"

    def __reduce__(self) -> "tuple[Any, ...]":
        """For workers of multiprocessing: there it tells, and records nothing of its own."""
        return _remote, (self.path, self._socket, self.why)

    def __repr__(self) -> str:
        state = f"not recorded: {self.why}" if self.why else "runs" if self._recorder or self._joined else "ended"
        return f"<tacho.Recording {self.path!r}: {state}>"


def _remote(path: Optional[str], socket: Optional[str], why: Optional[str]) -> Recording:
    recording = Recording(path)
    recording._socket, recording.why, recording._joined = socket, why, socket is not None
    return recording


def _record(path: "Union[None, str, bytes, os.PathLike[str], os.PathLike[bytes]]" = None, **options: Any) -> Recording:
    """Records this process and its descendants: `with tacho.record("train.tacho", interval=1) as run:`.

    path: the recording; without one it is NAME-DATE.tacho in the working directory, NAME being that of the script.
    interval: seconds between two samples, or a text such as "100ms"; 1 s unless said otherwise.
    strict: raise TachoError if it cannot be recorded. Otherwise a warning says so, `why` of the recording has the reason, and the program goes on.
    join: where this process is recorded already (by `tacho run`, or by itself), tell that recorder, and begin none.
    force: replace the file if it exists.
    name, tags, message: labels of the recording. metrics: as --metrics of `tacho attach`. children: record descendants, too.
    options: further words for `tacho attach`, such as ["--duration", "10m"].

    >>> import tacho
    >>> @tacho.record("call.tacho", force=True)
    ... def work():
    ...     return sum(range(10))
    >>> work()
    45
    """
    return Recording(path, **options)


_record.__name__ = _record.__qualname__ = "record"
if TYPE_CHECKING:
    record = Recording  # so that checkers and editors know its options
else:
    record = _record


def start(path: "Union[None, str, bytes, os.PathLike[str], os.PathLike[bytes]]" = None, **options: Any) -> Recording:
    """Begins to record this process, to its end or to `tacho.stop()`. Options are those of `record()`.

    A second start warns, and gives the recording that runs.
    """
    running = [one for one in _running if one.active]
    if running and running[-1]._owner == os.getpid():
        _warn(f"this process is recorded already, in {running[-1].path}: tacho.start() begins nothing new; tacho.stop() ends that one")
        return running[-1]
    return Recording(path, **options).start()


def stop() -> Optional[Recording]:
    """Ends what `tacho.start()` began, and gives it; None with a warning where nothing was begun."""
    if not _running:
        _warn("nothing is recorded: tacho.stop() comes without tacho.start()")
        return None
    return _running[-1].stop()


def _in_child() -> None:
    """After fork(): the recorder is the parent's. What the child tells still reaches it."""
    for recording in _running:
        if recording._recorder is not None:
            recording._recorder = None
            recording._joined = recording._socket is not None
    _running.clear()


os.register_at_fork(after_in_child=_in_child)
