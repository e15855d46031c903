"""The builds of ./dev test: warnings are errors with gcc and with clang, and the sanitizers' build links."""

from pathlib import Path

import pytest

STATE = Path(__file__).resolve().parent.parent / ".dev"


@pytest.mark.parametrize("name", ["build", "build-asan", "build-clang", "dist"])
def test_build(name):
    status = STATE / f"{name}.status"
    if not status.exists():
        pytest.skip("only ./dev test makes all builds")
    assert status.read_text().strip() == "ok", f"the compiler's words are in .dev/{name}.log"
