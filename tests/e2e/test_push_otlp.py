"""OTLP: bodies as PyPI's opentelemetry-proto reads them, and what the real collector makes of them."""

import json
import subprocess
from pathlib import Path

import pytest

import hostile_server as hostile
import recorder
import sinks
from exported import reader
from hostile_server import Hostile
from sinks import METRICS, exported, push, same_points

COLLECTOR = Path(__file__).resolve().parents[2] / ".dev" / "otelcol"
CONFIG = """
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
exporters:
  otlphttp:
    metrics_endpoint: {url}
    compression: none
    sending_queue:
      enabled: false
    retry_on_failure:
      enabled: false
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    metrics:
      receivers: [otlp]
      exporters: [otlphttp]
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return sinks.record(tmp_path_factory.mktemp("run") / "job.tacho")


@pytest.fixture
def server(job):
    for state in job.parent.glob("*.push-*"):
        state.unlink()
    with Hostile(hostile.empty_json) as it:
        yield it


def requests_of(server):
    """As messages of Protocol Buffers: a name or a type that is wrong is an error of the parser."""
    service = reader("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    json_format = reader("google.protobuf.json_format")
    for request in server.requests:
        assert request.method == "POST" and request.path == "/v1/metrics"
        message = service.ExportMetricsServiceRequest()
        if request.headers["content-type"] == "application/json":
            json_format.Parse(request.text, message)
        else:
            message.ParseFromString(request.text)
        yield message


def values_of(attributes):
    kinds = {a.key: a.value.WhichOneof("value") for a in attributes}
    assert len(kinds) == len(attributes), "a key is there twice"
    return {a.key: getattr(a.value, kinds[a.key]) for a in attributes}


def points_of(server):
    """(metric, resource, attributes, point) of all requests."""
    for message in requests_of(server):
        for resource in message.resource_metrics:
            about = values_of(resource.resource.attributes)
            for scope in resource.scope_metrics:
                assert scope.scope.name == "tacho"
                for metric in scope.metrics:
                    data = getattr(metric, metric.WhichOneof("data"))
                    for point in data.data_points:
                        yield metric, about, values_of(point.attributes), point


def found(server):
    points = {}
    for metric, about, attributes, point in points_of(server):
        pid = attributes.pop("process.pid", None)
        (instance,) = attributes.values() or [None]
        values = points.setdefault((metric.name.removeprefix("tacho."), about["host.name"], instance, pid), {})
        assert point.time_unix_nano not in values, "a point is there twice"
        values[point.time_unix_nano] = getattr(point, point.WhichOneof("value"))
    return points


def wanted(job, *options):
    return {key[1:]: values for key, values in exported(job, METRICS, *options).items()}


def to(server):
    return f"otlp={server.url}"


def test_every_value_comes(server, job):
    push("--to", to(server), "--every", "0", "-m", ",".join(METRICS), job)
    same_points(found(server), wanted(job))


def test_kinds_and_units(server, job):
    """Counters are cumulative monotonic sums, of the job since its start and of the kernel since boot; levels are gauges."""
    push("--to", to(server), "--every", "0", "-m", ",".join(METRICS), job)
    summary = recorder.show(job)
    kinds = {}
    for metric, about, _, point in points_of(server):
        kind = metric.WhichOneof("data")
        kinds[metric.name] = (kind, metric.unit)
        if kind == "sum":
            assert metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2
            assert 0 < point.start_time_unix_nano <= point.time_unix_nano
        assert about == {"host.name": summary["host"], "service.name": "sh", **{k: v for k, v in about.items() if k == "tacho.container"}}
    assert kinds["tacho.tree.cpu"] == ("sum", "s") and kinds["tacho.tree.cores"] == ("gauge", "1")
    assert kinds["tacho.net.rx.bytes"] == ("sum", "By") and kinds["tacho.proc.mem.rss"] == ("gauge", "By")
    starts = {m.name: p.start_time_unix_nano for m, _, _, p in points_of(server)}
    assert starts["tacho.net.rx.bytes"] < starts["tacho.tree.cpu"] <= min(min(v) for v in wanted(job).values())


def test_resources_and_headers_from_the_variables(server, job):
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": server.url + "/",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-team=data, authorization = Bearer%20top-secret ,broken",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test%2Cstage,service.name=lost,host.name=other,=x",
        "OTEL_SERVICE_NAME": "trainer",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
    }
    done = push("--to", "otlp", "--label", "queue=gpu", job, env=env)
    (about,) = {tuple(sorted(about.items())) for _, about, _, _ in points_of(server)}
    about = dict(about)
    about.pop("tacho.container", None)
    assert about == {"deployment.environment.name": "test,stage", "service.name": "trainer", "queue": "gpu",
                     "host.name": recorder.show(job)["host"]}
    assert {r.headers["authorization"] for r in server.requests} == {"Bearer top-secret"}
    assert {r.headers["x-team"] for r in server.requests} == {"data"}
    assert {r.headers["content-encoding"] for r in server.requests} == {"gzip"}
    kept = b"".join(path.read_bytes() for path in job.parent.glob("job.push-otlp*"))
    assert b"top-secret" not in kept + done.stderr


def test_endpoint_of_metrics_is_taken_as_it_is(server, job):
    push("--to", "otlp", "-m", "tree.cpu", job, env={"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": server.url + "/v1/metrics?x=1",
                                                     "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    assert {r.path for r in server.requests} == {"/v1/metrics?x=1"}


def test_grpc_is_said_to_be_unknown(job):
    env = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4317"}
    assert b"grpc" in push("--to", "otlp", job, env=env, status=2).stderr


def test_partial_success_is_final(server, job):
    """What the server rejects is counted, said once in its words, and not sent again."""
    server.answer = hostile.says(200, b'{"partialSuccess":{"rejectedDataPoints":"2","errorMessage":"two \\u001b[1m bad"}}')
    done = push("--to", to(server), "--every", "0", "-m", "tree.cpu,tree.cores", job, status=1)
    assert done.stderr.count(b"two \\x1b[1m bad") == 1, done.stderr
    assert len(server.requests) == 1
    push("--to", to(server), "--every", "0", "-m", "tree.cpu,tree.cores", job)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_tried_again(server, job, status):
    left = [hostile.says(status)]
    server.answer = lambda *a: (left.pop() if left else hostile.empty_json)(*a)
    push("--to", to(server), "--every", "0", "-m", "tree.cpu", job)
    assert len(server.requests) == 2
    assert server.requests[0].body == server.requests[1].body


@pytest.mark.parametrize("status", [500, 501])
def test_not_tried_again_and_not_lost(server, job, status):
    server.answer = hostile.says(status, b"broken")
    assert b"broken" in push("--to", to(server), "--every", "0", "-m", ",".join(METRICS), job, status=1).stderr
    assert len(server.requests) == 1
    server.requests.clear()
    server.answer = hostile.empty_json
    push("--to", to(server), "--every", "0", "-m", ",".join(METRICS), job)
    same_points(found(server), wanted(job))


# ---- names of the conventions ----


def conventions():
    """Name -> unit and instrument, as PyPI's opentelemetry-semantic-conventions has them."""
    known = {}
    for module in ("system", "process", "hw"):
        names = reader(f"opentelemetry.semconv._incubating.metrics.{module}_metrics")
        known.update({v: k for k, v in vars(names).items() if k.isupper() and isinstance(v, str)})
    return known


