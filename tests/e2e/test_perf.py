"""Counters on real trees, by the kernel's software events, which every machine has.

The task clock is counted beside everything else, and the kernel keeps the CPU time of the same processes in other
books. The two are never equal: the counters' clock goes on while an interrupt or the host of a virtual machine has the
CPU, and the last moments of a process are not counted. So a tenth less and a quarter more are allowed, for burners of half
a second, and what was stolen from this machine meanwhile; what is not counted at all, or twice, is half of a job or all of it.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from recorder import BURNERS, TACHO, job_of, need_mounts, record, run, show, start, until

LEAST, MOST = 0.9, 1.25
NOBODY = 65534

@pytest.fixture(scope="module", autouse=True)
def kernel_counts(tmp_path_factory):
    """Where the kernel gives nobody a counter, there is nothing to be seen."""
    trial = tmp_path_factory.mktemp("trial") / "trial.tacho"
    record(["true"], "-q", "-m", "task_clock", output=trial)
    if show(trial)["perf"]["task_clock"]["value"] is None:
        pytest.skip("no counters here: " + json.dumps(show(trial)["unavailable"])[:300])


def stolen_s():
    """What interrupts and the host have had of the CPUs so far."""
    words = Path("/proc/stat").read_text().split()
    return sum(map(int, words[6:9])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(autouse=True)
def stolen_before():
    stolen_before.s = stolen_s()


def value(summary, name):
    return summary["perf"][name]["value"]


def reason(summary, metric):
    text = json.dumps(summary["unavailable"])
    assert metric in text, text
    return text


def is_counted_once(summary, cpu_s=None, more_s=0):
    """The counters' CPU time, against the kernel's own account or what the job is known to burn."""
    cpu_s = cpu_s or summary["cpu"]["total_s"]
    most = MOST * cpu_s + more_s + stolen_s() - stolen_before.s
    assert LEAST * cpu_s <= value(summary, "task_clock") <= most, (value(summary, "task_clock"), cpu_s, most)
    assert summary["perf"]["task_clock"]["running_share"] == pytest.approx(1, abs=0.01)


def shell(text):
    return ["sh", "-c", text.replace("BURN/", f"{BURNERS}/")]


# ---- a command of ours ----


@pytest.mark.parametrize("helpers", ["all", "none"])
@pytest.mark.parametrize(
    "job",
    [
        "BURN/cpu 0.5 & BURN/cpu 0.5 & wait",  # forks
        "BURN/threads 4 0.3",  # threads
        "BURN/threads 2 0.3 & sh -c 'BURN/threads 2 0.3; BURN/cpu 0.3 sys' & wait",  # all of it, in depth
        "exec sh -c 'exec env exec_chain=1 BURN/cpu 0.5'",  # programs in turn
        "BURN/orphan daemon 0.5",  # whose parents are gone
        "BURN/orphan reparent 0.5",
    ],
)
def test_the_tree_is_counted_once(tmp_path, job, helpers):
    recording = tmp_path / "job.tacho"
    done = record(shell(job), "-m", "perf", "-i", "50ms", "--helpers", helpers, "--wait", "tree", output=recording)
    assert done.returncode == 0, done.stderr
    summary = show(recording)
    is_counted_once(summary)
    assert summary["cpu"]["counted_percent"] >= 100 * LEAST
    assert b"counters saw " in run("show", recording).stdout


def test_switches_and_faults_are_the_kernels(tmp_path):
    """A tree whose processes wait for each other, and what the kernel says of it when it was reaped."""
    script = """
import os, resource, sys, threading
def ping(n):
    a, b = os.pipe(), os.pipe()
    if os.fork() == 0:
        for _ in range(n):
            os.read(a[0], 1); os.write(b[1], b"x")
        os._exit(0)
    for _ in range(n):
        os.write(a[1], b"x"); os.read(b[0], 1)
    os.wait()
