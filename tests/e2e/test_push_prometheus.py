"""`tacho push --to prometheus`, `--listen` and `--textfile`, with Prometheus, VictoriaMetrics and node_exporter themselves: what
they have is what `tacho export` says, value by value and with its times. And the section of docs/sinks.md, line by line."""

import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.parse
from pathlib import Path

import pytest

from exported import export, reader, tool
from push_servers import Between, Server, clean, fetch, free_port
from recorder import TACHO, lasting, run, start, until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sinks.md"
METRICS = ("mem.available", "load.1m", "tree.cores", "proc.mem.rss", "proc.io.write_bytes", "cpu.busy")
CHOICE = [word for metric in METRICS for word in ("-m", metric)]
VICTORIA = 1e-11


def need_push():
    if not (Path(TACHO).parent / "tacho-push").exists():
        pytest.skip("tacho-push was not built (-Dpush=disabled)")


def push(*words, status=0, **env):
    done = run("push", *words, env=clean(**env))
    assert done.returncode == status, done.stderr.decode(errors="replace")
    return done.stderr.decode(errors="replace")


def pusher(*words, **env):
    return start("push", "--follow", *words, stderr=subprocess.PIPE, env=clean(**env))


def ends_well(process):
    said = process.communicate()[1].decode(errors="replace")
    assert process.returncode == 0, said
    return said


# ---- what is expected: by the text that exports make ----


def expected(recording, folder, *options):
    """{name: {ms: value}}"""
    text = export(recording, "openmetrics", folder / f"{Path(recording).name}.openmetrics", "--per", "node", *options).read_text()
    found = {}
    for line in text.splitlines():
        if line[0] != "#":
            name, value, seconds = re.match(r"(\w+)(?:\{.*\})? (\S+) (\S+)$", line).groups()
            whole, _, part = seconds.partition(".")
            found.setdefault(name, {})[int(whole) * 1000 + int(part.ljust(9, "0")[:6] or 0) // 1000] = float(value)
    return {name: values for name, values in found.items() if "_rate_" not in name}  # servers make rates of counters themselves


def run_label(recording):
    said = run("push", "--dry-run", "-m", "load.1m", "--to", "prometheus=http://localhost", recording, env=clean()).stdout.decode()
    found = re.search(r'start="([^"]+)"', said)
    return found and found[1]  # one that begins has none yet


def selector(recording):
    return f'{{start="{run_label(recording)}"}}'


def of_prometheus(server, recording):
    answer = server.json("/api/v1/query", query=f"{selector(recording)}[1000d]")
    found = {}
    for series in answer["data"]["result"]:
        name = series["metric"]["__name__"]
        assert name not in found, f"two series of {name}"
        times = [round(t * 1000) for t, _ in series["values"]]
        assert times == sorted(set(times)), f"{name}: times twice"
        found[name] = dict(zip(times, (float(v) for _, v in series["values"])))
    return found


def of_victoria(server, recording):
    fetch(f"{server.url}/internal/force_flush")
    status, body = fetch(f"{server.url}/api/v1/export?start=1&end={time.time() + 60}&match[]={urllib.parse.quote(selector(recording))}")
    assert status == 200
    found = {}
    for line in body.splitlines():
        series = json.loads(line)
        name = series["metric"]["__name__"]
        pairs = sorted((t, v) for t, v in zip(series["timestamps"], series["values"]) if v is not None)
        assert len(dict(pairs)) == len(pairs), f"{name}: times twice"
        found.setdefault(name, {}).update(pairs)
    return found


def same(found, wanted, about=0):
    """All that exports have, in the milliseconds of these servers; values beside them (.max) are of their names. VictoriaMetrics
    keeps some twelve digits of a value."""
    assert set(wanted) <= set(found)
    assert all(name.endswith(("_max_bytes", "_max")) for name in set(found) - set(wanted))
    for name, values in wanted.items():
        assert sorted(found[name]) == sorted(values), name
        assert found[name] == (pytest.approx(values, rel=about) if about else values), name


# ---- servers ----


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """It asks itself, as most do, so that it knows how late it is; and the endpoint of a run, when there is one."""
    need_push()
    folder = tmp_path_factory.mktemp("prometheus")
    port, listen = free_port(), free_port()
    (folder / "config.yml").write_text(f"""
global:
  scrape_interval: 250ms
scrape_configs:
  - job_name: itself
    static_configs:
      - targets: ["127.0.0.1:{port}"]
  - job_name: run
    authorization:
      credentials_file: {folder}/token
    static_configs:
      - targets: ["127.0.0.1:{listen}"]
""")
    words = ["prometheus", f"--config.file={folder}/config.yml", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}",
             "--web.enable-remote-write-receiver", "--storage.tsdb.retention.time=100y"]
    server = Server("prometheus", words, port, "/-/ready")
    server.folder, server.listen = folder, listen
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def victoria(tmp_path_factory):
    need_push()
    folder, port = tmp_path_factory.mktemp("victoria"), free_port()
    words = ["victoria-metrics", f"-storageDataPath={folder}", f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=10y",
             "-dedup.minScrapeInterval=1ms", "-memory.allowedPercent=10"]
    server = Server("victoria-metrics", words, port, "/health")
    yield server
    server.stop(signal.SIGKILL)


