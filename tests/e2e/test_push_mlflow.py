"""`tacho push --to mlflow` against a real MLflow server, read back through its own API and looked at in its page."""

import base64
import contextlib
import csv
import io
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recorder import PATIENCE_S, TACHO, lasting, record, run, start, until
from test_gpu import Driver
from test_page import browser  # noqa: F401: a fixture

ROOT = Path(__file__).resolve().parents[2]
MLFLOW = ROOT / ".dev" / "mlflow" / "bin"
MIB, MB = 2**20, 1e6

# Else each process of MLflow compiles all of it again, for seconds.
COMPILED_ONCE = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ROOT / ".dev" / "pycache")}


class Server:
    """MLflow's server with a database and the files of runs in a directory."""

    def __init__(self, folder):
        with socket.socket() as it:
            it.bind(("127.0.0.1", 0))
            self.port = it.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        words = ["server", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"{folder}/files", "--workers", "1"]
        env = {**os.environ, **COMPILED_ONCE, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true", "LD_PRELOAD": ""}
        self.log = open(folder / "server.log", "wb")
        self.program = subprocess.Popen([MLFLOW / "mlflow", *words, "--host", "127.0.0.1", "--port", str(self.port)], env=env, cwd=folder,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        deadline = time.monotonic() + 2 * PATIENCE_S
        while not self.is_up():
            assert self.program.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < deadline, "MLflow's server does not come up"
            time.sleep(0.2)

    def is_up(self):
        try:
            return urllib.request.urlopen(self.url + "/health", timeout=5).read() == b"OK"
        except OSError:
            return False

    def down(self):
        os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait()
        self.log.close()

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/2.0/mlflow/{path}", data, {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request, timeout=PATIENCE_S))

    def run(self, run_id):
        return self.ask(f"runs/get?run_id={run_id}")["run"]

    def pairs(self, run_id, what):
        return {pair["key"]: pair["value"] for pair in self.run(run_id)["data"].get(what, [])}

    def keys(self, run_id):
        return set(self.pairs(run_id, "metrics"))

    def history(self, run_id, key):
        """Of a metric: (ms, value, step) in the order of its steps."""
        found = self.ask(f"metrics/get-history?run_id={run_id}&metric_key={urllib.parse.quote(key)}").get("metrics", [])
        return sorted(((m["timestamp"], m["value"], m["step"]) for m in found), key=lambda m: (m[2], m[0]))

    def new_run(self, experiment="0", **tags):
        named = [{"key": key.replace("__", "."), "value": value} for key, value in tags.items()]
        return self.ask("runs/create", {"experiment_id": experiment, "start_time": int(time.time() * 1000), "tags": named})["run"]["info"]["run_id"]

    def artifact(self, run_id, name):
        path = urllib.parse.urlencode({"path": name, "run_id": run_id})
        return urllib.request.urlopen(f"{self.url}/get-artifact?{path}").read()

    def runs_of(self, experiment):
        found = self.ask(f"experiments/get-by-name?experiment_name={urllib.parse.quote(experiment)}")["experiment"]["experiment_id"]
        return [r["info"]["run_id"] for r in self.ask("runs/search", {"experiment_ids": [found]}).get("runs", [])]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if not (MLFLOW / "mlflow").exists():
        pytest.skip("MLflow is not there: `./dev test` installs it into .dev/mlflow")
    it = Server(tmp_path_factory.mktemp("mlflow"))
    yield it
    it.down()


JOB = """
import sys, threading, time
memory = bytearray(64 << 20)
files = [open("/dev/null") for _ in range(5)]
go_on = threading.Event()
threads = [threading.Thread(target=go_on.wait) for _ in range(3)]
for t in threads: t.start()
until = time.monotonic() + 3
while time.monotonic() < until: sum(range(5000))
go_on.set()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A recording of three seconds."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "train.py").write_text(JOB)
    recording = folder / "job.tacho"
    env = {**os.environ, "USER": "ada", "LOGNAME": "ada"}
    done = record(["python3", folder / "train.py", "--password=hunter2"], "--interval", "200ms", output=recording, env=env)
    assert done.returncode == 0, done.stderr
    return recording


def push(recording, *words, url=None, follow=False, **env):
    """`tacho push --to mlflow`: what it says, and the run that it names."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
    target = f"mlflow={url}" if url else "mlflow"
    return run("push", "--to", target, *words, recording, env={**clean, **env})


def pushed(*words, **kwargs):
    """The same where all must go well: the run's ID."""
    done = push(*words, **kwargs)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return re.search(r"/runs/([0-9a-f]{32})", said)[1]


def copy_of(job, folder, name="job.tacho"):
    """A recording of which nothing was pushed yet."""
    copy = folder / name
    copy.write_bytes(job.read_bytes())
    return copy


def exported(recording, table, metric, *words, instance=None):
    """(ms, value) of a metric of each row, as `tacho export` has it; none where it is not known."""
    done = run("export", "--to", "csv", "-d", table, "-m", metric, *words, "-o", "-", recording)
    assert done.returncode == 0, done.stderr
    rows = csv.DictReader(io.StringIO(done.stdout.decode()))
    found = []
    for row in rows:
        (value,) = [text for name, text in row.items() if name == metric or name.startswith(metric + " [")]
        if value and (instance is None or instance == row["instance"]):
            when = datetime.fromisoformat(row["time"][:23]).replace(tzinfo=timezone.utc)
            found.append((round(when.timestamp() * 1000), float(value)))
    return found


def same(history, expected, scale=1.0):
    """No value is missing, none is there twice; times are exact, and steps grow with them."""
    assert expected
    assert [ms for ms, _, _ in history] == [ms for ms, _ in expected]
    assert [value for _, value, _ in history] == pytest.approx([value * scale for _, value in expected], rel=1e-12, abs=1e-9)
    steps = [step for _, _, step in history]
    assert steps == sorted(steps) and len(set(steps)) > len(steps) / 2  # a sample between two others has the step of one


# ---- a run that has ended ----


def test_every_value_once(server, job, tmp_path):
    recording = copy_of(job, tmp_path)
    run_id = pushed(recording, "--every", "0", "--experiment", "every value", url=server.url)
    keys = server.keys(run_id)
    for key, table, metric, per in (("tree.cores", "tree", "tree.cores", ()), ("mem.used", "node", "mem.used", ()),
                                    ("proc.mem.rss", "process", "proc.mem.rss", ("-p", "node")), ("cpu.busy", "cpu", "cpu.busy", ("-p", "node"))):
        assert f"tacho/{key}" in keys
        same(server.history(run_id, f"tacho/{key}"), exported(recording, table, metric, *per))
    whole = {key: server.history(run_id, key) for key in keys}

    # Once more; then without what the first one noted, as another machine would: nothing is there twice.
    assert push(recording, "--every", "0", "--experiment", "every value", url=server.url).returncode == 0
    (tmp_path / "job.push-mlflow").unlink()
    assert pushed(recording, "--every", "0", "--experiment", "every value", url=server.url) == run_id
    assert {key: server.history(run_id, key) for key in server.keys(run_id)} == whole
    assert server.runs_of("every value") == [run_id]


def test_what_a_new_run_is_told(server, job, tmp_path):
    recording = copy_of(job, tmp_path)
    run_id = pushed(recording, "--run-name", "first try", "--label", "team=climate", "--label", "a:b=c", url=server.url)
    it = server.run(run_id)
    assert it["info"]["status"] == "FINISHED" and it["info"]["run_name"] == "first try"
    shown = json.loads(run("show", "--json", recording).stdout)
    assert it["info"]["end_time"] - it["info"]["start_time"] == pytest.approx(1000 * shown["wall_s"], abs=250)
    tags, params = server.pairs(run_id, "tags"), server.pairs(run_id, "params")
    assert tags["mlflow.user"] == "ada" and tags["mlflow.source.type"] == "LOCAL" and tags["mlflow.source.name"]
    assert tags["tacho.host"] == os.uname().nodename and tags["team"] == "climate" and "c" in tags.values()
    assert "train.py --password=***" in params["tacho/command"] and "hunter2" not in json.dumps(it)
    assert params["tacho/hw.threads"] == str(os.cpu_count()) and "tacho/limits.cpus" in params
    assert "## Findings" in tags["mlflow.note.content"]
    assert server.artifact(run_id, "tacho/job.tacho") == recording.read_bytes()
    page = server.artifact(run_id, "tacho/report.html").decode()
    assert "</html>" in page and "train.py" in page
    assert (tmp_path / "job.push-mlflow").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("command, status", [(["sh", "-c", "exit 3"], "FAILED"), (["sh", "-c", "kill -TERM $$"], "KILLED"),
                                             (["sh", "-c", "kill -SEGV $$"], "FAILED")])
def test_how_it_ended(server, tmp_path, command, status):
    recording = tmp_path / "job.tacho"
    record(command, "--interval", "100ms", output=recording)
    run_id = pushed(recording, "--no-artifacts", "--experiment", "ends", url=server.url)
    assert server.run(run_id)["info"]["status"] == status
    assert not server.ask(f"artifacts/list?run_id={run_id}").get("files")


def test_an_existing_run(server, job, tmp_path):
    """Its own things stay: status, note, steps."""
    run_id = server.new_run(mlflow__note__content="mine")
    server.ask("runs/log-metric", {"run_id": run_id, "key": "loss", "value": 1, "timestamp": 1, "step": 900})
    server.ask("runs/log-metric", {"run_id": run_id, "key": "tacho/tree.cores", "value": 1, "timestamp": 1, "step": 41})
    recording = copy_of(job, tmp_path)
    assert pushed(recording, "--every", "0", url=server.url, MLFLOW_RUN_ID=run_id) == run_id
    history = server.history(run_id, "tacho/tree.cores")
    first, *ours = history
    assert first == (1, 1, 41) and min(step for _, _, step in ours) > 41
    same(ours, exported(recording, "tree", "tree.cores"))
    it = server.run(run_id)
    assert it["info"]["status"] == "RUNNING" and not it["info"].get("end_time")
    assert server.pairs(run_id, "tags")["mlflow.note.content"] == "mine"
    # Without the note beside the recording the steps are the same again.
    (tmp_path / "job.push-mlflow").unlink()
    assert pushed(recording, "--every", "0", "--run-id", run_id, url=server.url) == run_id
    assert server.history(run_id, "tacho/tree.cores") == history


def test_a_run_that_is_not_there(server, job, tmp_path):
    done = push(copy_of(job, tmp_path), "--run-id", "f" * 32, url=server.url)
    assert done.returncode == 1
    assert b"has no run ffff" in done.stderr and b"--run-id" in done.stderr
    gone = server.new_run()
    recording = copy_of(job, tmp_path, "again.tacho")
    assert pushed(recording, "--until", "1", url=server.url, MLFLOW_RUN_ID=gone) == gone
    server.ask("runs/delete", {"run_id": gone})
    done = push(recording, url=server.url, MLFLOW_RUN_ID=gone)
    assert done.returncode == 1 and b"was deleted" in done.stderr and b".push-mlflow" in done.stderr
    done = push(copy_of(job, tmp_path), url=server.url, MLFLOW_RUN_ID=gone)
    assert done.returncode == 1 and b"was deleted" in done.stderr


def test_a_deleted_experiment(server, job, tmp_path):
    number = server.ask("experiments/create", {"name": "closed"})["experiment_id"]
    server.ask("experiments/delete", {"experiment_id": number})
    done = push(copy_of(job, tmp_path), "--experiment", "closed", url=server.url)
    assert done.returncode == 1 and b"mlflow experiments restore" in done.stderr
    done = push(copy_of(job, tmp_path), url=server.url, MLFLOW_EXPERIMENT_ID="424242")
    assert done.returncode == 1 and b"no experiment 424242" in done.stderr


# ---- the job's own run ----

OWN = """
import json, os, sys, time, urllib.request
def ask(path, body):
    request = urllib.request.Request(sys.argv[1] + "/api/2.0/mlflow/" + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))
now = lambda: int(time.time() * 1000)
tags = [{"key": "mlflow.user", "value": "ada"}, {"key": "mlflow.source.name", "value": sys.argv[0]}]
for _ in range(int(sys.argv[2])):
    made = ask("runs/create", {"experiment_id": "0", "start_time": now(), "tags": tags})["run"]["info"]["run_id"]
    open("made", "a").write(made + "\\n")
time.sleep(0.5)
if sys.argv[3] == "end":
    ask("runs/update", {"run_id": made, "status": "FINISHED", "end_time": now()})
"""


def own_job(server, folder, name, nr=1, then="end"):
    (folder / name).write_text(OWN)
    env = {**os.environ, "USER": "ada", "LOGNAME": "ada"}
    done = record(["python3", f"./{name}", server.url, str(nr), then], "--interval", "100ms", output=folder / "job.tacho", cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    return (folder / "made").read_text().split()


def test_the_run_that_the_job_started(server, tmp_path):
    """Found by user, time and program; it stays as the job left it."""
    (made,) = own_job(server, tmp_path, "alone.py")
    before = server.run(made)["info"]
    assert pushed(tmp_path / "job.tacho", "--every", "0", url=server.url) == made
    assert server.run(made)["info"] == before
    same(server.history(made, "tacho/mem.used"), exported(tmp_path / "job.tacho", "node", "mem.used"))


def test_two_runs_of_the_job(server, tmp_path):
    """Which one is meant cannot be told: a new one."""
    made = own_job(server, tmp_path, "several.py", nr=2)
    assert pushed(tmp_path / "job.tacho", url=server.url) not in made


def test_a_run_of_another_job(server, tmp_path):
    """The same program of the same user, at the same time; its recording was pushed before."""
    (made,) = own_job(server, tmp_path, "shared.py")
    copy_of(tmp_path / "job.tacho", tmp_path, "other.tacho")
    server.ask("runs/set-tag", {"run_id": made, "key": "tacho.first_step.0123456789abcdef", "value": "0"})
    assert pushed(tmp_path / "other.tacho", url=server.url) != made


def test_a_run_that_was_marked(server, tmp_path):
    """Of several that would fit the marked one, while the job goes on."""
    chosen, other = server.new_run(), server.new_run()
    recording = tmp_path / "job.tacho"
    job = ["sh", "-c", f"{TACHO} mark --strict training mlflow_run_id={chosen}; exec cat"]
    with lasting(job, "--interval", "100ms", output=recording):
        until(lambda: recording.exists(), "there is a recording")
        env = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
        pusher = start("push", "--follow", "--every", "200ms", "--to", f"mlflow={server.url}", recording, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        until(lambda: len(server.history(chosen, "tacho/mem.used")) > 5, "values while it runs")
        assert server.run(chosen)["info"]["status"] == "RUNNING"
    said = pusher.communicate()[0].decode()
    assert pusher.returncode == 0 and chosen in said
    same(server.history(chosen, "tacho/tree.processes"), windows(recording, "tree", "tree.processes", "200ms"))
    assert not server.keys(other) and server.run(chosen)["info"]["status"] == "RUNNING"


def windows(recording, table, metric, every, *words):
    """Means of spans, dated by their last sample as pushes are."""
    length = float(every[:-2]) if every.endswith("ms") else 1000 * float(every[:-1])
    shown = json.loads(run("show", "--json", recording).stdout)
    began = datetime.fromisoformat(shown["start"][:23].rstrip("Z")).replace(tzinfo=timezone.utc).timestamp() * 1000
    last = {}
    for ms, _ in exported(recording, table, metric, *words):
        last[int((ms - began) // length)] = ms
    means = exported(recording, table, metric, *words, "--every", every)
    return [(last[int((ms - began + 0.5) // length)], value) for ms, value in means]


# ---- as others name it ----


def folded(recording, metric):
    return exported(recording, "process", metric, "-p", "node")


# Row by row: its name, where ours comes from, and what its unit is of ours.
PROCESS = [
    ("cpu_usage_percentage", "tree", "tree.cpu.of_allocation", 100, ()),
    ("memory_rss_megabytes", "process", "proc.mem.rss", 1 / MIB, ("-p", "node")),
    ("memory_vms_megabytes", "process", "proc.mem.vms", 1 / MIB, ("-p", "node")),
    ("memory_uss_megabytes", "process", "proc.mem.uss_now", 1 / MIB, ("-p", "node")),
    ("memory_usage_percentage", "tree", "tree.rss.of_allocation", 100, ()),
    ("num_threads", "process", "proc.threads", 1, ("-p", "node")),
    ("num_fds", "process", "proc.fds", 1, ("-p", "node")),
    ("io_read_megabytes", "process", "proc.io.read_bytes", 1 / MIB, ("-p", "node")),
    ("io_write_megabytes", "process", "proc.io.write_bytes", 1 / MIB, ("-p", "node")),
]


def test_as_process(server, job, tmp_path):
    run_id = pushed(copy_of(job, tmp_path), "--as", "process", "--every", "0", "--run-name", "process", url=server.url)
    assert server.keys(run_id) == {f"process/{name}" for name, *_ in PROCESS}
    for name, table, metric, scale, words in PROCESS:
        same(server.history(run_id, f"process/{name}"), exported(job, table, metric, *words), scale)


def test_what_the_process_values_mean(server, tmp_path):
    """The same as psutil finds in the process at that time, which is what people compare with."""
    script = tmp_path / "steady.py"
    script.write_text("import psutil, json, sys, threading\nmemory = bytearray(96 << 20)\nfiles = [open('/dev/null') for _ in range(7)]\n"
                      "stop = threading.Event()\n[threading.Thread(target=stop.wait).start() for _ in range(4)]\n"
                      "me = psutil.Process()\nfull = me.memory_full_info()\n"
                      "open('steady', 'w').write(json.dumps([full.rss, full.vms, full.uss, me.num_threads()]))\n"
                      "sys.stdin.read(); stop.set()\n")
    recording = tmp_path / "job.tacho"
    with lasting(["/usr/bin/python3", script], "--interval", "100ms", output=recording, cwd=tmp_path):
        until(lambda: (tmp_path / "steady").exists() and (tmp_path / "steady").read_text().endswith("]"), "the job is steady")
        ticks = len(folded(recording, "proc.mem.rss"))
        until(lambda: len(folded(recording, "proc.mem.rss")) > ticks + 5, "samples of it")
    run_id = pushed(recording, "--as", "process", "--samples", "1", "--total-cpus", "8", "--total-memory", "1GiB", url=server.url)
    rss, vms, uss, threads = json.loads((tmp_path / "steady").read_text())
    last = {key: [value for _, value, _ in server.history(run_id, f"process/{key}")] for key, *_ in PROCESS}
    seen = {key: values[ticks + 2] for key, values in last.items()}  # steady by then; the last are of its end
    assert seen["memory_rss_megabytes"] == pytest.approx(rss / MIB, abs=3)
    assert seen["memory_vms_megabytes"] == pytest.approx(vms / MIB, abs=3)
    assert seen["memory_uss_megabytes"] == pytest.approx(uss / MIB, abs=3)
    assert (seen["num_threads"], seen["num_fds"]) == (threads, 3 + 7)
    assert seen["memory_usage_percentage"] == pytest.approx(100 * seen["memory_rss_megabytes"] / 1024)
    cores = [value for _, value in exported(recording, "tree", "tree.cores")]
    assert last["cpu_usage_percentage"] == pytest.approx([100 * value / 8 for value in cores])


def test_samples_are_averaged(server, job, tmp_path):
    run_id = pushed(copy_of(job, tmp_path), "--as", "process", "--samples", "5", "--prefix", "mine/", "--run-name", "averaged", url=server.url)
    assert server.keys(run_id) == {f"mine/{name}" for name, *_ in PROCESS}
    history = server.history(run_id, "mine/memory_rss_megabytes")
    same(history, windows(job, "process", "proc.mem.rss", "1s", "-p", "node"), 1 / MIB)
    assert [step for _, _, step in history] == list(range(len(history)))  # what is left at the end is a step of its own


def test_of_the_first_process_alone(server, tmp_path):
    recording = tmp_path / "job.tacho"
    record(["python3", "-c", "import subprocess, time; x = bytearray(32 << 20); subprocess.run(['sleep', '1'])"], "--interval", "100ms", output=recording)
    run_id = pushed(recording, "--as", "process", "--no-children", "--every", "0", url=server.url)
    done = run("export", "--to", "csv", "-d", "process", "-m", "proc.mem.rss", "-o", "-", recording)
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert {row["instance"] for row in rows} >= {"sleep"}
    expected = [float(row["proc.mem.rss [bytes]"]) / MIB for row in rows if row["pid"] == rows[0]["pid"] and row["proc.mem.rss [bytes]"]]
    assert [value for _, value, _ in server.history(run_id, "process/memory_rss_megabytes")] == pytest.approx(expected)
    done = push(copy_of(recording, tmp_path, "b.tacho"), "--no-children", url=server.url)
    assert done.returncode == 2 and b"--as process" in done.stderr


SYSTEM = [
    ("cpu_utilization_percentage", "cpu", "cpu.busy", 100, ("-p", "node")),
    ("system_memory_usage_megabytes", "node", "mem.used", 1 / MB, ()),
    ("system_memory_usage_percentage", "node", "mem.used_ratio", 100, ()),
]


def test_as_system(server, job, tmp_path):
    run_id = pushed(copy_of(job, tmp_path), "--as", "system", "--every", "0", "--run-name", "system", url=server.url)
    for name, table, metric, scale, words in SYSTEM:
        same(server.history(run_id, f"system/{name}"), exported(job, table, metric, *words), scale)
    for way, metric in (("receive", "net.rx.bytes"), ("transmit", "net.tx.bytes")):  # since the start
        expected = exported(job, "net", metric, "-p", "node")
        same(server.history(run_id, f"system/network_{way}_megabytes"), [(ms, value - expected[0][1]) for ms, value in expected], 1 / MB)
    roots = exported(job, "filesystem", "fs.used", instance="/")
    if roots:
        same(server.history(run_id, "system/disk_usage_megabytes"), roots, 1 / MB)
    # Beside them, what the job itself does.
    same(server.history(run_id, "tacho/tree.cores"), exported(job, "tree", "tree.cores"))


def test_gpus_as_system(server, tmp_path):
    recording = tmp_path / "job.tacho"
    record(["sleep", "1"], "--interval", "100ms", output=recording, env=Driver(tmp_path).environment())
    run_id = pushed(recording, "--as", "system", "--every", "0", "--no-artifacts", url=server.url)
    for number in (0, 1):
        for name, metric, scale in (("utilization_percentage", "gpu.util", 100), ("memory_usage_megabytes", "gpu.memory.used", 1 / MB),
                                    ("memory_usage_percentage", "gpu.memory.used_ratio", 100), ("power_usage_watts", "gpu.watts", 1)):
            expected = exported(recording, "gpu", metric, instance=f"nvidia-{number}")
            if expected:
                same(server.history(run_id, f"system/gpu_{number}_{name}"), expected, scale)
    assert {"system/gpu_0_utilization_percentage", "system/gpu_1_utilization_percentage", "tacho/gpu.util/nvidia-0"} <= server.keys(run_id)


def test_system_metrics_of_others(server, job, tmp_path):
    run_id = server.new_run()
    server.ask("runs/log-metric", {"run_id": run_id, "key": "system/cpu_utilization_percentage", "value": 1, "timestamp": 1, "step": 0})
    done = push(copy_of(job, tmp_path), "--as", "system", "--run-id", run_id, url=server.url)
    assert done.returncode == 0 and b"system/ metrics of its own" in done.stderr
    assert server.history(run_id, "system/cpu_utilization_percentage") == [(1, 1, 0)]
    assert {key for key in server.keys(run_id) if key.startswith("system/")} == {"system/cpu_utilization_percentage"}
    assert "tacho/tree.cores" in server.keys(run_id)


def test_several_nodes(server, job, tmp_path):
    """Each under its number, in one run, with its recording."""
    runs = tmp_path / "runs"
    runs.mkdir()
    first, second = copy_of(job, runs, "a.tacho"), runs / "b.tacho"
    record(["sleep", "0.5"], "--interval", "100ms", output=second)
    run_id = pushed(runs, "--as", "system", "--every", "0", url=server.url)
    assert server.pairs(run_id, "tags")["tacho.made"]
    for number, recording in enumerate((first, second)):
        same(server.history(run_id, f"tacho/node_{number}/mem.used"), exported(recording, "node", "mem.used"))
        same(server.history(run_id, f"system/node_{number}/system_memory_usage_percentage"), exported(recording, "node", "mem.used_ratio"), 100)
        assert server.artifact(run_id, f"tacho/{recording.name}") == recording.read_bytes()
    assert all(re.match(r"(tacho|system)/node_[01]/", key) for key in server.keys(run_id))


def test_names_that_mlflow_does_not_take(server, job, tmp_path):
    """Numbers of the job's own, instances, labels and a prefix may be called anything."""
    recording = tmp_path / "job.tacho"
    record(["sh", "-c", f"for i in 1 2 3; do {TACHO} mark 'lo/../ss=1' 'a b=2' 'é(x)=3' 'loss=4'; sleep 0.3; done"], "--interval", "100ms", output=recording)
    run_id = pushed(recording, "-m", "app", "--every", "0", "--prefix", "//odd/../ü/", url=server.url)
    keys = server.keys(run_id)
    assert keys and all(re.fullmatch(r"[\w.\- :/]{1,250}", key, re.A) for key in keys)
    run_id = pushed(recording, "-m", "proc.mem.rss", "--per", "process", "--run-name", "each", url=server.url)
    assert any(re.fullmatch(r"tacho/proc\.mem\.rss/sh-\d+", key) for key in server.keys(run_id))


# ---- who we are, and to whom ----


class Gate:
    """In front of the server, below a path of its own: lets through what has the right headers, and keeps them."""

    def __init__(self, server, needs=None, prefix="", answer=None):
        self.seen = seen = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self, status, body, kind="application/json"):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                seen.append((self.path, dict(self.headers)))
                if answer is not None:
                    return self.reply(*answer(self.path))
                if needs and any(self.headers.get(key) != value for key, value in needs.items()):
                    return self.reply(401, b"You are not authenticated. Please see the documentation.", "text/html")
                assert self.path.startswith(prefix + "/api/"), self.path
                request = urllib.request.Request(server.url + self.path[len(prefix):], body or None, method=self.command)
                request.add_header("Content-Type", self.headers.get("Content-Type") or "application/octet-stream")
                try:
                    with urllib.request.urlopen(request) as it:
                        return self.reply(it.status, it.read())
                except urllib.error.HTTPError as error:
                    return self.reply(error.code, error.read())

            do_GET = do_POST = do_PUT = pass_on

            def log_message(self, *_):
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_port}{prefix}"
        self.address = f"127.0.0.1:{self.httpd.server_port}{prefix}"
        threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.httpd.shutdown()
        self.httpd.server_close()


BASIC = {"Authorization": "Basic " + base64.b64encode(b"ada:love lace").decode()}


@pytest.mark.parametrize("env", [
    {"MLFLOW_TRACKING_URI": "http://{0}", "MLFLOW_TRACKING_USERNAME": "ada", "MLFLOW_TRACKING_PASSWORD": "love lace"},
    {"MLFLOW_TRACKING_URI": "http://ada:love%20lace@{0}/"},
    {"MLFLOW_TRACKING_URI": "http://{0}", "HOME": "{1}", "MLFLOW_TRACKING_TOKEN": "not this"},
])
def test_user_and_password(server, job, tmp_path, env):
    """By variables, in the address, in MLflow's file; below a path; never in what is kept or said."""
    (tmp_path / ".mlflow").mkdir()
    (tmp_path / ".mlflow" / "credentials").write_text("[other]\nmlflow_tracking_username = eve\n[mlflow]\n# who\nmlflow_tracking_username = ada\nmlflow_tracking_password = love lace\n")
    with Gate(server, BASIC, "/under/a path".replace(" ", "%20")) as gate:
        env = {"HOME": str(tmp_path / "none"), **{key: value.format(gate.address, tmp_path) for key, value in env.items()}}
        done = push(copy_of(job, tmp_path), "--experiment", "secret", **env)
        assert done.returncode == 0, done.stderr
        assert b"love" not in done.stdout + done.stderr + (tmp_path / "job.push-mlflow").read_bytes()
        assert any(path.startswith("/under/a%20path/api/2.0/mlflow-artifacts/artifacts/") for path, _ in gate.seen)


def test_token_and_workspace(server, job, tmp_path):
    with Gate(server, {"Authorization": "Bearer s3cret", "X-Mlflow-Workspace": "team"}) as gate:
        env = {"HOME": str(tmp_path), "MLFLOW_TRACKING_URI": gate.url, "MLFLOW_WORKSPACE": "team"}
        done = push(copy_of(job, tmp_path), **env)
        assert done.returncode == 1
        assert b"You are not authenticated" in done.stderr and b"MLFLOW_TRACKING_TOKEN" in done.stderr
        assert push(copy_of(job, tmp_path), **env, MLFLOW_TRACKING_TOKEN="s3cret").returncode == 0
        assert b"s3cret" not in (tmp_path / "job.push-mlflow").read_bytes()


@pytest.mark.parametrize("uri, words", [
    (None, "MLFLOW_TRACKING_URI"),
    ("sqlite:///mlflow.db", "--backend-store-uri sqlite:///mlflow.db"),
    ("postgresql://me:secret@db/mlflow", "mlflow server"),
    ("file:///tmp/mlruns", "--backend-store-uri"),
    ("./mlruns", "--backend-store-uri ./mlruns"),
    ("databricks", "MLFLOW_TRACKING_TOKEN"),
    ("ftp://host", "http://HOST:PORT"),
])
def test_stores_without_a_server(job, tmp_path, uri, words):
    """What to do is said; nothing is sent."""
    done = push(copy_of(job, tmp_path), **({"MLFLOW_TRACKING_URI": uri} if uri else {}))
    assert done.returncode == 2
    assert words in done.stderr.decode() and b"secret" not in done.stderr


def test_no_password_on_the_command_line(job, tmp_path):
    done = push(copy_of(job, tmp_path), url="http://ada:lace@localhost:1")
    assert done.returncode == 2 and b"lace" not in done.stderr


@pytest.mark.parametrize("body", [
    b"", b"<html>hello</html>", b"{}", b"[" * 100000, b'{"run": {"info": {"run_id": 7}}}', b'{"runs": "x", "experiments": [1, [2]], "run": []}',
    b"\0\1\x1b[31m" * 1000, b'{"experiments": [{"experiment_id": "' + b"9" * 100000 + b'"}], "run": {"info": {"run_id": "' + b"a" * 100000 + b'"}}}',
    b'"' + b"x" * (9 << 20) + b'"',
], ids=["nothing", "page", "empty", "deep", "numbers", "types", "controls", "long ids", "huge"])
@pytest.mark.parametrize("status", [200, 400])
def test_strange_servers(job, tmp_path, body, status):
    """Whatever comes back: a clear message, nothing sent is believed to be there, and no control characters."""
    with Gate(None, answer=lambda path: (status, body)) as gate:
        done = push(copy_of(job, tmp_path), "--retries", "0", url=gate.url)
    assert done.returncode == 1 and done.stderr and not re.search(rb"[\x00-\x08\x1b]", done.stderr)


def test_files_are_not_sent_to_other_servers(server, job, tmp_path):
    """Where the run's files are is said by the server; our secrets go to nobody else, and people hear what to do."""
    info = {"run_id": "a" * 32, "experiment_id": "0", "lifecycle_stage": "active"}
    for uri in ("s3://bucket/x", "mlflow-artifacts://elsewhere:80/0/x", "http://elsewhere/api/2.0/mlflow-artifacts/artifacts/0", "mlflow-artifacts:/../../x"):
        body = json.dumps({"run": {"info": {**info, "artifact_uri": uri}, "data": {}}, "experiments": []}).encode()
        with Gate(None, answer=lambda path, body=body: (200, body)) as gate:
            done = push(copy_of(job, tmp_path), url=gate.url)
            assert done.returncode == 0, done.stderr
            assert not [path for path, _ in gate.seen if "mlflow-artifacts" in path]
            assert ".." in uri or b"log-artifact" in done.stderr
        (tmp_path / "job.push-mlflow").unlink()


# ---- the page, and what docs/sinks.md says ----

CLIENT_ENV = {"MLFLOW_DISABLE_TELEMETRY": "true", "GIT_PYTHON_REFRESH": "quiet", "USER": "ada", "LOGNAME": "ada"}


@pytest.fixture(scope="module")
def recipe(server, tmp_path_factory):
    """The recipe as it stands in docs/sinks.md, with MLflow's own client, against our server."""
    folder = tmp_path_factory.mktemp("recipe")
    (text,) = re.findall(r"^```sh mlflow\n(.*?)^```$", (ROOT / "docs" / "sinks.md").read_text(), re.M | re.S)
    assert "http://localhost:5000" in text
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
    env = {**clean, **CLIENT_ENV, **COMPILED_ONCE, "PATH": f"{Path(TACHO).parent}:{MLFLOW}:{os.environ['PATH']}", "LD_PRELOAD": ""}
    done = subprocess.run(["bash", "-ec", text.replace("http://localhost:5000", server.url)], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    log = folder / "job.push.log"
    until(lambda: log.exists() and "values sent" in log.read_text(), "the pusher has sent everything")
    return folder / "job.tacho", re.search(r"/runs/([0-9a-f]{32})", log.read_text())[1], re.search(r"/runs/([0-9a-f]{32})", done.stdout)[1]


def test_the_recipe(server, recipe):
    recording, pushed_to, started = recipe
    assert pushed_to == started
    same(server.history(started, "tacho/proc.mem.rss"), windows(recording, "process", "proc.mem.rss", "1s", "-p", "node"))
    assert len(server.history(started, "loss")) == 20
    assert server.run(started)["info"]["status"] == "FINISHED"
    assert server.artifact(started, "tacho/job.tacho") == recording.read_bytes()


def test_the_page_of_mlflow(server, job, tmp_path, browser):  # noqa: F811
    """Our metrics are curves in it, and the node's stand where MLflow's own system metrics do."""
    run_id = pushed(copy_of(job, tmp_path), "--as", "system", "--every", "500ms", "--run-name", "page", url=server.url)
    page = browser.new_page(viewport={"width": 1360, "height": 960})
    page.set_default_timeout(1000 * PATIENCE_S)
    page.goto(f"{server.url}/#/experiments/0/runs/{run_id}/model-metrics", wait_until="commit")
    page.get_by_placeholder("Search metric charts").fill("tree.cores")
    for name in ("tree.cores", "tree.cores.max"):
        page.get_by_text(f"(tacho/{name})", exact=False).first.wait_for()
    page.locator(".js-plotly-plot .scatterlayer .trace").first.wait_for(state="attached")
    page.get_by_role("tab", name="System metrics").click()
    page.get_by_text("(system/cpu_utilization_percentage)").first.wait_for()
    page.close()
