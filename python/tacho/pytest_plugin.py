"""A plugin for pytest: `pytest -p tacho.pytest_plugin --tacho` records the tests, each test a phase of the recording.

At the end stands a table of the costliest tests. `--tacho-fail-if 'memory.peak>2GiB'` fails the run when the condition is true of the run
or of a test. With pytest-xdist the workers tell the recorder of the main process.

Nothing that goes wrong with the recording fails a test: it is said at the end.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest

from . import _marks, _rules
from ._plot import human
from ._record import Recording

_SORT = {"wall": "duration_s", "cpu": "cpu_s", "memory": "peak_memory_bytes"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tacho", "tacho: what the tests do to the machine")
    group.addoption("--tacho", nargs="?", const="", default=None, metavar="FILE", help="record the tests, into FILE (--tacho=FILE)")
    group.addoption("--tacho-interval", default="100ms", metavar="TIME", help="time between two samples: 0.1, 100ms; default: 100ms")
    group.addoption("--tacho-top", type=int, default=10, metavar="N", help="how many tests the table has; default: 10")
    group.addoption("--tacho-sort", choices=sorted(_SORT), default="wall", help="what they are sorted by; default: wall")
    group.addoption(
        "--tacho-fail-if", action="append", default=[], metavar="CONDITION",
        help="fail when it is true of the run or of a test, as 'memory.peak>2GiB' or 'test:wall>5s'; may be repeated",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: List[str]) -> None:
    """`--tacho tests/`: the folder is no FILE, which is written behind an equals sign."""
    changed = False
    for i, word in enumerate(args):
        if word == "--":
            break
        if word == "--tacho":
            args[i] = "--tacho="
            changed = True
    if changed:
        early_config.known_args_namespace = parser.parse_known_args(args, namespace=copy.copy(early_config.option))


def pytest_configure(config: pytest.Config) -> None:
    conditions = config.getoption("--tacho-fail-if")
    if config.getoption("--tacho") is None and not conditions:
        return
    try:
        rules = [_rules.parse(text) for text in conditions]
    except ValueError as error:
        raise pytest.UsageError(f"--tacho-fail-if: {error}") from None
    if config.getoption("--collect-only", False):
        return
    config.pluginmanager.register(_Monitor(config, rules), "tacho-monitor")


class _Monitor:
    """What is there while tests are recorded."""

    def __init__(self, config: pytest.Config, rules: List[_rules.Rule]) -> None:
        self.config = config
        self.rules = rules
        self.is_worker = hasattr(config, "workerinput")
        self.recording: Optional[Recording] = None
        self.summary: Dict[str, Any] = {}
        self.failures: List[str] = []
        self.remarks: List[str] = []
        self.ended = False
        if not self.is_worker:
            try:
                self.recording = Recording(config.getoption("--tacho") or None, interval=config.getoption("--tacho-interval"), name="pytest")
                self.recording._warned = True  # it is said in the summary, and warnings may be errors here
                self.recording.start()
            except Exception as error:  # the working directory is gone, for instance
                self.remarks.append(f"the tests are not recorded: {error}")

    # ---- each test ----

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        path = _marks.current_socket() if self.is_worker else self.recording._socket if self.recording else None
        _marks.tell(path, "begin", item.nodeid, {})
        yield
        _marks.tell(path, "end", item.nodeid, {})

    # ---- the end ----

    def end(self) -> None:
        if self.ended or self.recording is None:
            return
        self.ended = True
        if self.recording.why is not None:
            self.remarks.append(f"the tests are not recorded: {self.recording.why}")
            return
        self.recording.stop()
        if self.recording.why is not None:
            self.remarks.append(f"the recording is not complete: {self.recording.why}")
        try:
            with self.recording.open() as run:
                self.summary = run.summary
        except OSError as error:
            self.remarks.append(f"the recording cannot be read: {error}")

    def tests(self) -> List[Dict[str, Any]]:
        found: List[Dict[str, Any]] = []
        for phase in self.summary.get("phases", []):
            if phase["depth"] == 0 or "::" in phase["name"]:
                found += phase.get("occurrences") or [phase]
        return found

    def judge(self) -> None:
        if not self.summary:
            if self.rules:
                self.remarks.append("no condition of --tacho-fail-if could be judged")
            return
        tests = [(one["name"], _rules.numbers_of_phase(one)) for one in self.tests()]
        for rule in self.rules:
            whole = [("the run", self.summary)] if rule.only != "test" else []
            known = self._judge(rule, whole + (tests if rule.only != "run" else []))
            if not known and (whole or tests):
                self.failures.append(f"{rule.text}: there is no number {rule.name!r}; docs/summary.md names them")

    def _judge(self, rule: _rules.Rule, items: "List[Tuple[str, Dict[str, Any]]]") -> bool:
        """Whether any of them has such a number."""
        known = measured = False
        for name, numbers in items:
            try:
                value, failed = _rules.holds(rule, numbers)
            except _rules.NoSuchName:
                continue
            known, measured = True, measured or value is not None
            if failed:
                self.failures.append(f"{rule.text}: {self._shown(rule, value)} in {name}")
        if known and not measured:
            self.remarks.append(f"{rule.text}: this was not measured here")
        return known

    @staticmethod
    def _shown(rule: _rules.Rule, value: Optional[float]) -> str:
        name = rule.name
        if name.endswith("bytes") or name.split(".")[0] in ("memory", "io", "network", "disk") and "calls" not in name and "packets" not in name:
            return human(value, "bytes")
        return human(value, "s" if name in ("wall", "wall_s") or name.startswith("cpu.") and "cores" not in name else "")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.is_worker:
            return
        try:
            self.end()
            self.judge()
        except Exception as error:  # the tests have their result, whatever is wrong with us
            self.remarks.append(f"something is wrong with the recording: {type(error).__name__}: {error}")
        if self.failures and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.is_worker:
            return
        write = terminalreporter.write_line
        terminalreporter.section("tacho")
        for line in self.table() if self.summary else []:
            write(line)
        for remark in self.remarks:
            write(f"tacho: {remark}", yellow=True)
        for failure in self.failures:
            write(f"FAILED {failure}", red=True)

    def table(self) -> List[str]:
        summary = self.summary
        lines = [
            f"{len(self.tests())} tests: wall {human(summary['wall_s'], 's')}, CPU {human(summary['cpu']['total_s'], 's')}, "
            f"memory peak {human(summary['memory']['peak_bytes'], 'bytes')}   ({summary['path']})"
        ]
        key = _SORT[self.config.getoption("--tacho-sort")]
        most = sorted(self.tests(), key=lambda one: one[key] if one[key] is not None else -1.0, reverse=True)
        rows = [("wall", "cpu", "cores", "peak memory", "read", "written", "")]
        for one in most[: max(self.config.getoption("--tacho-top"), 0)]:
            rows.append(
                (human(one["duration_s"], "s"), human(one["cpu_s"], "s"), human(one["cores"], ""), human(one["peak_memory_bytes"], "bytes"),
                 human(one["read_chars"], "bytes"), human(one["write_chars"], "bytes"), one["name"])
            )  # fmt: skip
        if len(rows) > 1:
            widths = [max(len(row[i]) for row in rows) for i in range(6)]
            lines += ["  ".join([*(text.rjust(width) for text, width in zip(row, widths)), row[6]]).rstrip() for row in rows]
        if self.config.pluginmanager.hasplugin("dsession"):
            lines.append("several tests ran at a time: the numbers of each hold those of the others, but for wall")
        left_out = summary.get("phases_ignored") or 0
        if left_out:
            lines.append(f"{left_out} tests more are in no line: a recording keeps {1024} names of phases")
        return lines

    def pytest_unconfigure(self) -> None:
        self.end()