def a_run(folder, name="job.tacho"):
    done = run("run", "-q", "-i", "50ms", "-o", folder / name, "--", "sh", "-c",
               "for i in 1 2 3 4 5 6 7 8; do head -c 1000000 /dev/urandom | gzip >/dev/null; sleep 0.05; done")
    assert done.returncode == 0, done.stderr
    return folder / name


# ---- after the run ----


def test_backfill(prometheus, victoria, tmp_path):
    recording = a_run(tmp_path)
    wanted = expected(recording, tmp_path, *CHOICE)
    assert len(wanted) >= 5 and all(len(values) > 4 for values in wanted.values())
    for server, name, read, about in (prometheus, "p", of_prometheus, 0), (victoria, "v", of_victoria, VICTORIA):
        copy = tmp_path / f"{name}.tacho"
        shutil.copy(recording, copy)
        push("--to", f"prometheus={server.url}", "--every", "0", *CHOICE, copy)
        same(read(server, recording), wanted, about)
        said = push("--to", f"prometheus={server.url}", "--every", "0", *CHOICE, copy)
        assert "all was sent before" in said
        same(read(server, recording), wanted, about)


def test_labels(prometheus, tmp_path):
    recording = a_run(tmp_path)
    env = {"PROMETHEUS_REMOTE_WRITE_URL": prometheus.url}
    push("--to", "prometheus", "--label", "team=a \"b\"\\c", "--label", "job=mine", recording, **env)
    labels = {tuple(sorted(series)) for series in prometheus.json("/api/v1/series", **{"match[]": selector(recording)})["data"]}
    assert labels == {("__name__", "host", "instance", "job", "run", "start", "team")}
    (series,) = prometheus.json("/api/v1/series", **{"match[]": f'tacho_load_1m{selector(recording)}'})["data"]
    assert (series["job"], series["run"], series["team"]) == ("mine", "sh", 'a "b"\\c')
    assert series["instance"] == series["host"]
    names = prometheus.json("/api/v1/series", **{"match[]": selector(recording)})["data"]
    assert 10 < len(names) < 60 and all("pid" not in series for series in names)
    said = push("--to", "prometheus", "--label", "host=x", "--every", "1s", recording, status=2, **env)
    assert "take another name" in said


def test_processes_when_asked(prometheus, tmp_path):
    recording = a_run(tmp_path)
    push("--to", f"prometheus={prometheus.url}", "--per", "process", "--every", "0", recording)
    found = prometheus.json("/api/v1/series", **{"match[]": selector(recording)})["data"]
    assert {"gzip", "sh"} <= {series.get("process") for series in found}
    assert all(series["pid"].isdigit() for series in found if "process" in series)


