"""InfluxDB, judged by InfluxDB 1 and VictoriaMetrics themselves: written to by `tacho push`, read back by their queries."""

import json
import re
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request

import pytest

import recorder
import sinks
from sinks import METRICS, exported, push, same_points

CONFIG = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{root}/meta"
[data]
  dir = "{root}/data"
  wal-dir = "{root}/wal"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
  auth-enabled = {auth}
"""


def fetch(url, data=None):
    with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=30) as answer:
        return answer.status, answer.read()


class Influx(sinks.Server):
    def __init__(self, root, auth="false"):
        if not shutil.which("influxd"):
            pytest.skip("influxd is not installed (Debian: influxdb)")
        root.mkdir()
        port = sinks.free_port()
        config = root / "influxdb.conf"
        config.write_text(CONFIG.format(root=root, port=port, rpc=sinks.free_port(), auth=auth))
        url = f"http://127.0.0.1:{port}"
        super().__init__(["influxd", "-config", config], url, lambda: fetch(f"{url}/ping")[0] == 204, root / "log")

    def query(self, text, database="", **more):
        words = urllib.parse.urlencode({"db": database, "epoch": "ns", **more})
        result = json.loads(fetch(f"{self.url}/query?{words}", urllib.parse.urlencode({"q": text}).encode())[1])["results"][0]
        assert "error" not in result, result
        return result.get("series", [])

    def create(self, name):
        self.query(f'CREATE DATABASE "{name}"')
        return f"influx={self.url}?db={name}"

    def points(self, database, prefix="tacho_", **more):
        """All that is in it: fields by table and tags."""
        found = {}
        for series in self.query(f'SELECT * FROM /./ GROUP BY *', database, **more):
            tags, fields = series["tags"], series["columns"][1:]
            key = (tags.get("host"), tags.get("instance") or None, int(tags["pid"]) if tags.get("pid") else None)
            for stamp, *values in series["values"]:
                for field, value in zip(fields, values):
                    if value is not None:
                        found.setdefault((series["name"].removeprefix(prefix), field, *key), {})[stamp] = value
        return found


@pytest.fixture(scope="module")
def influx(tmp_path_factory):
    server = Influx(tmp_path_factory.mktemp("influx") / "server")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return sinks.record(tmp_path_factory.mktemp("run") / "job.tacho")


def test_backfill(influx, job):
    target = influx.create("backfill")
    push("--to", target, "--every", "0", "-m", ",".join(METRICS), job)
    same_points(influx.points("backfill"), exported(job))
    assert b"all was sent before" in push("--to", target, "--every", "0", "-m", ",".join(METRICS), job).stderr
    same_points(influx.points("backfill"), exported(job))


def test_usual_choice_in_windows(influx, job):
    """Tags on all of it, and the greatest of each window beside the mean."""
    target = influx.create("windows")
    push("--to", target, "--every", "200ms", "--label", "team=a b,c=d", "--label", r"odd key=x\ ", job)
    (series,) = influx.query("SELECT * FROM tacho_tree GROUP BY *", "windows")
    assert series["tags"] == {"host": recorder.show(job)["host"], "run": "sh", "team": "a b,c=d", "odd key": "x\\x5c "}
    fields = dict(zip(series["columns"], zip(*series["values"])))
    assert all(mean <= most for mean, most in zip(fields["tree.cores"], fields["tree.cores.max"]) if mean is not None)
    (values,) = (v for key, v in exported(job, ["tree.cpu"], "--every", "200ms").items() if key[1] == "tree.cpu")
    assert list(fields["tree.cpu"]) == list(values.values())


def test_types_of_fields(influx, job):
    """Counters of things are integers however they are pushed, and all else real: no window changes the type of a field."""
    target = influx.create("types")
    push("--to", target, "--every", "0", "-m", ",".join(METRICS), job)
    types = {tuple(row) for series in influx.query("SHOW FIELD KEYS", "types") for row in series["values"]}
    assert ("net.rx.bytes", "integer") in types and ("tree.cpu", "float") in types and ("proc.threads", "float") in types
    state = job.with_suffix(".push-influx")
    for other in job.parent.glob(f"{state.name}*"):
        if "types" in other.read_text():
            other.unlink()
    push("--to", target, "--every", "1s", "-m", ",".join(METRICS), job)


def test_what_is_refused_is_said_once_and_the_rest_goes_on(influx, job):
    """One field has another type in the database already: its values alone are lost."""
    target = influx.create("conflict")
    stamp = min(min(values) for values in exported(job).values())
    fetch(f"{influx.url}/write?db=conflict", f'tacho_tree,host=other tree.processes="text" {stamp}'.encode())
    done = push("--to", target, "--every", "100ms", "-m", ",".join(METRICS), job, status=1)
    assert done.stderr.count(b"type conflict") == 1, done.stderr
    found = {key: v for key, v in influx.points("conflict").items() if key[2] != "other"}
    wanted = exported(job, METRICS, "--every", "100ms")
    assert found.keys() & wanted.keys() == {key for key in wanted if key[1] != "tree.processes"}


def test_older_than_the_database_keeps(influx, job):
    target = influx.create("short")
    influx.query('CREATE RETENTION POLICY "brief" ON "short" DURATION 1h REPLICATION 1 DEFAULT')
    old = job.parent / "old.tacho"
    subprocess.run([recorder.BURNERS.parent / "unit" / "query_tool", old, "n1", "1"], check=True)
    done = push("--to", target, "--every", "0", old, status=1)
    assert b"beyond retention policy" in done.stderr and influx.points("short") == {}


def test_no_database_says_how_to_make_one(influx, job):
    done = push("--to", f"influx={influx.url}?db=nothing", job, status=1)
    assert b"database not found" in done.stderr and b"CREATE DATABASE" in done.stderr


@pytest.mark.parametrize("address, words", [
    ("http://h:1", "?db=NAME"),
    ("h:1?db=x", "http://HOST"),
    ("http://h:1?db=x&p=secret", "INFLUX_PASSWORD"),
    ("http://h:1?bucket=b", "organisation"),
    ("http://h:1?database=b", "'database'"),
])
def test_addresses_that_cannot_be(job, address, words):
    done = push("--to", f"influx={address}", job, status=2)
    assert words in done.stderr.decode() and b"secret" not in done.stderr


def test_rights(tmp_path, job):
    """User and password from the variables; they are nowhere else."""
    server = Influx(tmp_path / "server", auth="true")
    try:
        server.query("CREATE USER admin WITH PASSWORD 'top-secret' WITH ALL PRIVILEGES")
        server.query('CREATE DATABASE "kept"', u="admin", p="top-secret")
        address = f"{server.url}?db=kept"
        done = push("--to", "influx", job, env={"INFLUX_HOST": address, "INFLUX_USERNAME": "admin", "INFLUX_PASSWORD": "wrong"}, status=1)
        assert b"401" in done.stderr and b"INFLUX_PASSWORD" in done.stderr
        done = push("--to", "influx", "-m", "tree.cpu", "--every", "0", job,
                    env={"INFLUX_HOST": address, "INFLUX_USERNAME": "admin", "INFLUX_PASSWORD": "top-secret"})
        same_points(server.points("kept", u="admin", p="top-secret"), exported(job, ["tree.cpu"]))
        kept = b"".join(path.read_bytes() for path in job.parent.glob("job.push-influx*"))
        assert b"top-secret" not in kept + done.stderr + done.stdout
    finally:
        server.stop()


def test_live_run_with_the_server_killed_and_the_pusher_killed(influx, tmp_path):
    """No point is missing and none is there twice, whatever was killed meanwhile."""
    target, path = influx.create("live"), tmp_path / "live.tacho"
    words = ("--to", target, "--every", "0", "-m", ",".join(METRICS), path)
    with recorder.lasting(sinks.LASTING, "-i", "50ms", output=path):
        recorder.until(lambda: recorder.shown(path), "there is a recording")
        pusher = sinks.following(*words, stderr=subprocess.PIPE)
        sinks.growing(path, "influx", 100)
        influx.stop(signal.SIGKILL)
        sinks.kill(pusher)
        pusher = sinks.following(*words, stderr=subprocess.PIPE)
        recorder.until(lambda: json.loads(path.with_suffix(".push-influx").read_text())["why"], "the server is missed")
        influx.start()
        for _ in range(5):
            before = json.loads(path.with_suffix(".push-influx").read_text())["points"]
            sinks.growing(path, "influx", before + 30)
            sinks.kill(pusher)
            pusher = sinks.following(*words, stderr=subprocess.PIPE)
    sinks.ended(pusher)
    same_points(influx.points("live"), exported(path))


# ---- VictoriaMetrics ----


class Victoria(sinks.Server):
    def __init__(self, root):
        if not shutil.which("victoria-metrics"):
            pytest.skip("victoria-metrics is not installed (Debian: victoria-metrics)")
        port = sinks.free_port()
        url = f"http://127.0.0.1:{port}"
        words = ["victoria-metrics", f"-httpListenAddr=127.0.0.1:{port}", f"-storageDataPath={root}/data", "-retentionPeriod=100y"]
        root.mkdir()
        super().__init__(words, url, lambda: fetch(f"{url}/health")[0] == 200, root / "log")

    def points(self):
        fetch(f"{self.url}/internal/force_flush")
        found = {}
        for line in fetch(f"{self.url}/api/v1/export?match[]=" + urllib.parse.quote('{db="jobs"}'))[1].splitlines():
            series = json.loads(line)
            tags = series["metric"]
            table, field = re.fullmatch("tacho_([a-z]+)_(.*)", tags["__name__"]).groups()
            pid = int(tags["pid"]) if "pid" in tags else None
            found[table, field, tags["host"], tags.get("instance"), pid] = dict(zip(series["timestamps"], series["values"]))
        return found


def test_victoria_metrics(tmp_path, job):
    """It keeps milliseconds."""
    server = Victoria(tmp_path / "server")
    try:
        push("--to", f"influx={server.url}?db=jobs", "--every", "0", "-m", ",".join(METRICS), job)
        wanted = {key: {stamp // 10**6: value for stamp, value in values.items()} for key, values in exported(job).items()}
        found = recorder.until(lambda: (p := server.points()).keys() >= wanted.keys() and p, "all series are there")
        same_points(found, wanted, lambda a, b: a == pytest.approx(b, rel=1e-9))
    finally:
        server.stop()
