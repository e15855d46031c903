"""A `tacho serve` for tests: started, asked over HTTP, its events read and their numbers unpacked."""

import base64
import contextlib
import csv
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time

from recorder import PATIENCE_S, TACHO, run, until


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Server:
    """`tacho serve WORDS --port 0`, or with socket=PATH on a unix socket."""

    def __init__(self, *words, token_file=None, port=0, sock=None, tmp=None, env=None, program=(TACHO, "serve")):
        self.socket = sock
        where = ["--socket", sock] if sock else ["--port", port]
        where += ["--token-file", token_file] if token_file else []
        self.process = subprocess.Popen(
            [*program, *map(str, where), *map(str, words)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, **({"TMPDIR": str(tmp)} if tmp else {}), **(env or {})})
        self.said = self.process.stderr.readline().decode()
        assert self.said.startswith("tacho serve: "), self.said + self.process.stderr.read().decode()
        second = self.process.stderr.readline().decode()
        self.said += second
        self.token = self.port = self.cookie = None
        if not sock:
            self.port, self.token = re.search(r"http://127\.0\.0\.1:(\d+)/#(\S+)", second).groups()
            self.port = int(self.port)
            self.cookie = self.sign_in()

    @property
    def pid(self):
        return self.process.pid

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(timeout=PATIENCE_S)
        self.process.stderr.close()
        return status

    def sign_in(self):
        answer = self.ask("login", headers={"Authorization": f"Bearer {self.token}"}, cookie=False)
        assert answer.status == 204, answer.text
        return answer.headers["Set-Cookie"].split(";")[0]

    def connection(self):
        return UnixConnection(self.socket) if self.socket else http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def open(self, path, headers=None, method="GET", cookie=True):
        """The answer, whose body was not read."""
        connection = self.connection()
        headers = dict(headers or {})
        if cookie and self.cookie:
            headers["Cookie"] = self.cookie
        connection.request(method, "/" + path, headers=headers)
        return connection.getresponse()

    def ask(self, path, headers=None, method="GET", cookie=True):
        answer = self.open(path, headers, method, cookie)
        answer.body = answer.read()
        answer.text = answer.body.decode(errors="replace")
        return answer

    def raw(self, data, end=True):
        """What comes back for these bytes until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as s:
            back = b""
            with contextlib.suppress(OSError):
                s.sendall(data)
                if end:
                    s.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                while part := s.recv(65536):
                    back += part
            return back

    def ids(self):
        return re.findall(r'<tr id="run-([0-9a-f]{16})"', self.ask("").text)

    def page(self, run_id):
        """The page, when it is made."""
        def made():
            answer = self.ask(f"run/{run_id}/")
            assert answer.status == 200, answer.text
            return answer.text if 'id="data"' in answer.text else None
        return until(made, "the page of the run")

    def data(self, run_id):
        return data_of(self.page(run_id))

    def events(self, run_id, after=None, last=None):
        """A stream of (event, id, data)."""
        query = "" if after is None else f"?after={after}"
        answer = self.open(f"run/{run_id}/events{query}", {"Accept": "text/event-stream", **({"Last-Event-ID": str(last)} if last is not None else {})})
        assert answer.status == 200, (answer.status, answer.read())
        assert answer.headers["Content-Type"] == "text/event-stream"
        return Events(answer)

    def ticks(self):
        """CPU time that it has used so far, of all its threads."""
        fields = open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def switches(self):
        """How often its threads have gone to sleep."""
        count = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            status = open(f"/proc/{self.pid}/task/{task}/status").read()
            count += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M)[1])
        return count

    def memory(self):
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{self.pid}/status").read())[1]) * 1024


class Events:
    def __init__(self, answer):
        self.answer = answer

    def __iter__(self):
        return self

    def __next__(self):
        """The next event but those that only say that the stream lives."""
        event, number, data = None, None, []
        while True:
            line = self.answer.readline()
            if not line:
                raise StopIteration
            line = line.decode().rstrip("\n")
            if not line:
                if event and event != "alive":
                    return event, number, json.loads("\n".join(data))
                event, number, data = None, None, []
            elif line.startswith("event: "):
                event = line[7:]
            elif line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("data: "):
                data.append(line[6:])

    def until(self, kind):
        """All events up to the first of that kind, with it."""
        taken = []
        for one in self:
            taken.append(one)
            if one[0] == kind:
                return taken
        raise AssertionError(f"no {kind} among {[e[0] for e in taken]}")

    def close(self):
        self.answer.close()


def data_of(page):
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1]
    return json.loads(text)


def unpack(packed, count):
    """Numbers of docs/page-data.md; None: nothing there."""
    raw = base64.b64decode(packed["q"])
    values = struct.unpack(f"<{len(raw) // 2}H", raw)
    every = packed.get("every", 1)
    out = [None] * count
    for i, q in enumerate(values):
        if q != 65535:
            for k in range(every):
                if packed["at"] + i * every + k < count:
                    out[packed["at"] + i * every + k] = packed["lo"] + q * (packed["hi"] - packed["lo"]) / 65534
    return out


def times(node):
    t = node["times"]
    return t["values"] if "values" in t else [t["from"] + i * t["step"] for i in range(t["n"])]


def points(data, panel, name, node=0):
    """(time, value) of a line, of a page or an event."""
    at = times(data["nodes"][node])
    for p in data["panels"]:
        for line in p["lines"] if p["id"] == panel else []:
            if line["name"] == name and line["node"] == node:
                return [(t, v) for t, v in zip(at, unpack(line["mean"], len(at))) if v is not None]
    return []


def series(recording, metric, *words):
    """(time, value) as `tacho show --series` has them."""
    done = run("show", "--csv", "--series", metric, *words, recording)
    assert done.returncode == 0, done.stderr.decode()
    rows = list(csv.DictReader(done.stdout.decode().splitlines()))
    return [(float(row["time_s"]), float(row[metric])) for row in rows if row[metric]]


def grown(recording, ticks=25):
    """Waits until a recording in progress has so many ticks."""
    def has():
        done = run("show", "--csv", "--series", "tree.cores", recording)
        return done.returncode == 0 and done.stdout.count(b"\n") > ticks
    until(has, f"{ticks} ticks of {recording}")


@contextlib.contextmanager
def serving(*words, **options):
    server = Server(*words, **options)
    try:
        yield server
    finally:
        server.stop()


def idle(server):
    """Waits until it does nothing: some looks in a row see the same."""
    seen = []

    def rests():
        seen.append(server.switches())
        time.sleep(0.3)
        return len(seen) > 8 and len(set(seen[-8:])) == 1
    until(rests, "a server at rest")
