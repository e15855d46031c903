"""The job speaks: phases and marks told by scripts and programs while they are recorded."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from recorder import TACHO, can_trace, dump, lasting, names, record, run, start, told, until

ROOT = Path(__file__).resolve().parents[2]


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
    # The data is kept; the text ends with a mark of the cut.
    assert first["data"] == f"step={'1' * 40}\0n=5"
    for letter, event in (("x", first), ("y", second)):
        assert event["name"].rstrip("…") in letter * 4096 and event["name"].endswith("…") and len(event["name"]) > 3800


def test_data_without_room_is_left_out_with_a_warning(tmp_path):
    out = tmp_path / "a.tacho"
    done = record(script(f"tacho mark text a={'1' * 4200} b={'2' * 300} c=3"), "-q", output=out)
    (event,) = told(out)
    assert done.returncode == 0 and event["name"] == "text" and event["data"] == f"b={'2' * 300}\0c=3"
    assert b"a=111" in done.stderr and b"is left out" in done.stderr


def test_a_thousand_words_make_one_warning(tmp_path):
    """`tacho mark $(cat file)` of a careless script does not fill its log."""
    out = tmp_path / "a.tacho"
    done = record(script("tacho mark text $(seq -f 'k%g=1' 3000); tacho mark text $(seq 3000)"), "-q", output=out)
    (first, second) = done.stderr.decode().splitlines()
    assert "=1' is left out, and so are " in first and "4096 bytes" in first
    assert "'1' is not KEY=VALUE, and is left out, and so are 2999 more; a text of several words is put in quotes" in second
    assert names(told(out)) == [("mark", "text"), ("mark", "text")]


def test_a_word_that_is_no_data_harms_nothing(tmp_path):
    out = tmp_path / "a.tacho"
    lines = [
        "set -e",
        "tacho mark 'epoch done' 'val loss=3' n=1",
        "tacho phase begin a 'x y' lr=3",
        "tacho phase end a z",
        "tacho phase load lr=3 'no data' -- echo ran",
        "tacho phase begin other lr=4 -- echo too",
        "echo end",
    ]
    done = record(script("\n".join(lines)), "-q", output=out)
    assert (done.returncode, done.stdout) == (0, b"ran\ntoo\nend\n")
    for word in ("val loss=3", "x y", "z", "no data", "begin"):
        assert f"'{word}'".encode() in done.stderr
    assert [(e["kind"], e["name"], e.get("data")) for e in told(out)] == [
        ("mark", "epoch done", "n=1"),
        ("phase.begin", "a", "lr=3"), ("phase.end", "a", None),
        ("phase.begin", "load", "lr=3"), ("phase.end", "load", None),
        ("phase.begin", "other", "lr=4"), ("phase.end", "other", None),
    ]
    for words in (["mark", "--strict", "a", "b"], ["phase", "--strict", "begin", "a", "b"], ["phase", "--strict", "a", "b", "--", "true"]):
        assert run(*words).returncode == 2


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
        # What is set for the recorder is not meant for the commands in its job.
        assert run("mark", "x", env={**env, "TACHO_STRICT": "1"}).returncode == 0
        done = run("mark", "--strict", "x", env=env)
        assert done.returncode == 1 and b"record" in done.stderr
        assert run("phase", "--strict", "x", "--", "false", env=env).returncode == 1


@pytest.mark.parametrize("words", [["mark", "x"], ["phase", "begin", "x"]], ids=" ".join)
def test_a_mark_reads_nothing_of_the_user(tmp_path, words):
    """It has no lasting settings: a home on a slow file system makes it no slower, and a wrong line there is not said each time."""
    trouble = can_trace()
    if trouble:
        pytest.skip(trouble)
    (tmp_path / "tacho").mkdir()
    (tmp_path / "tacho/config").write_text("nonsense = 1\n")
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-o", trace, TACHO, *words], env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}, capture_output=True)
    assert done.returncode == 0 and not done.stderr and str(tmp_path) not in trace.read_text().split("\n", 1)[1]


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


@pytest.mark.parametrize("std", ["c99", "c11", "gnu99", "c++11", "c++17"])
def test_the_header_needs_no_extensions(tmp_path, std):
    """The others' headers may have come first: the header cannot ask for more of them."""
    out = tmp_path / "a.tacho"
    text = '#include <fcntl.h>\n#include <stdio.h>\n#include "tacho_mark.h"\nint main(void) { return tacho_mark("x", "n=1", NULL); }\n'
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text(text)
    language = "c++" if "++" in std else "c"
    if not shutil.which(language if language == "c++" else "cc"):
        pytest.skip("needs a compiler")
    options = ["-x", language, f"-std={std}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"]
    subprocess.run(["cc", *options, "-I", ROOT / "include", "-o", program, source], check=True)
    assert record([program], "-q", output=out).returncode == 0
    (event,) = told(out)
    assert event["name"] == "x" and event["data"] == "n=1" and event["thread"] == event["pid"] and int(event["sent_ns"]) >= 0


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


