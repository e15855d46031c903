"""The front door and the runner: ./dev is as polite as the binary, and the counts of a test run are true."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEV = ROOT / "dev"

PROGRAM = r"""
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void good(void **state) { (void)state; }
static void bad(void **state) { (void)state; assert_int_equal(1, 2); }
static void skipped(void **state) { (void)state; print_message("needs a moon\n"); skip(); }
static void dies(void **state) { (void)state; if (getenv("DIE")) _Exit(3); }
static void unreached(void **state) { (void)state; }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good), cmocka_unit_test(bad), cmocka_unit_test(skipped), cmocka_unit_test(dies),
		cmocka_unit_test(unreached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
"""


@pytest.fixture
def small_tree(tmp_path):
    """A tree with our runner, one cmocka program and one Python test."""
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "build" / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "build" / "build.ninja").touch()
    shutil.copy(ROOT / "pytest.ini", tmp_path)
    for name in ("conftest.py", "beside.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    source = tmp_path / "tests" / "unit" / "test_small.c"
    source.write_text(PROGRAM)
    program = tmp_path / "build" / "tests" / "unit" / "test_small"
    subprocess.run(["gcc", source, "-o", program, "-lcmocka"], check=True)
    (tmp_path / "tests" / "test_python.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert 1 == 2\n"
        "@pytest.fixture\n"
        "def broken(): raise RuntimeError('no')\n"
        "def test_error(broken): pass\n"
    )
    return tmp_path


def run_tests(tree, *words, **env):
    command = ["/usr/bin/python3", "-m", "pytest", *words]
    done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
    return done.returncode, done.stdout


def test_counts(small_tree):
    """good, dies, unreached and the exit of the gcc build pass, bad fails; without build-asan/ its six items are skips."""
    status, text = run_tests(small_tree)
    assert status == 1
    assert text.splitlines()[-1] == "5 passed, 3 failed, 7 skipped"
    assert "needs a moon" in text
    assert "0x1 != 0x2" in text


def test_counts_when_a_program_dies(small_tree):
    """What a dead program did not report has failed, and so has its exit."""
    status, text = run_tests(small_tree, "tests/unit", DIE="1")
    assert status == 1
    # bad failed by itself, dies and unreached have no result, and the program did not come to its end.
    assert text.splitlines()[-1] == "1 passed, 4 failed, 7 skipped"
    assert "no result: the program ended before" in text


def test_picking(small_tree):
    status, text = run_tests(small_tree, "-k", "test_good or (good and gcc)")
    assert status == 0
    assert text.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"


DISTURBED = """
import pathlib, pytest

def tries(name):
    file = pathlib.Path(__file__).with_name(name)
    file.write_text(file.read_text() + "x" if file.exists() else "x")
    return len(file.read_text())

@pytest.fixture(scope="module")
def late():
    if tries("fixture") < 2:
        raise RuntimeError("came too late")

def test_disturbed(): assert tries("disturbed") == 2, "somebody was in the way"
def test_with_a_fixture(late): pass
def test_broken(): assert tries("broken") > 9, "never works"
def test_that_works(): assert tries("works") == 1

@pytest.mark.parametrize("one", range(4))
def test_too_many(one): assert tries(f"many-{one}") == 2
"""


def test_second_tries(small_tree):
    """A live test that fails has another try, and its first failure is shown; broken ones fail, and so do many of them."""
    place = small_tree / "tests" / "e2e"
    place.mkdir()
    (place / "test_live.py").write_text(DISTURBED)
    status, text = run_tests(small_tree, "tests/e2e")
    assert status == 1
    # The fifth second try is that of the second of the many.
    assert text.splitlines()[-1] == "5 passed, 3 failed, 0 skipped"
    told = re.findall(r"passed at the second try only: tests/e2e/test_live.py::(\S+) \((\w+)\)", text)
    assert told == [("test_disturbed", "call"), ("test_with_a_fixture", "setup"),
                    ("test_too_many[0]", "call"), ("test_too_many[1]", "call")]
    assert "somebody was in the way" in text and "came too late" in text
    assert [len((place / name).read_text()) for name in ("broken", "works", "many-2")] == [2, 1, 1]


def test_quick(small_tree):
    """Items of the plain build, and the listed files; nothing is skipped because there is no build with sanitizers."""
    (small_tree / "tests" / "test_polite.py").write_text("def test_chosen(): pass\n")
    (small_tree / "tests" / "test_slow.py").write_text("def test_left_out(): assert False\n")
    status, text = run_tests(small_tree, "--quick", "-k", "not bad")
    assert status == 0
    assert text.splitlines()[-1] == "5 passed, 0 failed, 1 skipped"


def test_a_unit_has_one_try(small_tree):
    """Nobody is in its way."""
    status, text = run_tests(small_tree, "tests/test_python.py", "-k", "bad")
    assert status == 1 and "second try" not in text


def test_a_program_that_was_not_built_fails(small_tree):
    (small_tree / "build" / "tests" / "unit" / "test_small").unlink()
    status, text = run_tests(small_tree, "tests/unit")
    assert status == 1
    assert text.splitlines()[-1].startswith("0 passed, 6 failed")


def test_verbs():
    text = subprocess.run([DEV, "help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    for verb in ("build", "run", "test", "fuzz", "bench", "lint", "clean"):
        assert re.search(rf"^  {verb}\b", text, re.M)
    wrong = subprocess.run([DEV, "fly"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert wrong.returncode == 1
    assert wrong.stdout == ""
    assert "fly" in wrong.stderr


def test_ci_runs_the_tests():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert re.search(r"^exec .*dev\" test$", script.read_text(), re.M)


def test_dev_run_is_polite(tmp_path):
    """Streams, PATH, directory and status are the job's, as with the binary itself."""
    if not (ROOT / "build" / "build.ninja").exists():
        pytest.skip("no build/ here: ./dev build makes it")
    script = 'cat; echo "$PATH"; pwd; echo to-stderr >&2; exit 3'
    command = [DEV, "run", "-q", "-o", tmp_path / "a.tacho", "--", "sh", "-c", script]
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        command, input=b"from stdin\n", capture_output=True, cwd=tmp_path, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout.decode() == f"from stdin\n{path}\n{tmp_path}\n"
    assert done.stderr == b"to-stderr\n"


def test_a_cluster_of_a_killed_run_is_ended():
    """Its groups would make other tests skip. That of a run that goes on stays."""
    from cluster import MARK, end_leftovers, started

    def cluster(owner, node):
        directory = Path(tempfile.mkdtemp(prefix="tacho-", dir="/tmp"))
        (directory / MARK).write_text(f"{os.getpid()} {owner}\n")
        (directory / "nodes").write_text(f"head {node.pid} {started(node.pid)}\n")
        return directory

    nodes = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
    left, mine = cluster("1", nodes[0]), cluster(started(os.getpid()), nodes[1])
    try:
        end_leftovers()
        assert nodes[0].wait(60) == -9 and not left.exists()
        assert nodes[1].poll() is None and mine.exists()
    finally:
        for node in nodes:
            node.kill()
            node.wait()
        shutil.rmtree(left, ignore_errors=True)
        shutil.rmtree(mine, ignore_errors=True)