def test_semconv(server, job):
    """Every name is one of the conventions, and none of those that they gave up; attributes as well."""
    push("--to", to(server), "--semconv", "--every", "0", job)
    known = conventions()
    keys = set()
    for module in ("system", "cpu", "disk", "network", "process", "hw"):
        names = reader(f"opentelemetry.semconv._incubating.attributes.{module}_attributes")
        keys |= {v for k, v in vars(names).items() if k.isupper() and isinstance(v, str)}
    seen, sums, points = set(), {}, set()
    for metric, about, attributes, point in points_of(server):
        assert metric.name in known, metric.name
        assert attributes.keys() <= keys, attributes
        kind = metric.WhichOneof("data")
        sums[metric.name] = kind == "sum" and metric.sum.is_monotonic
        seen.add(metric.name)
        one = (metric.name, tuple(sorted(attributes.items())), point.time_unix_nano)
        assert one not in points
        points.add(one)
    assert {"process.cpu.time", "process.memory.usage", "system.cpu.time", "system.memory.usage", "system.network.io"} <= seen
    assert sums["process.cpu.time"] and sums["system.cpu.time"] and not sums["process.memory.usage"]
    modes = {a["cpu.mode"] for m, _, a, _ in points_of(server) if m.name == "system.cpu.time"}
    assert {"user", "system", "idle"} <= modes
    same = {p.time_unix_nano: p.as_double for m, _, _, p in points_of(server) if m.name == "process.cpu.time"}
    assert same == next(v for k, v in exported(job, ["tree.cpu"]).items() if k[1] == "tree.cpu")


# ---- a run in progress ----


def test_live_run_with_the_server_gone_for_a_while(tmp_path):
    path = tmp_path / "live.tacho"
    with Hostile(hostile.empty_json) as server:
        words = ("--to", to(server), "--every", "0", "-m", ",".join(METRICS), path)
        with recorder.lasting(sinks.LASTING, "-i", "50ms", output=path):
            recorder.until(lambda: recorder.shown(path), "there is a recording")
            pusher = sinks.following(*words, stderr=subprocess.PIPE)
            sinks.growing(path, "otlp", 100)
            refused = []

            def later(connection, request):
                refused.append(request)
                hostile.says(503, b"later")(connection, request)

            server.answer = later
            recorder.until(lambda: len(refused) > 1, "it is tried again")
            server.answer = hostile.empty_json
            before = json.loads(path.with_suffix(".push-otlp").read_text())["points"]
            sinks.growing(path, "otlp", before + 50)
        sinks.ended(pusher)
        server.requests = [one for one in server.requests if not any(one is other for other in refused)]
        same_points(found(server), wanted(path))


# ---- the collector ----


def test_collector(tmp_path, server, job):
    """It takes every point, and hands on what was meant."""
    if not COLLECTOR.exists():
        pytest.skip("the collector is not there: `./dev test` builds it with Go into .dev/otelcol")
    port = sinks.free_port()
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(port=port, url=f"{server.url}/v1/metrics"))
    url = f"http://127.0.0.1:{port}"
    collector = sinks.Server([COLLECTOR, f"--config=file:{config}"], url, lambda: sinks.is_open(port), tmp_path / "log")
    try:
        push("--to", f"otlp={url}", "--every", "0", "-m", ",".join(METRICS), job, env={"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"})
    finally:
        collector.stop()
    same_points(found(server), wanted(job))