t = threading.Thread(target=ping, args=(800,))
t.start(); ping(800); t.join()
memory = bytearray(40 << 20)
both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(u.ru_nvcsw + u.ru_nivcsw for u in both), sum(u.ru_minflt + u.ru_majflt for u in both))
"""
    recording = tmp_path / "job.tacho"
    done = record([sys.executable, "-c", script], "-q", "-m", "perf", output=recording)
    switches, faults = map(int, done.stdout.split())
    summary = show(recording)
    assert switches > 2000
    # The script's own last moments, and those of its children, are beyond what it could print.
    assert value(summary, "context_switches") == pytest.approx(switches, rel=0.03, abs=30)
    assert value(summary, "page_faults") == pytest.approx(faults, rel=0.15, abs=200)


def test_short_lives_are_missed_and_it_is_said(tmp_path):
    recording = tmp_path / "job.tacho"
    assert record([BURNERS / "storm", "400", "4"], "-q", "-m", "perf", output=recording).returncode == 0
    summary = show(recording)
    assert value(summary, "task_clock") > 0
    share = 100 * value(summary, "task_clock") / summary["cpu"]["total_s"]
    assert summary["cpu"]["counted_percent"] == pytest.approx(share, abs=0.1)
    said = re.search(r"counters saw (?:(\d+) %|all)", run("show", recording).stdout.decode())
    assert float(said[1] or 100) == pytest.approx(min(share, 100), abs=0.51)


def test_a_job_that_is_killed(tmp_path):
    recording = tmp_path / "job.tacho"
    tacho = start("run", "-qm", "perf", "-i", "50ms", "-o", recording, "--", BURNERS / "cpu", "60")
    job = job_of(tacho, "cpu")
    until(lambda: sum(map(int, Path(f"/proc/{job}/stat").read_text().split()[13:15])) >= 50, "half a second of CPU")
    os.kill(job, signal.SIGKILL)
    assert tacho.wait() == -signal.SIGKILL
    is_counted_once(show(recording))


def test_without_children(tmp_path):
    recording = tmp_path / "job.tacho"
    command = shell("BURN/threads 2 0.2; BURN/cpu 0.2; true")
    record(command, "-qm", "perf", "--children", "no", output=recording)
    assert value(show(recording), "task_clock") < 0.1  # the shell alone
    record([BURNERS / "threads", "3", "0.2"], "-qfm", "perf", "--children", "no", output=recording)
    is_counted_once(show(recording), 0.6)


# ---- processes that run already, or come by themselves ----

WORKER = """
import os, shlex, subprocess, sys, threading, time
def burn(s):
    end = time.thread_time() + s
    while time.thread_time() < end:
        pass
old, new, helper_s, command = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3], shlex.split(sys.argv[4])
go = threading.Event()
def later():
    go.wait()
    burn(old)
threads = [threading.Thread(target=later) for _ in range(3)]
for t in threads:
    t.start()
helper = subprocess.Popen([sys.executable, "-c", "import sys, time; sys.stdin.read(1)\\n"
    "end = time.process_time() + float(sys.argv[1])\\nwhile time.process_time() < end: pass", helper_s],
    stdin=subprocess.PIPE)
print("ready", flush=True)
sys.stdin.readline()
go.set()
threads += [threading.Thread(target=burn, args=(new,)) for _ in range(3)]
for t in threads[3:]:
    t.start()
child = subprocess.Popen(command, stdout=subprocess.PIPE)
helper.stdin.close()
for one in threads:
    one.join()
