"""Interactive programs under a terminal, started by a real interactive shell: job control works as without us."""

import fcntl
import os
import re
import signal
import subprocess
import termios
from pathlib import Path

import pexpect
import pytest

from recorder import BURNERS, PATIENCE_S, TACHO, can_trace, state, until

PROMPT = "outer> "
# Says when it is in the foreground; the quotes keep the echo of this line from saying it.
SLEEPER = "sh -c 'echo star\"\"ted; exec sleep 1000'"


class Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self, directory):
        env = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "HOME": str(directory), "LC_ALL": "C.UTF-8"}
        self.child = pexpect.spawn(
            "/bin/bash", ["--norc", "--noprofile", "-i"], cwd=str(directory), env=env, encoding="utf-8", timeout=PATIENCE_S,
            dimensions=(24, 80),
        )
        # The prompt is put together by the shell, so that the echo of this line does not look like one.
        self.child.sendline("bind 'set enable-bracketed-paste off'; PS1='out''er> '")
        self.child.expect(PROMPT)
        self.nr = 0

    def line(self, text):
        self.child.sendline(text)

    def tacho(self, command):
        """Starts a recorded command; the shell does not wait here."""
        self.nr += 1
        self.line(f"{TACHO} run -q -o {self.nr}.tacho -- {command}")

    def expect(self, text):
        self.child.expect(text if isinstance(text, re.Pattern) else re.escape(text))
        return self.child

    def prompt(self):
        self.expect(PROMPT)

    def status(self):
        """$? of the last command, asked for at the prompt."""
        self.line("echo sta''tus=$?.")
        self.expect(re.compile(r"status=(\d+)\."))
        status = int(self.child.match[1])
        self.prompt()
        return status

    def key(self, letter):
        self.child.sendcontrol(letter)


@pytest.fixture
def shell(tmp_path):
    session = Shell(tmp_path)
    yield session
    session.child.close(force=True)


def talk(shell, word):
    """cat answers: the terminal echoes the line and cat repeats it."""
    shell.line(word)
    shell.expect(word)
    shell.expect(word)


def test_cat(shell):
    shell.tacho("cat")
    talk(shell, "hello")
    shell.key("d")
    shell.prompt()
    assert shell.status() == 0


def test_control_c(shell):
    shell.tacho("cat")
    talk(shell, "hello")
    shell.key("c")
    shell.prompt()
    assert shell.status() == 128 + signal.SIGINT


def test_control_backslash(shell):
    shell.line("ulimit -c 0")
    shell.prompt()
    shell.tacho("cat")
    talk(shell, "hello")
    shell.key("\\")
    shell.prompt()
    assert shell.status() == 128 + signal.SIGQUIT


