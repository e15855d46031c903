"""What a job may tell that is not meant well, or too much of it; and jobs and recorders that end in between."""

import csv
import html.parser
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from recorder import TACHO, lasting, names, on_terminal, record, run, show, told, until
from test_marks import compiled, script

NOBODY = 65534

# ---- how many ----

BURST = r"""
#include <sys/wait.h>
int main(void)
{
	/* Two processes: none of them tells how many of its own were lost, or ends with a message that arrives. */
	fork();
	for (int i = 0; i < 50000; i++)
		tacho_mark("x", NULL);
	while (wait(NULL) > 0)
		;
	return 0;
}
"""


def dropped(events):
    return sum(int(e["number"]) for e in events if e["kind"] == "marks.dropped")


def test_recorded_and_dropped_are_all(tmp_path):
    out = tmp_path / "a.tacho"
    assert record([compiled(tmp_path, BURST, "-O2")], "-q", output=out).returncode == 0
    events = told(out)
    marks = sum(e["kind"] == "mark" for e in events)
    assert marks > 0 and marks + dropped(events) == 100000
    table = run("export", "--to", "csv", "-d", "events", "-o", "-", out).stdout.decode()
    said = f"{dropped(events)} phases and marks of the job were dropped: they came too fast"
    assert not dropped(events) or said in table and said in show(out)["notes"] and f"note     {said}" in run("show", out).stdout.decode().replace("\n           ", " ")


def spoken_to(tmp_path, speak):
    """Records a job that waits; `speak(pid of the recorder, environment)` meanwhile. What was told."""
    place, out = tmp_path / "place", tmp_path / "a.tacho"
    job = ["sh", "-c", f"echo $TACHO_SOCKET >{place}.new; mv {place}.new {place}; cat"]
    with lasting(job, "-q", output=out) as tacho:
        until(place.exists, "the job has its socket")
        speak(tacho.pid, {**os.environ, "TACHO_SOCKET": place.read_text().strip()})
    return told(out)


def test_a_full_socket_drops_and_counts(tmp_path):
    """The recorder stands still: nothing waits for it, and what did not fit is known in the end."""

    def speak(pid, env):
        os.kill(pid, signal.SIGSTOP)
        try:
            for i in range(600):
                assert run("mark", f"number {i}", env=env).returncode == 0
            done = run("mark", "--strict", "one more", env=env)
            assert done.returncode == 1 and b"was not told" in done.stderr
            done = run("phase", "--strict", "p", "--", "echo", "ran", env=env)
            assert done.returncode == 1 and b"was not told" in done.stderr and done.stdout == b""
            done = run("phase", "p", "--", "echo", "ran", env=env)
            assert done.returncode == 0 and done.stdout == b"ran\n"
        finally:
            os.kill(pid, signal.SIGCONT)

    events = spoken_to(tmp_path, speak)
    heard = [e for e in events if e["kind"] == "mark"]
    assert [e["name"] for e in heard] == [f"number {i}" for i in range(len(heard))]
    assert dropped(events) > 0 and len(heard) + dropped(events) == 600 + 1 + 1 + 2


def test_a_pipe_in_the_place_of_the_count_is_not_waited_for(tmp_path):
    def speak(pid, env):
        lost = Path(env["TACHO_SOCKET"] + ".lost")
        lost.unlink()
        os.mkfifo(lost)
        os.kill(pid, signal.SIGSTOP)
        try:
            for _ in range(600):
                assert run("mark", "x", env=env, timeout=60).returncode == 0
        finally:
            os.kill(pid, signal.SIGCONT)

    assert spoken_to(tmp_path, speak)


LIMITED = r"""
#include <sys/resource.h>
#include <sys/wait.h>
int main(void)
{
	struct rlimit none = {0, 0};
	int n = 0;
	setrlimit(RLIMIT_FSIZE, &none);
	while (n < 20000)
		n++, tacho_mark("x", NULL);
"""


