"""The job cannot tell that it is recorded: what it gets, what its parent sees of its end, which signals reach it.

A probe program writes down all that it inherited; it runs bare and recorded under the same conditions, and the two
must agree but for the documented variables, TACHO_RECORDING and TACHO_SOCKET.
"""

import ctypes
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from recorder import BURNERS, TACHO, can_trace, check, children, dump, job_of, lasting, record, run, show, start, state, until

PROBE = BURNERS / "probe"


# ---- what the job inherits ----


def probe(prefix, report, **kwargs):
    """Runs the probe behind PREFIX and returns what it told: key -> values in order."""
    with open(report.parent / "out", "wb") as out, open(report.parent / "err", "wb") as err:
        options = dict(stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        options.update(kwargs)
        done = subprocess.run([*map(str, prefix), str(PROBE), str(report)], **options)
    assert done.returncode == 0, (report.parent / "err").read_text()
    told = {}
    for line in report.read_bytes().splitlines():
        key, _, value = line.decode(errors="replace").partition(" ")
        told.setdefault(key, []).append(value)
    report.unlink()
    return told


def differences(tmp_path, wrap=(), **kwargs):
    """Keys on which a bare and a recorded probe do not agree, with both answers."""
    recording = tmp_path / "probe.tacho"
    bare = probe([*wrap], tmp_path / "report", **kwargs)
    recorded = probe([*wrap, TACHO, "run", "-q", "-o", recording, "--"], tmp_path / "report", **kwargs)
    recording.unlink()
    ours = [value for value in recorded["env"] if value.startswith(("TACHO_RECORDING=", "TACHO_SOCKET="))]
    assert len(ours) == 2 and ours[0] == f"TACHO_RECORDING={recording}"
    recorded["env"] = [value for value in recorded["env"] if value not in ours]
    return {
        key: (bare.get(key), recorded.get(key))
        for key in bare.keys() | recorded.keys()
        if bare.get(key) != recorded.get(key)
    }


def test_inherits_everything(tmp_path):
    assert differences(tmp_path) == {}


def test_probe_sees_a_difference(tmp_path):
    """The comparison itself: a leaked descriptor and a changed limit are found."""
    bare = probe([], tmp_path / "report")
    leaky = probe([], tmp_path / "report", pass_fds=[os.open("/dev/null", os.O_RDONLY)])
    limited = probe([], tmp_path / "report", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99)))
    assert len([key for key in leaky if key.startswith("fd.") and key not in bare]) == 1
    assert limited[f"limit.{resource.RLIMIT_NOFILE}"] == ["99 99"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_descriptors_stay_closed(tmp_path, closed):
    """With a standard descriptor closed, our own files must not become the job's stdin, stdout or stderr."""
    assert differences(tmp_path, wrap=["sh", "-c", f'exec "$@" {closed}', "sh"]) == {}


def test_inherited_descriptors_are_passed(tmp_path):
    fd = os.open(tmp_path / "extra", os.O_RDWR | os.O_CREAT)
    os.dup2(fd, 77)
    assert differences(tmp_path, pass_fds=[fd, 77]) == {}
    os.close(fd)
    os.close(77)


def test_ignored_signals_stay_ignored(tmp_path):
    names = "HUP INT QUIT PIPE TERM USR1 USR2 TSTP TTIN TTOU WINCH XFSZ ALRM".split()

    def ignore():
        for name in names:
            signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)

    assert differences(tmp_path, preexec_fn=ignore) == {}


def test_ignored_sigchld_becomes_default(tmp_path):
    """The one deliberate exception: a job that ignores SIGCHLD without knowing loses its children's accounting."""
    found = differences(tmp_path, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert found == {f"signal.{signal.SIGCHLD:d}": (["ignored"], ["default"])}


def test_blocked_signals_stay_blocked(tmp_path):
    blocked = [signal.SIGUSR2, signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGRTMIN + 3]
    assert differences(tmp_path, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, blocked)) == {}


@pytest.mark.parametrize("soft, hard", [(64, 64), (256, 4096), (1024, 8192)])
def test_descriptor_limit_is_the_jobs_own(tmp_path, soft, hard):
    """We raise ours to the hard limit, never the job's."""
    limits = (soft, hard)
    assert differences(tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits)) == {}