def test_a_closed_terminal_is_told_to_the_job(tmp_path):
    """As the leader of the session (`ssh -t HOST tacho run …`) we alone hear of it: once to the job, as without us."""
    log, fifo = tmp_path / "log", tmp_path / "fifo"
    os.mkfifo(fifo)
    ours, theirs = os.openpty()
    job = ["sh", "-c", 'exec "$@" <"$0"', fifo, BURNERS / "signals", log, "HUP", "USR1"]
    tacho = subprocess.Popen(
        [TACHO, "run", "-q", "-o", tmp_path / "a.tacho", "--", *job],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    with open(fifo, "w"):
        until(lambda: log.exists() and "ready" in log.read_text(), "the job runs")
        os.close(ours)
        until(lambda: "HUP" in log.read_text(), "the hangup arrives")
        tacho.send_signal(signal.SIGUSR1)
        until(lambda: "USR1" in log.read_text(), "what comes after it arrives")
    assert tacho.wait() == 2
    assert log.read_text().split() == ["ready", "HUP", "USR1"]


@pytest.mark.parametrize("key, name", [("c", "INT"), ("\\", "QUIT")])
def test_typed_signals_arrive_once(tmp_path, key, name):
    """The terminal gives the signal to us and to the job: we must not pass ours on as a second one.

    Two that come together are one to the job, so we are held until it has had its own. What we then do with ours is
    done before we pass on a USR1, which comes after it in the order of signals."""
    words = ["run", "-q", "-o", str(tmp_path / "a.tacho"), "--", str(BURNERS / "signals"), "-", name, "USR1"]
    tacho = pexpect.spawn(TACHO, words, encoding="utf-8", timeout=PATIENCE_S)
    tacho.expect("ready\r\n")
    for _ in range(3):
        os.kill(tacho.pid, signal.SIGSTOP)
        until(lambda: state(tacho.pid) == "T", "we are held")
        tacho.sendcontrol(key)
        tacho.expect(f"{name}\r\n")
        os.kill(tacho.pid, signal.SIGUSR1)
        os.kill(tacho.pid, signal.SIGCONT)
        tacho.expect("USR1\r\n")
        assert name not in tacho.before
    tacho.sendline("")
    tacho.expect(pexpect.EOF)
    tacho.close()
    assert tacho.exitstatus == 6


def test_control_z_and_fg(shell):
    shell.tacho("cat")
    talk(shell, "before")
    for round in ("once", "twice"):
        shell.key("z")
        shell.expect("Stopped")
        shell.prompt()
        assert shell.status() == 128 + signal.SIGTSTP
        shell.line("fg")
        shell.expect("cat")
        talk(shell, f"after{round}")
    shell.key("d")
    shell.prompt()
    assert shell.status() == 0


def test_stopped_job_is_wholly_stopped(shell):
    """Ctrl-Z stops the job and us: nothing of the group may run on, but for our witness, which sleeps for ever."""
    shell.tacho(SLEEPER)
    shell.expect("started")
    shell.key("z")
    shell.expect("Stopped")
    shell.prompt()
    shell.line("g=$(jobs -p); c=$(cat /proc/$g/task/*/children); w=$(readlink -e /proc/$g/exe)")
    shell.prompt()
    shell.line("for p in $g $c; do [ $p = $g -o /proc/$p/exe -ef $w ] || cut -d' ' -f3 /proc/$p/stat; done | uniq -c")
    shell.expect(re.compile(r"\s1 T\b"))
    shell.prompt()
    shell.line("cut -d' ' -f3 /proc/$g/stat | sed 's/^/we: /'")
    shell.expect("we: T")
    shell.prompt()
    # TERM waits until the job goes on; the shell may have seen its end before `fg` asks for it.
    shell.line("kill %1; kill -CONT %1; wait $g")
    shell.prompt()
    shell.line("jobs; until [ ! -e /proc/$g ]; do :; done")
    shell.prompt()


def test_background(shell):
    shell.line(f"{TACHO} run -q -o b.tacho -- sh -c 'exit 3' &")
    shell.prompt()
    shell.line("wait %1")
    shell.prompt()
    assert shell.status() == 3


def test_stop_from_outside(shell):
    """TSTP sent to us alone reaches the job, and we stop with it; CONT lets both go on."""
    shell.line(f"{TACHO} run -q -o b.tacho -- sleep 1000 &")
    shell.prompt()
    shell.line("until job=$(pgrep -x -P $! sleep); do :; done")
    shell.prompt()
    for signal_name, letter in (("TSTP", "T"), ("CONT", "S"), ("TSTP", "T"), ("CONT", "S")):
        shell.line(f"kill -{signal_name} $!; for p in $! $job; do until grep -q ') {letter} ' /proc/$p/stat; do :; done; done")
        shell.prompt()
    shell.line("kill $!; wait $!")
    shell.prompt()
    assert shell.status() == 128 + signal.SIGTERM


def test_background_reader_stops_for_input(shell):
    shell.line(f"{TACHO} run -q -o b.tacho -- cat &")
    shell.prompt()
    # bash tells at a prompt what became of its jobs; how many prompts that takes is not our matter.
    shell.line("until jobs %1 | grep -q Stopped; do :; done; jobs %1")
    shell.expect("Stopped")
    shell.prompt()
    shell.line("fg")
    shell.expect("cat")
    talk(shell, "hello")
    shell.key("d")
    shell.prompt()
    assert shell.status() == 0


def test_bash_inside(shell):
    """A shell with job control of its own, in the middle."""
    shell.tacho("bash --norc --noprofile -i")
    shell.expect(re.compile(r"bash-[\d.]+[#$] "))
    shell.line("PS1='inn''er> '")
    shell.expect("inner> ")
    shell.line(SLEEPER)
    shell.expect("started")
    shell.key("z")
    shell.expect("Stopped")
    shell.expect("inner> ")
    shell.line("kill -9 %1; echo ki''lled")
    shell.expect("killed")
    shell.expect("inner> ")
    shell.line(SLEEPER)
    shell.expect("started")
    shell.key("c")
    shell.expect("inner> ")
    shell.line("exit 5")
    shell.prompt()
    assert shell.status() == 5


def test_less(shell, tmp_path):
    (tmp_path / "text").write_text("".join(f"line {n} of the text\n" for n in range(1, 201)))
    shell.tacho("less text")
    shell.expect("line 23 of the text")
    shell.child.send("G")
    shell.expect("line 200 of the text")
    shell.key("z")
    shell.expect("Stopped")
    shell.prompt()
    shell.line("fg")
    shell.expect("line 200 of the text")
    shell.child.send("q")
    shell.prompt()
    assert shell.status() == 0


def test_vim(shell, tmp_path):
    shell.tacho("vim -u NONE -N -n text")
    shell.expect("[New")
    shell.child.send("ihello from vim\033")
    shell.child.send(":w\r")
    shell.expect("written")
    shell.key("z")
    shell.expect("Stopped")
    shell.prompt()
    shell.line("fg")
    shell.expect("hello from vim")
    shell.child.send(":wq\r")
    shell.prompt()
    assert shell.status() == 0
    assert (tmp_path / "text").read_text() == "hello from vim\n"


def test_window_size(shell, tmp_path):
    """A resized terminal is the job's to know."""
    (tmp_path / "size.py").write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGWINCH, lambda *_: os.write(1, b'now %d\\n' % os.get_terminal_size().columns))\n"
        "os.write(1, b'ready\\n')\n"
        "sys.stdin.readline()\n"
    )
    shell.tacho("/usr/bin/python3 size.py")
    shell.expect("ready")
    shell.child.setwinsize(40, 123)
    shell.expect("now 123")
    shell.line("")
    shell.prompt()


