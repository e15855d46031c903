"""Servers that are slow, wrong or hostile: what they do costs the pusher neither memory nor a value, and comes out of it as
a message that a terminal can show. Used through the sink `influx`: the requests are the same for all."""

import re
import resource
import socket
import subprocess

import pytest

import hostile_server as hostile
import recorder
import sinks
from hostile_server import Hostile
from sinks import exported, push

METRICS = ("tree.cpu", "tree.processes")
MEMORY = 600 << 20  # of addresses; the libraries alone take a third of it


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return sinks.record(tmp_path_factory.mktemp("run") / "job.tacho")


@pytest.fixture
def server(job):
    for state in job.parent.glob("*.push-*"):
        state.unlink()
    with Hostile() as it:
        yield it


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def send(server, job, *options, status=1, timeout="1s"):
    """One try, with little memory."""
    small = {} if "asan" in recorder.TACHO else {"preexec_fn": limited}
    done = push("--to", f"influx={server.url}?db=x", "--every", "0", "-m", ",".join(METRICS), "--retries", "0", "--timeout", timeout,
                *options, job, status=status, **small)
    text = done.stderr.decode()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text), "control characters"
    assert len(text) < 2000
    return text


def lines_of(server):
    return [line for request in server.requests for line in request.text.decode().splitlines()]


def fields_of(lines):
    """{(time, field): value}; none may be there twice."""
    found = {}
    for line in lines:
        _, fields, stamp = line.split(" ")
        for one in fields.split(","):
            name, value = one.split("=")
            assert (int(stamp), name) not in found
            found[int(stamp), name] = float(value.rstrip("i"))
    return found


def wanted(job):
    points = exported(job, METRICS)
    return {(stamp, key[1]): value for key, values in points.items() for stamp, value in values.items()}


OK = b"HTTP/1.1 200 OK\r\n"

BAD = {
    "no answer": hostile.nothing,
    "closed": hostile.closes,
    "garbage": hostile.sends(bytes(range(256)) * 40),
    "escape sequences": hostile.says(500, b"\x1b[2J\x1b]0;evil\x07\x00\xff no \x9b such"),
    "a page that says all is well": hostile.says(200, b"<html>welcome</html>"),
    "a page": hostile.says(503, b"<html><body>" + b"x" * 100000),
    "a redirection to itself": hostile.says(302, headers=b"Location: /write?db=x\r\n"),
    "a redirection elsewhere": hostile.says(307, headers=b"Location: http://127.0.0.1:1/\r\n"),
    "a redirection to a file": hostile.says(301, headers=b"Location: file:///etc/passwd\r\n"),
    "endless headers": hostile.endless(OK, b"X-Filler: " + b"f" * 5000 + b"\r\n"),
    "one endless header": hostile.endless(OK + b"X-Filler: ", b"f" * 65536),
    "an endless status": hostile.endless(b"HTTP/1.1 200 ", b"f" * 65536),
    "gigabytes": hostile.endless(OK + b"Content-Length: 99999999999\r\n\r\n", b"x" * 65536),
    "endless chunks": hostile.endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"8000\r\n" + b"x" * 32768 + b"\r\n"),
    "a body without end": hostile.endless(b"HTTP/1.0 500 x\r\n\r\n", b"\x00" * 65536),
    "wrong chunks": hostile.sends(OK + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\nxx\r\n"),
    "a huge chunk": hostile.sends(OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\nxx\r\n"),
    "a negative length": hostile.sends(OK + b"Content-Length: -5\r\n\r\nxx"),
    "too short": hostile.sends(OK + b"Content-Length: 500\r\n\r\nxx"),
    "cut off in its head": hostile.sends(OK + b"Content-Len"),
    "cut off behind its head's first line": hostile.sends(OK),
    "100 for ever": hostile.endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "103 for ever": hostile.endless(b"", b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" * 100),
    "a drip": hostile.drip(OK + b"X: " + b"y" * 10000, 0.02),
    "HTTP/0.9": hostile.sends(b"all is well\n"),
    "status 0": hostile.sends(b"HTTP/1.1 000 x\r\nContent-Length: 0\r\n\r\n"),
    "status 999": hostile.says(999, b"what?"),
    "Retry-After for ever": hostile.says(503, headers=b"Retry-After: 99999999999999999999\r\n"),
    "compressed": hostile.says(500, b"\x1f\x8b" + b"\x00" * 500, headers=b"Content-Encoding: gzip\r\n"),
}


@pytest.mark.parametrize("what", BAD)
def test_ill_answers(server, job, what):
    """They are said in one message, nothing is taken for sent, and the next try brings everything."""
    server.answer = BAD[what]
    text = send(server, job)
    assert "influx" in text and "values sent" not in text, text
    assert "root:" not in text
    del server.requests[:]
    server.answer = hostile.ok
    send(server, job, status=0)
    assert fields_of(lines_of(server)) == wanted(job)


def test_what_is_refused_is_said_in_the_servers_words_and_costs_few_requests(server, job):
    server.answer = hostile.says(400, b"no \x1b[31m thank you")
    text = send(server, job)
    assert text.count("thank you") == 1 and "400" in text and r"\x1b[31m" in text
    assert len(server.requests) < 300


def test_a_server_that_was_closed_takes_nothing():
    """Else its thread takes requests that are meant for the next server."""
    with Hostile() as server:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 204")
        assert len(server.requests) == 1
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))


