"""The job speaks: phases and marks told by scripts and programs while they are recorded."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from recorder import TACHO, dump, lasting, record, run, until

ROOT = Path(__file__).resolve().parents[2]


def told(recording):
    """The events that the job told: kind and the pairs of each."""
    kinds = ("phase.begin", "phase.end", "mark", "marks.dropped", "marks.refused")
    return [
        {"kind": r["kind"], "time": r["time"], **dict(r["pairs"])} for r in dump(recording) if r["type"] == "event" and r["kind"] in kinds
    ]


def names(events):
    return [(e["kind"], e["name"]) for e in events]


def script(text):
    return ["sh", "-c", text.replace("tacho ", f"{TACHO} ")]


def test_a_script_tells_of_its_phases(tmp_path):
    out = tmp_path / "a.tacho"
    job = script(
        "tacho phase load -- sh -c 'tacho mark inner; exit 3'; s=$?;"
        "tacho phase begin train lr=0.1; tacho mark 'checkpoint written' size=3.1G; tacho mark loss=0.31 step=1200;"
        "tacho phase end train; exit $s"
    )
    assert record(job, "-q", output=out).returncode == 3
    events = told(out)
    assert names(events) == [
        ("phase.begin", "load"), ("mark", "inner"), ("phase.end", "load"), ("phase.begin", "train"),
        ("mark", "checkpoint written"), ("mark", ""), ("phase.end", "train"),
    ]
    assert events[3]["data"] == "lr=0.1" and events[4]["data"] == "size=3.1G" and events[5]["data"] == "loss=0.31\0step=1200"
    for e in events:  # the sender's clock stands beside that of arrival
        assert 0 < int(e["sent_ns"]) <= e["time"] and int(e["pid"]) > 0
    table = run("export", "--to", "csv", "-d", "events", "-o", "-", out).stdout.decode()
    assert "load" in table and "train" in table and "checkpoint written (size=3.1G)" in table and '"loss=0.31, step=1200"' in table


def test_a_number_is_not_cut_off(tmp_path):
    out = tmp_path / "a.tacho"
    assert record(script(f"tacho mark {'x' * 4040} step={'1' * 40} n=5; tacho mark {'y' * 5000}"), "-q", output=out).returncode == 0
    first, second = told(out)
    assert first["name"] == "x" * 4040 and first["data"] == "n=5" and second["name"] in "y" * 4096 and len(second["name"]) > 4000


def test_the_phase_ends_as_its_command(tmp_path):
    for command, status in (("exit 7", 7), ("kill -KILL $$", -signal.SIGKILL), ("kill -TERM $$", -signal.SIGTERM)):
        done = run("phase", "x", "--", "sh", "-c", command, env={**os.environ, "TACHO_SOCKET": ""})
        assert done.returncode == status
    ignored = subprocess.run([TACHO, "phase", "x", "--", "sh", "-c", "exit 7"], preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert ignored.returncode == 7  # a parent that ignores SIGCHLD leaves that to us
    assert run("phase", "x", "--", "/nonexistent/command").returncode == 127
    assert run("phase", "begin").returncode == 2


def test_a_signal_reaches_the_command_of_a_phase(tmp_path):
    ready = tmp_path / "ready"
    job = f"trap 'echo caught; exit 5' TERM; : >{ready}; while :; do sleep 0.05; done"
    with subprocess.Popen([TACHO, "phase", "x", "--", "sh", "-c", job], stdout=subprocess.PIPE) as phase:
        until(ready.exists, "the command runs")
        phase.send_signal(signal.SIGTERM)
        assert phase.communicate()[0] == b"caught\n" and phase.returncode == 5


def test_without_a_recorder(tmp_path):
    for value in (None, "", "/nonexistent/socket", "x" * 200, str(tmp_path)):
        env = {k: v for k, v in os.environ.items() if k != "TACHO_SOCKET"}
        env.update({} if value is None else {"TACHO_SOCKET": value})
        for words in (["mark", "x"], ["phase", "begin", "x"], ["phase", "end", "x"], ["phase", "x", "--", "true"]):
            assert run(*words, env=env).returncode == 0
        done = run("mark", "--strict", "x", env=env)
        assert done.returncode == 1 and b"record" in done.stderr
        assert run("phase", "--strict", "x", "--", "false", env=env).returncode == 1


def compiled(tmp_path, text, *options):
    """A C program with the header."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("needs a C compiler")
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text('#include "tacho_mark.h"\n' + text)
    subprocess.run(
        [compiler, "-Wall", "-Wextra", "-Werror", *options, "-I", ROOT / "include", "-o", program, source, "-pthread"], check=True
    )
    return program


SPEAKER = r"""
#include <pthread.h>
#include <sys/wait.h>
static void *thread(void *name)
{
	tacho_phase_begin(name, NULL);
	tacho_phase_end(name, NULL);
	return NULL;
}
int main(void)
{
	pthread_t t;

	tacho_phase_begin("all", NULL);
	pthread_create(&t, NULL, thread, "thread");
	pthread_join(t, NULL);
	if (fork() == 0) {
		tacho_mark("from a child", "n=1", "text=a\nb\\c", NULL);
		_exit(0);
	}
	wait(NULL);
	return tacho_phase_end("all", NULL) == 0 ? 0 : 1;
}
"""


