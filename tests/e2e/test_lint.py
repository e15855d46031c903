"""The checks of ./dev lint, each a test: layers, headers, sizes, formatting, help, names, quantities."""

import subprocess
from pathlib import Path

import beside
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("tool", sorted(path.name for path in (ROOT / "tools").glob("check-*")))
def test_lint(tool):
    done = subprocess.run([ROOT / "tools" / tool], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout[-4000:]


# What each check exists to find, written into a copy of the tree: a check that finds nothing is worse than none.
FAULTS = (
    ("check-layers", "src/base/fault.c", '#include "store/store.h"\n', "base/ may not use"),
    ("check-headers", "src/base/fault.h", "struct a {\n\tuint64_t b;\n};\n", "does not compile alone"),
    ("check-size", "src/base/fault.c", "int f(void)\n{\n" + "\t;\n" * 101 + "\treturn 0;\n}\n", "f() has 105 lines"),
    ("check-format", "src/base/fault.c", "int  f(void) { return 0; }\n", "src/base/fault.c"),
    ("check-names", "docs/fault.txt", "see /" + "home/ada/notes\nTO" + "DO: more\n", "a path of one machine"),
    ("check-names", "src/base/fault.c", "int f(void);\n", "src/base/fault.c:1: does not begin with a comment"),
    ("check-names", "src/base/fault.c", "/* A\n * file of nobody. */\n", "src/base/fault.c:2: 'nobody' in a comment"),
    (
        "check-quantities",
        "src/base/fault.h",
        "enum fault {\n\tFAULT_CPU,\n\tFAULT_READ_CHARS,\n\tFAULT_WRITE_CHARS,\n\tFAULT_RSS,\n};\n",
        "src/base/fault.h: lists CPU, READ_CHARS, RSS, WRITE_CHARS",
    ),
)


@pytest.mark.parametrize("tool, name, text, complaint", FAULTS)
def test_lint_finds(tool, name, text, complaint, tmp_path):
    for folder in ("src", "tests", "bench", "docs"):
        (tmp_path / folder).mkdir()
    for part in ("src/base", "src/metric", "src/store", "src/meson.build", "tools", "meson.build", ".clang-format"):
        subprocess.run(["cp", "-r", ROOT / part, tmp_path / part], check=True)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / name).write_text(text)
    done = subprocess.run([tmp_path / "tools" / tool], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 1
    assert complaint in done.stdout


def test_files_for_helpers_are_there():
    """A file that got another name would run after all others instead of beside them."""
    assert not [name for name in beside.FILES if not (Path(__file__).parent / f"{name}.py").exists()]
