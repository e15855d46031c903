"""A server of HTTP that does what servers should not: each connection is one request, answered as the test says.

    with Hostile() as server:
        server.answer = endless_headers          # a function that gets the connection and the request
        push("--to", f"influx={server.url}?db=x", ...)
        server.requests                          # what came: method, path, headers, body
"""

import contextlib
import gzip
import json
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field


@dataclass
class Request:
    method: str
    path: str
    headers: dict
    body: bytes = field(repr=False)

    @property
    def text(self):
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body


def ok(connection, request):
    connection.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")


def empty_json(connection, request):
    """What OTLP says when all is well."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


def says(status, body=b"", headers=b""):
    """An answer as it should be, whatever it says."""

    def answer(connection, request):
        head = b"HTTP/1.1 %d Reason\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n" % (status, len(body), headers)
        connection.sendall(head + body)

    return answer


def sends(data):
    return lambda connection, request: connection.sendall(data)


def endless(head, part, at_least=0):
    """The same bytes until the other side has had enough."""

    def answer(connection, request):
        connection.sendall(head)
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(part)

    return answer


def drip(data, pause):
    def answer(connection, request):
        with contextlib.suppress(OSError):
            for byte in data:
                connection.sendall(bytes([byte]))
                time.sleep(pause)

    return answer


def nothing(connection, request):
    """Until the other side gives up."""
    with contextlib.suppress(OSError):
        while connection.recv(65536):
            pass


def closes(connection, request):
    pass


class Hostile:
    def __init__(self, answer=ok, certificate=None):
        self.answer, self.requests = answer, []
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        """The thread ends before the descriptor is closed. An accept() that a signal interrupts (a child that ended) begins anew
        with the number of its descriptor, and that may be the next server's: the thread would take a request of that one."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with contextlib.suppress(OSError, ValueError), connection:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            request = self.read(connection)
            if request:
                self.requests.append(request)
                self.answer(connection, request)

    @staticmethod
    def read(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            part = connection.recv(65536)
            if not part:
                return None
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            part = connection.recv(1 << 20)
            if not part:
                return None
            body += part
        method, path, _ = first.split(" ")
        return Request(method, path, headers, body)


def json_of(request):
    return json.loads(request.text)
