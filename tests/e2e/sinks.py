"""What the tests of sinks share: servers on free ports, a run to push, and the points that must have come of it.

Points are {(table, metric, host, instance, pid): {time in ns: value}}, as `tacho export` has them (which is compared with
`tacho show --series` elsewhere); missing values are no points.
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections import defaultdict
from datetime import datetime, timezone
from pathlib import Path

import pytest

import recorder

METRICS = ("tree.cores", "tree.cpu", "tree.processes", "mem.used", "load.1m", "cpu.busy", "cpu.user", "proc.mem.rss", "proc.threads",
           "net.rx.bytes", "disk.write.bytes", "disk.read.rate")
JOB = ("sh", "-c", "for i in 1 2 3 4 5 6; do head -c 4000000 /dev/zero | gzip >/dev/null; sleep 0.05; done")

# Works until its standard input ends.
LASTING = ("sh", "-c", "while :; do head -c 1000000 /dev/zero | gzip >/dev/null; sleep 0.1; done & cat; kill $!")


def need_push(done):
    if done.returncode == 127 and b"tacho-push" in done.stderr:
        pytest.skip("tacho-push was not built (-Dpush=disabled)")
    return done


def push(*words, env=None, status=0, **kwargs):
    """`tacho push WORDS` in an environment without variables of sinks, but these."""
    done = need_push(recorder.run("push", *words, env={**clean(), **(env or {})}, **kwargs))
    assert status is None or done.returncode == status, (done.returncode, done.stderr.decode(errors="replace"))
    return done


def clean():
    return {k: v for k, v in os.environ.items() if not k.startswith(("INFLUX_", "OTEL_", "MLFLOW_"))}


def following(*words, env=None, **kwargs):
    """`tacho push --follow WORDS`, under way."""
    return recorder.start("push", "--follow", *words, env={**clean(), **(env or {})}, **kwargs)


def record(path, *options):
    done = recorder.run("run", "-q", "-i", "50ms", "-o", path, *options, "--", *JOB)
    assert done.returncode == 0, done.stderr
    return path


# ---- servers ----


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_open(port):
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


class Server:
    """A program that listens: started, killed and started again on the same port with the same data."""

    def __init__(self, words, url, ready, log):
        self.words, self.url, self.is_ready, self.log, self.process = words, url, ready, log, None
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        recorder.until(lambda: self.ready() or self.process.poll() is not None, f"{self.words[0]} is ready")
        assert self.process.poll() is None, Path(self.log).read_text(errors="replace")[-2000:]

    def ready(self):
        try:
            return self.is_ready()
        except OSError:
            return False

    def stop(self, how=signal.SIGTERM):
        if self.process:
            self.process.send_signal(how)
            self.process.wait()
        self.process = None


# ---- what must have come ----


def ns_of(text):
    """'2026-11-15T19:30:00.123456789Z'"""
    whole, digits = text.rstrip("Z").split(".")
    second = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return int(second.timestamp()) * 10**9 + int(digits.ljust(9, "0"))


def exported(recording, metrics=METRICS, *options):
    """Counters as they are, without their rates."""
    done = recorder.run("export", "--to", "json", "-o", "-", "--per", "node", "-m", ",".join(metrics), *options, recording)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    points = defaultdict(dict)
    for name, table in json.loads(done.stdout)["tables"].items():
        columns = [column["name"] for column in table["fields"]]
        counters = {f["name"] for f in table["fields"] if f.get("kind") == "counter"}
        for row in table["rows"]:
            cells = dict(zip(columns, row))
            stamp = cells["time"] if isinstance(cells["time"], int) else ns_of(cells["time"])
            instance = None if name in ("node", "tree") else cells.get("instance")
            for field in table["fields"]:
                metric = field["name"]
                if "kind" not in field or cells[metric] is None or metric.removesuffix(".rate") in counters - {metric}:
                    continue
                points[name, metric, cells["host"], instance, cells.get("pid")][stamp] = cells[metric]
    assert points
    return dict(points)


def same_points(found, wanted, close=lambda a, b: a == b):
    """Every point and no other, with its time and its value."""
    assert sorted(found, key=str) == sorted(wanted, key=str)
    for key, values in wanted.items():
        lacking, strange = sorted(values.keys() - found[key].keys()), sorted(found[key].keys() - values.keys())
        assert not lacking and not strange, f"{key}: lacks {lacking[:3]} of {len(lacking)}, has {strange[:3]} of {len(values)}, {min(values)} to {max(values)}"
        for stamp, value in values.items():
            assert close(found[key][stamp], value), f"{key} at {stamp}: {found[key][stamp]}, not {value}"


def growing(recording, sent, at_least):
    """Waits until so many points were taken, as `--status` of a pusher that works says."""

    def enough():
        state = recording.with_suffix(f".push-{sent}")
        try:
            return json.loads(state.read_text())["points"] >= at_least
        except (OSError, ValueError, KeyError):
            return False

    recorder.until(enough, f"{at_least} points were pushed to {sent}")


def ended(process, status=0):
    """The pusher, which must come to its end."""
    out, err = process.communicate(timeout=recorder.PATIENCE_S * 2)
    assert process.returncode == status, (process.returncode, (err or b"").decode(errors="replace"))
    return err


def kill(process):
    process.kill()
    process.wait()


def sleep(seconds):
    """For a moment in which something may go wrong; nothing is concluded from how long it was."""
    time.sleep(seconds)