@pytest.mark.parametrize("options", [["-std=c99", "-D_GNU_SOURCE"], ["-x", "c++"]], ids=["c", "c++"])
def test_a_program_speaks_by_the_header(tmp_path, options):
    if "c++" in options and not shutil.which("c++"):
        pytest.skip("needs a C++ compiler")
    text = SPEAKER.replace('"thread")', '(void *)"thread")').replace("tacho_phase_begin(name", "tacho_phase_begin((char *)name").replace(
        "tacho_phase_end(name", "tacho_phase_end((char *)name"
    )
    out = tmp_path / "a.tacho"
    assert record([compiled(tmp_path, text, *options)], "-q", output=out).returncode == 0
    events = told(out)
    assert names(events) == [
        ("phase.begin", "all"), ("phase.begin", "thread"), ("phase.end", "thread"), ("mark", "from a child"), ("phase.end", "all"),
    ]
    assert events[3]["data"] == "n=1\0text=a\nb\\c" and events[3]["pid"] != events[0]["pid"]


@pytest.mark.parametrize("language", ["python", "perl"])
def test_the_lines_of_the_documentation(tmp_path, language):
    program = shutil.which("perl") if language == "perl" else sys.executable
    if not program:
        pytest.skip(f"needs {language}")
    code = re.search(rf"```{language}\n(.*?)```", (ROOT / "docs/marks.md").read_text(), re.S)[1]
    call = 'mark("from here");' if language == "perl" else 'mark("from here", loss=0.5)'
    file = tmp_path / "p"
    file.write_text(code + "\n" + call + "\n")
    out = tmp_path / "a.tacho"
    assert record([program, file], "-q", output=out).returncode == 0
    assert names(told(out)) == [("mark", "from here")]
    subprocess.run([program, file], check=True)  # without a recorder


BURST = r"""
int main(void)
{
	for (int i = 0; i < 100000; i++)
		tacho_mark("x", NULL);
	while (tacho_mark("last", NULL) != 0)  /* what was lost is told by the next that arrives */
		usleep(1000);
	return 0;
}
"""


def test_what_comes_too_fast_is_counted(tmp_path):
    out = tmp_path / "a.tacho"
    assert record([compiled(tmp_path, BURST, "-O2")], "-q", output=out).returncode == 0
    events = told(out)
    marks = sum(e["kind"] == "mark" for e in events)
    dropped = sum(int(e["number"]) for e in events if e["kind"] == "marks.dropped")
    assert 0 < marks <= 100001
    # Counted are also tries of the last one.
    assert marks + dropped >= 100001 and (dropped or marks == 100001)
    table = run("export", "--to", "csv", "-d", "events", "-o", "-", out).stdout.decode()
    assert f"{dropped} phases and marks of the job were dropped" in table or not dropped


HOSTILE = r"""
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
to = os.environ["TACHO_SOCKET"]
for text in (b"mark " + b"x" * 65536, b"", b"nonsense", b"\xff" * 100, b"mark \xff\x1b[31mred\x07 <script>alert(1)</script>", b"mark a\\nb"):
    s.sendto(text, to)
s.sendto(b"begin \x1b]0;title\x07", to)
print(oct(os.stat(to).st_mode & 0o777), oct(os.stat(os.path.dirname(to)).st_mode & 0o777))
"""


def test_hostile_messages(tmp_path):
    out = tmp_path / "a.tacho"
    done = record([sys.executable, "-c", HOSTILE], "-q", output=out)
    assert done.returncode == 0 and done.stdout == b"0o600 0o700\n"
    events = told(out)
    assert [e["kind"] for e in events] == ["mark", "mark", "phase.begin", "marks.refused"]
    assert events[1]["name"] == "a\nb" and events[3]["number"] == "4"
    for words in (["plot", out], ["show", out], ["show", "--json", out]):
        assert b"\x1b" not in run(*words, env={**os.environ, "NO_COLOR": "1"}).stdout
    page = tmp_path / "a.html"
    assert run("report", "-o", page, out).returncode == 0
    assert b"<script>alert(1)" not in page.read_bytes()


def test_the_socket_is_gone_with_the_recorder(tmp_path):
    """Also when it was killed: the next one removes what it left, but not those of other nodes that share the directory.
    The job goes on, and its marks are for nobody."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
    left = runtime / "tacho"
    go = tmp_path / "go"
    job = script(f"echo $$; until [ -e {go} ]; do sleep 0.02; done; tacho mark late; echo $?")
    with subprocess.Popen([TACHO, "run", "-q", "-o", tmp_path / "k.tacho", "--", *job], env=env, stdout=subprocess.PIPE) as tacho:
        tacho.stdout.readline()
        tacho.kill()
        tacho.wait()
        assert len(list(left.iterdir())) == 1
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(str(left / "another-7-0001"))
        go.touch()
        assert tacho.stdout.read() == b"0\n"
    assert record(["true"], "-q", output=tmp_path / "b.tacho", env=env).returncode == 0
    assert [p.name for p in left.iterdir()] == ["another-7-0001"]


def test_a_mark_is_there_while_the_job_runs(tmp_path):
    out = tmp_path / "a.tacho"
    with lasting(script("tacho mark now; cat"), output=out):
        until(lambda: out.exists() and run("check", out).returncode < 2 and names(told(out)) == [("mark", "now")], "the mark is written")