def test_connections_that_are_refused(job):
    server = Hostile()
    server.socket.close()
    text = send(server, job)
    assert "refused" in text.lower() or "connect" in text.lower()


def test_unknown_host(job):
    server = Hostile()
    server.url = "http://no-such-host.invalid:8086"
    assert "resolve" in send(server, job).lower()


def test_waits_as_long_as_it_is_told(server, job):
    """429 with Retry-After, then all is well: nothing is lost and nothing is sent twice that was taken."""
    left = [hostile.says(429, b"slow down", headers=b"Retry-After: 1\r\n"), hostile.says(500), hostile.closes]
    server.answer = lambda connection, request: (left.pop(0) if left else hostile.ok)(connection, request)
    push("--to", f"influx={server.url}?db=x", "--every", "0", "-m", ",".join(METRICS), job)
    assert not left
    del server.requests[:3]
    assert fields_of(lines_of(server)) == wanted(job)


# ---- TLS ----


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Of 127.0.0.1, signed by itself; key and certificate in one file."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    key = path.with_suffix(".key")
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=test",
                           "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", path], capture_output=True)
    assert done.returncode == 0, done.stderr
    path.write_bytes(path.read_bytes() + key.read_bytes())
    return path


def test_certificates(job, certificate):
    """One that nothing vouches for is not accepted; with its own authority it is; with INFLUX_SKIP_VERIFY any is."""
    words = ("--every", "0", "-m", ",".join(METRICS), "--retries", "0", job)
    with Hostile(certificate=certificate) as server:
        target = f"influx={server.url}?db=tls"
        done = push("--to", target, *words, status=1)
        assert b"certificate" in done.stderr.lower() and not server.requests
        push("--to", target, *words, env={"SSL_CERT_FILE": str(certificate)})
        assert fields_of(lines_of(server)) == wanted(job)
        del server.requests[:]
        push("--to", target + "2", *words, env={"INFLUX_SKIP_VERIFY": "true"})
        assert fields_of(lines_of(server)) == wanted(job)
        done = push("--to", "otlp", *words, status=2, env={"OTEL_EXPORTER_OTLP_ENDPOINT": server.url,
                                                           "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere/ca.pem"})
        assert b"/nowhere/ca.pem" in done.stderr


def test_a_server_for_another_name(job, certificate):
    with Hostile(certificate=certificate) as server:
        done = push("--to", f"influx=https://localhost:{server.port}?db=x", "-m", "tree.cpu", "--retries", "0", job, status=1,
                    env={"SSL_CERT_FILE": str(certificate)})
        assert b"localhost" in done.stderr and not server.requests
