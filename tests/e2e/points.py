"""A server that understands InfluxDB's lines and keeps them, and fails as it is told to: for what all sinks have in common."""

import gzip
import http.server
import re
import threading

LINE = re.compile(r"^((?:[^ \\]|\\.)+) ((?:[^ \\]|\\.)+) (-?\d+)$")


class Points(http.server.ThreadingHTTPServer):
    """`point`: {(measurement with tags, field): {time: value}}; `doubles`: how often one came again, and `contradictions` with
    another value. `fail`: what a request is answered by, from a list that is used up, or a function of the number of the request."""

    daemon_threads = True

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.point, self.doubles, self.contradictions, self.requests = {}, 0, 0, 0
        self.fail = lambda number: None
        self.release = threading.Event()  # those that hang
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"influx=http://127.0.0.1:{self.server_address[1]}?db=test"

    def stop(self):
        self.release.set()
        self.shutdown()
        self.server_close()

    def take(self, body):
        for line in body.decode().splitlines():
            series, fields, when = LINE.match(line).groups()
            for field in re.split(r"(?<!\\),", fields):
                name, value = field.rsplit("=", 1)
                values = self.point.setdefault((series, name), {})
                if int(when) in values:
                    self.doubles += 1
                    self.contradictions += values[int(when)] != value
                values[int(when)] = value

    def of(self, field):
        """Values of a field, by time, of whatever series it is."""
        found = {}
        for (_, name), values in self.point.items():
            if name == field:
                found.update({when: float(value.rstrip("i")) for when, value in values.items()})
        return found


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        with server.lock:
            server.requests += 1
            how = server.fail(server.requests)
            if how in (None, "late"):
                server.take(body)
        if how is None:
            self.answer(204)
        elif how == "late":  # taken, and the answer is lost
            self.close_connection = True
        elif how == "hang":
            server.release.wait()
            self.close_connection = True
        elif how == "garbage":
            self.wfile.write(b"\x00\xff\x1b[31m nothing of HTTP\r\n\r\n")
            self.close_connection = True
        elif callable(how):
            self.answer(*how(body))
        elif how == 429:
            self.answer(429, b"slow down", Retry_After="1")
        else:
            self.answer(how, b'{"error":"as told"}')