helper.wait()
child.stdout.read()  # until the last of its family has ended
child.wait()
"""


def is_counting(recording):
    """The recorder has taken its first sample: whoever it knows has counters now."""
    done = run("show", "--json", recording)
    return done.returncode == 0 and json.loads(done.stdout)["perf"].get("task_clock", {}).get("value") is not None


@pytest.mark.parametrize("helpers", ["all", "none"])
@pytest.mark.parametrize(
    "old,new,helper,command,cpu_s",
    [
        ("0.25", "0", "0", "true", 0.75),  # threads that were there
        ("0", "0.25", "0", "true", 0.75),  # threads that came
        ("0", "0", "0.6", "true", 0.6),  # a child that was there
        ("0", "0", "0", "BURN/threads 2 0.3", 0.6),  # one that came, with threads
        ("0", "0", "0", "BURN/orphan reparent 0.6", 0.6),  # a grandchild that lost its parent
        # It has lost its parent before anybody can look: only its session tells whose it is.
        ("0", "0", "0", "sh -c 'BURN/cpu 0.6 &'", 0.6),
    ],
)
def test_a_running_program(tmp_path, old, new, helper, command, cpu_s, helpers):
    """Threads and children that are there or will come: when told, they burn, and each is counted once."""
    recording = tmp_path / "job.tacho"
    burner = subprocess.Popen(
        [sys.executable, "-c", WORKER, old, new, helper, command.replace("BURN/", f"{BURNERS}/")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert burner.stdout.readline() == b"ready\n"
    words = ("attach", "-qm", "perf", "-i", "50ms", "--flush", "50ms", "--helpers", helpers)
    tacho = start(*words, "-o", recording, burner.pid)
    until(lambda: is_counting(recording), "the first sample")
    burner.communicate(b"\n")
    assert tacho.wait() == 0
    # What starting it all takes is a few milliseconds more.
    is_counted_once(show(recording), cpu_s, more_s=0.1)


def test_beside_a_command(tmp_path):
    """--also: one is there already, one comes late; the command's own children may match too."""
    recording, gate = tmp_path / "job.tacho", tmp_path / "gate"
    mark = f"strangers_of_{os.getpid()}"
    text = f"import time, os\nwhile not os.path.exists('{gate}'): time.sleep(0.01)\nwhile time.process_time() < 0.5: pass"
    stranger = [sys.executable, "-c", f"'{mark}'\n{text}"]
    early = subprocess.Popen(stranger)
    words = ("run", "-qm", "perf", "-i", "50ms", "--flush", "50ms", "--also", f"match:{mark}", "-o", recording)
    # The command waits for its gate as well, and its child is a tool that matches.
    tacho = start(*words, "--", "sh", "-c", '"$@" & "$@" & wait', "sh", *stranger)
    until(lambda: is_counting(recording), "the first sample")
    late = subprocess.Popen(stranger)

    def known():
        done = run("show", "--processes", "--csv", recording)
        return done.stdout.count(mark.encode()) >= 4

    until(known, "all four are in the recording")
    # Two more ticks: whoever is in the recording has counters when the next sample is taken.
    taken = show(recording)["ticks"]["taken"]
    until(lambda: show(recording)["ticks"]["taken"] >= taken + 2, "they are counted")
    gate.touch()
    for one in (early, late):
        one.wait()
    assert tacho.wait() == 0
    is_counted_once(show(recording), 4 * 0.5, more_s=0.3)


# ---- wishes ----


def test_an_event_that_is_asked_for(tmp_path):
    recording = tmp_path / "job.tacho"
    words = ("-q", "-e", "page-faults,minor-faults", "-e", "clock=cpu-clock")
    assert record([BURNERS / "cpu", "0.5"], *words, output=recording).returncode == 0
    counted = show(recording)["perf"]
    assert counted["clock"]["value"] > 0.4
    assert 0 < counted["minor_faults"]["value"] <= counted["page_faults"]["value"]
    assert counted["task_clock"]["value"] > 0.4  # with any other
    assert "cycles" not in counted


@pytest.mark.parametrize(
    "words,says",
    [
        (["-e", "cylces"], "did you mean 'cycles'"),
        (["-e", "task-clock,x=r01,x=r02"], "two events would be called perf.x"),
        (["-e", ",".join(f"r{i:02x}" for i in range(1, 60))], "at once"),
        (["-m", "flosp"], "did you mean 'flops'"),
    ],
)
def test_mistakes_are_told_before_the_job(tmp_path, words, says):
    touched = tmp_path / "touched"
    done = record(["touch", touched], *words, output=tmp_path / "job.tacho")
    assert done.returncode == 125
    assert says in done.stderr.decode()
    assert not touched.exists() and not (tmp_path / "job.tacho").exists()


def test_what_the_processor_lacks_has_a_reason(tmp_path):
    """A wish for a group never fails the job; where it is fulfilled there is a value, else a reason."""
    recording = tmp_path / "job.tacho"
    assert record([BURNERS / "cpu", "0.2"], "-q", "-m", "flops,l3,perf", output=recording).returncode == 0
    summary = show(recording)
    assert value(summary, "task_clock") > 0.15
    for name, entry in summary["perf"].items():
        if entry["value"] is None and name in ("cycles", "instructions", "flops_dp", "l3_bandwidth"):
            reason(summary, f"perf.{name}")
        assert entry["value"] is None or entry["value"] >= 0


