"""Servers that `tacho push` sends to, as its tests start them: on loopback, on a free port, in a directory of their own."""

import http.client
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import urllib.parse
import urllib.request

import pytest

from recorder import until


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url, token=None):
    """Status and body."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


class Server:
    """A program that serves HTTP: started, killed, started again on what it has."""

    def __init__(self, package, words, port, ready):
        if not shutil.which(words[0]):
            pytest.skip(f"{words[0]} is not installed (Debian: {package})")
        self.words, self.port, self.ready = list(map(str, words)), port, ready
        self.url = f"http://127.0.0.1:{port}"
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: fetch(self.url + self.ready)[0] == 200, f"{self.words[0]} is ready")

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()

    def restart(self, how=signal.SIGTERM):
        self.stop(how)
        self.start()

    def json(self, path, **query):
        status, body = fetch(f"{self.url}{path}?{urllib.parse.urlencode(query)}")
        assert status == 200, body
        return json.loads(body)


class Between:
    """Stands between a pusher and a server. What comes is noted; `lose`: it is brought there, and its answer is lost."""

    def __init__(self, server):
        between = self
        self.requests, self.lose, self.demand = [], lambda nr: False, {}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                between.requests.append((dict(self.headers), body))
                if any(self.headers.get(name) != value for name, value in between.demand.items()):
                    self.send_error(401)
                    return
                to = http.client.HTTPConnection("127.0.0.1", server.port)
                try:
                    to.request("POST", self.path, body, {name: value for name, value in self.headers.items() if name != "Host"})
                    answer = to.getresponse()
                    words = answer.read()
                except OSError:
                    self.close_connection = True
                    return
                if between.lose(len(between.requests)):
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(words)))
                self.end_headers()
                self.wfile.write(words)

            def log_message(self, *words):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def clean(**variables):
    """The environment without what pushers look for, and with these."""
    names = ("PROMETHEUS_", "MLFLOW_", "INFLUX", "OTEL_", "TENSORBOARD")
    return {**{k: v for k, v in os.environ.items() if not k.startswith(names)}, **variables}
