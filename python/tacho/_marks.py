"""What a program tells its recorder: phases, marks and numbers, each one datagram of the protocol of docs/marks.md.

Nothing is kept open and nothing waits, so that any thread may tell something, and a child after fork(). Without a recorder nothing
happens.
"""

from __future__ import annotations

import os
import re
from _thread import get_native_id
from time import CLOCK_MONOTONIC, clock_gettime_ns
from typing import Any, Callable, List, Optional, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

MESSAGE_MOST = 4096
TEXT_LEAST = 512  # of it, for the first line
_KEY = re.compile(r"[^A-Za-z0-9_.-]")


def _escaped(text: str) -> bytes:
    return text.replace("\\", "\\\\").replace("\n", "\\n").encode("utf-8", "replace")


def _value(value: Any) -> str:
    """A number as one, whatever package it is of."""
    if isinstance(value, (str, bytes)):
        return value if isinstance(value, str) else value.decode("utf-8", "replace")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    try:
        return repr(float(value))
    except Exception:
        return str(value)


def message(kind: str, text: str, data: "dict[str, Any]") -> bytes:
    """One datagram. Data that does not fit is left out; a text that is too long is cut off.

    >>> message("mark", "saved", {"size": "3.1G"}).split(b"\\n")[0]
    b'mark saved'
    >>> len(message("mark", "x" * 9000, {"n": 1}))
    4096
    """
    lines = [b"@time=%d" % clock_gettime_ns(CLOCK_MONOTONIC), b"@thread=%d" % get_native_id()]
    room = MESSAGE_MOST - TEXT_LEAST - sum(len(line) + 1 for line in lines)
    for key, value in data.items():
        line = _KEY.sub("_", str(key)).encode() + b"=" + _escaped(_value(value))
        if line[:1] != b"=" and len(line) + 1 <= room:
            lines.append(line)
            room -= len(line) + 1
    rest = b"".join(b"\n" + line for line in lines)
    first = kind.encode() + b" " + _escaped(text)
    most = MESSAGE_MOST - len(rest)
    if len(first) > most:
        cut = first[: most - 3].decode("utf-8", "ignore").encode()
        if (len(cut) - len(cut.rstrip(b"\\"))) % 2:
            cut = cut[:-1]
        first = cut + "\u2026".encode()
    return first + rest


def tell(path: Optional[str], kind: str, text: str, data: "dict[str, Any]") -> bool:
    """Sends one to the socket of that path; whether it was sent. It never waits, and never raises."""
    if not path:
        return False
    try:
        import socket

        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(message(kind, text, data), socket.MSG_DONTWAIT, path)
        return True
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except Exception:
        _count_lost(path)
        return False


def _count_lost(path: str) -> None:
    """The recorder counts the bytes of a file beside its socket: one for each message that it did not get."""
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(path + ".lost", flags)
        try:
            os.write(fd, b"\0")
        finally:
            os.close(fd)
    except Exception:
        pass


# The sockets of the recordings that this process has begun, the youngest last; _record.py keeps them.
sockets: List[str] = []


def current_socket() -> Optional[str]:
    """Of the recording that this process has begun, else of the one that it runs in."""
    return sockets[-1] if sockets else os.environ.get("TACHO_SOCKET")


def around(function: F, make: Callable[[], Any]) -> F:
    """The function, of which each call stands within what `make()` gives; of generators all of the iteration does."""
    import functools
    import inspect

    call: Any
    if inspect.iscoroutinefunction(function):

        async def call(*args: Any, **kwargs: Any) -> Any:
            async with make():
                return await function(*args, **kwargs)

    elif inspect.isasyncgenfunction(function):

        async def call(*args: Any, **kwargs: Any) -> Any:
            async with make():
                async for item in function(*args, **kwargs):
                    yield item

    elif inspect.isgeneratorfunction(function):

        def call(*args: Any, **kwargs: Any) -> Any:
            with make():
                return (yield from function(*args, **kwargs))

    else:

        def call(*args: Any, **kwargs: Any) -> Any:
            with make():
                return function(*args, **kwargs)

    wrapped: Any = functools.wraps(function)(call)
    result: F = wrapped
    return result


class Phase:
    """A phase of the job: `with tacho.phase("load"):`, `async with`, or before a function, of which each call is a phase.

    >>> import tacho
    >>> with tacho.phase("load", files=3):
    ...     pass
    >>> @tacho.phase("step")
    ... def step(x):
    ...     return x + 1
    >>> step(1)
    2
    """

    def __init__(self, name: str, data: "dict[str, Any]", find: Callable[[], Optional[str]]) -> None:
        self.name = str(name)
        self._data = data
        self._find = find
        self._open: List[Optional[str]] = []

    def begin(self) -> "Phase":
        path = self._find()
        self._open.append(path)
        tell(path, "begin", self.name, self._data)
        return self

    def end(self) -> None:
        if self._open:
            tell(self._open.pop(), "end", self.name, {})

    def __enter__(self) -> "Phase":
        return self.begin()

    def __exit__(self, *_: object) -> None:
        self.end()

    async def __aenter__(self) -> "Phase":
        return self.begin()

    async def __aexit__(self, *_: object) -> None:
        self.end()

    def __call__(self, function: F) -> F:
        return around(function, lambda: Phase(self.name, self._data, self._find))


def phase(name: str, /, **data: Any) -> Phase:
    """A phase of the recording that this process has begun, else of the one that it runs in (`tacho run`)."""
    return Phase(name, data, current_socket)


def marked(find: Callable[[], Optional[str]], text: str, values: "tuple[Any, ...]", data: "dict[str, Any]") -> bool:
    if len(values) > 1:
        raise TypeError(f"mark() takes a text and at most one number, not {1 + len(values)} values")
    if values:
        return tell(find(), "mark", "", {text: values[0], **data})
    return tell(find(), "mark", text, data)


def mark(text: str, /, *value: Any, **data: Any) -> bool:
    """A moment, with data: `mark("saved", size="3.1G")`; or a number, which becomes a curve: `mark("loss", 0.3, step=1200)`.

    True when a recorder was told.

    >>> mark("saved", size="3.1G")      # here is none
    False
    """
    return marked(current_socket, text, value, data)
