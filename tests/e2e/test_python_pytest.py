"""The plugin for pytest: each test is a phase, the costliest stand in a table, and conditions fail the run. Each case is a pytest of its
own with a file of tests."""

import itertools
import re
import subprocess
import sys

import pytest

from python_package import environment, in_venv, need_library, tacho  # noqa: F401 (a fixture)
from recorder import names, run, show, told

TESTS = """
import pytest, time

def test_allocates():
    data = bytearray(b"x") * (150 << 20)
    time.sleep(0.25)

@pytest.mark.parametrize("n", [1, 2])
def test_small(n):
    pass

class TestClass:
    def test_fails(self):
        assert n == 1

@pytest.mark.skip(reason="why")
def test_skipped():
    pass
"""


@pytest.fixture
def suite(tmp_path):
    need_library()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text(TESTS)
    (tmp_path / "tests/conftest.py").write_text('def pytest_addoption(parser): parser.addoption("--theirs", action="store_true")\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def pytest_with(*words, python=sys.executable, **more):
        words = [python, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tacho.pytest_plugin", *words]
        return subprocess.run(words, cwd=tmp_path, env=environment(**more), capture_output=True, text=True)

    return pytest_with


def section(text):
    lines = re.split(r"^=+ tacho =+$", text, flags=re.M)[1].strip().splitlines()
    return list(itertools.takewhile(lambda line: not line.startswith("==="), lines))


def test_a_recording_with_a_phase_for_each_test(suite, tmp_path):
    done = suite("--tacho=a.tacho")
    assert done.returncode == 1 and "2 failed" not in done.stdout and "3 passed" in done.stdout
    nodes = ["test_allocates", "test_small[1]", "test_small[2]", "TestClass::test_fails", "test_skipped"]
    assert names(told(tmp_path / "a.tacho")) == [(kind, f"tests/test_it.py::{node}") for node in nodes for kind in ("phase.begin", "phase.end")]
    head, columns, *rows = section(done.stdout)
    assert head.startswith("5 tests: wall ") and str(tmp_path / "a.tacho") in head
    assert columns.split() == ["wall", "cpu", "cores", "peak", "memory", "read", "written"]
    assert len(rows) == 5 and rows[0].endswith("tests/test_it.py::test_allocates")
    peak = next(p for p in show(tmp_path / "a.tacho")["phases"] if p["name"].endswith("allocates"))["peak_memory_bytes"]
    assert peak > 150 << 20 and f"{peak / 2**20:.0f} MiB"[:2] in rows[0]


def test_without_the_option_nothing_happens(suite, tmp_path):
    done = suite()
    assert done.returncode == 1 and "tacho" not in done.stdout and not list(tmp_path.glob("*.tacho"))


def test_a_folder_behind_the_option_is_no_file(suite, tmp_path):
    done = suite("-k", "small", "--tacho", "tests", "--theirs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout and len(list(tmp_path.glob("pytest-*.tacho"))) == 1


TRUE = {
    "memory.peak>100MiB": ["the run", "tests/test_it.py::test_allocates"],
    "run:memory.peak_bytes > 100MiB": ["the run"],
    "test:wall>=250ms": ["tests/test_it.py::test_allocates"],
}
FALSE = {"memory.peak>100GiB": [], "test:processes.peak>1": [], "wall>1000h": []}


@pytest.mark.parametrize("conditions", [{**TRUE, **FALSE}, FALSE], ids=["true", "false"])
def test_conditions(suite, conditions):
    done = suite("-k", "not fails", *(f"--tacho-fail-if={condition}" for condition in conditions))
    failed = [line.removeprefix("FAILED ") for line in section(done.stdout) if line.startswith("FAILED")]
    for condition, where in conditions.items():
        assert [line.rpartition(" in ")[2] for line in failed if line.startswith(f"{condition}: ")] == where
    assert len(failed) == sum(map(len, conditions.values())) and done.returncode == (1 if failed else 0)


def test_wrong_conditions(suite):
    for wrong, reason in (("memory.peak", "is no condition"), ("wall>3 parsecs", "parsecs")):
        done = suite("--tacho-fail-if", wrong)
        assert done.returncode == 4 and reason in done.stderr
    done = suite("-k", "small", "--tacho-fail-if", "memory.peek>1")
    assert done.returncode == 1 and "there is no number 'memory.peek'" in done.stdout


def test_tests_pass_where_nothing_can_be_recorded(suite, tmp_path):
    for more in ({"TACHO_BIN": "/nonexistent", "PATH": "/nonexistent"}, {"PYTHONWARNINGS": "error", "TACHO_BUDGET": "nonsense"}):
        done = suite("-k", "small", "--tacho", **more)
        assert done.returncode == 0 and "2 passed" in done.stdout and "the tests are not recorded" in done.stdout, done.stdout + done.stderr


def test_with_workers(suite, tmp_path):
    python = in_venv()
    if subprocess.run([python, "-c", "import xdist"], capture_output=True).returncode:
        pytest.skip("pytest-xdist is not in .dev/python: `./dev test` installs it")
    done = suite("-n", "2", "--tacho=a.tacho", "--tacho-fail-if", "test:memory.peak>100MiB", python=python)
    assert done.returncode == 1, done.stdout + done.stderr
    heard = names(told(tmp_path / "a.tacho"))
    assert len(heard) == 10 and len({name for _, name in heard}) == 5 and len(list(tmp_path.glob("*.tacho"))) == 1
    assert "5 tests: " in section(done.stdout)[0] and "several tests ran at a time" in done.stdout
    assert run("check", tmp_path / "a.tacho").returncode == 0


def test_the_language_of_conditions(tacho):  # noqa: F811
    from tacho import _rules

    numbers = {"wall_s": 3.5, "memory": {"peak_bytes": 5 << 30}, "gpus": [], "cpu": {"source": "cgroup", "mean_cores": None}, "ok": True}
    for text, result in (("wall>3s", True), ("wall_s<=3500ms", True), ("memory.peak>5GiB", False), ("memory.peak>=5G", True), ("memory.peak != 1e3 MB", True)):
        assert _rules.holds(_rules.parse(text), numbers)[1] is result
    assert _rules.holds(_rules.parse("cpu.mean_cores<99"), numbers) == (None, False)
    for nothing in ("cpu.source>1", "gpus>1", "ok>0", "memory>1", "wall_s.x>1", "peak>1"):
        with pytest.raises(_rules.NoSuchName):
            _rules.holds(_rules.parse(nothing), numbers)
    for wrong in ("", "wall", "wall>", "wall>x", "wall=>3", "__import__('os')>1", "wall>1 or wall<3", "both:wall>1", "wall>3GiBs"):
        with pytest.raises(ValueError):
            _rules.parse(wrong)