def test_credentials(victoria, tmp_path):
    recording = a_run(tmp_path)
    between = Between(victoria)
    secret = tmp_path / "secret"
    secret.write_text("t0ken-of-a-file\n")
    ways = [
        ({"PROMETHEUS_USERNAME": "u", "PROMETHEUS_PASSWORD": "p:w"}, "Basic dTpwOnc="),
        ({"PROMETHEUS_BEARER_TOKEN": "t0ken"}, "Bearer t0ken"),
        ({"PROMETHEUS_BEARER_TOKEN_FILE": str(secret)}, "Bearer t0ken-of-a-file"),
        ({"PROMETHEUS_USERNAME": "u", "PROMETHEUS_PASSWORD_FILE": str(secret)}, "Basic dTp0MGtlbi1vZi1hLWZpbGU="),
    ]
    try:
        said = ""
        for env, header in ways:
            between.demand = {"Authorization": header}
            Path(f"{recording.with_suffix('')}.push-prometheus").unlink(missing_ok=True)
            said += push("--to", f"prometheus={between.url}", recording, **env)
            headers = between.requests[-1][0]
            assert headers["Content-Encoding"] == "snappy" and headers["Content-Type"] == "application/x-protobuf"
            assert headers["X-Prometheus-Remote-Write-Version"] == "0.1.0" and headers["User-Agent"].startswith("tacho/")
        Path(f"{recording.with_suffix('')}.push-prometheus").unlink()
        said += push("--to", f"prometheus={between.url}", recording, status=1, PROMETHEUS_BEARER_TOKEN="wrong-t0ken")
        assert "401" in said
        kept = b"".join(path.read_bytes() for path in tmp_path.glob("job.push*"))
        assert kept and b"t0ken" not in kept and "t0ken" not in said and "p:w" not in said
    finally:
        between.close()
    missing = push("--to", f"prometheus={between.url}", recording, status=2, PROMETHEUS_BEARER_TOKEN_FILE="/nonexistent")
    assert "PROMETHEUS_BEARER_TOKEN_FILE: /nonexistent" in missing


def test_answers_that_are_lost(prometheus, tmp_path):
    """Prometheus has what was sent, and refuses it when it comes again."""
    recording = a_run(tmp_path)
    between = Between(prometheus)
    between.lose = lambda nr: nr in (1, 2)
    try:
        said = push("--to", f"prometheus={between.url}", "--every", "0", *CHOICE, recording)
    finally:
        between.close()
    assert "not taken" not in said and len(between.requests) > 4
    same(of_prometheus(prometheus, recording), expected(recording, tmp_path, *CHOICE))


def test_pushed_before_with_other_windows(prometheus, tmp_path):
    """What the server has of the run stays as it is; what is new is added, and the user is told."""
    recording = a_run(tmp_path)
    push("--to", f"prometheus={prometheus.url}", "--every", "0", *CHOICE, recording)
    Path(f"{recording.with_suffix('')}.push-prometheus").unlink()
    said = push("--to", f"prometheus={prometheus.url}", "--every", "70ms", *CHOICE, "-m", "mem.free", recording, status=1)
    assert "it was pushed there before" in said
    found = of_prometheus(prometheus, recording)
    assert len(found.pop("tacho_mem_free_bytes")) > 2
    same({k: v for k, v in found.items() if k != "tacho_mem_free_max_bytes"}, expected(recording, tmp_path, *CHOICE))


def test_too_old(prometheus, tmp_path):
    """Prometheus takes no samples of years ago. The commands that are told instead put the run there."""
    subprocess.run([tool("query_tool"), "long", tmp_path / "a b.tacho", "40", "2", "6"], check=True)
    until(lambda: prometheus.json("/api/v1/query", query="up")["data"]["result"], "it knows how late it is")
    env, said = clean(), run("push", "--to", f"prometheus={prometheus.url}", "a b.tacho", cwd=tmp_path, env=clean())
    assert said.returncode == 1
    said = said.stderr.decode()
    assert "out of bounds" in said
    command = re.search(r"tacho export .* DATA", said)[0]
    prometheus.stop()
    try:
        bin_folder = Path(TACHO).parent
        done = subprocess.run(["sh", "-c", command.replace("DATA", str(prometheus.folder / "data"))], cwd=tmp_path, capture_output=True,
                              env={**env, "PATH": f"{bin_folder}:{os.environ['PATH']}"})
        assert done.returncode == 0, done.stderr
    finally:
        prometheus.start()
    text = (tmp_path / "run.openmetrics").read_text()
    name, seconds = re.search(r"^(tacho_\w+)\{.*\} \S+ (\d+)", text, re.M).groups()
    found = prometheus.json("/api/v1/query", query=f"{name}[1h]", time=int(seconds) + 1800)["data"]["result"]
    assert sum(len(series["values"]) for series in found) == len(set(re.findall(rf"^({name}\{{.*\}}) \S+ (\d+\.?\d?\d?\d?)", text, re.M)))
    followed = run("push", "--follow", "--to", f"prometheus={prometheus.url}", "a b.tacho", cwd=tmp_path, env=env)
    assert followed.returncode == 1 and b"promtool tsdb create-blocks-from openmetrics" in followed.stderr  # and it ends