def test_a_limit_on_file_sizes_does_not_end_the_job(tmp_path):
    """Nothing is written then; what was lost is told with the next message."""
    text = LIMITED + r"""	while (n++, tacho_mark("last", NULL) != 0)
		usleep(1000);
	dprintf(1, "%d", n);
	return 0;
}
"""
    out = tmp_path / "a.tacho"
    done = record([compiled(tmp_path, text, "-O2")], "-q", output=out)
    events = told(out)
    assert done.returncode == 0 and sum(e["kind"] == "mark" for e in events) + dropped(events) == int(done.stdout)


def test_a_child_does_not_tell_what_its_parent_lost(tmp_path):
    text = LIMITED + r"""	if (fork() == 0) {
		struct tacho_message m;
		tacho_start(&m);
		return m.lost != 0;
	}
	wait(&n);
	return n != 0;
}
"""
    assert record([compiled(tmp_path, text, "-O2")], "-q", output=tmp_path / "a.tacho").returncode == 0


# ---- by whom ----

FORGER = r"""
import array, os, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(os.environ["TACHO_SOCKET"])
def send(text, pid, uid):
    try:
        s.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", pid, uid, uid))])
        return "sent"
    except PermissionError:
        return "not allowed"
print(send(b"mark forged", 1, 65534 if os.getuid() == 0 else 0))
sent = os.pipe()
for i in range(5):  # descriptors that were not asked for
    s.sendmsg([b"mark with files"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", sent))])
s.send(b"mark own")
"""


def test_a_forged_sender_is_refused(tmp_path):
    """The kernel lets only root name another sender; then it is another user, and not of the job."""
    out = tmp_path / "a.tacho"
    done = record([sys.executable, "-c", FORGER], "-q", output=out)
    assert done.returncode == 0
    events = told(out)
    assert names(events[:6]) == 5 * [("mark", "with files")] + [("mark", "own")]
    if os.getuid() == 0:
        assert done.stdout == b"sent\n" and [(e["kind"], e["number"]) for e in events[6:]] == [("marks.refused", "1")]
    else:
        assert done.stdout == b"not allowed\n" and len(events) == 6


