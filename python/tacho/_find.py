"""Where the executable `tacho` and the library libtacho are.

They are looked for beside this package first. Then `TACHO_BIN` names the executable (or its directory), which a process with
more rights than its user does not believe; then PATH and the system's library path are searched. The library may also lie
beside the executable, or in the `lib` directory next to it.
"""

from __future__ import annotations

import os
from typing import Iterator, Optional

VARIABLE = "TACHO_BIN"
LIBRARY = "libtacho.so.0"
_HERE = os.path.dirname(os.path.abspath(__file__))


def version() -> str:
    """The version of this package.

    >>> version().count(".")
    2
    """
    with open(os.path.join(_HERE, "VERSION"), encoding="ascii") as file:
        return file.read().strip()


def _is_privileged() -> bool:
    """The environment is of a user with fewer rights than the process has."""
    if os.geteuid() != os.getuid() or os.getegid() != os.getgid():
        return True
    try:
        import ctypes

        secure = ctypes.CDLL(None).getauxval
        secure.restype, secure.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
        return bool(secure(23))  # AT_SECURE: capabilities of the file, or of a security module
    except (ImportError, OSError, AttributeError):
        return False


def _chosen() -> Optional[str]:
    path = os.environ.get(VARIABLE)
    if not path or _is_privileged():
        return None
    return os.path.join(path, "tacho") if os.path.isdir(path) else path


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _executables() -> Iterator[str]:
    yield os.path.join(_HERE, "bin", "tacho")
    chosen = _chosen()
    if chosen:
        yield chosen
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(folder):  # what the working directory holds is not meant
            yield os.path.join(folder, "tacho")


def executable() -> str:
    """The path of the executable `tacho`; FileNotFoundError where there is none.

    >>> os.path.basename(executable())
    'tacho'
    """
    for path in _executables():
        if _is_executable(path):
            return os.path.abspath(path)
    raise FileNotFoundError(
        f"there is no executable 'tacho': not beside this package, not in PATH, and {VARIABLE} names none; install tacho, "
        f"or set {VARIABLE} to where it is"
    )


def _libraries() -> Iterator[str]:
    yield os.path.join(_HERE, "lib", LIBRARY)
    for program in _executables():
        if _is_executable(program):
            folder = os.path.dirname(os.path.realpath(program))
            yield os.path.join(folder, LIBRARY)
            import glob

            yield from glob.glob(os.path.join(glob.escape(os.path.dirname(folder)), "lib*", LIBRARY))
            yield from glob.glob(os.path.join(glob.escape(os.path.dirname(folder)), "lib", "*", LIBRARY))
            break


def library() -> str:
    """The path of libtacho, or its name alone where the system's loader shall find it."""
    for path in _libraries():
        if os.path.isfile(path):
            return path
    return LIBRARY