def lines_of(kind):
    """The code of the documentation's page: what stands behind ```KIND."""
    return re.search(rf"```{kind}\n(.*?)```", (ROOT / "docs/marks.md").read_text(), re.S)[1]


def fortran(tmp_path):
    """The page's Fortran program, built as the page says."""
    (tmp_path / "tacho_f.c").write_text(lines_of("c shim"))
    (tmp_path / "main.f90").write_text(lines_of("fortran"))
    command = re.search(r"`(cc -c .*?)` builds it", (ROOT / "docs/marks.md").read_text())[1]
    env = {**os.environ, "CPATH": str(ROOT / "include")}
    subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, check=True)
    return [tmp_path / "a.out"]


INTERPRETER = {"python": sys.executable, "perl": "perl", "r": "Rscript", "julia": "julia", "fortran": "gfortran"}


@pytest.mark.parametrize("language", INTERPRETER)
def test_the_lines_of_the_documentation(tmp_path, language):
    program = shutil.which(INTERPRETER[language])
    if not program:
        pytest.skip(f"needs {INTERPRETER[language]}, which is not installed here: the lines of this language were not run")
    if language == "fortran":
        job = fortran(tmp_path)
    else:
        (tmp_path / "p").write_text(lines_of(language))
        job = [program, tmp_path / "p"]
    env = {**os.environ, "PATH": f"{Path(TACHO).parent}:{os.environ['PATH']}"}
    out = tmp_path / "a.tacho"
    done = record(job, "-q", output=out, env=env)
    assert done.returncode == 0 and done.stdout == done.stderr == b""
    events = told(out)
    assert names(events) == [("phase.begin", "load"), ("phase.end", "load"), ("mark", "checkpoint written"), ("mark", "")]
    assert events[2]["data"] == "size=3.1G" and events[3]["data"] == "loss=0.31"
    for e in events:  # the sender's clock is told, too
        assert 0 < int(e["sent_ns"]) <= e["time"]
    for value in ({}, {"TACHO_SOCKET": ""}, {"TACHO_SOCKET": "/nonexistent/socket"}, {"TACHO_SOCKET": "/" + "x" * 200}):
        without = {k: v for k, v in env.items() if k != "TACHO_SOCKET"}
        done = subprocess.run(job, env={**without, **value}, capture_output=True)
        assert done.returncode == 0 and done.stdout == done.stderr == b"", value


def test_every_example_of_the_documentation_is_run():
    kinds = set(re.findall(r"```([a-z][a-z ]*)\n", (ROOT / "docs/marks.md").read_text()))
    assert kinds == {*INTERPRETER, "c", "c shim"}


def test_the_c_lines_of_the_documentation(tmp_path):
    include, lines = lines_of("c").split("\n", 1)
    out = tmp_path / "a.tacho"
    program = compiled(tmp_path, f"{include}\nint main(void)\n{{\n{lines.replace('...', '')}\nreturn 0;\n}}\n")
    assert record([program], "-q", output=out).returncode == 0
    assert names(told(out)) == [("phase.begin", "load"), ("phase.end", "load"), ("mark", "checkpoint written"), ("mark", "")]