@pytest.fixture
def open_folder():
    """A folder that every user may enter; pytest's own are closed."""
    folder = Path(tempfile.mkdtemp(prefix="tacho-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_forger_who_is_not_root(open_folder):
    if os.getuid():
        pytest.skip("the test above is this one")
    shutil.copy(TACHO, open_folder / "tacho")
    home = open_folder / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    done = subprocess.run(
        [open_folder / "tacho", "run", "-q", "-o", "a.tacho", "--", "/usr/bin/python3", "-c", FORGER], cwd=home, capture_output=True,
        user=NOBODY, group=NOBODY, extra_groups=[], env={"PATH": os.environ["PATH"], "TMPDIR": str(home)},
    )
    assert done.returncode == 0 and done.stdout == b"not allowed\n", done.stderr
    assert names(told(home / "a.tacho"))[-1] == ("mark", "own")


def test_files_that_are_sent_are_not_kept(tmp_path):
    out = tmp_path / "a.tacho"
    job = FORGER + """
import time
pipe = os.readlink(f"/proc/self/fd/{sent[0]}")
def keeps_it(folder=f"/proc/{os.getppid()}/fd"):
    for name in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{name}") == pipe:
                return True
        except FileNotFoundError:
            pass
while keeps_it(): time.sleep(0.01)
"""
    assert record([sys.executable, "-c", job], "-q", output=out).returncode == 0


def send_as(user, path, text):
    """A process of that user sends; what it got: 0, or an errno."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresuid(user, user, user)
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
                s.sendto(text, path)
            status = 0
        except OSError as error:
            status = error.errno
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_another_user_is_not_heard(tmp_path, open_folder, monkeypatch):
    """The directory is in its way; and when that is opened to all, the recorder refuses what is not of the job."""
    if os.getuid():
        pytest.skip("needs root, to be another user")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(open_folder))

    def speak(_, env):
        path = env["TACHO_SOCKET"]
        assert path.startswith(str(open_folder)) and send_as(NOBODY, path, b"mark no") != 0
        Path(path).parent.chmod(0o755)
        Path(path).chmod(0o666)
        assert send_as(NOBODY, path, b"mark no") == 0 and send_as(os.getuid(), path, b"mark yes") == 0
        Path(path).parent.chmod(0o700)

    events = spoken_to(tmp_path, speak)
    assert names(events[:-1]) == [("mark", "yes")] and (events[-1]["kind"], events[-1]["number"]) == ("marks.refused", "1")
    assert [note for note in show(tmp_path / "a.tacho")["notes"] if "to the recorder was refused" in note]


# ---- what is told: every view shows it as text, or not at all ----

EVIL = [
    b"\x1b[31mred\x1b]0;title\x07\x9b31m",
    b"two\\nlines\\ttab\rcarriage",
    b"not \xff\xfe utf-8 \xc3\x28 \xed\xa0\x80",
    "turned \u202e around \u2066 \u200b \ufeff".encode(),
    b"</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    b"<svg onload=alert(1)> & ]]> <!-- --> \"quoted\" 'quoted'",
    b"| pipe | `code` **bold** [link](javascript:alert(1)) ![i](http://127.0.0.1:1/x) # head",
    b"=cmd|' /C calc'!A0",
    b"$(touch PWNED) `touch PWNED`; touch PWNED; %s%n%s%n",
    b"\"]}}, {\"evil\": 1}, \\u0000",
    b"%%{init: {}}%% section x :done, a1, 0, 1 ;; end --> b[\"c\"]",
    b"nul \0 inside",
    b"x" * 4000,
    b"",
]

SPEAKER = f"""
import os, socket, select, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(os.environ["TACHO_SOCKET"])
for text in {EVIL!r}:
    for kind in (b"begin ", b"mark ", b"end "):
        select.select([], [s], [])
        s.send(kind + text + b"\\nkey=" + text[:50])
        time.sleep(0.05)  # so long that it is drawn
select.select([], [s], [])
s.send(b"begin " + b" ".join(t for t in {EVIL[:9]!r}))
"""


SHOWN = "touch PWNED"  # of one that is harmless to look at: views that name phases have it


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    out = tmp_path_factory.mktemp("evil") / "evil.tacho"
    (out.parent / "speaker.py").write_text(SPEAKER)
    assert record([sys.executable, "speaker.py"], "-q", "-i", "50ms", output=out, cwd=out.parent).returncode == 0
    events = told(out)
    assert [e["kind"] for e in events] == len(EVIL) * ["phase.begin", "mark", "phase.end"] + ["phase.begin"]
    return out


# Of control characters only these; of those that turn the direction of text, none.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Colours and moves of our own on a terminal.
OWN = re.compile(r"\x1b\[[0-9;]*[mKHJABCDG]|\x1b\[\?[0-9]+[hl]")


def clean(text):
    if isinstance(text, bytes):
        text = text.decode()  # valid UTF-8
    found = CONTROL.search(text)
    assert not found, (found, text[max(found.start() - 40, 0) : found.end() + 40])
    return text


@pytest.mark.parametrize("words", [
    ["show"], ["show", "--stats"], ["show", "-p"], ["show", "--series", "proc.cpu.time"], ["plot"], ["compare", "--all"], ["ls"], ["check"],
    ["report", "--format", "md", "-o", "-"], ["compare", "--all", "--format", "md"],
], ids=" ".join)
def test_text(evil, words):
    files = [evil, evil] if words[0] == "compare" else [evil]
    done = run(*words, *files, cwd=evil.parent, env={**os.environ, "LC_ALL": "C.UTF-8"})
    if done.returncode == 2:
        pytest.skip(done.stderr.decode())
    text = clean(done.stdout)
    clean(done.stderr)
    # The summary has the longest phases: which these are is not known.
    assert words != ["show"] or "by phase" in text
    assert words[0] != "compare" or SHOWN in text
    if words[0] not in ("ls", "check"):
        seen = on_terminal(*words, *files, COLUMNS="100")
        clean(OWN.sub("", seen))
        assert "\x1b[31mred" not in seen and "\x1b]" not in seen
    assert not (evil.parent / "PWNED").exists()


@pytest.mark.parametrize("words", [["show", "--json"], ["show", "--stats", "--json"], ["compare", "--format", "json"], ["report", "--format", "json", "-o", "-"]], ids=" ".join)
def test_json(evil, words):
    files = [evil, evil] if words[0] == "compare" else [evil]
    done = run(*words, *files)
    json.loads(done.stdout.decode())
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", done.stdout)
    assert SHOWN in done.stdout.decode() or "--stats" in words


@pytest.mark.parametrize("format", ["md", "github"])
def test_markdown(evil, format):
    done = run("report", "--format", format, "-o", "-", evil)
    if done.returncode == 2:
        pytest.skip(done.stderr.decode())
    text = re.sub(r"\\.", "", clean(done.stdout))  # what is escaped is text
    assert "<script" not in text and "<img" not in text and "<svg" not in text
    assert "](javascript:" not in text and "](http://127.0.0.1:1/x)" not in text


class Elements(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, {k for k, _ in attrs}))


@pytest.mark.parametrize("words", [["report"], ["compare", "--all", "--format", "html"]], ids=" ".join)
def test_pages(evil, tmp_path, words):
    page = tmp_path / "a.html"
    files = [evil, evil] if words[0] == "compare" else [evil]
    done = run(*words, "-o", page, *files)
    assert page.exists(), done.stderr
    text = page.read_bytes().decode()
    assert SHOWN in text and "<script>alert" not in text and "<img src=x" not in text and "<svg onload" not in text
    elements = Elements()
    elements.feed(text)
    assert not any({"onerror", "onload"} & attrs for _, attrs in elements.found)
    clean(re.sub(r"(?s)<(script|style)\b.*?</\1>", "", text))


def test_pictures_and_paper(evil, tmp_path):
    done = run("report", "--format", "svg,pdf", "-o", tmp_path / "r", evil)
    if b"not installed" in done.stderr:
        pytest.skip(done.stderr.decode())
    assert done.returncode == 0, done.stderr
    pictures = list((tmp_path / "r").rglob("*.svg"))
    assert pictures
    for picture in pictures:
        root = ET.parse(picture).getroot()  # well-formed
        assert not [e for e in root.iter() if e.tag.endswith("script") or {"onload", "onerror"} & set(e.attrib)]
    if not shutil.which("pdftotext"):
        pytest.skip("needs pdftotext")
    for paper in (tmp_path / "r").rglob("*.pdf"):
        clean(subprocess.run(["pdftotext", paper, "-"], capture_output=True, check=True).stdout.replace(b"\f", b""))


def test_tables(evil):
    """Data has every byte that text can have; what a spreadsheet would compute gets an apostrophe."""
    done = run("export", "--to", "csv", "-d", "events", "-o", "-", evil)
    rows = list(csv.reader(done.stdout.decode().splitlines()))
    assert all(len(row) == len(rows[0]) for row in rows)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", done.stdout.decode())
    cells = [cell for row in rows for cell in row]
    assert "'=cmd|' /C calc'!A0" in cells and not [c for c in cells if c.startswith("=")]


@pytest.mark.parametrize("format", [line.split()[0] for line in run("export", "--formats").stdout.decode().splitlines()[1:] if line.split()])
def test_exports(evil, tmp_path, format):
    done = run("export", "--to", format, "-o", tmp_path / "out", evil)
    assert done.returncode in (0, 1, 2) and b"Sanitizer" not in done.stderr
    clean(done.stderr)


# ---- in between ----


def phases(recording):
    """What the summary says: name, start, end in seconds, and whether it was ended."""
    return [(p["name"], p["begin_s"], p["end_s"], p["ended"]) for p in show(recording)["phases"]]


def test_the_recorder_is_killed_between_begin_and_end(tmp_path):
    """The phase is there and open; the job goes on, its end is for no recorder and does no harm."""
    out, begun, go = tmp_path / "a.tacho", tmp_path / "begun", tmp_path / "go"
    job = script(f"tacho phase begin long; : >{begun}; until [ -e {go} ]; do sleep 0.02; done; tacho phase end long; echo $?")
    with subprocess.Popen([TACHO, "run", "-q", "-o", out, "--", *job], stdout=subprocess.PIPE) as tacho:
        until(begun.exists, "the phase has begun")
        until(lambda: names(told(out)) == [("phase.begin", "long")] if run("check", out).returncode < 2 else False, "it is written")
        tacho.kill()
        tacho.wait()
        go.touch()
        assert tacho.stdout.read() == b"0\n"
    ((name, start, end, ended),) = phases(out)
    assert name == "long" and 0 < start <= end and not ended
    assert "open at the end of the recording" in " ".join(run("show", out).stdout.decode().split())
    assert run("report", "-o", tmp_path / "a.html", out).returncode == 0


def test_the_job_is_killed_inside_a_phase(tmp_path):
    """Also that of `tacho phase NAME -- COMMAND`: it is told when the command is gone, however."""
    out = tmp_path / "a.tacho"
    assert record(script("tacho phase outer -- sh -c 'kill -9 $$'; tacho phase begin open; kill -9 $$"), "-q", output=out).returncode == -9
    (outer, start, end, ended), (name, began, _, open_ended) = phases(out)
    assert outer == "outer" and start <= end <= began and ended and name == "open" and not open_ended


def test_phases_across_fork_and_exec(tmp_path):
    """Whoever begins and ends it: another process, or another program in the same one."""
    text = r"""
#include <sys/wait.h>
int main(int argc, char **argv)
{
	(void)argc;
	tacho_phase_begin("forked", NULL);
	if (fork() == 0)
		return tacho_phase_end("forked", NULL);
	wait(NULL);
	tacho_phase_begin("executed", NULL);
	execl(argv[1], argv[1], "phase", "end", "executed", (char *)NULL);
	return 1;
}
"""
    out = tmp_path / "a.tacho"
    assert record([compiled(tmp_path, text), TACHO], "-q", output=out).returncode == 0
    events = told(out)
    assert names(events) == [("phase.begin", "forked"), ("phase.end", "forked"), ("phase.begin", "executed"), ("phase.end", "executed")]
    assert events[0]["pid"] != events[1]["pid"] and events[2]["pid"] == events[3]["pid"]
    assert [(name, ended) for name, _, _, ended in phases(out)] == [("forked", True), ("executed", True)]


def test_overlapping_phases_of_threads(tmp_path):
    """Each lasts as long as its thread says; they cross."""
    text = r"""
#include <pthread.h>
static pthread_barrier_t step;
static void *thread(void *arg)
{
	int late = arg != NULL;

	for (int i = 0; i < 4; i++) {
		if (i == late)
			tacho_phase_begin(late ? "late" : "early", NULL);
		if (i == 2 + late)
			tacho_phase_end(late ? "late" : "early", NULL);
		usleep(1000);
		pthread_barrier_wait(&step);
	}
	return NULL;
}
int main(void)
{
	pthread_t t;

	pthread_barrier_init(&step, NULL, 2);
	pthread_create(&t, NULL, thread, &step);
	thread(NULL);
	return pthread_join(t, NULL);
}
"""
    out = tmp_path / "a.tacho"
    assert record([compiled(tmp_path, text)], "-q", output=out).returncode == 0
    assert names(told(out)) == [("phase.begin", "early"), ("phase.begin", "late"), ("phase.end", "early"), ("phase.end", "late")]
    (_, early, early_end, _), (_, late, late_end, _) = phases(out)
    assert early < late < early_end < late_end
