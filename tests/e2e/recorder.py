"""What the end-to-end tests share: running the binary, reading its JSON, waiting without guessing."""

import contextlib
import csv
import fcntl
import json
import os
import shutil
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

TACHO = os.environ["TACHO"]
BURNERS = Path(TACHO).parent / "tests" / "burners"
PATIENCE_S = 60


def run(*words, **kwargs):
    """`tacho WORDS`; output is captured as bytes unless the caller says where it goes."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    kwargs.setdefault("stdout", subprocess.PIPE)
    kwargs.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([TACHO, *map(str, words)], **kwargs)


def start(*words, **kwargs):
    """`tacho WORDS`, under way; bytes stay what they are."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([TACHO, *(word if isinstance(word, bytes) else str(word) for word in words)], **kwargs)


def on_terminal(*words, columns=80, rows=24, **env):
    """What `tacho WORDS`, which must go well, writes to a terminal of that size."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
    utf8 = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    with start(*words, stdout=theirs, stderr=subprocess.PIPE, env={**utf8, **env}) as tacho:
        os.close(theirs)
        text = all_of(ours)
        assert tacho.wait() == 0, tacho.stderr.read()
    return text.decode().replace("\r\n", "\n")


def all_of(terminal):
    """What comes to our side of a terminal until nobody has the other open; closes it."""
    text = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        text += part
    os.close(terminal)
    return text


def record(command, *options, output, **kwargs):
    """`tacho run -o OUTPUT OPTIONS -- COMMAND`"""
    return run("run", "-o", output, *options, "--", *command, **kwargs)


def show(recording):
    """The summary of a recording that must be readable."""
    done = run("show", "--json", recording)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return json.loads(done.stdout)


def shown(recording):
    """The summary of a recording that may be about to begin: empty while there is nothing to read."""
    done = run("show", "--json", recording)
    return json.loads(done.stdout) if done.returncode == 0 else {}


@contextlib.contextmanager
def lasting(command, *options, output, status=0, **kwargs):
    """A recording whose job reads its standard input to the end: it lasts until the test has seen what it waits for."""
    words = ["run", "-q", "-o", output, "--flush", "50ms", *options, "--", *command]
    tacho = start(*words, stdin=subprocess.PIPE, **kwargs)
    try:
        yield tacho
    finally:
        tacho.stdin.close()
        ended = tacho.wait()
    assert ended == status


def dump(recording):
    """All records of a recording, as `tacho debug dump` tells them."""
    done = run("debug", "dump", recording)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return [json.loads(line) for line in done.stdout.decode(errors="replace").splitlines()]


def told(recording):
    """The events that the job told: kind and the pairs of each."""
    kinds = ("phase.begin", "phase.end", "mark", "marks.dropped", "marks.refused", "marks.within")
    return [
        {"kind": r["kind"], "time": r["time"], **dict(r["pairs"])} for r in dump(recording) if r["type"] == "event" and r["kind"] in kinds
    ]


def names(events):
    """Kind and name of what was told."""
    return [(e["kind"], e["name"]) for e in events]


def by_instance(metric, recording, young=False):
    """All values of each instance, in the order of time. `young`: of a recording that may be about to begin; none while there
    is nothing to read."""
    done = run("show", "--csv", "--series", metric, "--per", "instance", recording)
    if young and done.returncode:
        return {}
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    values = {}
    for row in csv.DictReader(done.stdout.decode().splitlines()):
        if row[metric]:
            values.setdefault(row["instance"], []).append(float(row[metric]))
    return values


def check(recording):
    """What `tacho check` says: its status and its words."""
    done = run("check", recording)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def until(condition, what):
    """Waits for something that must happen; how long it takes is not what is tested."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"never happened in {PATIENCE_S} s: {what}")


def need_mounts():
    """Skips a test that needs mounts of its own where there can be none (a plain chroot, a container)."""
    trial = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.PIPE)
    if trial.returncode:
        pytest.skip(f"no mounts of one's own here: {trial.stderr.decode(errors='replace').strip()}")


def can_trace():
    """None, or why not."""
    if not shutil.which("strace"):
        return "strace is not installed"
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.PIPE, check=False)
    return None if done.returncode == 0 else "strace may not trace here (ptrace is forbidden)"


def children(pid):
    """Direct children of a process, all its threads' included."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in path.read_text().split()]
        except OSError:
            pass
    return found


def state(pid):
    """The letter of /proc/PID/stat, or None when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return None


def name(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return None


def job_of(tacho, command):
    """The pid of the job that a started recorder runs, once it is COMMAND and no longer our own fork."""
    return until(lambda: [pid for pid in children(tacho.pid) if name(pid) == command], f"{command} starts")[0]