def test_the_script_of_the_documentation(tmp_path):
    lines = re.search(r"## From a script\n\n```\n(.*?)```", (ROOT / "docs/marks.md").read_text(), re.S)[1]
    for name in ("load.sh", "train", "eval"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    out = tmp_path / "a.tacho"
    assert record(script(lines), "-q", output=out, cwd=tmp_path).returncode == 0
    assert names(told(out)) == [
        ("phase.begin", "load"), ("phase.end", "load"), ("phase.begin", "train"), ("phase.end", "train"),
        ("phase.begin", "eval"), ("phase.end", "eval"), ("mark", "checkpoint written"), ("mark", ""),
    ]


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


CHANGED = r"""
int main(void)
{
	tacho_mark("before", NULL);
	unsetenv("TACHO_SOCKET"); /* as another thread may do */
	tacho_mark("after", NULL);
	return 0;
}
"""


def test_the_environment_is_looked_at_once(tmp_path):
    out = tmp_path / "a.tacho"
    assert record([compiled(tmp_path, CHANGED, "-O2")], "-q", output=out).returncode == 0
    assert names(told(out)) == [("mark", "before"), ("mark", "after")]


def test_what_comes_too_fast_is_counted(tmp_path):
    out = tmp_path / "a.tacho"
    with start("run", "-q", "-o", out, "--", compiled(tmp_path, BURST, "-O2")) as tacho:
        _, status, usage = os.wait4(tacho.pid, 0)
        tacho.returncode = os.waitstatus_to_exitcode(status)
    assert tacho.returncode == 0
    # Several are read at once: the recorder does not take the CPU from the job for each of them.
    assert usage.ru_nvcsw < 40000, usage
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
        assert len(list(left.iterdir())) == 2  # the socket, and what counts what it could not take
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(str(left / "another-7-0001"))
        (socket_left,) = left.glob("*.lost")
        (left / f"{socket_left.name[:8]}-1-0001.lost").touch()  # its socket is gone
        (left / "another-7-0002.lost").touch()
        go.touch()
        assert tacho.stdout.read() == b"0\n"
    assert record(["true"], "-q", output=tmp_path / "b.tacho", env=env).returncode == 0
    assert sorted(p.name for p in left.iterdir()) == ["another-7-0001", "another-7-0002.lost"]


@pytest.fixture
def taken(tmp_path):
    """A command that runs others where the usual directory in /tmp belongs to another user, its environment, and that directory."""
    if os.geteuid() != 0:
        pytest.skip("only root may give a directory to another user, and mount it")
    foreign = tmp_path / "foreign"
    foreign.mkdir(mode=0o700)
    os.chown(foreign, 65534, 65534)
    usual = Path("/tmp/tacho-0")
    usual.mkdir(mode=0o700, exist_ok=True)
    alone = ["unshare", "--mount", "sh", "-c", f'mount --bind {foreign} {usual} && exec "$@"', "sh"]
    if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("mounts are not allowed here")
    env = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "TMPDIR")}
    yield alone, env, foreign
    assert not list(foreign.iterdir())


def test_another_user_cannot_take_the_place_of_the_socket(tmp_path, taken):
    """By a directory of its name in /tmp: then the socket lies in one of its own, which is gone at the end."""
    alone, env, _ = taken
    out = tmp_path / "a.tacho"
    job = script('stat -c %a:%u "${TACHO_SOCKET%/*}"; echo "$TACHO_SOCKET"; tacho mark heard')
    ran = subprocess.run([*alone, TACHO, "run", "-q", "-o", out, "--", *job], env=env, stdout=subprocess.PIPE, text=True, check=True)
    rights, place = ran.stdout.splitlines()
    assert rights == "700:0" and place.startswith("/tmp/tacho-0-")
    assert names(told(out)) == [("mark", "heard")]
    assert not Path(place).parent.exists()


def test_a_directory_of_its_own_is_removed_by_the_next_recorder(tmp_path, taken):
    """Where its recorder was killed; that of one that lives, and one that has nothing in it yet, stay."""
    alone, env, _ = taken

    def begin(name):
        words = [*alone, TACHO, "run", "-q", "-o", tmp_path / name, "--", "sh", "-c", 'echo "$TACHO_SOCKET"; cat']
        tacho = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return tacho, Path(tacho.stdout.readline().strip()).parent

    empty = Path(tempfile.mkdtemp(prefix="tacho-0-", dir="/tmp"))
    (killed, left), (living, used) = begin("a.tacho"), begin("b.tacho")
    try:
        killed.kill()
        killed.wait()
        assert left != used and len(list(left.iterdir())) == 2
        subprocess.run([*alone, TACHO, "run", "-q", "-o", tmp_path / "c.tacho", "--", "true"], env=env, check=True)
        assert not left.exists() and used.exists() and empty.exists()
    finally:
        empty.rmdir()
        for one in (killed, living):
            one.stdin.close()
            one.wait()
            one.stdout.close()
    assert not used.exists()


def test_what_was_lost_is_believed_within_reason(tmp_path):
    """The file that counts it is the user's, and may have any size."""
    out = tmp_path / "a.tacho"
    assert record(script('truncate -s 2T "$TACHO_SOCKET.lost"; tacho mark x'), "-q", output=out).returncode == 0
    (lost,) = [int(dict(r["pairs"])["number"]) for r in dump(out) if r["type"] == "event" and r["kind"] == "marks.dropped"]
    assert 0 < lost < 1e9


def test_a_mark_is_there_while_the_job_runs(tmp_path):
    out = tmp_path / "a.tacho"
    with lasting(script("tacho mark now; cat"), output=out):
        until(lambda: out.exists() and run("check", out).returncode < 2 and names(told(out)) == [("mark", "now")], "the mark is written")