def test_tracepoints(tmp_path):
    recording = tmp_path / "job.tacho"
    words = [TACHO, "run", "-qfm", "context_switches", "-e", "sched:sched_switch", "-o", recording, "--"]
    job = shell("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; done")
    if not Path("/sys/kernel/tracing/events/sched/sched_switch/id").exists():
        if os.geteuid():
            pytest.skip("tracefs is not readable: needs root")
        need_mounts()
        mount = "mount -t tracefs none /sys/kernel/tracing || exit 99"
        words = ["unshare", "--mount", "sh", "-c", f'{mount}; exec "$@"', "sh", *words]
    done = subprocess.run([*words, *job], stderr=subprocess.PIPE)
    if done.returncode == 99:
        pytest.skip(f"no tracefs here: {done.stderr.decode()}")
    assert done.returncode == 0, done.stderr
    summary = show(recording)
    assert value(summary, "sched_sched_switch") >= 10
    assert value(summary, "sched_sched_switch") == pytest.approx(value(summary, "context_switches"), rel=0.05, abs=5)


# ---- who may count ----


def test_users_count_their_own_code(tmp_path):
    """As an ordinary user, who may count in user mode alone: what happens in the kernel is not 0, but not known."""
    if os.geteuid():
        pytest.skip("needs root, to become somebody else")
    level = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if level != 2:
        pytest.skip(f"kernel.perf_event_paranoid is {level}: users may count more, or nothing")
    where = tmp_path / "open"
    where.mkdir()
    for path in (tmp_path, *tmp_path.parents[:-1]):
        if path.owner() != "root" or path.stat().st_mode & 1 == 0:
            path.chmod(path.stat().st_mode | 0o011)
        if path == Path("/tmp"):
            break
    tacho, burner = where / "tacho", where / "cpu"
    shutil.copy(TACHO, tacho)
    shutil.copy(BURNERS / "cpu", burner)
    os.chown(where, NOBODY, NOBODY)
    recording = where / "job.tacho"
    words = [tacho, "run", "-m", "perf", "-i", "50ms", "-o", recording, "--", burner, "0.5"]
    done = subprocess.run(words, user=NOBODY, group=NOBODY, extra_groups=[], cwd=where, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    summary = show(recording)
    is_counted_once(summary)
    assert value(summary, "page_faults") > 0
    assert value(summary, "context_switches") is None and value(summary, "migrations") is None
    assert "only user mode may be counted" in reason(summary, "perf.context_switches")
    assert "perf_event_paranoid=1" in reason(summary, "perf.context_switches")
    dump = run("debug", "dump", recording).stdout
    assert b'["counts","user"]' in dump and b'["how","inherited"]' in dump


def test_processes_of_others_are_left_out(tmp_path):
    """Attached to a process that it may not count, the recorder records the rest and says so."""
    if os.geteuid():
        pytest.skip("needs root, to become somebody else")
    victim = subprocess.Popen(["sleep", "60"])
    where = tmp_path / "open"
    where.mkdir()
    os.chown(where, NOBODY, NOBODY)
    for path in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        path.chmod(path.stat().st_mode | 0o011)
    shutil.copy(TACHO, where / "tacho")
    recording = where / "job.tacho"
    words = [where / "tacho", "attach", "-qm", "perf", "--duration", "0.2s", "-o", recording, str(victim.pid)]
    done = subprocess.run(words, user=NOBODY, group=NOBODY, extra_groups=[], cwd=where, stderr=subprocess.PIPE)
    victim.kill()
    victim.wait()
    assert done.returncode == 0, done.stderr
    summary = show(recording)
    assert value(summary, "task_clock") is None
    assert "does not let us count" in reason(summary, "perf.task_clock")


# ---- nobody pays who did not ask ----


def counters_opened(tmp_path, *words):
    """How often, by us and the job."""
    trace = tmp_path / "trace"
    what = "trace=perf_event_open"
    done = subprocess.run(
        ["strace", "-f", "-o", trace, "-e", what, TACHO, "run", "-qfo", tmp_path / "job.tacho", *words, "--", "true"],
        stderr=subprocess.PIPE,
    )
    if done.returncode:
        pytest.skip(f"strace does not work here: {done.stderr.decode()[:200]}")
    return len(re.findall(r"\bperf_event_open\(", trace.read_text()))


def test_a_job_without_counters_pays_nothing(tmp_path):
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    assert counters_opened(tmp_path) == counters_opened(tmp_path, "-m", "net,pss") == 0
    assert counters_opened(tmp_path, "-m", "perf") > 4
