"""One runner for everything: pytest collects Python tests, the cases of the cmocka programs and the fuzz corpora.

A unit test source tests/unit/test_NAME.c gives one item per case and build directory, plus `exit`, which fails when
the program died, leaked, or reported cases that its source does not name. A program runs once; as many run at a time
as there are CPUs, in the order of the items. A fuzz target tests/fuzz/fuzz_NAME.c gives one item per build directory: its whole corpus in one process.

A test of tests/e2e/ looks at a live machine, which is not ours alone: kept off the CPU for a second at the wrong place, it
sees another job than it meant to. So the first few that fail are made once more, from their fixtures on. What failed twice has
failed; what passed then is shown with its first failure, because it is to be mended.

The last line of the run is `P passed, F failed, S skipped`, from pytest's own reports; skips' reasons are above it.
"""

import os
import re
import signal
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import beside
import pytest
from _pytest.runner import runtestprotocol

pytest.register_assert_rewrite("exact")  # what tests share of assertions explains itself, too
ROOT = Path(__file__).resolve().parent.parent
BUILDS = {"gcc": ROOT / "build", "asan": ROOT / "build-asan"}
LIMIT_S = 120
PROGRAM_LIMIT_S = 600  # its first item waits for all of it, and for those before it
SECOND_TRIES = 5  # more than that is no accident
# Of the end-to-end tests, what --quick runs: a minute that touches every command.
QUICK = {f"test_{name}" for name in ("ancestors", "asked", "cgroup", "compare", "dev", "energy", "events", "export", "films",
                                     "hardware", "ls", "net", "plot", "polite", "report", "show", "stats")}
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:strict_string_checks=1",
    "LSAN_OPTIONS": f"suppressions={ROOT / 'tests' / 'leaks.txt'}:print_suppressions=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}

# Absolute, so that tests may run the binary from any directory.
os.environ["TACHO"] = str(Path(os.environ.get("TACHO") or ROOT / "build" / "tacho").resolve())
# For commands that tests start themselves: TACHO may be a build with sanitizers.
for _name, _options in SANITIZER_OPTIONS.items():
    os.environ.setdefault(_name, _options)


# ---- cmocka programs ----


class Failure(Exception):
    """Carries the text that explains a failed item; shown without a Python traceback."""