def test_other_limits(tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 4096))
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 22, 1 << 23))
        resource.setrlimit(resource.RLIMIT_NPROC, (5000, 6000))
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
        resource.setrlimit(resource.RLIMIT_CPU, (3600, 7200))

    assert differences(tmp_path, preexec_fn=limit) == {}


def test_umask_niceness_directory_oom_score(tmp_path):
    (tmp_path / "elsewhere").mkdir()

    def change():
        os.umask(0o027)
        os.nice(3)
        Path("/proc/self/oom_score_adj").write_text("321")
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    assert differences(tmp_path, cwd=tmp_path / "elsewhere", preexec_fn=change) == {}


def test_environment_is_passed_as_it_is(tmp_path):
    """Order, duplicates of nothing, empty values and bytes that are no text included."""
    kept = {os.fsencode(name): os.fsencode(os.environ[name]) for name in ("PATH", "XDG_CONFIG_HOME")}
    strange = {b"EMPTY": b"", b"BYTES": b"\xff\xfe \x80", b"TACHO_RECORDINGS": b"not ours", **kept}
    assert differences(tmp_path, env=strange) == {}


def test_names_the_recording_it_is_in(tmp_path):
    """TACHO_RECORDING is absolute, so that it stays true after a chdir, and one recording may run in another."""
    told = run("run", "-q", "-o", "a.tacho", "--", "sh", "-c", "echo $TACHO_RECORDING", cwd=tmp_path)
    assert told.stdout.decode().strip() == str(tmp_path / "a.tacho")
    inner = [TACHO, "run", "-q", "-o", str(tmp_path / "inner.tacho"), "--", "cat", "/proc/self/environ"]
    nested = record(inner, "-q", output=tmp_path / "outer.tacho")
    ours = [line for line in nested.stdout.decode().split("\0") if line.startswith("TACHO_RECORDING=")]
    assert ours == [f"TACHO_RECORDING={tmp_path}/inner.tacho"]


def test_arguments_are_passed_as_they_are(tmp_path):
    words = [b"", b"-i", b"--", b"a b", b"new\nline", b"\xff\xfe", b"{name}", b"--help"]
    script = "import sys, os; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    command = [TACHO, "run", "-q", "-o", tmp_path / "a.tacho", "--", sys.executable, "-c", script, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE)
    assert done.stdout == b"\0".join(words)


# ---- its input and output ----


@pytest.mark.parametrize("quiet", [True, False])
def test_streams_are_untouched(tmp_path, quiet):
    """Every byte in, every byte out; with -q not one of ours is on stderr, without it ours come after the job's."""
    data = os.urandom(300_000)
    script = "cat; head -c 1000 /dev/zero >&2"
    options = ["-q"] if quiet else []
    command = [TACHO, "run", *options, "-o", tmp_path / "a.tacho", "--", "sh", "-c", script]
    done = subprocess.run(command, input=data, capture_output=True)
    assert done.returncode == 0
    assert done.stdout == data
    assert done.stderr[:1000] == bytes(1000)
    assert (done.stderr[1000:] == b"") == quiet


def test_stdin_is_left_for_others(tmp_path):
    """What the job does not read stays there for whoever reads next."""
    (tmp_path / "in").write_text("one\ntwo\n")
    script = f'"{TACHO}" run -q -o "{tmp_path}/a.tacho" -- sh -c "read x; echo job \\$x"; read y; echo shell $y'
    with open(tmp_path / "in", "rb") as source:
        done = subprocess.run(["sh", "-c", script], stdin=source, stdout=subprocess.PIPE, text=True)
    assert done.stdout == "job one\nshell two\n"


def test_full_stdout_is_the_jobs_trouble(tmp_path):
    with open("/dev/full", "wb") as full:
        done = record(["sh", "-c", "echo x || exit 3"], "-q", output=tmp_path / "a.tacho", stdout=full)
    assert done.returncode == 3


def test_closed_or_full_stderr_does_not_fail_a_good_job(tmp_path):
    """Our summary has nowhere to go: the job's status stays."""
    with open("/dev/full", "wb") as full:
        assert record(["true"], output=tmp_path / "a.tacho", stderr=full).returncode == 0
    words = [TACHO, "run", "-o", str(tmp_path / "b.tacho"), "--", "true"]
    assert subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *words]).returncode == 0


