"""What the tests of the Python package share: the package from the source tree, with the executable and the library of the build."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recorder import TACHO

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python"
BUILD = Path(TACHO).parent


def need_library():
    library = BUILD / "libtacho.so.0"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    if "libasan" in subprocess.run(["ldd", library], capture_output=True, text=True).stdout:
        pytest.skip("a library with AddressSanitizer cannot be loaded into Python")


@pytest.fixture
def tacho(monkeypatch, tmp_path):
    """The package; the working directory is an empty one."""
    need_library()
    monkeypatch.setenv("TACHO_BIN", str(BUILD))
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.chdir(tmp_path)
    import tacho

    return tacho


def environment(**more):
    """For a Python of its own."""
    need_library()
    path = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "TACHO_BIN": str(BUILD), **more}


def script(text, *words, check=True, env=None, **kwargs):
    """Runs a program in Python; its standard output."""
    done = subprocess.run([sys.executable, "-c", text, *map(str, words)], capture_output=True, text=True, env=env or environment(), **kwargs)
    assert not check or done.returncode == 0, done.stderr
    return done if not check else done.stdout


def in_venv():
    """The Python of .dev/python, which has what Debian has not."""
    for python in ROOT.glob(".dev/python/bin/python3"):
        return python
    pytest.skip(".dev/python is not there: `./dev test` makes it")