class Program:
    """One run of a test program: started ahead of time where the whole suite runs, else by its first item."""

    TAP = re.compile(r"^(not ok|ok) \d+ (?:- (?P<name>\w+)|# SKIP (?P<skipped>\w+))\s*$")
    pool = ThreadPoolExecutor(os.cpu_count())

    def __init__(self, path):
        self.path = path
        self.results, self.order = {}, []
        self.status, self.output = None, "stopped before it ended"
        self.running = None

    def start(self):
        if not self.running and self.path.exists():
            self.running = self.pool.submit(self.work)

    def run(self):
        self.start()
        self.running.result()

    def work(self):
        env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", TACHO_TESTS=str(ROOT / "tests"), **SANITIZER_OPTIONS)
        done = subprocess.run(
            [self.path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, cwd=ROOT, errors="replace"
        )
        self.status, self.output = done.returncode, done.stdout
        before = []
        name = None
        for line in self.output.splitlines():
            match = self.TAP.match(line)
            if match:
                name = match["name"] or match["skipped"]
                kind = "skipped" if match["skipped"] else "passed" if match[1] == "ok" else "failed"
                self.order.append(name)
                # A case that is reported twice (two groups share it) has failed when one of them did.
                if self.results.get(name, ("passed",))[0] != "failed":
                    self.results[name] = (kind, before)
                before = []
            elif line.startswith("#") and name and self.results[name][0] == "failed":
                self.results[name][1].append(line)
            elif not re.match(r"^1\.\.\d+$", line):
                before.append(line)


class UnitSource(pytest.File):
    # #define T(name) cmocka_unit_test_setup_teardown(name, ...)
    SHORTHAND = re.compile(r"^#define\s+(\w+)\(\w+\)\s+cmocka_unit_test.*$", re.M)

    def collect(self):
        text = self.path.read_text()
        macros = "|".join(["cmocka_unit_test\\w*", *self.SHORTHAND.findall(text)])
        cases = re.findall(rf"\b(?:{macros})\s*\(\s*(\w+)", self.SHORTHAND.sub("", text))
        for build, directory in BUILDS.items():
            program = Program(directory / "tests" / "unit" / self.path.stem)
            for case in dict.fromkeys(cases):
                yield UnitCase.from_parent(self, name=f"{case}[{build}]", program=program, case=case)
            yield UnitExit.from_parent(self, name=f"exit[{build}]", program=program, cases=cases)


class ProgramItem(pytest.Item):
    def __init__(self, *, program, **kwargs):
        super().__init__(**kwargs)
        self.program = program

    def setup(self):
        path = self.program.path
        if not (path.parents[2] / "build.ninja").exists():
            pytest.skip(f"no {path.parents[2].name}/ here: ./dev test builds it")
        if not path.exists():
            raise Failure(f"{path.relative_to(ROOT)} was not built: is it in the list of its meson.build?")

    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, Failure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, f"{self.path.stem}: {self.name}"


class UnitCase(ProgramItem):
    def __init__(self, *, case, **kwargs):
        super().__init__(**kwargs)
        self.case = case

    def runtest(self):
        self.program.run()
        if self.case not in self.program.results:
            raise Failure(f"no result: the program ended before.\n{self.program.output[-4000:]}")
        kind, lines = self.program.results[self.case]
        if kind == "skipped":
            reason = re.sub(r"^\[\s*SKIPPED\s*\]", "", lines[-1]).strip() if lines else ""
            pytest.skip(reason or "the test gave no reason")
        if kind == "failed":
            raise Failure("\n".join(lines[-60:]))


class UnitExit(ProgramItem):
    def __init__(self, *, cases, **kwargs):
        super().__init__(**kwargs)
        self.cases = cases

    def runtest(self):
        self.program.run()
        results = self.program.results
        unknown = Counter(self.program.order) - Counter(self.cases)
        if unknown:
            raise Failure(f"ran, but not named by cmocka_unit_test() in the source: {', '.join(unknown)}")
        failed = any(kind == "failed" for kind, _ in results.values())
        if set(self.cases) - results.keys() or (self.program.status != 0 and not failed):
            raise Failure(f"ended with status {self.program.status}\n{self.program.output[-6000:]}")


# ---- fuzz targets on their stored corpora ----


class FuzzSource(pytest.File):
    def collect(self):
        for build, directory in BUILDS.items():
            program = Program(directory / "tests" / "fuzz" / self.path.stem)
            yield FuzzItem.from_parent(self, name=f"corpus[{build}]", program=program)


class FuzzItem(ProgramItem):
    def runtest(self):
        corpus = self.path.parent / "corpus" / self.path.stem.removeprefix("fuzz_")
        files = sorted(str(path) for path in corpus.rglob("*") if path.is_file())
        if not files:
            raise Failure(f"no corpus in {corpus.relative_to(ROOT)}")
        env = dict(os.environ, **SANITIZER_OPTIONS)
        done = subprocess.run(
            [self.program.path, *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, errors="replace"
        )
        if done.returncode != 0:
            raise Failure(f"ended with status {done.returncode}\n{done.stdout[-6000:]}")


def pytest_collect_file(file_path, parent):
    if file_path.suffix != ".c":
        return None
    if file_path.parent.name == "unit" and file_path.name.startswith("test_"):
        return UnitSource.from_parent(parent, path=file_path)
    if file_path.parent.name == "fuzz" and file_path.name.startswith("fuzz_"):
        return FuzzSource.from_parent(parent, path=file_path)
    return None


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="unit tests of the plain build and a few files of others")
    parser.addoption("--beside", help="helps another run whose directory this is (tests/beside.py starts it)")


def is_quick(item):
    if isinstance(item, ProgramItem):
        return item.program.path.parents[2] == BUILDS["gcc"]
    return item.path.stem in QUICK


def pytest_collection_modifyitems(config, items):
    """Small things first: a broken unit explains the end-to-end failures that follow."""
    if config.option.beside:
        RUN.helper = beside.Helper(config)
        RUN.helper.select(items)
        return
    if config.option.quick:
        config.hook.pytest_deselected(items=[item for item in items if not is_quick(item)])
        items[:] = [item for item in items if is_quick(item)]
    beside.sort(items)
    order = {"builds": 0, "unit": 1, "fuzz": 2}
    items.sort(key=lambda item: order.get("builds" if item.path.stem == "test_builds" else item.path.parent.name, 3))


def pytest_collection_finish(session):
    if not session.config.option.collectonly:
        for item in session.items:
            if isinstance(item, (UnitCase, UnitExit)):
                item.program.start()


# ---- every test ----


def pytest_configure():
    """Jobs inherit what we have: a runner started in the background has INT and QUIT ignored."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    """A test that hangs fails by itself, with a traceback, instead of stopping the run."""
    marker = item.get_closest_marker("limit")
    usual = PROGRAM_LIMIT_S if isinstance(item, ProgramItem) else LIMIT_S
    seconds = marker.args[0] if marker else usual

    def too_long(_signal, _frame):
        raise Failure(f"stopped: it took longer than {seconds} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown():
    yield
    signal.alarm(0)


def pytest_runtest_protocol(item, nextitem):
    if item.path.parent.name != "e2e":
        return None
    if RUN.helper:
        RUN.helper.check_parent()
        if not RUN.helper.claims.take(item):
            return True
    if not RUN.helper and not RUN.helpers:
        RUN.helpers = beside.Helpers(item.session)
    found = RUN.helpers.results(item) if RUN.helpers else None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports, failed = found or run_twice(item, nextitem)
    if failed:
        SECOND.append((failed, not any(report.failed for report in reports)))
    if RUN.helper:
        RUN.helper.tell(item, reports, failed)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def run_twice(item, nextitem):
    """The reports of a test; of one that failed those of its second try, and of the first one."""
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    failed = [report for report in reports if report.failed]
    if not failed or len(SECOND) >= SECOND_TRIES:
        return reports, []
    item.session._setupstate.teardown_exact(None)
    return runtestprotocol(item, nextitem=nextitem, log=False), failed


def pytest_terminal_summary(terminalreporter):
    for failed in (failed for failed, passed in SECOND if passed):
        for report in failed:
            terminalreporter.section(f"passed at the second try only: {report.nodeid} ({report.when})")
            terminalreporter.write_line(report.longreprtext)


class RUN:
    helper = helpers = None  # this process is one; the other ones


SECOND = []  # of each test that was made twice: the reports of its first failure, and whether it passed then


@pytest.fixture(autouse=True)
def own_settings(monkeypatch):
    """No test sees the settings of the person who runs it, nor can a shell that it starts make any."""
    for name in list(os.environ):
        if name.startswith("TACHO_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/proc/no-settings")
    monkeypatch.setenv("NO_COLOR", "1")
    for name, value in SANITIZER_OPTIONS.items():
        monkeypatch.setenv(name, value)


# ---- the last line ----


def pytest_sessionfinish(session):
    Program.pool.shutdown(wait=False, cancel_futures=True)
    if RUN.helpers:
        RUN.helpers.end()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    count = {kind: len(reporter.stats.get(kind, ())) for kind in ("passed", "failed", "error", "skipped", "xfailed")}
    session.config.stash[LAST_LINE] = (
        f"{count['passed']} passed, {count['failed'] + count['error']} failed, "
        f"{count['skipped'] + count['xfailed']} skipped"
    )


def pytest_unconfigure(config):
    line = config.stash.get(LAST_LINE, None)
    if line and not config.option.collectonly:
        print(line, flush=True)


LAST_LINE = pytest.StashKey[str]()
