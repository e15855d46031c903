"""End-to-end tests in a second process, at the same time as the others.

Most tests of tests/e2e/ look at the machine as it is, and run one after the other in the first process. The files that FILES names
only read recordings, or send them to servers of their own, so helpers run them meanwhile: as many processes as there are CPUs
beside the first one's. A file is run by whoever claims it first: a helper goes through the list from its front, the first process
from its back when it is done with all else. What a helper found is a line for each test in a file of its own, and the first process
reports it in the place of the test, as if it had run it itself. Where a helper died, the first process runs its tests.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

# The longest first.
FILES = tuple(f"test_{name}" for name in (
    "exact reading push_mlflow push_prometheus push hostile interactive show page perfmon libtacho top push_influx gpu_amd orc report nvtx "
    "films follow push_http gpu store_torture cli export parquet text perfetto arrow push_recipes push_tensorboard recipes compare "
    "findings machines runlog gpu_claims sqlite hdf5 push_otlp jobstats github snakemake pickle xlsx openmetrics plot draw stats ls "
    "numbers event_files").split())
HELPERS_MOST = 3
FEW = 8  # end-to-end files: not worth another process


def is_for_helpers(item):
    return item.path.parent.name == "e2e" and item.path.stem in FILES


def sort(items):
    """What is for helpers stands last: there the first process begins with what the helpers would do last."""
    items.sort(key=lambda item: -1 if not is_for_helpers(item) else len(FILES) - FILES.index(item.path.stem))


class Claims:
    """Which files a process runs; a claim is an empty file that one process alone can make."""

    def __init__(self, place):
        self.place, self.answer = place, {}

    def take(self, item):
        if item.path.stem not in self.answer:
            try:
                os.close(os.open(self.place / f"{item.path.stem}.claim", os.O_CREAT | os.O_EXCL))
                self.answer[item.path.stem] = True
            except FileExistsError:
                self.answer[item.path.stem] = False
        return self.answer[item.path.stem]


class Helper:
    """The side of a helper: `--beside PLACE`."""

    def __init__(self, config):
        self.config, self.place, self.parent = config, Path(config.option.beside), os.getppid()
        self.claims = Claims(self.place)
        self.out = open(self.place / f"{os.getpid()}.reports", "w")

    def select(self, items):
        wanted = json.loads((self.place / "items").read_text())
        items[:] = [item for item in items if item.nodeid in wanted]
        items.sort(key=lambda item: FILES.index(item.path.stem))

    def check_parent(self):
        if os.getppid() != self.parent:
            pytest.exit("the first process is gone")

    def tell(self, item, reports, first_reports):
        as_data = [[self.config.hook.pytest_report_to_serializable(config=self.config, report=report) for report in some]
                   for some in (reports, first_reports)]
        print(json.dumps([item.nodeid, *as_data]), file=self.out, flush=True)


class Helpers:
    """The side of the first process."""

    def __init__(self, session):
        self.config, self.done, self.read_to, self.processes = session.config, {}, {}, []
        items = [item for item in session.items if is_for_helpers(item)]
        nr = min((os.cpu_count() or 1) - 1, HELPERS_MOST)
        if nr < 1 or len({item.path for item in session.items if item.path.parent.name == "e2e"}) < FEW or not items:
            return
        self.place = Path(tempfile.mkdtemp(prefix="tacho-tests-"))
        self.claims = Claims(self.place)
        (self.place / "items").write_text(json.dumps([item.nodeid for item in items]))
        files = sorted({str(item.path) for item in items})
        words = [sys.executable, "-m", "pytest", "--beside", self.place, *files]
        with open(self.place / "log", "ab") as log:
            self.processes = [subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.config.rootpath)
                              for _ in range(nr)]

    def read(self):
        for path in self.place.glob("*.reports"):
            with open(path) as lines:
                lines.seek(self.read_to.get(path, 0))
                text = lines.read()
            whole = text[:text.rfind("\n") + 1]
            self.read_to[path] = self.read_to.get(path, 0) + len(whole.encode())
            for line in whole.splitlines():
                nodeid, *some = json.loads(line)
                self.done[nodeid] = [[self.config.hook.pytest_report_from_serializable(config=self.config, data=data) for data in reports]
                                     for reports in some]

    def results(self, item):
        """Reports of a test, and those of its first try if there was a second; None: the caller runs it."""
        if not self.processes or not is_for_helpers(item) or self.claims.take(item):
            return None
        while item.nodeid not in self.done:
            alive = any(process.poll() is None for process in self.processes)  # asked before its last words are read
            self.read()
            if not alive and item.nodeid not in self.done:
                return None
            time.sleep(0.05)
        return self.done.pop(item.nodeid)

    def end(self):
        for process in self.processes:
            process.send_signal(signal.SIGINT)  # fixtures stop their servers
        for process in self.processes:
            process.wait()
        if self.processes:
            shutil.rmtree(self.place)
        self.processes = []