def test_no_receiver(tmp_path):
    need_push()
    port = free_port()
    (tmp_path / "config.yml").write_text("")
    server = Server("prometheus", ["prometheus", f"--config.file={tmp_path}/config.yml", f"--storage.tsdb.path={tmp_path}/data",
                                   f"--web.listen-address=127.0.0.1:{port}"], port, "/-/ready")
    try:
        said = push("--to", f"prometheus={server.url}", a_run(tmp_path), status=1)
        assert "--web.enable-remote-write-receiver" in said
    finally:
        server.stop(signal.SIGKILL)


def test_addresses(tmp_path):
    need_push()
    recording = a_run(tmp_path)
    assert "PROMETHEUS_REMOTE_WRITE_URL" in push("--to", "prometheus", recording, status=2)
    assert "http://" in push("--to", "prometheus=ftp://x", recording, status=2)
    assert "token-file" in push("--listen", "0", recording, status=2)
    assert "no address to listen on" in push("--listen", "x:y", "--token-file", tmp_path / "t", recording, status=2)
    assert ".prom" in push("--textfile", tmp_path / "x.txt", recording, status=2)
    assert "take no address" in push("--to", "prometheus=http://x", "--textfile", tmp_path / "x.prom", recording, status=2)


# ---- while it goes on ----


def samples_of(server, recording):
    return sum(map(len, of_prometheus(server, recording).values()))


def test_live_with_the_server_killed(prometheus, tmp_path):
    recording = tmp_path / "live.tacho"
    with lasting(["cat"], "-i", "50ms", output=recording):
        until(lambda: run("show", recording).returncode == 0 and run_label(recording), "it has begun")
        following = pusher("--to", f"prometheus={prometheus.url}", "--every", "0", *CHOICE, recording)
        for how in (signal.SIGKILL, signal.SIGTERM):
            before = samples_of(prometheus, recording)
            until(lambda: samples_of(prometheus, recording) > before + 50, "values have come")
            prometheus.stop(how)
            size = recording.stat().st_size
            until(lambda: recording.stat().st_size > size + 500, "the recording goes on meanwhile")
            prometheus.start()
            before = samples_of(prometheus, recording)
            until(lambda: samples_of(prometheus, recording) > before, "it goes on")
    ends_well(following)
    same(of_prometheus(prometheus, recording), expected(recording, tmp_path, *CHOICE))
    now = prometheus.json("/api/v1/query", query=f"{selector(recording)}")
    assert now["data"]["result"] == [], "the series end with the run"


def test_live_with_the_pusher_killed(prometheus, victoria, tmp_path):
    recording = tmp_path / "live.tacho"
    words = {server: ["--to", f"prometheus={server.url}", "--every", "0", *CHOICE, recording] for server in (prometheus, victoria)}
    with lasting(["cat"], "-i", "20ms", output=recording):
        until(lambda: run("show", recording).returncode == 0 and run_label(recording), "it has begun")
        for _ in range(5):
            before = samples_of(prometheus, recording)
            pushers = [pusher(*words[server]) for server in words]
            until(lambda: samples_of(prometheus, recording) > before, "values have come")
            for process in pushers:
                process.kill()
                process.communicate()
        pushers = [pusher(*words[server]) for server in words]
    for process in pushers:
        assert "not taken" not in ends_well(process)
    wanted = expected(recording, tmp_path, *CHOICE)
    same(of_prometheus(prometheus, recording), wanted)
    same(of_victoria(victoria, recording), wanted, VICTORIA)


def openmetrics(text):
    parser = reader("prometheus_client.openmetrics.parser")
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def listening(process):
    """The address that it tells."""
    for line in process.stderr:
        found = re.search(rb"http://\S+/metrics", line)
        if found:
            return found[0].decode()
    raise AssertionError("it told no address")


