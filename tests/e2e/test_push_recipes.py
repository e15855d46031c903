"""The recipes of docs/sinks.md for InfluxDB, OpenTelemetry and TensorBoard, as they stand there: only the port is that of
the test's own server, and the program is a short one."""

import re
import subprocess
from pathlib import Path

import hostile_server as hostile
import recorder
import sinks
from hostile_server import Hostile
from test_push_influx import Influx
from test_push_otlp import points_of
from test_push_tensorboard import accumulated

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sinks.md").read_text()


def follow(kind, folder, port=None, address=None):
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.M | re.S)
    (folder / "simulate").write_text("#!/bin/sh\nfor i in 1 2 3 4 5 6; do head -c 3000000 /dev/zero | gzip >/dev/null; sleep 0.2; done\n")
    (folder / "simulate").chmod(0o755)
    (folder / "whole").mkdir()
    if address:
        assert port in text
        text = text.replace(port, address)
    env = {**sinks.clean(), "PATH": f"{Path(recorder.TACHO).parent}:/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(["bash", "-euc", text], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done


def all_sent(folder, sink):
    """The pusher outlives the run."""

    def sent():
        done = recorder.run("push", "--status", folder / "job.tacho")
        states = list(folder.glob(f"job.push-{sink}"))
        return done.returncode == 0 and states and '"done": true' in states[0].read_text()

    recorder.until(sent, f"all is sent to {sink}")


def test_influx(tmp_path_factory):
    server, folder = Influx(tmp_path_factory.mktemp("influx") / "server"), tmp_path_factory.mktemp("recipe")
    try:
        done = follow("influx", folder, "localhost:8086", server.url.removeprefix("http://"))
        all_sent(folder, "influx")
        assert b'"results"' in done.stdout
        (series,) = server.query('SELECT "tree.cores" FROM tacho_tree GROUP BY run', "jobs")
        assert series["tags"] == {"run": "simulate"} and series["values"]
    finally:
        server.stop()


def test_otlp(tmp_path):
    with Hostile(hostile.empty_json) as server:
        follow("otlp", tmp_path, "http://localhost:4318", server.url)
        all_sent(tmp_path, "otlp")
        metrics = {metric.name for metric, about, _, _ in points_of(server)
                   if about["service.name"] == "simulate" and about["deployment.environment.name"] == "test"}
    assert {"tacho.tree.cores", "tacho.mem.used"} <= metrics


def test_tensorboard(tmp_path):
    follow("tensorboard", tmp_path)
    all_sent(tmp_path, "tensorboard")
    whole = accumulated(tmp_path / "whole" / "earlier.tfevents")
    for found in accumulated(tmp_path / "runs" / "job"), accumulated(tmp_path / "runs" / "earlier"), whole:
        assert found["tree/cores"] and found["process/proc.mem.rss"]