def test_reader_that_goes_away(tmp_path):
    """SIGPIPE hits the job as it would without us."""
    words = f'"{TACHO}" run -q -o "{tmp_path}/a.tacho" -- yes'
    done = subprocess.run(["bash", "-c", f"{words} | head -n 1; echo ${{PIPESTATUS[0]}}"], stdout=subprocess.PIPE)
    assert done.stdout == b"y\n141\n"


# ---- its end ----


@pytest.mark.parametrize("code", [0, 1, 7, 125, 126, 127, 128, 255])
def test_exit_code_is_the_jobs(tmp_path, code):
    done = record(["sh", "-c", f"exit {code}"], "-q", output=tmp_path / "a.tacho")
    assert done.returncode == code
    assert show(tmp_path / "a.tacho")["exit"] == {"code": code, "signal": None}


@pytest.mark.parametrize("name", "HUP INT QUIT ABRT KILL USR1 SEGV PIPE TERM".split())
def test_signal_is_the_jobs(tmp_path, name):
    """We die of the same signal, so that a shell sees 128+N and a parent WIFSIGNALED."""
    number = getattr(signal, f"SIG{name}")
    command = ["sh", "-c", f"ulimit -c 0; kill -{name} $$"]
    done = record(command, "-q", output=tmp_path / "a.tacho")
    assert done.returncode == -number
    assert show(tmp_path / "a.tacho")["exit"]["signal"] == number
    words = [TACHO, "run", "-q", "-o", str(tmp_path / "b.tacho"), "--", *command]
    shell = subprocess.run(["sh", "-c", '"$@"; echo $?', "sh", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert shell.stdout == f"{128 + number}\n".encode()


def test_not_found(tmp_path):
    done = run("run", "--", "no-such-command-anywhere", cwd=tmp_path)
    assert done.returncode == 127
    assert b"no-such-command-anywhere" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["not executable", "directory"])
def test_cannot_execute(tmp_path, kind):
    job = tmp_path / "job"
    if kind == "directory":
        job.mkdir()
    else:
        job.write_bytes(b"#!/bin/sh\n")
    done = run("run", "--", job, cwd=tmp_path)
    assert done.returncode == 126
    assert str(job).encode() in done.stderr
    assert list(tmp_path.iterdir()) == [job]


def test_force_keeps_the_old_recording_when_nothing_ran(tmp_path):
    old = tmp_path / "old.tacho"
    assert record(["true"], "-q", output=old).returncode == 0
    before = old.read_bytes()
    assert record(["no-such-command-anywhere"], "--force", output=old).returncode == 127
    assert old.read_bytes() == before
    assert list(tmp_path.iterdir()) == [old]


@pytest.mark.parametrize("words", [[], ["--"], ["--no-such-option", "--", "true"], ["-i", "soon", "--", "true"]])
def test_wrong_use(tmp_path, words):
    done = run("run", *words, cwd=tmp_path)
    assert done.returncode == 125
    assert done.stderr.startswith(b"tacho")
    assert list(tmp_path.iterdir()) == []


# ---- signals on their way to it ----


def start_counter(tmp_path, names, **kwargs):
    """A job that writes down each signal of NAMES as it arrives and ends with 7 when that was TERM."""
    log = tmp_path / "log"
    words = ["run", "-q", "-o", tmp_path / "a.tacho", "--", BURNERS / "signals", log, *names]
    tacho = start(*words, stdin=subprocess.PIPE, **kwargs)
    until(lambda: log.exists() and "ready" in log.read_text(), "the counter is ready")
    return tacho, log


def number_of(name):
    return int(name) if name.isdigit() else getattr(signal, f"SIG{name}")


# All that can be caught, but for our own faults (SEGV …), CHLD, CONT and what stops: those have tests of their own.
SIGNALS = "INT HUP QUIT USR2 WINCH ALRM VTALRM PROF XCPU XFSZ PIPE URG POLL PWR STKFLT 34 35 49 63 64 USR1 TERM".split()


def test_signals_reach_the_job_once(tmp_path):
    """Sent to us alone, each passes on exactly once, and the job's own answer to TERM is the status."""
    names = ["CONT", *SIGNALS]
    tacho, log = start_counter(tmp_path, names, start_new_session=True)
    for name in names:
        tacho.send_signal(number_of(name))
        until(lambda: name in log.read_text().split(), f"SIG{name} arrives")
    assert tacho.wait() == 7
    assert log.read_text().split() == ["ready", *names]
    assert show(tmp_path / "a.tacho")["complete"]


def test_signals_of_the_c_library(tmp_path):
    """The two that it uses for threads (32, 33) end a job as others do: it must be the job that they end."""
    tacho = start("run", "-q", "-o", tmp_path / "a.tacho", "--", "sleep", "1000", start_new_session=True)
    job_of(tacho, "sleep")
    os.kill(tacho.pid, 32)
    assert tacho.wait() in (-32, 128 + 32)
    assert show(tmp_path / "a.tacho")["exit"]["signal"] == 32


def test_a_signal_keeps_its_value(tmp_path):
    """As sigqueue(3) gives it one."""
    tacho, log = start_counter(tmp_path, ["40", "USR1", "TERM"], start_new_session=True)
    for name, value in (("40", 7), ("USR1", -5), ("40", 8)):
        assert ctypes.CDLL(None).sigqueue(tacho.pid, int(number_of(name)), value) == 0
        until(lambda: f"{name}={value}" in log.read_text().split(), f"{name} arrives")
    tacho.send_signal(signal.SIGTERM)
    assert tacho.wait() == 7
    assert log.read_text().split() == ["ready", "40=7", "USR1=-5", "40=8", "TERM"]


def test_a_timer_from_before_the_start_is_the_jobs(tmp_path):
    """`perl -e 'alarm 9; exec @ARGV' tacho run …`: the timer stays with us over the exec. Held back until it is expected."""

    def set_timer():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        signal.setitimer(signal.ITIMER_REAL, 0.05)

    tacho, log = start_counter(tmp_path, ["ALRM", "TERM"], start_new_session=True, preexec_fn=set_timer)
    until(lambda: "ALRM" in log.read_text(), "ALRM arrives")
    tacho.send_signal(signal.SIGTERM)
    assert tacho.wait() == 7
    assert log.read_text().split() == ["ready", "ALRM", "TERM"]


def test_our_own_limits_are_not_the_jobs_signals(tmp_path):
    """The recording meets a limit of files: the signal for that is ours."""
    most = 8192

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    log, recording = tmp_path / "log", tmp_path / "a.tacho"
    words = ["run", "-q", "-i", "5ms", "--flush=10ms", "-o", recording, "--", BURNERS / "signals", log, "XFSZ", "USR1", "TERM"]
    tacho = start(*words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=limit)
    until(lambda: recording.exists() and recording.stat().st_size == most, "the limit is met")
    for count in (1, 2):
        tacho.send_signal(signal.SIGUSR1)
        until(lambda: log.read_text().count("USR1") == count, "USR1 arrives")
    tacho.send_signal(signal.SIGTERM)
    assert tacho.wait() == 7
    assert log.read_text().split() == ["ready", "USR1", "USR1", "TERM"]


def held(tacho):
    """Stopped, until the test lets it go on: what we do with a signal comes after what the job does with its own."""
    os.kill(tacho.pid, signal.SIGSTOP)
    until(lambda: state(tacho.pid) == "T", "we are held")


def test_signals_to_the_group_reach_the_job_once(tmp_path):
    """To the whole process group: the job has each already, and we pass on none; to us alone: we do, then as before."""
    tacho, log = start_counter(tmp_path, SIGNALS, start_new_session=True)
    expected = ["ready"]
    for name in SIGNALS[:-2]:
        held(tacho)
        os.killpg(tacho.pid, number_of(name))
        expected.append(name)
        until(lambda: log.read_text().split() == expected, f"SIG{name} arrives")
        os.kill(tacho.pid, signal.SIGCONT)
        for _ in range(2):  # when the second arrives we have done with the group's
            tacho.send_signal(signal.SIGUSR1)
            expected.append("USR1")
            until(lambda: len(log.read_text().split()) >= len(expected), "USR1 arrives")
        assert log.read_text().split() == expected
    tacho.send_signal(signal.SIGTERM)
    assert tacho.wait() == 7
    assert log.read_text().split() == [*expected, "TERM"]


def test_a_signal_to_the_group_where_proc_is_of_another_pid_namespace(tmp_path):
    """There the number of our witness is a stranger's. Of what unshare(1) gets itself, it outlives INT and TERM only."""
    if subprocess.run(["unshare", "-pf", "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no PID namespace can be made here")
    log = tmp_path / "log"
    words = ["unshare", "-pf", TACHO, "run", "-q", "-o", tmp_path / "a.tacho", "--", BURNERS / "signals", log, "INT", "USR1", "TERM"]
    unshare = subprocess.Popen([*map(str, words)], stdin=subprocess.PIPE, start_new_session=True)
    until(lambda: log.exists() and "ready" in log.read_text(), "the counter is ready")
    tacho = SimpleNamespace(pid=int(children_of(unshare)[0]))
    until(lambda: witnesses_of(tacho), "there is a witness")
    held(tacho)
    os.killpg(unshare.pid, signal.SIGINT)
    until(lambda: "INT" in log.read_text(), "INT arrives")
    os.kill(tacho.pid, signal.SIGCONT)
    for count in (1, 2):
        os.kill(tacho.pid, signal.SIGUSR1)
        until(lambda: log.read_text().count("USR1") == count, "USR1 arrives")
    os.kill(tacho.pid, signal.SIGTERM)
    assert unshare.wait() == 7
    assert log.read_text().split() == ["ready", "INT", "USR1", "USR1", "TERM"]


COUNT_SIGNALS = """
import os, signal, sys
first, last, log = int(sys.argv[1]), int(sys.argv[2]), os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while (got := signal.sigwait({first, last})) != last:
    os.write(log, b"first ")
os.write(log, b"last")
"""


def test_a_signal_to_the_group_while_the_job_starts(tmp_path):
    """We are held after each fork. The job inherits both signals blocked, so that what comes before its first instruction is
    counted as well; of real-time signals none hides another, and the lower one is delivered first."""
    if why := can_trace():
        pytest.skip(why)
    first, last, log = signal.SIGRTMIN + 1, signal.SIGRTMAX, tmp_path / "log"
    hold = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=clone3", "-e", "inject=clone3:delay_exit=300000", "setsid"]
    words = [TACHO, "run", "-q", "-o", tmp_path / "a.tacho", "--", "python3", "-c", COUNT_SIGNALS, str(first), str(last), log]
    with subprocess.Popen([*hold, *words], preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {first, last})) as strace:
        try:
            tacho = job_of(strace, "tacho")
            until(lambda: children(tacho), "the job's process is there")
            os.killpg(tacho, first)
            until(lambda: log.exists() and log.read_text(), "the group's arrives")
            os.kill(tacho, last)
            assert strace.wait() == 0
        except BaseException:
            os.killpg(tacho, signal.SIGKILL)
            strace.kill()
            raise
    assert log.read_text().split() == ["first", "last"]


def test_a_signal_to_the_group_of_a_job_that_left_it(tmp_path):
    """The job has a group of its own, as below `timeout` or `setsid`: what comes to ours must still reach it."""
    log = tmp_path / "log"
    words = ["run", "-q", "-o", tmp_path / "a.tacho", "--", "setsid", BURNERS / "signals", log, "USR1", "TERM"]
    tacho = start(*words, stdin=subprocess.PIPE, start_new_session=True)
    until(lambda: log.exists() and "ready" in log.read_text(), "the counter is ready")
    os.killpg(tacho.pid, signal.SIGUSR1)
    until(lambda: "USR1" in log.read_text(), "USR1 arrives")
    os.killpg(tacho.pid, signal.SIGTERM)
    assert tacho.wait() == 7
    assert log.read_text().split() == ["ready", "USR1", "TERM"]


def test_timeout_signals_as_without_us(tmp_path):
    """timeout(1) signals its child and then the group: once or twice, as its child itself would get it."""
    log = tmp_path / "log"
    words = [TACHO, "run", "-q", "-o", tmp_path / "a.tacho", "--", BURNERS / "signals", log, "USR1", "CONT"]
    timeout = subprocess.Popen(["timeout", "-v", "-s", "USR1", "0.3", *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: log.exists() and "USR1" in log.read_text(), "the time is over")
    until(lambda: "CONT" in log.read_text(), "CONT arrives")
    timeout.stdin.close()
    timeout.wait()
    told = log.read_text().split()
    assert set(told) == {"CONT", "USR1", "ready"} and max(told.count("USR1"), told.count("CONT")) <= 2
    assert show(tmp_path / "a.tacho")["exit"]["code"] == len(told) - 1


def children_of(process):
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def witnesses_of(tacho):
    return [int(pid) for pid in children_of(tacho) if Path(f"/proc/{pid}/comm").read_text() == "signal-witness\n"]


def test_signals_to_us_alone_need_no_witness(tmp_path):
    """It is found neither by our name nor by our command line; killed or stopped it takes no signal away from the job."""
    tacho, log = start_counter(tmp_path, ["USR1", "USR2", "TERM"], start_new_session=True)
    until(lambda: witnesses_of(tacho), "there is a witness")
    [witness] = witnesses_of(tacho)
    assert not Path(f"/proc/{witness}/cmdline").read_bytes().strip(b"\0")
    os.kill(witness, signal.SIGSTOP)
    until(lambda: state(witness) == "T", "it is stopped")
    tacho.send_signal(signal.SIGUSR1)
    until(lambda: "USR1" in log.read_text(), "USR1 arrives")
    os.kill(witness, signal.SIGKILL)
    until(lambda: state(witness) == "Z", "it is dead")
    tacho.send_signal(signal.SIGUSR2)
    until(lambda: "USR2" in log.read_text(), "USR2 arrives")
    until(lambda: witnesses_of(tacho) not in ([], [witness]), "there is a new witness")
    os.killpg(tacho.pid, signal.SIGUSR1)
    until(lambda: log.read_text().count("USR1") == 2, "the group's arrives")
    tacho.send_signal(signal.SIGTERM)
    assert tacho.wait() == 7
    assert log.read_text().split() == ["ready", "USR1", "USR2", "USR1", "TERM"]


def test_signals_ignored_by_the_job_do_not_end_us(tmp_path):
    """`nohup`: the job ignores HUP, so HUP must not end the recording either."""
    os.mkfifo(tmp_path / "fifo")
    script = "trap '' HUP INT TERM; echo; read x < fifo; exit 4"
    words = ["run", "-q", "-o", tmp_path / "a.tacho", "--", "sh", "-c", script]
    tacho = start(*words, cwd=tmp_path, stdout=subprocess.PIPE)
    tacho.stdout.readline()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        tacho.send_signal(number)
    with open(tmp_path / "fifo", "w") as fifo:
        fifo.write("go\n")
    assert tacho.wait() == 4
    assert show(tmp_path / "a.tacho")["complete"]


def test_killed_job(tmp_path):
    tacho = start("run", "-q", "-o", tmp_path / "a.tacho", "--", "sleep", "1000")
    job = job_of(tacho, "sleep")
    os.kill(job, signal.SIGKILL)
    assert tacho.wait() == -signal.SIGKILL
    assert show(tmp_path / "a.tacho")["exit"]["signal"] == signal.SIGKILL


def cgroup(pid):
    return Path(f"/proc/{pid}/cgroup").read_text()


def test_what_the_job_leaves_running_is_left_alone(tmp_path):
    """A daemon that outlives the job: we end with the job, it runs on, in the control group where it would have been."""
    script = "sleep 1000 >/dev/null 2>&1 & echo $!; exit 3"
    done = record(["sh", "-c", script], "-q", output=tmp_path / "a.tacho")
    daemon = int(done.stdout)
    try:
        assert done.returncode == 3
        assert state(daemon) in ("S", "R", "D")
        assert cgroup(daemon) == cgroup(os.getpid())
    finally:
        os.kill(daemon, signal.SIGKILL)


# ---- the recording's name and mode ----


def test_name_by_default(tmp_path):
    assert run("run", "-q", "--", "/bin/sh", "-c", ":", cwd=tmp_path).returncode == 0
    (made,) = tmp_path.iterdir()
    assert made.match("sh-[0-9]*-[0-9]*.tacho")


@pytest.mark.parametrize(
    "output, expected",
    [
        ("plain", "plain"),
        ("{name}.t", "my run.t"),
        ("deep/er/x.tacho", "deep/er/x.tacho"),
        ("{rank}-{jobid}.t", "3-77.t"),
        ("{{x}}.t", "{x}.t"),
    ],
)
def test_output_templates(tmp_path, output, expected):
    env = dict(os.environ, SLURM_JOB_ID="77", SLURM_PROCID="3")
    done = run("run", "-q", "-n", "my run", "-o", output, "--", "true", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()] == [expected]


def test_output_directory(tmp_path):
    (tmp_path / "there").mkdir()
    assert run("run", "-q", "-o", tmp_path / "there", "--", "true").returncode == 0
    assert [path.name for path in (tmp_path / "there").iterdir() if path.match("true-*.tacho")]


@pytest.mark.parametrize("output", [None, "{name}.tacho", "there", "new/", "{name}"])
def test_recordings_that_start_together_are_numbered(tmp_path, output):
    """Twenty at once, of one name: every job runs, and every one of them has its recording."""
    (tmp_path / "there").mkdir()
    words = [TACHO, "run", "-q", *(["-o", output] if output else []), "--", "sh", "-c", "echo $TACHO_RECORDING"]
    done = subprocess.run(
        ["xargs", "-P8", "-I{}", *words], input=b"go\n" * 20, cwd=tmp_path, stdout=subprocess.PIPE
    )
    told = done.stdout.decode().split()
    assert done.returncode == 0 and len(told) == 20
    assert sorted(told) == sorted(str(path) for path in tmp_path.rglob("*") if path.is_file())
    if output == "{name}.tacho":
        assert {Path(path).name for path in told} == {"sh.tacho", *(f"sh-{n}.tacho" for n in range(2, 21))}
    assert all(check(path)[0] == 0 for path in told[::7])


def test_ranks_have_their_number_in_the_preset_name(tmp_path):
    env = dict(os.environ, SLURM_STEP_NUM_TASKS="4")
    for rank in "012":
        assert run("run", "-q", "--", "true", cwd=tmp_path, env={**env, "SLURM_PROCID": rank}).returncode == 0
    assert sorted(path.stem.rpartition("-")[2] for path in tmp_path.iterdir()) == ["rank0", "rank1", "rank2"]


def test_force_and_templates(tmp_path):
    """--force replaces what a template names, but no recording that is still written, and never a name of our own."""
    target = tmp_path / "true.tacho"
    for _ in range(2):
        assert run("run", "-q", "--force", "-o", "{name}.tacho", "--", "true", cwd=tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == [target]
    target.unlink()
    with lasting(["cat"], output=target):
        until(target.exists, "the recording begins")
        assert run("run", "-q", "--force", "-o", "{name}.tacho", "--", "true", cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["true-2.tacho", "true.tacho"]
    assert show(target)["command"] == "cat" and show(tmp_path / "true-2.tacho")["command"] == "true"
    assert run("attach", "--duration", "1ms", "-q", "-o", "{name}", os.getpid(), cwd=tmp_path).returncode == 0
    assert run("attach", "--duration", "1ms", "-q", "-o", "{name}", os.getpid(), cwd=tmp_path).returncode == 0
    assert (tmp_path / "tacho").exists() and (tmp_path / "tacho-2").exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_recordings_are_private(tmp_path, umask):
    done = record(["true"], "-q", output=tmp_path / "a.tacho", preexec_fn=lambda: os.umask(umask))
    assert done.returncode == 0
    assert stat.S_IMODE((tmp_path / "a.tacho").stat().st_mode) == 0o600


def test_nothing_is_overwritten(tmp_path):
    target, ran = tmp_path / "a.tacho", tmp_path / "ran"
    target.write_text("precious")
    target.chmod(0o644)
    done = record(["touch", ran], output=target)
    assert done.returncode == 125
    assert b"a.tacho" in done.stderr and b"--force" in done.stderr
    assert target.read_text() == "precious"
    assert not ran.exists()
    assert record(["touch", ran], "-q", "--force", output=target).returncode == 0
    assert ran.exists()
    assert show(target)["exit"]["code"] == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    done = record(["touch", tmp_path / "second"], "--force", output="/dev/null")
    assert done.returncode == 125 and b"regular file" in done.stderr
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("target", ["file/x.tacho", "/proc/nothing/x.tacho", "/dev/null/x.tacho"])
def test_a_job_runs_though_no_recording_can_be_made(tmp_path, target):
    """One line says why, also with -q; --strict asks for 125 instead, from whatever place."""
    (tmp_path / "file").write_text("")
    job = ["sh", "-c", "cat; exit 7"]
    done = run("run", "-q", "-o", target, "--", *job, cwd=tmp_path, stdin=None, input=b"to it")
    assert (done.returncode, done.stdout) == (7, b"to it")
    assert done.stderr.count(b"\n") == 1 and target.encode() in done.stderr and b"not recorded" in done.stderr
    strict = [["--strict"], {}], [[], {"TACHO_STRICT": "yes"}]
    for option, env in strict:
        done = run("run", *option, "-o", target, "--", *job, cwd=tmp_path, env={**os.environ, **env})
        assert (done.returncode, done.stdout) == (125, b"")
        assert target.encode() in done.stderr and b"not started" in done.stderr


def test_place_without_permission():
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody who may not write here")
    # Of our own making: neither the sources nor pytest's directories need be open to others.
    with tempfile.TemporaryDirectory(prefix="tacho-polite-") as name:
        place = Path(name)
        place.chmod(0o755)
        shutil.copy(TACHO, place / "tacho")
        done = subprocess.run(
            [place / "tacho", "run", "-o", place / "a.tacho", "--", "echo", "ran"],
            stdin=subprocess.DEVNULL, capture_output=True, cwd="/", user=65534, group=65534, extra_groups=[],
        )
    assert done.returncode == 0
    assert b"a.tacho" in done.stderr and b"--output" in done.stderr
    assert done.stdout == b"ran\n"


def test_symbolic_links_are_not_written_through(tmp_path):
    """A link that somebody laid in a shared directory must not lead us to another file."""
    (tmp_path / "a.tacho").symlink_to(tmp_path / "victim")
    assert record(["true"], output=tmp_path / "a.tacho").returncode == 125
    assert not (tmp_path / "victim").exists()


# ---- where options come from ----


def test_precedence(tmp_path, monkeypatch):
    def interval(*options):
        assert record(["true"], "-q", "--force", *options, output=tmp_path / "a.tacho").returncode == 0
        return show(tmp_path / "a.tacho")["interval_s"]

    assert interval() == 1
    (tmp_path / "tacho").mkdir()
    (tmp_path / "tacho" / "config").write_text("# a comment\ninterval = 250ms\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert interval() == 0.25
    monkeypatch.setenv("TACHO_INTERVAL", "500ms")
    assert interval() == 0.5
    assert interval("-i", "20Hz") == 0.05


def test_notes_and_names_from_the_environment(tmp_path, monkeypatch):
    for name in ("MESSAGE", "NAME", "TAG"):
        monkeypatch.setenv(f"TACHO_{name}", f"the={name.lower()}")
    assert run("run", "-q", "--", "true", cwd=tmp_path).returncode == 0
    (made,) = tmp_path.iterdir()
    assert made.name.startswith("the=name-")
    metadata = json.dumps([line for line in dump(made) if "message" in json.dumps(line)])
    assert "the=message" in metadata
    told = run("help", "run").stdout.decode()
    assert "Environment: TACHO_MESSAGE" in told
    force = told.partition("--force\n")[2].partition("\n\n")[0]
    assert "Only on the command line" in force and "Variable" not in force


def test_options_after_the_command_are_its_own(tmp_path):
    done = run("run", "-q", "-o", tmp_path / "a.tacho", "echo", "-q", "--force", "-o", "x")
    assert done.stdout == b"-q --force -o x\n"


def test_huge_pages_are_the_jobs_business(tmp_path):
    """Tables that are mostly empty must not cost two megabytes each where huge pages are given unasked, so the recorder
    does without; the job has them as it would have without us."""
    before = Path("/proc/self/status").read_text()
    if "THP_enabled:" not in before:
        pytest.skip("this kernel does not tell who may have huge pages (before 5.0)")
    done = record(["sh", "-c", "grep THP_enabled /proc/self/status; grep THP_enabled /proc/$PPID/status"], "-q",
                  output=tmp_path / "a.tacho")
    mine = re.search(r"THP_enabled:\s*(\d)", before)[1]
    assert [line.split()[1] for line in done.stdout.decode().splitlines()] == [mine, "0"]
