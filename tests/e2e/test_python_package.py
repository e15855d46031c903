"""The package as such: examples of its documents and docstrings, types, what importing costs, how it is installed."""

import ast
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from python_package import PACKAGE, ROOT, environment, in_venv, need_library, script
from recorder import names, run, show, told


def examples(path):
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.S)


def python_with(*packages):
    """The Python of .dev/python, with these packages."""
    python = in_venv()
    for package in packages:
        if subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode:
            pytest.skip(f"{package} is not in .dev/python: `./dev test` installs it")
    return python


def test_the_examples_of_the_documents(tmp_path):
    """As they stand there, one after the other in one directory."""
    python = python_with("duckdb", "pandas", "polars")
    for path, least in (("docs/python.md", 6), ("python/README.md", 1)):
        found = examples(path)
        assert len(found) >= least
        for text in found:
            done = subprocess.run([python, "-W", "error", "-c", text], cwd=tmp_path, env=environment(), capture_output=True, text=True)
            assert done.returncode == 0, f"{text}\n{done.stderr}"
        if least > 1:
            assert [phase["name"] for phase in show(tmp_path / "train.tacho")["phases"]] == ["load", "epoch"]
            assert names(told(tmp_path / "train.tacho"))[-1] == ("mark", "saved") and (tmp_path / "hw/cpu_metrics.csv").exists()


def test_the_example_of_the_readme(tmp_path):
    """README.md of the project shows the package, too."""
    python = python_with("pandas")
    (text,) = (text for text in examples("README.md") if "tacho.record" in text)
    done = subprocess.run([python, "-c", text], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_docstrings(tmp_path):
    """Every example of a docstring is run, in one directory: that of the package makes the recording that the others read."""
    need_library()
    modules = ["tacho"] + sorted(
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in (PACKAGE / "tacho").rglob("*.py") if path.name != "__init__.py"
    )
    text = f"""import doctest, importlib
tried = 0
for name in {modules!r}:
    result = doctest.testmod(importlib.import_module(name))
    assert not result.failed, name
    tried += result.attempted
print(tried)"""
    done = subprocess.run([python_with("pytest"), "-c", text], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 40


def test_every_public_thing_is_described():
    need_library()
    text = """import inspect, tacho, tacho.compat
for home in (tacho, tacho.compat):
    for name in home.__all__:
        thing = getattr(home, name)
        if name == "__version__":
            continue
        assert inspect.getdoc(thing), name
print(tacho.__version__)"""
    version = re.search(r"tacho (\S+)", run("--version").stdout.decode())[1]
    assert script(text) == f"{version}\n"


def test_types(tmp_path):
    """Of the package; and a user's mistakes are found, which is an error of mypy where one of them is not."""
    python = python_with("mypy")
    user = tmp_path / "user.py"
    user.write_text("""import tacho

path: int = tacho.record("a", interval=1).path  # type: ignore[assignment]
tacho.record("a", intervall=1)  # type: ignore[call-arg]
tacho.open("a").table("process").to_panda()  # type: ignore[attr-defined]
rows: "list[str]" = tacho.open("a").table("process", every="10s").columns
""")
    done = subprocess.run(
        [python, "-m", "mypy", "--strict", "--config-file", PACKAGE / "pyproject.toml", "--cache-dir", tmp_path, PACKAGE / "tacho", user],
        capture_output=True, text=True, env={**environment(), "MYPYPATH": str(PACKAGE)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_oldest_python():
    """3.9 is promised: no newer syntax."""
    for path in (PACKAGE / "tacho").rglob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))


def test_importing_loads_next_to_nothing():
    """Modules are counted, not milliseconds: those that come with the package, and those that recording needs before it starts."""
    text = """import sys
before = set(sys.modules)
import tacho
first = set(sys.modules) - before
tacho.record
second = set(sys.modules) - before - first
print(len(first), *(name for name in second if name.split(".")[0] in ("ctypes", "subprocess", "json", "socket", "threading", "asyncio", "numpy")))"""
    assert script(text) == "1\n"


def test_installed_by_pip(tmp_path):
    """`pip install ./python`, away from the source tree."""
    python = python_with("hatchling")
    shutil.copytree(PACKAGE, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [python, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-index", "--no-deps", "-w", tmp_path, tmp_path / "source"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("tacho-*-py3-none-any.whl")
    said = zipfile.ZipFile(wheel)
    packed = {name for name in said.namelist() if name.startswith("tacho/")}
    assert packed == {str(path.relative_to(PACKAGE)) for path in (PACKAGE / "tacho").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    (points,) = (said.read(name).decode() for name in said.namelist() if name.endswith("entry_points.txt"))
    assert "[pytest11]" in points and "tacho.pytest_plugin" in points
    target = tmp_path / "target"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", target, wheel], check=True, capture_output=True)
    env = {**environment(), "PYTHONPATH": str(target)}
    assert script("import tacho\nwith tacho.record('a.tacho') as run: pass\nprint(run.why, tacho.__file__)", env=env, cwd=tmp_path) == f"None {target}/tacho/__init__.py\n"
    (tmp_path / "test_x.py").write_text("def test_x(): pass\n")
    for more in ([], ["-p", "tacho.pytest_plugin"]):  # by its entry point, and named besides
        words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *more, "--tacho", "test_x.py"]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0 and "1 tests: wall" in done.stdout, done.stdout + done.stderr


def test_a_privileged_process_does_not_believe_the_environment(tmp_path):
    text = """import os
from tacho import _find
os.environ["TACHO_BIN"] = "/elsewhere"
assert "/elsewhere" in _find._executables()
_find._is_privileged = lambda: True
assert "/elsewhere" not in _find._executables()
print("ok")"""
    assert script(text) == "ok\n"