def test_terminal_settings_come_back(shell):
    """A job that dies with the terminal in a strange mode leaves it as it would without us: untouched by us."""
    shell.line("stty -a > before; stty -echo")
    shell.prompt()
    shell.tacho("true")
    shell.prompt()
    shell.line("stty -a > during; stty echo")
    shell.prompt()
    shell.line("grep -c -- '-echo ' during")
    shell.expect(re.compile(r"\b1\b"))
    shell.prompt()


def test_summary_on_a_terminal(shell):
    """Without -q the summary comes after the job's output, and the prompt on a line of its own."""
    shell.line(f"{TACHO} run -o s.tacho -- echo job''output")
    shell.expect("joboutput")
    shell.expect("s.tacho")
    shell.expect(re.compile(r"\r\n[^\r\n]*" + PROMPT))
    assert shell.status() == 0


def test_signals_of_a_script(tmp_path):
    """A script that is interrupted at its recorded command ends as it would without us (`wait and cooperative exit`)."""
    script = tmp_path / "script"
    script.write_text(f"{TACHO} run -q -o {tmp_path}/a.tacho -- {SLEEPER}\necho went on\n")
    child = pexpect.spawn("/bin/bash", [str(script)], encoding="utf-8", timeout=PATIENCE_S)
    child.expect("started")
    child.sendcontrol("c")
    child.expect(pexpect.EOF)
    assert "went on" not in child.before
    child.close()
    assert child.signalstatus == signal.SIGINT


@pytest.mark.skipif(can_trace() is not None, reason=str(can_trace()))
def test_no_reading_is_without_a_word(tmp_path):
    """Each command, on a disk that takes its time (strace delays every read), says how far its first pass is."""
    file, cut = tmp_path / "long.tacho", tmp_path / "cut.tacho"
    subprocess.run([Path(TACHO).parent / "tests/unit/query_tool", "long", file, "1200", "10", "20"], check=True)
    cut.write_bytes(file.read_bytes()[:-100])
    far = rb"reading, [\d.]+ [KM]iB of 1\.75 MiB"
    expected = {"show": far, "show -p": far, "show --stats": far, "show --csv --series tree.cores": far, "plot": far, "report --format md": far,
                "export --to csv": far, "compare": rb"reading, [\d.]+ [KM]iB of 3\.5\d? MiB", "check": rb"reading, [\d.]+ [KM]iB",
                "ls": rb"reading, [\d.]+ [KM]iB"}
    ours = {}
    for words in expected:
        ours[words], theirs = os.openpty()
        operands = {"compare": [file, cut], "ls": [cut]}.get(words, [file])
        slow = ["strace", "-f", "-o", "/dev/null", "-e", "trace=pread64", "-e", "inject=pread64:delay_exit=500000"]
        tacho = subprocess.Popen([*slow, TACHO, *words.split(), *operands], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=theirs, start_new_session=True)
        os.close(theirs)
        ours[words] = tacho, ours[words]
    try:
        for words, (tacho, terminal) in ours.items():
            text = b""
            while not re.search(expected[words], text):
                try:
                    part = os.read(terminal, 4096)
                except OSError:  # it has ended
                    part = b""
                assert part, (words, text)
                text += part
    finally:
        for tacho, terminal in ours.values():
            os.killpg(tacho.pid, signal.SIGKILL)
            tacho.wait()
            os.close(terminal)