def test_listen(prometheus, tmp_path):
    recording, token = tmp_path / "live.tacho", prometheus.folder / "token"
    token.unlink(missing_ok=True)
    with lasting(["cat"], "-i", "50ms", output=recording):
        until(lambda: run("show", recording).returncode == 0, "it has begun")
        process = pusher("--listen", prometheus.listen, "--token-file", token, "--every", "200ms", "--linger", "5s", recording)
        url = listening(process)
        assert url == f"http://127.0.0.1:{prometheus.listen}/metrics"
        assert token.stat().st_mode & 0o777 == 0o600
        assert fetch(url)[0] == 401 and fetch(url, "x" * 64)[0] == 401
        secret = token.read_text().strip()
        until(lambda: fetch(url, secret)[0] == 200, "it has values")
        page = fetch(url, secret)[1].decode()
        found = openmetrics(page)
        assert {"tacho_load_1m", "tacho_mem_used_bytes"} <= set(found) and page.endswith("# EOF\n")
        assert all(sample.timestamp is None for family in found.values() for sample in family.samples)
        checked = subprocess.run(["promtool", "check", "metrics"], input=page.encode(), capture_output=True)
        assert checked.returncode in (0, 3), checked.stderr  # 3: it has wishes for names

        def scraped(name):
            return prometheus.json("/api/v1/query", query=f'{name}{{job="run"}}[1h]')["data"]["result"]

        until(lambda: scraped("tacho_mem_used_bytes") and len(scraped("tacho_mem_used_bytes")[0]["values"]) > 8, "Prometheus asks")
        (series,) = scraped("tacho_mem_used_bytes")
        assert series["metric"]["instance"] == f"127.0.0.1:{prometheus.listen}" and series["metric"]["run"] == "cat"
    until(lambda: "0" in [v for _, v in scraped("up")[0]["values"][-2:]], "the endpoint ends with the run")
    ends_well(process)
    # What it had to show.
    windows = run("push", "--dry-run", "--to", "prometheus=http://x", "--every", "200ms", recording, env=clean()).stdout.decode()
    shown = [float(v) for v in re.findall(r"^tacho_mem_used_bytes\{.*\} (\S+) \d+$", windows, re.M)]
    (series,) = scraped("tacho_mem_used_bytes")
    seen = [float(v) for _, v in series["values"]]
    assert set(seen) <= set(shown) and seen[-1] == shown[-1], "the last values were taken, too"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    """Of a run that waits."""
    need_push()
    folder = tmp_path_factory.mktemp("endpoint")
    with lasting(["cat"], "-i", "50ms", output=folder / "live.tacho"):
        until(lambda: run("show", folder / "live.tacho").returncode == 0, "it has begun")
        process = pusher("--listen", "0", "--token-file", folder / "token", "--every", "100ms", folder / "live.tacho")
        url = listening(process)
        token = (folder / "token").read_text().strip()
        until(lambda: fetch(url, token)[0] == 200, "it has values")
        yield url, token
        process.send_signal(signal.SIGTERM)
        process.communicate()


def connect(url):
    port = int(re.search(r":(\d+)/", url)[1])
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def answers(connection, nr):
    """So many answers with their bodies, from one connection."""
    file, found = connection.makefile("rb"), []
    for _ in range(nr):
        status = int(file.readline().split()[1])
        headers = {}
        for line in iter(file.readline, b"\r\n"):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        found.append((status, headers, file))
        if headers.get("x-skip") is None and nr > 1:
            file.read(int(headers["content-length"]))
    return found


def request(token, what="GET /metrics", more=""):
    return f"{what} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}\r\n".encode()


def test_requests_in_a_row(endpoint):
    url, token = endpoint
    with connect(url) as c:
        c.sendall(3 * request(token))
        assert [status for status, _, _ in answers(c, 3)] == [200, 200, 200]
        for byte in request(token):
            c.sendall(bytes([byte]))
        assert [status for status, _, _ in answers(c, 1)] == [200]


def test_head(endpoint):
    url, token = endpoint
    with connect(url) as c:
        c.sendall(request(token, "HEAD /metrics", "Connection: close\r\n"))
        (status, headers, file), = answers(c, 1)
        assert status == 200 and int(headers["content-length"]) > 100 and file.read() == b""


def test_bad_requests(endpoint):
    url, token = endpoint
    noise = random.Random(5).randbytes(20000)
    for bad, status in (b"\x16\x03\x01\x02\x00\r\n\r\n", 400), (b"GET /metrics HTTP/1.1\r\n\r\n", 400), (b"A" * 10000, 431), \
            (b"GET /\0 HTTP/1.1\r\n", 400), (request("wrong") + noise, 401), (request(token, "PUT /metrics"), 405), \
            (request(token, "GET /etc/passwd"), 404), (request(token, "POST /metrics", "Content-Length: 100000\r\n") + noise, 413):
        with connect(url) as c:
            c.sendall(bad)
            (found, headers, file), = answers(c, 1)
            assert (found, headers["connection"]) == (status, "close"), bad[:60]
            assert token.encode() not in file.read()
    with connect(url) as c:
        c.sendall(noise)  # any answer, or none
    assert fetch(url, token)[0] == 200


