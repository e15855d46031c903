"""libtacho by ctypes: include/tacho.h in Python. Calls release the lock of the interpreter while the library works."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _find
from ._error import TachoError


class CFrame(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("help", ctypes.c_char_p), ("domain", ctypes.c_char_p), ("nr_fields", ctypes.c_size_t)]


class CField(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("name", "help", "type", "unit", "kind")]


class COptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("from_", ctypes.c_double), ("to", ctypes.c_double), ("every", ctypes.c_double),
        ("raw", ctypes.c_int), ("metrics", ctypes.POINTER(ctypes.c_char_p)), ("nr_metrics", ctypes.c_size_t), ("wait", ctypes.c_double),
    ]  # fmt: skip


class CSchema(ctypes.Structure):
    pass


CSchema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(CSchema))), ("dictionary", ctypes.POINTER(CSchema)),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]  # fmt: skip


class CArray(ctypes.Structure):
    pass


CArray._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(CArray))),
    ("dictionary", ctypes.POINTER(CArray)), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]  # fmt: skip


class CStream(ctypes.Structure):
    _fields_ = [
        ("get_schema", ctypes.c_void_p), ("get_next", ctypes.c_void_p), ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
    ]  # fmt: skip


_FILL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_TEXT = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def release(structure: Any) -> None:
    """Of a stream, a schema or an array: once; one that was handed on, or released before, is left alone."""
    if structure.release:
        _RELEASE(structure.release)(ctypes.addressof(structure))


def stream_schema(stream: CStream) -> CSchema:
    schema = CSchema()
    error = _FILL(stream.get_schema)(ctypes.addressof(stream), ctypes.addressof(schema))
    if error:
        raise _stream_error(stream, error)
    return schema


def stream_next(stream: CStream) -> Optional[CArray]:
    """None at the end."""
    array = CArray()
    error = _FILL(stream.get_next)(ctypes.addressof(stream), ctypes.addressof(array))
    if error:
        raise _stream_error(stream, error)
    return array if array.release else None


def _stream_error(stream: CStream, error: int) -> TachoError:
    text = _TEXT(stream.get_last_error)(ctypes.addressof(stream)) if stream.get_last_error else None
    return TachoError(error, (text or b"").decode("utf-8", "replace") or os.strerror(error))


# ---- functions ----

_FUNCTIONS = {
    "tacho_version": (ctypes.c_char_p, []),
    "tacho_error": (ctypes.c_char_p, []),
    "tacho_open": (ctypes.c_int, [ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]),
    "tacho_close": (None, [ctypes.c_void_p]),
    "tacho_nr_frames": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tacho_frame": (ctypes.POINTER(CFrame), [ctypes.c_void_p, ctypes.c_size_t]),
    "tacho_field": (ctypes.POINTER(CField), [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]),
    "tacho_summary": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "tacho_findings": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "tacho_free": (None, [ctypes.c_void_p]),
    "tacho_stream": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(COptions), ctypes.POINTER(CStream)]),
    "tacho_follow": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(COptions), ctypes.POINTER(CStream)]),
}

_loaded: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    global _loaded
    if _loaded is None:
        path = _find.library()
        try:
            loaded = ctypes.CDLL(path)
        except OSError as error:
            raise TachoError(
                error.errno or 0, f"libtacho cannot be loaded ({error}): install tacho, or set {_find.VARIABLE} to where it is"
            ) from None
        for name, (result, arguments) in _FUNCTIONS.items():
            try:
                function = getattr(loaded, name)
            except AttributeError:
                raise TachoError(0, f"{path} is too old for this package: it has no {name}()") from None
            function.restype, function.argtypes = result, arguments
        _loaded = loaded
    return _loaded


def fail(code: int) -> TachoError:
    text = library().tacho_error()
    return TachoError(-code, (text or b"").decode("utf-8", "replace") or os.strerror(-code))


def names(words: Sequence[str]) -> Any:
    for word in words:
        if "\0" in word:  # C would see only what is before it
            raise ValueError(f"embedded null character in {word!r}")
    return (ctypes.c_char_p * len(words))(*(os.fsencode(word) for word in words))


class Opened:
    """What tacho_open() gave: an argument for the library's functions. It is freed when the last reference to it is gone, and a
    call has one to each of its arguments: what another thread still uses stays."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._as_parameter_ = ctypes.c_void_p()
        code = library().tacho_open(names(paths), len(paths), ctypes.byref(self._as_parameter_))
        if code < 0:
            raise fail(code)

    def __del__(self) -> None:
        if getattr(self, "_as_parameter_", None) and _loaded is not None:
            _loaded.tacho_close(self._as_parameter_)


