"""A stand-in for tacho serve that speaks docs/serve.md as the browser sees it, about a run whose every number is known.

A test says what happens and when: ticks come, a newer page is there, the server dies, refuses, falls silent.
"""

import json
import math
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from page_sample import column, line, packed, panel

STEP_S = 1
NS = 1_000_000_000
LINES = {"cpu": ["cores used"], "cpu-processes": ["python3 1000", "gcc 1001", "others"], "heat": ["cpu0", "cpu1"], "memory": ["RSS", "PSS"]}


def value(panel_id, k, tick):
    """Of line k of a panel at a tick."""
    return 1 + k + math.sin(tick / 5 + k) + (2 if panel_id == "memory" else 0)


def known(panel_id, k, ticks):
    return [value(panel_id, k, i) for i in range(1, ticks + 1)]


class Run:
    def __init__(self, ticks=20):
        self.ticks = ticks
        self.ended = False
        self.mark = ""  # is put into names, for hostile ones
        self.processes = 2
        self.panels = list(LINES)
        self.phases = []
        self.findings = 0

    def line(self, panel_id, k, values, **more):
        process = k if panel_id == "cpu-processes" and k < 2 else None
        made = line(LINES[panel_id][k] + self.mark, values, color=-1 if LINES[panel_id][k] == "others" else k, process=process, **more)
        return made

    def data(self):
        """All of it up to now."""
        titles = {"cpu": "CPU use", "cpu-processes": "CPU by process", "heat": "Busy cores", "memory": "Memory"}
        forms = {"cpu-processes": "stacked", "heat": "heat"}
        panels = [panel(p, titles[p] + self.mark, "memory" if p == "memory" else "cpu", forms.get(p, "lines"), "count",
                        [self.line(p, k, known(p, k, self.ticks)) for k in range(len(LINES[p]))], y_most=3 if p == "heat" else None)
                  for p in self.panels]
        columns = [{"name": n} for n in ("pid", "ppid", "name", "command", "user", "groups", "node", "start_s", "end_s", "ended", "index")]
        columns += [column("cpu_s", "CPU", "seconds"), column("rss_peak_bytes", "RSS peak", "bytes")]
        rows = [[1000 + k, 1, f"job{k}{self.mark}", f"job{k} --fast{self.mark}", "ann", [["odd", "even"][k % 2]], 0, k, None, "", k, k + 1.0, 1000 * (k + 1)]
                for k in range(self.processes)]
        return {"format": 1, "generator": "stand-in", "title": "job" + self.mark, "summary": {}, "findings": [], "advice": {}, "unmeasured": [],
                "live": {"after": str(self.ticks * NS), "state": "ended" if self.ended else "recording"},
                "nodes": [{"host": "n1" + self.mark, "offset_s": 0, "end_s": self.ticks * STEP_S, "step_s": STEP_S, "reduced": False, "ticks": self.ticks,
                           "times": {"n": self.ticks, "from": STEP_S, "step": STEP_S}}],
                "phases": self.phases, "events": [], "panels": panels, "stats": {},
                "processes": {"columns": columns, "rows": rows, "total": self.processes, "shown": self.processes}, "note": None}

    def news(self, after):
        """The event of all that is behind a tick."""
        ticks = range(after + 1, self.ticks + 1)
        panels = [{"id": p, "lines": [{"name": LINES[p][k] + self.mark, "node": 0, "process": k if p == "cpu-processes" and k < 2 else None,
                                       "mean": packed([value(p, k, i) for i in ticks])} for k in range(len(LINES[p]))]} for p in self.panels]
        return {"from_s": after * STEP_S, "to_s": self.ticks * STEP_S, "panels": panels, "phases": self.phases, "events": [],
                "nodes": [{"end_s": self.ticks * STEP_S, "times": {"n": len(ticks), "values": [i * STEP_S for i in ticks]}}]}


class Server:
    """`template`: makes the HTML of a page of its data."""

    def __init__(self, template, run=None):
        self.template = template
        self.run = run or Run()
        self.port = 0
        self.change = threading.Condition()
        self.refusing = None  # a status
        self.mute = False  # streams are there and say nothing
        self.asked = []  # (path, after or None)
        self.streams = []
        self.pages_wait = threading.Event()  # cleared: pages are not answered until it is set
        self.pages_wait.set()
        self.start()

    def start(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                server.answer(self)

        self.http = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def kill(self):
        self.http.shutdown()
        self.http.server_close()
        self.tell(None)
        self.speak()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/proxy/1/run/x/"

    def answer(self, request):
        parts = urlsplit(request.path)
        after = parse_qs(parts.query).get("after", [None])[0]
        self.asked.append((parts.path, after))
        if self.refusing:
            request.send_error(self.refusing)
        elif parts.path.endswith("/run/x/"):
            self.pages_wait.wait()
            self.send(request, self.template(self.run.data()).encode())
        elif parts.path.endswith("/run/x/events"):
            self.stream(request, int(after) // NS)
        else:
            request.send_error(404)

    def send(self, request, body):
        request.send_response(200)
        request.send_header("Content-Type", "text/html; charset=utf-8")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def stream(self, request, sent):
        mine = []
        with self.change:
            self.streams.append(mine)
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.end_headers()
        try:
            while True:
                with self.change:
                    self.change.wait_for(lambda: not self.mute and (mine or self.run.ticks > sent))
                    told, mine[:] = list(mine), []
                    if self.run.ticks > sent:
                        told.insert(0, ("data", self.run.news(sent)))
                        sent = self.run.ticks
                for event in told:
                    if event is None:
                        return
                    request.wfile.write(f"event: {event[0]}\nid: {sent * NS}\ndata: {json.dumps(event[1])}\n\n".encode())
                request.wfile.flush()
        except OSError:
            pass
        finally:
            request.close_connection = True
            with self.change:
                self.streams[:] = [stream for stream in self.streams if stream is not mine]

    def tick(self, number=1):
        with self.change:
            self.run.ticks += number
            self.change.notify_all()

    def speak(self):
        with self.change:
            self.mute = False
            self.change.notify_all()

    def tell(self, event):
        with self.change:
            for stream in self.streams:
                stream.append(event)
            self.change.notify_all()

    def page(self):
        self.tell(("page", {"ended": self.run.ended}))

    def asked_for(self, end):
        return [after for path, after in self.asked if path.endswith(end)]