def test_slow_clients_lock_nobody_out(endpoint):
    url, token = endpoint
    slow = [connect(url) for _ in range(100)]
    try:
        for i, c in enumerate(slow):
            try:
                c.sendall(b"GET /metrics HTTP/1.1\r\nX: " if i % 2 else 50 * request(token))  # of the answers nothing is read
            except OSError:
                pass
        for _ in range(20):
            assert fetch(url, token)[0] == 200
    finally:
        for c in slow:
            c.close()


def test_nothing_to_tell_yet(tmp_path):
    need_push()
    recording = tmp_path / "live.tacho"
    with lasting(["cat"], "-i", "50ms", output=recording):
        until(lambda: run("show", recording).returncode == 0, "it has begun")
        process = pusher("--listen", "0", "--token-file", tmp_path / "token", "--every", "1h", recording)
        url = listening(process)
        assert fetch(url, (tmp_path / "token").read_text().strip())[0] == 503
        process.send_signal(signal.SIGTERM)
        process.communicate()


# ---- a file for node_exporter ----


def test_textfile(tmp_path):
    need_push()
    folder, port = tmp_path / "textfiles", free_port()
    folder.mkdir()
    recording, file = tmp_path / "live.tacho", folder / "job.prom"
    server = Server("prometheus-node-exporter", ["prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                                                 f"--collector.textfile.directory={folder}", f"--web.listen-address=127.0.0.1:{port}"],
                    port, "/metrics")
    try:
        with lasting(["cat"], "-i", "50ms", output=recording):
            until(lambda: run("show", recording).returncode == 0, "it has begun")
            process = pusher("--textfile", file, "--every", "100ms", "--linger", "1s", *CHOICE, "-m", "net.rx", recording)
            until(file.exists, "the file is there")
            assert file.stat().st_mode & 0o777 == 0o644
            page = until(lambda: (lambda text: "tacho_load_1m" in text and text)(fetch(f"{server.url}/metrics")[1].decode()), "it is read")
            assert re.search(r"^node_textfile_scrape_error 0$", page, re.M)
            assert re.search(r'^tacho_mem_available_bytes\{host="[^"]+",run="cat",start="[^"]+"\} \S+$', page, re.M)
            assert re.search(r"^# TYPE tacho_proc_io_write_bytes_total counter$", page, re.M)
            first = file.read_text()
            checked = subprocess.run(["promtool", "check", "metrics"], input=first.encode(), capture_output=True)
            assert checked.returncode in (0, 3), checked.stderr
            until(lambda: file.read_text() != first, "the file is replaced")
            assert [path.name for path in folder.iterdir() if path.suffix == ".prom"] == ["job.prom"]
        ends_well(process)
        assert list(folder.iterdir()) == [], "a run that has ended leaves nothing"
        push("--textfile", file, *CHOICE, recording)
        text = file.read_text()
        assert "tacho_load_1m" in text, "of a run that had ended the last values stay"
        wanted = expected(recording, tmp_path, *CHOICE)
        last = {name: float(value) for name, value in re.findall(r"^(\w+)\{.*\} (\S+)$", text, re.M)}
        counters = [name for name in wanted if name.endswith("_total")]
        assert counters and all(last[name] == wanted[name][max(wanted[name])] for name in counters)
        page = fetch(f"{server.url}/metrics")[1].decode()
        assert re.search(r"^node_textfile_scrape_error 0$", page, re.M)
    finally:
        server.stop(signal.SIGKILL)


def test_textfile_that_cannot_be_written(tmp_path):
    need_push()
    said = push("--textfile", tmp_path / "none" / "x.prom", a_run(tmp_path), status=1)
    assert "No such file or directory" in said


# ---- snappy ----


def test_others_uncompress_what_we_compress():
    raw = reader("cramjam").snappy
    other = reader("snappy")
    noise, blocks = random.Random(11), [b"", b"a", b"abcd" * 30000]
    for _ in range(1500):
        size, letters = noise.choice([10, 100, 3000, 70000]), noise.choice([1, 2, 20, 256])
        block = bytearray(noise.choices(range(letters), k=noise.randrange(size)))
        for _ in range(noise.randrange(20)):  # pieces again
            at, to, length = (noise.randrange(len(block) + 1) for _ in range(3))
            block[to : to + length] = block[at : at + length]
        blocks.append(bytes(block))
    given = b"".join(struct.pack("<I", len(block)) + block for block in blocks)
    done = subprocess.run([tool("snappy_tool")], input=given, stdout=subprocess.PIPE, check=True)
    at = 0
    for i, block in enumerate(blocks):
        (size,) = struct.unpack_from("<I", done.stdout, at)
        packed = done.stdout[at + 4 : at + 4 + size]
        at += 4 + size
        assert bytes(raw.decompress_raw(packed)) == block
        if i % 10 == 0:
            assert other.uncompress(packed) == block
    assert at == len(done.stdout)


# ---- docs/sinks.md ----


def recipe(kind):
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    return text


@pytest.fixture
def place(tmp_path):
    """A user's directory, with tacho in the PATH and something to train."""
    (tmp_path / "train.py").write_text("import time\nfor i in range(25):\n    sum(range(100000)); time.sleep(0.1)\n")
    return tmp_path, {"cwd": tmp_path, "env": clean(PATH=f"{Path(TACHO).parent}:{os.environ['PATH']}")}


def test_recipe_of_remote_write(prometheus, place):
    folder, around = place
    text = recipe("prometheus").replace("http://localhost:9090", prometheus.url)
    done = subprocess.run(["sh", "-c", text], capture_output=True, **around)
    assert done.returncode == 0, done.stderr
    recording = folder / "train.tacho"
    until(lambda: b"all sent" in run("push", "--status", recording).stdout, "it is sent")
    found = of_prometheus(prometheus, recording)
    assert {"tacho_tree_cores", "tacho_mem_used_max_bytes"} <= set(found)


def test_recipe_of_old_runs(tmp_path, place):
    need_push()
    folder, around = place
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed (Debian: prometheus)")
    subprocess.run([tool("query_tool"), "long", folder / "old.tacho", "40", "2", "6"], check=True)
    text = recipe("prometheus-old").replace("/var/lib/prometheus/metrics2", str(folder / "data"))
    done = subprocess.run(["sh", "-e", "-c", text], capture_output=True, **around)
    assert done.returncode == 0 and list((folder / "data").glob("*/chunks")), done.stderr


def test_recipe_of_the_endpoint(tmp_path, place):
    """Prometheus with the lines of the page."""
    need_push()
    folder, around = place
    listen, port = free_port(), free_port()
    config = recipe("yaml").replace("/etc/prometheus/tacho-token", str(folder / "tacho-token")).replace("9464", str(listen))
    (folder / "config.yml").write_text("global:\n  scrape_interval: 100ms\n" + config)
    server = Server("prometheus", ["prometheus", f"--config.file={folder}/config.yml", f"--storage.tsdb.path={folder}/data",
                                   f"--web.listen-address=127.0.0.1:{port}"], port, "/-/ready")
    try:
        with lasting(["cat"], "-i", "50ms", output=folder / "train.tacho"):
            until(lambda: run("show", folder / "train.tacho").returncode == 0, "it has begun")
            text = recipe("prometheus-listen").replace("9464", str(listen)).replace("push", "push --every 100ms", 1)
            process = subprocess.Popen(["sh", "-c", f"exec {text}"], stderr=subprocess.DEVNULL, **around)
            until(lambda: server.json("/api/v1/query", query="tacho_load_1m")["data"]["result"], "it has values")
        assert process.wait() == 0
    finally:
        server.stop(signal.SIGKILL)


def test_recipe_of_the_file(tmp_path, place):
    need_push()
    folder, around = place
    with lasting(["cat"], "-i", "50ms", output=folder / "train.tacho"):
        until(lambda: run("show", folder / "train.tacho").returncode == 0, "it has begun")
        text = recipe("prometheus-textfile").replace("/var/lib/prometheus/node-exporter", str(folder)).replace("push", "push --every 100ms", 1)
        process = subprocess.Popen(["sh", "-c", f"exec {text}"], stderr=subprocess.DEVNULL, **around)
        until((folder / "train.prom").exists, "the file is there")
        process.send_signal(signal.SIGTERM)
        process.wait()
        assert not (folder / "train.prom").exists()