class Handle:
    """An open run of the library. Any thread may close it while others use it: their calls go on to the end, later ones fail."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._opened: Optional[Opened] = Opened(paths)

    @property
    def run(self) -> Opened:
        """For one call of the library; an address that is taken out of it may be that of a closed run."""
        opened = self._opened
        if opened is None:
            raise TachoError(9, "this run was closed")
        return opened

    def close(self) -> None:
        self._opened = None

    def frames(self) -> List[Tuple[bytes, bytes, int]]:
        """Name, help and number of fields of each table: copies, since the library's are the run's."""
        lib, run = library(), self.run
        frames = (lib.tacho_frame(run, i).contents for i in range(lib.tacho_nr_frames(run)))
        return [(frame.name, frame.help, frame.nr_fields) for frame in frames]

    def fields(self, frame: int, nr: int) -> List[Tuple[Optional[bytes], ...]]:
        """Name, help, type, unit and kind of each field of a table, copies as well."""
        lib, run = library(), self.run
        fields = (lib.tacho_field(run, frame, i).contents for i in range(nr))
        return [(field.name, field.help, field.type, field.unit, field.kind) for field in fields]

    def text(self, function: str) -> bytes:
        lib, text = library(), ctypes.c_void_p()
        code = getattr(lib, function)(self.run, ctypes.byref(text))
        if code < 0:
            raise fail(code)
        try:
            return ctypes.string_at(text.value or 0)
        finally:
            lib.tacho_free(text)

    def stream(
        self, frame: str, metrics: Sequence[str], start: float, end: float, every: float, raw: bool, follow: bool = False, wait: float = 0
    ) -> CStream:
        lib, stream = library(), CStream()
        wanted = names(metrics)
        options = COptions(
            size=ctypes.sizeof(COptions), from_=start, to=end, every=every, raw=int(raw), nr_metrics=len(metrics), wait=wait
        )
        if metrics:
            options.metrics = ctypes.cast(wanted, ctypes.POINTER(ctypes.c_char_p))
        make = lib.tacho_follow if follow else lib.tacho_stream
        code = make(self.run, os.fsencode(frame), ctypes.byref(options), ctypes.byref(stream))
        if code < 0:
            raise fail(code)
        return stream


# ---- capsules ----

# Structures that a capsule points at, by address: they live until the capsule is destroyed.
_held: "dict[int, Any]" = {}
_CAPSULE_NAMES = {CStream: b"arrow_array_stream", CSchema: b"arrow_schema", CArray: b"arrow_array"}


def _make_capsule_functions() -> "tuple[Callable[[Any], object], Any]":
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    # As addresses: a capsule that is being destroyed must not get a reference.
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    held, free = _held, release

    def give_back(capsule: int) -> None:
        # A consumer takes what is in the structure and marks that as released; it may also rename the capsule.
        structure = held.pop(pointer_of(capsule, name_of(capsule)), None)
        if structure is not None:
            free(structure)

    destroy = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(give_back)
    # Capsules may outlive this module at the end of the interpreter: the function is never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(destroy))
    address = ctypes.cast(destroy, ctypes.c_void_p)

    def make(structure: Any) -> object:
        at = ctypes.addressof(structure)
        held[at] = structure
        try:
            return new(at, _CAPSULE_NAMES[type(structure)], address)
        except BaseException:
            free(held.pop(at))
            raise

    return make, destroy


_capsule_functions: "Optional[tuple[Callable[[Any], object], Any]]" = None


def capsule(structure: Any) -> object:
    """A PyCapsule that owns the structure: Arrow's protocol for handing data to other packages."""
    global _capsule_functions
    if _capsule_functions is None:
        _capsule_functions = _make_capsule_functions()
    return _capsule_functions[0](structure)
