"""tacho serve: what its pages and events hold, who may ask, what happens to slow viewers, dead servers and damaged recordings; run --serve.
tests/e2e/test_serve_page.py looks at it in a browser."""

import base64
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest
from recorder import TACHO, lasting, record, run, start, until
from serve import Events, Server, data_of, grown, idle, points, series, serving, times

NASTY = "</script><script>document.title='caught'</script>\"'&{{}}"
# Of the curves of the page, where `tacho show --series` has the same.
SERIES = (("cpu", "the job", "tree.cores"), ("memory", "RSS, summed", "proc.mem.rss"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A directory of recordings: one that has ended, one of several nodes, one in a folder below."""
    root = tmp_path_factory.mktemp("serve") / "runs"
    (root / "below").mkdir(parents=True)
    work = [sys.executable, "-c", "import time\nfor i in range(8): sum(range(200000)); time.sleep(0.1)"]
    assert record(work, "-q", "-i", "50ms", output=root / "one.tacho").returncode == 0
    assert record(["sh", "-c", ": $0", NASTY], "-q", "--name", NASTY, output=root / "below" / "nasty.tacho").returncode == 0
    nodes = root / "several" / "nodes"
    nodes.mkdir(parents=True)
    for i in range(3):
        shutil.copy(root / "one.tacho", nodes / f"node{i}.tacho")
    return root


@pytest.fixture(scope="module")
def server(runs):
    with serving(runs) as s:
        yield s


def id_of(server, words):
    """The run whose row of the list holds these words."""
    found = re.findall(r'<tr id="run-([0-9a-f]{16})">(.*?)</tr>', server.ask("").text, re.S)
    return next(number for number, row in found if words in row)


def told(events, panel, name, node=0):
    return [p for kind, _, data in events if kind == "data" for p in points(data, panel, name, node)]


def check_series(got, expected, after_s, upto_s, fine_s=1e-6):
    """Each tick of that time, once, with its value."""
    wanted = [(t, v) for t, v in expected if after_s + 1e-7 < t <= upto_s + 1e-7]
    assert len(got) == len(wanted) and all(abs(a - b) <= fine_s for (a, _), (b, _) in zip(got, wanted)), (got, wanted)
    # Of 16 bits between the least and the most of an event.
    reach = max((v for _, v in got), default=0) - min((v for _, v in got), default=0)
    assert all(abs(a - b) <= reach / 30000 + 1e-6 * abs(b) + 1e-9 for (_, a), (_, b) in zip(got, wanted))
    return len(wanted)


# ---- pages ----


def test_list_shows_all_recordings_and_their_texts_harmlessly(server):
    page = server.ask("")
    assert page.status == 200 and len(server.ids()) == 3
    assert "<script>document.title" not in page.text and "&#60;/script" in page.text
    assert "3 nodes" in page.text


def test_page_of_a_finished_run_is_its_report(server, runs):
    data = server.data(id_of(server, "one.tacho"))
    live = data.pop("live")
    report = run("report", "--format", "json", "-o", "-", runs / "one.tacho")
    assert data == json.loads(report.stdout)
    assert live["state"] == "ended"


def test_page_of_several_nodes(server):
    data = server.data(id_of(server, "3 nodes"))
    assert len(data["nodes"]) == 4


def test_names_of_a_hostile_recording_stay_names(server):
    page = server.page(id_of(server, "nasty.tacho"))
    assert "<script>document.title" not in page
    assert NASTY in data_of(page)["title"] or "caught" in data_of(page)["title"]


def test_reports_are_as_before(runs, tmp_path):
    """The page of a file asks nobody for anything and knows of no server."""
    assert run("report", "--format", "html", "-o", tmp_path / "one.html", runs / "one.tacho").returncode == 0
    page = (tmp_path / "one.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "connect-src" not in policy and "'self'" not in policy
    assert "live" not in data_of(page)


# ---- downloads ----


def test_recording_is_downloaded_as_it_is(server, runs):
    answer = server.ask(f"run/{id_of(server, 'one.tacho')}/recording")
    assert answer.body == (runs / "one.tacho").read_bytes()
    assert answer.headers["Content-Disposition"] == 'attachment; filename="one.tacho"'


def test_run_of_several_nodes_is_downloaded_as_tar(server, runs):
    answer = server.ask(f"run/{id_of(server, '3 nodes')}/recording")
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        assert sorted(tar.getnames()) == [f"several/nodes/node{i}.tacho" for i in range(3)]
        assert tar.extractfile("several/nodes/node1.tacho").read() == (runs / "one.tacho").read_bytes()
    assert int(answer.headers["Content-Length"]) == len(answer.body)


def test_reports_and_exports_are_downloaded(server, runs):
    run_id = id_of(server, "one.tacho")
    assert server.ask(f"run/{run_id}/report.pdf").body.startswith(b"%PDF")
    html = server.ask(f"run/{run_id}/report.html")
    report = run("report", "--format", "json", "-o", "-", runs / "one.tacho")
    assert data_of(html.text) == json.loads(report.stdout)
    assert b"tables" in server.ask(f"run/{run_id}/export/json").body
    with tarfile.open(fileobj=io.BytesIO(server.ask(f"run/{run_id}/export/csv").body)) as tar:
        exported = run("export", "--to", "csv", "-d", "events", "-o", "-", runs / "one.tacho")
        assert tar.extractfile("events.csv").read() == exported.stdout
    assert server.ask(f"run/{run_id}/export/nonsense").status == 404
    assert server.ask(f"run/{run_id}/curve.svg").text.startswith("<svg")


# ---- events ----


@pytest.fixture
def live(tmp_path):
    """A run in progress that the test ends by leaving: its path, and a server."""
    path = tmp_path / "live.tacho"
    with lasting(["sh", "-c", "while :; do seq 3000 >/dev/null; sleep 0.02; done & cat; kill $!"], "-i", "50ms", output=path):
        grown(path)
        with serving(tmp_path) as s:
            yield path, s


def test_events_have_the_values_of_the_series(live):
    path, server = live
    run_id = id_of(server, "live.tacho")
    data = server.data(run_id)
    after = data["live"]["after"]
    assert data["live"]["state"] == "recording"
    events = []
    for event in server.events(run_id, after):
        events.append(event)
        if sum(e[0] == "data" for e in events) >= 3:
            break
    upto = [number for kind, number, _ in events if kind == "data"][-1]
    compared = 0
    for panel, name, metric in SERIES:
        page = points(data, panel, name)
        expected = series(path, metric)
        compared += check_series(told(events, panel, name), expected, after / 1e9, upto / 1e9)
        assert check_series(page, expected, -1, after / 1e9, 0.01)
    assert compared > 10


def test_a_reader_that_was_cut_off_goes_on_where_it_was(tmp_path):
    """The server is killed and another one started: nothing twice, nothing left out."""
    path, token = tmp_path / "live.tacho", tmp_path / "token"
    with lasting(["sh", "-c", "while :; do seq 3000 >/dev/null; sleep 0.02; done & cat; kill $!"], "-i", "50ms", output=path):
        grown(path)
        first = Server(tmp_path, token_file=token)
        run_id = id_of(first, "live.tacho")
        after = first.data(run_id)["live"]["after"]
        stream = first.events(run_id, after)
        before = [next(stream)]
        first.stop(signal.SIGKILL)
        with serving(tmp_path, token_file=token, port=first.port) as second:
            assert second.cookie == first.cookie  # the browser still has it
            stream = second.events(run_id, after, last=before[-1][1])
            behind = stream.until("data") + stream.until("data")
            events = before + behind
            last = [number for kind, number, _ in events if kind == "data"][-1]
            assert any(kind == "page" for kind, _, _ in behind)  # its page is not that of this server
            expected = series(path, "tree.cores")
            assert check_series(told(events, "cpu", "the job"), expected, after / 1e9, last / 1e9) > 10


def test_the_end_is_told_and_the_page_is_the_report(tmp_path):
    path = tmp_path / "live.tacho"
    with serving(tmp_path) as server:
        with lasting(["cat"], "-i", "50ms", output=path):
            grown(path)
            until(server.ids, "the run in the list")
            run_id = server.ids()[0]
            after = server.data(run_id)["live"]["after"]
            stream = server.events(run_id, after)
            events = [next(stream)]
        while not (events[-1][0] == "page" and events[-1][2]["ended"]):
            events.append(next(stream))
        with pytest.raises(StopIteration):
            next(stream)
        data = server.data(run_id)
        live = data.pop("live")
        assert live["state"] == "ended"
        assert data == json.loads(run("report", "--format", "json", "-o", "-", path).stdout)
        last = [number for kind, number, _ in events if kind == "data"][-1]
        assert last <= live["after"]  # the page brings what was not told
        check_series(told(events, "cpu", "the job"), series(path, "tree.cores"), after / 1e9, last / 1e9)
        again = server.open(f"run/{run_id}/events?after={live['after']}")
        assert again.status == 204  # which ends an EventSource


def test_several_nodes_are_told_together(tmp_path):
    nodes = tmp_path / "job" / "nodes"
    nodes.mkdir(parents=True)
    with lasting(["cat"], "-i", "50ms", output=nodes / "a.tacho"), \
            lasting(["cat"], "-i", "100ms", output=nodes / "b.tacho"):
        grown(nodes / "a.tacho")
        grown(nodes / "b.tacho")
        with serving(tmp_path) as server:
            run_id = server.ids()[0]
            data = server.data(run_id)
            after = data["live"]["after"]
            stream = server.events(run_id, after)
            events = stream.until("data") + stream.until("data")
            last = [number for kind, number, _ in events if kind == "data"][-1]
            for node, name in enumerate(("a", "b")):
                own = [t for kind, _, d in events if kind == "data" for t in times(d["nodes"][node])]
                assert own == sorted(set(own)) and own
                offset = data["nodes"][node]["offset_s"]
                wanted = [round(t + offset, 5) for t, _ in series(nodes / f"{name}.tacho", "limit.cpus")
                          if after / 1e9 + 1e-7 < t + offset <= last / 1e9 + 1e-7]
                assert [round(t, 5) for t in own] == wanted


def test_without_viewers_nothing_is_done(live):
    path, server = live
    run_id = id_of(server, "live.tacho")
    stream = server.events(run_id, server.data(run_id)["live"]["after"])
    next(stream)
    stream.close()
    idle(server)
    before, size, used = server.switches(), path.stat().st_size, server.ticks()
    until(lambda: path.stat().st_size > size + 3000, "a recording that grows")
    assert server.switches() - before <= 2 and server.ticks() - used <= 1


def test_fifty_viewers_and_one_that_takes_nothing(live):
    """What a viewer is sent is the same memory for all; one that stalls holds nobody."""
    path, server = live
    run_id = id_of(server, "live.tacho")
    after = server.data(run_id)["live"]["after"]
    streams = [server.events(run_id, after)]
    next(streams[0])
    memory = server.memory()
    streams += [server.events(run_id, after) for _ in range(49)]
    stalled = socket.create_connection(("127.0.0.1", server.port))
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stalled.sendall(f"GET /run/{run_id}/events?after={after} HTTP/1.1\r\nHost: localhost\r\nCookie: {server.cookie}\r\n\r\n".encode())
    ids = []
    for stream in streams:
        got = []
        while len(got) < 3:
            kind, number, _ = next(stream)
            got += [number] if kind == "data" else []
        ids.append(tuple(got))
    # A few kilobytes each, and not a copy of the events.
    assert server.memory() - memory < 50 * 512 * 1024
    stalled.close()
    for stream in streams:
        stream.close()


def test_who_takes_nothing_is_cut_off(runs, tmp_path):
    """Others go on meanwhile; a viewer that reads slowly stays."""
    with (tmp_path / "large.tacho").open("wb") as large:
        large.write((runs / "one.tacho").read_bytes())
        large.truncate(1 << 26)
    with serving(tmp_path, "--patience", "1s") as server:
        run_id = server.ids()[0]
        ask = f"GET /run/{run_id}/recording HTTP/1.1\r\nHost: localhost\r\nCookie: {server.cookie}\r\n\r\n".encode()
        stalled, slow = (socket.create_connection(("127.0.0.1", server.port)) for _ in range(2))
        for one in (stalled, slow):
            one.sendall(ask)
        taken = 0
        while taken < 1 << 26:
            part = slow.recv(1 << 18)
            assert part
            taken += len(part)
            time.sleep(0.01)
        slow.close()
        # What the kernel still had for it, and then the end before its time.
        rest = 0
        with contextlib.suppress(ConnectionError):
            while part := stalled.recv(1 << 20):
                rest += len(part)
        assert rest < 1 << 25
        stalled.close()


# ---- who may ask ----


PATHS = ("", "run/0123456789abcdef/", "run/0123456789abcdef/recording", "nothing")


def test_without_the_token_there_is_nothing(server):
    run_id = id_of(server, "one.tacho")
    for path in (*PATHS, f"run/{run_id}/", f"run/{run_id}/recording", f"run/{run_id}/events?after=0", f"run/{run_id}/export/csv"):
        for headers in ({}, {"Cookie": server.cookie[:-1]}, {"Cookie": server.cookie + "0"}, {"Cookie": "tacho=1"}, {"Authorization": "Bearer x"}):
            answer = server.ask(path, headers, cookie=False)
            assert answer.status == 403
            assert "one.tacho" not in answer.text and "seq" not in answer.text and server.token not in answer.text
    answer = server.ask("login", {"Authorization": f"Bearer {server.token[:-1]}"}, cookie=False)
    assert answer.status == 403 and "Set-Cookie" not in answer.headers


def test_wrong_tokens_do_not_lock_out_the_right_one(runs):
    with serving(runs) as server:
        held = []
        for _ in range(8):
            thread = threading.Thread(target=lambda: held.append(server.ask("login", {"Authorization": "Bearer wrong"}, cookie=False).status))
            thread.start()
        assert server.sign_in() == server.cookie
        until(lambda: len(held) == 8, "answers")
        assert set(held) == {403}


def test_cookie_is_for_this_server_alone(server):
    answer = server.ask("login", {"Authorization": f"Bearer {server.token}"}, cookie=False)
    words = [w.strip() for w in answer.headers["Set-Cookie"].split(";")]
    assert re.fullmatch(r"tacho-[0-9a-f]{8}=[0-9a-f]{64}", words[0])
    assert set(words[1:]) == {"HttpOnly", "SameSite=Strict"}


def test_hosts_and_origins_of_others_are_refused(server):
    for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io", "", "localhost@evil.example"):
        assert server.ask("", {"Host": host}).status == 403, host
    for host in ("localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]", "[::1]:8080"):
        assert server.ask("", {"Host": host}).status == 200, host
    assert b" 400 " in server.raw(f"GET / HTTP/1.1\r\nCookie: {server.cookie}\r\n\r\n".encode()).split(b"\r\n")[0]
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                    {"Origin": "http://127.0.0.1:1"}):
        assert server.ask("", headers).status == 403, headers
    for headers in ({"Origin": f"http://127.0.0.1:{server.port}"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        assert server.ask("", headers).status == 200, headers


def test_other_names_are_allowed_by_name(runs):
    with serving(runs, "--allow-host", "hub.example") as server:
        assert server.ask("", {"Host": "hub.example:8000"}).status == 200
        assert server.ask("", {"Host": "hub2.example"}).status == 403


def test_only_get_and_head(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert server.ask("", method=method).status == 405, method
    head = server.ask(f"run/{id_of(server, 'one.tacho')}/recording", method="HEAD")
    assert head.status == 200 and not head.body and int(head.headers["Content-Length"]) > 1000
    line = f"HEAD /run/{id_of(server, 'one.tacho')}/events?after=0 HTTP/1.1\r\nHost: localhost\r\nCookie: {server.cookie}\r\n\r\n"
    head, body = server.raw(line.encode(), end=False).split(b"\r\n\r\n", 1)
    assert b" 200 " in head and b"text/event-stream" in head and not body


def test_requests_with_a_body_are_answered_before_it_comes(server):
    """So nobody holds a connection by a body that never comes."""
    for method, headers, body, status in (
            ("POST", b"Content-Length: 1000000", b"", b"405"), ("POST", b"Content-Length: 5", b"hello", b"405"),
            ("PUT", b"Transfer-Encoding: chunked", b"", b"405"), ("GET", b"Content-Length: 1000000", b"", b"400"),
            ("POST", b"Content-Length: 3000000", b"x" * 3000000, b"405"), ("POST", b"Content-Length: 0", b"", b"405"),
            ("GET", b"Content-Length: 0", b"", b"403")):
        answer = server.raw(method.encode() + b" / HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n" + body, end=False)
        assert answer.split(b"\r\n")[0].split()[1] == status, (method, headers, answer)


def test_every_answer_is_guarded(server):
    run_id = id_of(server, "one.tacho")
    for path, cookie in (("", True), ("", False), (f"run/{run_id}/", True), (f"run/{run_id}/recording", True), ("nothing", True), ("login", False)):
        headers = server.ask(path, cookie=cookie).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "frame-ancestors 'self'" in policy


def test_scripts_are_those_that_the_policy_names(server):
    run_id = id_of(server, "one.tacho")
    for path, cookie in (("", True), ("", False), (f"run/{run_id}/", True), (f"run/{run_id}/", False)):
        answer = server.ask(path, cookie=cookie)
        for script in re.findall(r"<script>(.*?)</script>", answer.text, re.S):
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in answer.headers["Content-Security-Policy"]
    # Behind any prefix the root is where it is.
    assert 'data-root="./../../"' in server.ask(f"run/{run_id}/", cookie=False).text


def test_no_path_leads_out(server, runs):
    (runs.parent / "secret.tacho").write_bytes((runs / "one.tacho").read_bytes())
    run_id = id_of(server, "one.tacho")
    for path in ("../secret.tacho", "run/../../secret.tacho", "%2e%2e/secret.tacho", "..%2fsecret.tacho", "run/..%2f..%2fsecret.tacho/",
                 f"run/{run_id}/../../secret.tacho", f"run/{run_id}/recording/../../../secret.tacho", f"run/{run_id}/export/../recording",
                 f"run/{run_id}/export/..%2f", f"run/{run_id}/export/csv%00", f"run/{run_id}%00/recording", "run//recording", "//etc/passwd",
                 "run/" + "a" * 16 + "/recording", f"run/{run_id.upper()}x/recording", f"run/{run_id}/recording\\..", "\\..\\secret.tacho"):
        line = f"GET /{path} HTTP/1.1\r\nHost: localhost\r\nCookie: {server.cookie}\r\n\r\n".encode()
        status = server.raw(line, end=False).split(b"\r\n")[0]
        assert b" 404 " in status or b" 400 " in status, (path, status)


def test_links_that_lead_out_are_not_followed(runs, tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    shutil.copy(runs / "one.tacho", outside / "secret.tacho")
    shutil.copy(runs / "one.tacho", inside / "own.tacho")
    (inside / "link.tacho").symlink_to(outside / "secret.tacho")
    (inside / "relative.tacho").symlink_to("../outside/secret.tacho")
    (inside / "within.tacho").symlink_to("own.tacho")
    (inside / "folder").symlink_to(outside)
    (inside / "job" / "nodes").mkdir(parents=True)
    (inside / "job" / "nodes" / "a.tacho").symlink_to(outside / "secret.tacho")
    os.mkfifo(inside / "pipe.tacho")
    with serving(inside) as server:
        page = server.ask("").text
        names = set(re.findall(r'<span class="sub">([^<]*)</span>', page))
        assert {"own.tacho", "within.tacho"} <= names and not names & {"link.tacho", "relative.tacho", "secret.tacho", "pipe.tacho"}
        for run_id in server.ids():
            text = server.ask(f"run/{run_id}/recording").body
            assert b"secret.tacho" not in text
        # One that was good when it was found becomes a link.
        run_id = id_of(server, "own.tacho")
        (inside / "own.tacho").unlink()
        (inside / "own.tacho").symlink_to(outside / "secret.tacho")
        assert server.ask(f"run/{run_id}/recording").status == 404
        job = [i for i in server.ids() if i not in (run_id,)]
        for other in job:
            assert "outside" not in server.ask(f"run/{other}/").text or "lies outside" in server.ask(f"run/{other}/").text


def test_reports_of_a_recording_that_was_replaced_are_not_given_away(runs, tmp_path):
    """The program that makes them opens the path once more: it may have had another file."""
    inside, other = tmp_path / "inside", tmp_path / "other.tacho"
    inside.mkdir()
    for name in ("own.tacho", "linked.tacho"):
        shutil.copy(runs / "one.tacho", inside / name)
    shutil.copy(runs / "one.tacho", other)
    script = f'echo secret >"$out"; cd {inside}; mv {other} own.tacho || ln -sf {runs}/one.tacho linked.tacho'
    with serving_with(script, tmp_path, tmp_path, words=[inside]) as server:
        own, linked = id_of(server, "own.tacho"), id_of(server, "linked.tacho")
        answer = server.ask(f"run/{own}/report.html")
        assert answer.status == 500 and "Another file has the name" in answer.text and "secret" not in answer.text
        answer = server.ask(f"run/{linked}/report.html")
        assert answer.status == 404 and "secret" not in answer.text


def test_socket_is_private_and_its_others_are_refused(runs, tmp_path):
    path = tmp_path / "s.sock"
    with serving(runs, sock=path) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert server.ask("").status == 200
        assert server.ask("", {"Host": "evil.example"}).status == 403
        assert "ssh -N -L" in server.said
        if os.geteuid() == 0:
            # As if somebody had made a way to it.
            for folder in (tmp_path, *tmp_path.parents):
                if folder.stat().st_uid == 0 and folder != Path("/"):
                    folder.chmod(folder.stat().st_mode | 0o011)
            path.chmod(0o666)
            ask = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
                   "s.sendall(b'GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'); print(s.makefile('rb').read().decode())")
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", ask, path],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert done.stdout.startswith("HTTP/1.1 403") and "one.tacho" not in done.stdout, done.stderr
    assert not path.exists()


def test_socket_that_another_server_has_now_stays(runs, tmp_path):
    path = tmp_path / "s.sock"
    with serving(runs, sock=path) as first:
        path.unlink()
        with serving(runs, sock=path) as second:
            assert first.stop() == 0
            assert second.ask("").status == 200
        assert not path.exists()


def test_private_directory_and_what_killed_servers_leave(runs, tmp_path):
    first = Server(runs, sock=None, tmp=tmp_path)
    first.stop()
    env = {"XDG_RUNTIME_DIR": "", "TMPDIR": str(tmp_path)}
    place = tmp_path / f"tacho-{os.geteuid()}"

    def serve():
        p = subprocess.Popen([TACHO, "serve", runs], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **env})
        p.stderr.readline()
        return p
    killed = serve()
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    killed.kill()
    killed.wait()
    assert len(list(place.glob("serve-*.sock"))) == 1
    second = serve()
    assert [p.name for p in place.glob("serve-*.sock")] == [f"serve-{second.pid}.sock"]
    second.terminate()
    assert second.wait() == 0
    assert not list(place.glob("serve-*.sock"))
    for p in (killed, second):
        p.stderr.close()


def test_token_file_that_others_can_read_is_refused(runs, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    token.chmod(0o644)
    done = run("serve", "--port", "0", "--token-file", token, runs)
    assert done.returncode == 2 and b"chmod 600" in done.stderr


# ---- hostile clients ----


def test_heads_that_are_too_large_or_never_end(server):
    assert server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200000 + b"\r\n\r\n").split(b"\r\n")[0].split()[1] in (b"431", b"413", b"400")
    assert server.raw(b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").split(b"\r\n")[0].split()[1] in (b"414", b"400", b"431")
    many = b"".join(b"X-%d: a\r\n" % i for i in range(20000))
    server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n")
    assert server.ask("").status == 200
    for junk in (b"\0" * 1000, b"\r\n" * 1000, b"GET", b"GET / HTTP/9.9\r\n\r\n", os.urandom(3000), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"):
        server.raw(junk)
    assert server.ask("").status == 200


def test_slow_heads_are_cut_off(server):
    """A byte now and then keeps a connection for a while, and not longer."""
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    left = set(slow)

    def dripping():
        for s in list(left):
            try:
                s.send(b"G")
                s.setblocking(False)
                if s.recv(1000) == b"":
                    left.discard(s)
            except BlockingIOError:
                pass
            except OSError:
                left.discard(s)
            finally:
                s.setblocking(True)
        time.sleep(0.05)
        return not left
    assert server.ask("").status == 200
    until(dripping, "the end of slow connections")
    for s in slow:
        s.close()


def test_end_while_requests_come(runs):
    """Requests that would have to wait find a server that ends."""
    for _ in range(5):
        server = Server(runs)
        run_id = id_of(server, "one.tacho")
        ended = threading.Event()

        def ask():
            line = f"GET /run/{run_id}/events?after=0 HTTP/1.1\r\nHost: localhost\r\nCookie: {server.cookie}\r\n\r\n".encode()
            while not ended.is_set():
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port)) as s:
                    s.sendall(line)
        asking = [threading.Thread(target=ask) for _ in range(8)]
        for thread in asking:
            thread.start()
        try:
            server.ask("")
            assert server.stop() == 0
        finally:
            ended.set()
            for thread in asking:
                thread.join()


# ---- what is made by other programs ----


@contextlib.contextmanager
def serving_with(script, where, tmp, **options):
    """A server whose reports and exports come from this shell script: $out is where to."""
    place = where / "bin"
    place.mkdir()
    shutil.copy(Path(TACHO).parent / "tacho-serve", place / "tacho-serve")
    (place / "tacho").write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nout=$2\n{script}\n')
    (place / "tacho").chmod(0o755)
    with serving(*options.pop("words", ()), program=[place / "tacho-serve"], tmp=tmp, **options) as server:
        yield server


def test_exports_that_nobody_waits_for_leave_nothing(runs, tmp_path):
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    script = 'mkdir "$out/.stage" && echo secret >"$out/.stage/a.csv" && exec sleep 1000'
    with serving_with(script, tmp_path, tmp, words=[runs]) as server:
        line = f"GET /run/{id_of(server, 'one.tacho')}/export/csv HTTP/1.1\r\nHost: localhost\r\nCookie: {server.cookie}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.sendall(line)
            until(lambda: list(tmp.glob("*/.stage/a.csv")), "an export that is being made")
        until(lambda: not list(tmp.iterdir()), "an empty directory")
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.sendall(line)
            until(lambda: list(tmp.glob("*/.stage/a.csv")), "an export that is being made")
            assert server.stop() == 0
    assert not list(tmp.iterdir())


def test_why_something_could_not_be_made(runs, tmp_path):
    """The place for files may be full, or not there."""
    with serving_with("echo no space is left >&2; ls -A $(dirname $out) >&2; exit 1", tmp_path, tmp_path, words=[runs]) as server:
        answer = server.ask(f"run/{id_of(server, 'one.tacho')}/report.pdf")
        assert answer.status == 500 and re.search(r">no space is left\s*<", answer.text)
    with serving(runs, tmp=tmp_path / "nowhere") as server:
        answer = server.ask(f"run/{id_of(server, 'one.tacho')}/report.pdf")
        assert answer.status == 500 and "No such file or directory. TMPDIR" in answer.text
        shutil.copy(runs / "one.tacho", tmp_path / "own.tacho")
    with serving(tmp_path / "own.tacho", tmp=tmp_path) as server:
        run_id = id_of(server, "own.tacho")
        (tmp_path / "own.tacho").write_bytes(os.urandom(5000))
        answer = server.ask(f"run/{run_id}/export/json")
        assert answer.status == 500 and "is not a recording" in answer.text
        assert server.ask(f"run/{run_id}/export/nonsense").status == 404


def test_more_files_than_can_be_sent_are_refused_whole(runs, tmp_path):
    with serving_with('cd "$out" && seq 257 | xargs touch', tmp_path, tmp_path, words=[runs]) as server:
        answer = server.ask(f"run/{id_of(server, 'one.tacho')}/export/csv")
        assert answer.status == 500 and "too many files for a download" in answer.text


# ---- hostile recordings ----


def test_damaged_and_changing_recordings(runs, tmp_path):
    whole = (runs / "one.tacho").read_bytes()
    (tmp_path / "empty.tacho").write_bytes(b"")
    (tmp_path / "cut.tacho").write_bytes(whole[: len(whole) // 2])
    broken = bytearray(whole)
    broken[len(whole) // 3] ^= 0xff
    (tmp_path / "broken.tacho").write_bytes(broken)
    (tmp_path / "noise.tacho").write_bytes(os.urandom(5000))
    (tmp_path / "growing.tacho").write_bytes(whole[:4000])
    with serving(tmp_path) as server:
        for run_id in server.ids():
            until(lambda r=run_id: "<h1>Reading" not in server.ask(f"run/{r}/").text, "an answer")
            server.ask(f"run/{run_id}/curve.svg")
        run_id = id_of(server, "growing.tacho")
        (tmp_path / "growing.tacho").write_bytes(whole)
        until(lambda: 'id="data"' in server.ask(f"run/{run_id}/").text, "the whole run")
        (tmp_path / "new").write_bytes(whole)
        (tmp_path / "new").rename(tmp_path / "growing.tacho")
        assert server.data(run_id)["live"]["state"] == "ended"
        (tmp_path / "growing.tacho").unlink()
        assert server.ask(f"run/{run_id}/recording").status == 404
        assert server.ask("").status == 200


def test_a_recording_made_anew_is_another_run(tmp_path):
    """Of the old one nothing is told any more, and the new one is told as it grows."""
    path = tmp_path / "again.tacho"
    assert record(["sleep", "1"], "-q", "-i", "50ms", output=path).returncode == 0
    with serving(tmp_path) as server:
        run_id = server.ids()[0]
        assert server.data(run_id)["live"]["state"] == "ended"
        path.unlink()
        with lasting(["cat"], "-i", "50ms", output=path):
            grown(path)
            after = server.data(run_id)["live"]["after"]
            assert server.data(run_id)["live"]["state"] == "recording"
            stream = server.events(run_id, after)
            events = stream.until("data") + stream.until("data")
            last = [number for kind, number, _ in events if kind == "data"][-1]
            assert check_series(told(events, "cpu", "the job"), series(path, "tree.cores"), after / 1e9, last / 1e9) > 0
        until(lambda: server.data(run_id)["live"]["state"] == "ended", "the end")
        path.write_bytes(b"not a recording any more" * 50)
        until(lambda: "Not readable" in server.ask(f"run/{run_id}/").text, "a word about it")
        path.unlink()
        until(lambda: "Not readable" in server.ask(f"run/{run_id}/").text, "a word about it")


def test_a_node_that_comes_later_is_in_the_page(runs, tmp_path):
    nodes = tmp_path / "job" / "nodes"
    nodes.mkdir(parents=True)
    shutil.copy(runs / "one.tacho", nodes / "a.tacho")
    shutil.copy(runs / "one.tacho", nodes / "b.tacho")
    with serving(tmp_path) as server:
        run_id = server.ids()[0]
        assert len(server.data(run_id)["nodes"]) == 3
        shutil.copy(runs / "one.tacho", nodes / "c.tacho")
        assert len(server.data(run_id)["nodes"]) == 4


def test_a_directory_that_is_made_anew_is_served(runs, tmp_path):
    place = tmp_path / "runs"
    place.mkdir()
    with serving(place) as server:
        for name, leave in (("a.tacho", lambda: shutil.rmtree(place)), ("b.tacho", lambda: place.rename(tmp_path / "old")), ("c.tacho", None)):
            shutil.copy(runs / "one.tacho", place / name)
            until(lambda: name in server.ask("").text and len(server.ids()) == 1, "the new recording")
            assert server.ask(f"run/{server.ids()[0]}/recording").body == (runs / "one.tacho").read_bytes()
            if leave:
                leave()
                place.mkdir()
        # Not where a link leads.
        shutil.rmtree(place)
        place.symlink_to(runs)
        until(lambda: not server.ids(), "an empty list")


def test_a_thousand_recordings_are_listed_page_by_page(runs, tmp_path):
    for i in range(1000):
        os.link(runs / "one.tacho", tmp_path / f"r{i:04}.tacho")
    with serving(tmp_path) as server:
        first = server.ask("")
        assert "1,000 recordings" in first.text
        seen, at = set(), ""
        while True:
            page = server.ask(at).text
            seen |= set(re.findall(r'<tr id="run-([0-9a-f]{16})"', page))
            more = re.search(r'rel="next" href="([^"]*)"', page)
            if not more:
                break
            at = more[1]
        assert len(seen) == 1000


# ---- beside a job ----


def test_run_serve_shows_the_job_and_ends_after_it(tmp_path):
    path = tmp_path / "job.tacho"
    words = ["run", "-q", "--serve-with", "--port 0", "-i", "50ms", "--flush", "50ms", "-o", path, "--", "cat"]
    job = start(*words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)})
    said = job.stderr.readline() + job.stderr.readline()
    server = object.__new__(Server)
    server.socket = None
    port, server.token = re.search(rb"127\.0\.0\.1:(\d+)/#(\S+)", said).groups()
    server.port, server.token = int(port), server.token.decode()
    server.cookie = server.sign_in()
    run_id = server.ids()[0]
    stream = server.events(run_id, server.data(run_id)["live"]["after"])
    assert next(stream)[0] == "data"
    job.stdin.close()
    assert job.wait() == 0
    assert job.stderr.read() == b""  # nobody holds it open
    job.stderr.close()
    while not stream.until("page")[-1][2]["ended"]:
        pass
    stream.close()

    def gone():
        try:
            socket.create_connection(("127.0.0.1", server.port)).close()
        except ConnectionRefusedError:
            return True
        return False
    until(gone, "the end of the server")


def test_run_serve_with_an_open_quotation_mark(tmp_path):
    done = run("run", "-q", "--serve-with", "--port '80", "-o", tmp_path / "job.tacho", "--", "true")
    assert done.returncode == 0 and b"a quotation mark is not closed in --port '80" in done.stderr


def test_run_serve_without_viewers_ends_with_the_job(tmp_path):
    done = run("run", "-q", "--serve", "-o", tmp_path / "job.tacho", "--", "true", env={**os.environ, "XDG_RUNTIME_DIR": "", "TMPDIR": str(tmp_path)})
    assert done.returncode == 0
    place = tmp_path / f"tacho-{os.geteuid()}"
    until(lambda: not list(place.glob("serve-*.sock")), "the end of the server")


# ---- proxies ----


NGINX = """
daemon off; pid {tmp}/pid; error_log {tmp}/error.log; worker_processes 1; user root;
events {{}}
http {{
    access_log off;
    client_body_temp_path {tmp}/b; proxy_temp_path {tmp}/p; fastcgi_temp_path {tmp}/f; uwsgi_temp_path {tmp}/u; scgi_temp_path {tmp}/s;
    server {{
        listen 127.0.0.1:{port};
        location /rnode/host/8080/ {{
            proxy_pass http://127.0.0.1:{to}/;
            proxy_set_header Host $http_host;
            proxy_http_version 1.1;
        }}
    }}
}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def through(server, port, prefix, run_id, cookies=""):
    """Signs in, opens the page and hears an event behind a proxy; all by addresses that are relative."""
    proxied = object.__new__(Server)
    proxied.socket, proxied.port, proxied.token, proxied.cookie = None, port, server.token, cookies
    assert proxied.ask(prefix).status == 403
    answer = proxied.ask(f"{prefix}login", {"Authorization": f"Bearer {server.token}"})
    assert answer.status == 204
    proxied.cookie = f"{cookies}; {answer.headers['Set-Cookie'].split(';')[0]}".lstrip("; ")
    page = proxied.ask(prefix)
    assert f'href="run/{run_id}/"' in page.text
    text = until(lambda: (lambda t: t if 'id="data"' in t else None)(proxied.ask(f"{prefix}run/{run_id}/").text), "the page")
    after = data_of(text)["live"]["after"]
    answer = proxied.open(f"{prefix}run/{run_id}/events?after={after}", {"Accept": "text/event-stream"})
    stream = Events(answer)
    got = stream.until("data")[-1]
    assert got[1] > after
    answer.close()


def test_behind_nginx_with_a_prefix(live, tmp_path):
    path, server = live
    if not shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"):
        pytest.skip("nginx is not installed")
    port = free_port()
    place = tmp_path / "nginx"
    place.mkdir()
    text = NGINX.format(tmp=place, port=port, to=server.port)
    (place / "conf").write_text(text if os.geteuid() == 0 else text.replace("user root;", ""))
    nginx = subprocess.Popen([shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"), "-c", place / "conf", "-e", place / "error.log"])
    try:
        def listens():
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return True
            except ConnectionRefusedError:
                return False
        until(listens, "nginx")
        through(server, port, "rnode/host/8080/", id_of(server, "live.tacho"))
    finally:
        nginx.terminate()
        nginx.wait()


def jupyter():
    for candidate in (os.environ.get("JUPYTER_PYTHON"), Path(__file__).parents[2] / ".dev" / "python" / "bin" / "python"):
        if candidate and subprocess.run([candidate, "-c", "import jupyter_server_proxy, jupyter_server"], stderr=subprocess.DEVNULL).returncode == 0:
            return candidate
    return None


def test_behind_jupyter_server_proxy(live, tmp_path):
    path, server = live
    python = jupyter()
    if not python:
        pytest.skip("jupyter-server-proxy is not installed: ./dev test does")
    port = free_port()
    env = {**os.environ, "HOME": str(tmp_path), "JUPYTER_TOKEN": "hub", "JUPYTER_RUNTIME_DIR": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path)}
    notebook = subprocess.Popen(
        [python, "-m", "jupyter_server", f"--port={port}", "--ip=127.0.0.1", "--no-browser", "--allow-root", f"--ServerApp.root_dir={tmp_path}"],
        env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        proxied = object.__new__(Server)
        proxied.socket, proxied.port, proxied.cookie = None, port, None

        def signed_in():
            try:
                answer = proxied.ask("api/status?token=hub")
            except ConnectionRefusedError:
                return None
            return answer if answer.status == 200 else None
        answer = until(signed_in, "a notebook server")
        cookies = "; ".join(c.split(";")[0] for c in answer.headers.get_all("Set-Cookie"))
        through(server, port, f"proxy/{server.port}/", id_of(server, "live.tacho"), cookies)
    finally:
        notebook.terminate()
        notebook.wait()
