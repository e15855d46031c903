"""Nothing that happens to the recorder, the job or the disk loses more than one flush or fails a good job."""

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from recorder import BURNERS, PATIENCE_S, TACHO, check, job_of, lasting, need_mounts, record, run, show, shown, start, state, until

ROOT = Path(__file__).resolve().parents[2]
ASAN = ROOT / "build-asan" / "tacho"

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")

# A job that lives until it is told to end, with a few processes that work and come and go.
LIVELY = "while :; do i=0; while [ $i -lt 300 ]; do i=$((i+1)); done; /bin/true; done"


def lively(tmp_path, *options, **kwargs):
    """Starts a recording of a lively job and waits until something of it is in the file."""
    recording = tmp_path / "a.tacho"
    options = ["-q", "-i", "10ms", "--flush", "20ms", *options]
    tacho = start("run", *options, "-o", recording, "--", "sh", "-c", LIVELY, start_new_session=True, **kwargs)
    job = job_of(tacho, "sh")
    until(lambda: ticks(recording) >= 3, "three ticks are in the file")
    return tacho, job, recording


def ticks(recording):
    """Ticks that a reader sees now; 0 when there is nothing to read yet."""
    done = run("show", "--json", recording)
    return json.loads(done.stdout)["ticks"]["taken"] if done.returncode == 0 else 0


def kill(*pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


# ---- death ----


@pytest.mark.parametrize("moment", range(8))
def test_recorder_killed(tmp_path, moment):
    """The job goes on; all that was readable before is readable after, and `check` says that the end is missing."""
    tacho, job, recording = lively(tmp_path)
    time.sleep(random.Random(moment).uniform(0, 0.2))
    before = ticks(recording)
    tacho.kill()
    tacho.wait()
    try:
        assert state(job) in ("R", "S", "D")
        status, words = check(recording)
        assert status == 1, words
        after = show(recording)
        assert after["complete"] is False
        assert after["ticks"]["taken"] >= before
        assert after["exit"] == {"code": None, "signal": None}
        assert after["cpu"]["total_s"] is not None
    finally:
        os.killpg(tacho.pid, signal.SIGKILL)


@pytest.mark.parametrize("moment", range(3))
def test_recorder_killed_before_the_first_tick(tmp_path, moment):
    """However early: a reader says that there is nothing, or shows what there is; it never crashes."""
    recording = tmp_path / "a.tacho"
    tacho = start("run", "-q", "-o", recording, "--", "sleep", "1000", start_new_session=True)
    if moment:
        until(recording.exists, "the file is made")
    if moment == 2:
        until(lambda: recording.stat().st_size > 0, "something is in it")
    tacho.kill()
    tacho.wait()
    for pid in children_of_group(tacho.pid):
        kill(pid)
    status, words = check(recording)
    assert status in (1, 2), words
    assert run("show", "--json", recording).returncode == (0 if status == 1 else 2)


def children_of_group(group):
    found = subprocess.run(["pgrep", "-g", str(group)], stdout=subprocess.PIPE, text=True).stdout
    return [int(word) for word in found.split()]


def test_job_killed(tmp_path):
    tacho, job, recording = lively(tmp_path)
    os.kill(job, signal.SIGKILL)
    assert tacho.wait() == -signal.SIGKILL
    assert check(recording)[0] == 0
    summary = show(recording)
    assert summary["complete"] is True
    assert summary["exit"]["signal"] == signal.SIGKILL


@pytest.mark.parametrize("moment", range(4))
def test_both_killed(tmp_path, moment):
    tacho, _, recording = lively(tmp_path)
    time.sleep(random.Random(100 + moment).uniform(0, 0.1))
    before = ticks(recording)
    os.killpg(tacho.pid, signal.SIGKILL)
    tacho.wait()
    assert check(recording)[0] == 1
    assert show(recording)["ticks"]["taken"] >= before


def test_term_writes_at_once(tmp_path):
    """With a flush every hour only the signal can have brought the ticks to the file."""
    script = "trap 'while [ ! -e gone ]; do /bin/true; done; exit 0' TERM; echo; while :; do /bin/true; done"
    words = ["run", "-q", "-i", "5ms", "--flush", "1h", "-o", tmp_path / "a.tacho", "--", "sh", "-c", script]
    tacho = start(*words, cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True)
    tacho.stdout.readline()
    before = ticks(tmp_path / "a.tacho")

    def brought():
        """What was sampled until now, however little that is: the next signal brings more."""
        tacho.send_signal(signal.SIGTERM)
        return ticks(tmp_path / "a.tacho") > before + 5

    until(brought, "the signal brings what was sampled to the file")
    tacho.kill()
    os.killpg(tacho.pid, signal.SIGKILL)
    tacho.wait()


# ---- a full disk ----


def assert_job_survived(done, recording):
    assert done.returncode == 5
    assert b"tacho: " in done.stderr and b"warning" in done.stderr.lower()
    status, words = check(recording)
    assert status == 1, words
    assert show(recording)["ticks"]["taken"] > 0
    assert_words_agree(done, recording)


def assert_words_agree(done, recording):
    """Every command says the same: what could not be written and why, from when on, and what to do; not that the recorder was killed."""
    summary, words = show(recording), check(recording)[1]
    assert summary["complete"] and summary["exit"]["code"] == 5
    told = {
        "warning": [line for line in done.stderr.decode().splitlines() if "warning" in line][0],
        "summary": " ".join(done.stderr.decode().split("\n", 1)[1].split()),
        "show": " ".join(run("show", recording).stdout.decode().split()),
        "check": words,
    }
    for who, text in told.items():
        assert "incomplete" in text and "to avoid it, " in text, (who, text)
        assert ("the disk was full" in text) != ("the limit of file sizes was reached" in text), (who, text)
        assert "killed" not in text and "damaged" not in text and "lost" not in text, (who, text)
    missing = re.search(r"was (full|reached) (after \S+|from the start): (\d+|none) of \d+ ticks could( not)? be written", told["check"])
    assert missing and missing.group() in told["show"] and missing.group() in told["summary"], told
    listed = json.loads(run("ls", "--json", recording).stdout)["recordings"][0]
    assert listed["state"] == "incomplete" and "incomplete" in run("ls", recording).stdout.decode()
    # The end mark has the totals of the whole job, and all take them from there.
    assert summary["processes"]["seen"] == listed["processes"] > 0
    assert summary["memory"]["peak_bytes"] == listed["memory_peak_bytes"] > 0
    assert abs(summary["cpu"]["total_s"] - listed["cpu_s"]) < 1e-6
    assert abs(summary["cpu"]["mean_cores"] - listed["cores_mean"]) < 1e-6
    found = json.loads(run("check", "--json", recording).stdout)["files"][0]
    assert found["state"] == "incomplete" and not found["losses"]
    assert run("report", "--format", "md", "-o", "-", recording).returncode == 0
    # What only the ticks tell is a lower bound, and says so.
    assert summary["io"]["lower_bound"] and not summary["cpu"]["lower_bound"]
    bounds = [note for note in summary["notes"] if note.startswith("bytes, calls, faults and switches")]
    # Shares of what was written do not stand beside totals of the whole; where nothing was, nothing is a bound.
    assert summary["cpu"]["observed_ratio"] is summary["processes"]["unsampled"] is None
    assert "too short to be sampled" not in told["show"] and "of it seen" not in told["show"]
    if missing.group(3) == "none":
        assert not bounds and summary["cpu"]["peak_cores"] is None and " peak, of" not in told["show"]
    else:
        assert "are lower bounds: the end of the recording is missing" in bounds[0] and re.search("≥ [0-9.]+ peak", told["show"])


# Five processes that work for about a second, in steps, and end with 5.
BUSY = "for n in 1 2 3 4; do (i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done) & done; wait; exit 5"

# The same with a thousand short ones before: more to write than there is room for, however fast the machine is.
PROLIFIC = BUSY.replace("while [", "while [ $i -lt 250 ]; do /bin/true; i=$((i+1)); done; while [", 1)


def scanty_room(tmp_path):
    """For the beginning of a recording and a few ticks; how long a beginning is depends on the metrics there are."""
    assert record(["sleep", "0.2"], "-q", output=tmp_path / "least.tacho").returncode == 0
    return (tmp_path / "least.tacho").stat().st_size // 4096 * 4096 + 8192


@root_only
@pytest.mark.parametrize("pages", [1, 2])  # of 4 KiB: the list of metrics needs more
def test_disk_that_is_full_almost_from_the_start(tmp_path, pages):
    """There is room for the beginning and not for any sample: the words agree, and the totals are those of the whole job."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        (disk / "ballast").write_bytes(bytes((16 - pages) * 4096))
        done = record(["sh", "-c", "sleep 0.2; exit 5"], "-i", "10ms", "--flush", "50ms", output=disk / "a.tacho")
        assert done.returncode == 5
        assert_words_agree(done, disk / "a.tacho")
        assert "from the start: none of " in check(disk / "a.tacho")[1]
        assert "disk was full" in show(disk / "a.tacho")["unavailable"]["io.read_bytes"]
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


@root_only
def test_disk_that_is_full_for_a_while(tmp_path):
    """What waited is written when there is room again: nothing is missing, and nobody warns."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    try:
        (disk / "ballast").write_bytes(bytes((1 << 20) - 4096))
        job = f"sleep 0.5; rm {disk}/ballast; sleep 0.2; exit 5"
        done = record(["sh", "-c", job], "-i", "10ms", "--flush", "50ms", output=disk / "a.tacho")
        assert done.returncode == 5 and b"warning" not in done.stderr and b"incomplete" not in done.stderr
        assert check(disk / "a.tacho")[0] == 0
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


@root_only
def test_full_disk(tmp_path):
    """The job ends with its own status, a warning says what happened, and what was written is readable."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    try:
        (disk / "ballast").write_bytes(bytes((1 << 20) - scanty_room(tmp_path)))
        done = record(["sh", "-c", PROLIFIC], "-i", "1ms", "--flush", "10ms", output=disk / "a.tacho")
        assert_job_survived(done, disk / "a.tacho")
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.parametrize("where", ["pipe", "file"])
def test_a_warning_that_cannot_be_written_does_not_cost_the_job(tmp_path, where):
    """Before the job starts: standard error is a pipe that nobody reads, or a file that may not grow."""
    (tmp_path / "tacho").mkdir()
    (tmp_path / "tacho" / "config").write_text("jsn = yes\n")
    reader, writer = os.pipe()
    os.close(reader)
    limit = (0, 0) if where == "file" else (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with open(tmp_path / "err", "w") as err:
        done = subprocess.run(
            [TACHO, "run", "-q", "-o", tmp_path / "a.tacho", "--", "sh", "-c", "exit 7"],
            env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
            stderr=err if where == "file" else writer,
        )
    os.close(writer)
    assert done.returncode == 7



def test_file_size_limit(tmp_path):
    """RLIMIT_FSIZE hits us as a full disk does, without a signal that kills, and the job keeps the limit."""
    room = scanty_room(tmp_path)
    limit = (room, room)
    done = record(
        ["bash", "-c", f"[ $(ulimit -f) = {room // 1024} ] || exit 9; {PROLIFIC}"],
        "-i", "1ms", "--flush", "10ms", output=tmp_path / "a.tacho",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert_job_survived(done, tmp_path / "a.tacho")
    assert (tmp_path / "a.tacho").stat().st_size <= limit[0]


@pytest.mark.parametrize("room", [30, 200])  # not even the first block; that, and not what the recording is about
def test_a_beginning_that_does_not_fit_is_removed(tmp_path, room):
    limit = dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    done = record(["sh", "-c", "exit 7"], output=tmp_path / "a.tacho", **limit)
    assert done.returncode == 7 and b"File too large" in done.stderr and b"not recorded" in done.stderr
    done = record(["touch", tmp_path / "ran"], "--strict", output=tmp_path / "a.tacho", **limit)
    assert done.returncode == 125 and b"File too large" in done.stderr
    assert not list(tmp_path.iterdir())


@root_only
def test_no_control_group_is_left_by_a_start_that_fails(tmp_path):
    (tmp_path / "a.tacho").touch()
    failed = start("run", "-o", tmp_path / "a.tacho", "--", "true")
    assert failed.wait() == 125
    assert not list(Path("/sys/fs/cgroup").rglob(f"tacho-{failed.pid}*"))


def test_few_of_everything(tmp_path):
    """Address space, data, descriptors, processes: enough to be recorded, or too few, the job runs, once, as it would."""
    limits = [(resource.RLIMIT_AS, mib << 20) for mib in (312, 96, 32, 16, 8)]
    limits += [(resource.RLIMIT_DATA, mib << 20) for mib in (64, 16, 4)]
    limits += [(resource.RLIMIT_NOFILE, number) for number in (4, 5, 6, 8, 9, 12, 16, 32)]
    told = {}
    for which, limit in limits:
        output = tmp_path / f"{which}-{limit}.tacho"
        done = record(
            ["sh", "-c", "cat; exit 7"], "-q", output=output, stdin=None, input=b"once",
            preexec_fn=lambda: resource.setrlimit(which, (limit, limit)),
        )
        assert (done.returncode, done.stdout) == (7, b"once"), (which, limit, done.stderr)
        # A job that is longer on a busy machine may be recorded, and not all of it.
        assert output.exists() == (b"not recorded" not in done.stderr), (which, limit, done.stderr)
        assert done.stderr.count(b"\n") <= 1 and (not done.stderr or b"ulimit" in done.stderr)
        told[which, limit] = done.stderr
        if output.exists():
            summary = show(output)
            assert summary["exit"]["code"] == 7 and summary["cpu"]["total_s"], (which, limit)
            assert not [note for note in summary["notes"] if "disk" in note], (which, limit, summary["notes"])
    # Beyond its first moment the job may be more than fits: what is said of it names the memory.
    output, limit = tmp_path / "longer.tacho", 26 << 20
    done = record(["sleep", "0.2"], "-q", output=output, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    checked = subprocess.run([TACHO, "check", output], stdout=subprocess.PIPE).stdout
    for text in done.stderr, checked:
        assert b"disk" not in text and b"--output" not in text and (b"ulimit -v" in text) == bool(done.stderr), text
    assert show(output)["cpu"]["total_s"]
    assert told[resource.RLIMIT_AS, 312 << 20] == told[resource.RLIMIT_AS, 96 << 20] == b""
    assert told[resource.RLIMIT_DATA, 64 << 20] == told[resource.RLIMIT_NOFILE, 32] == b""


def test_any_call_that_fails_at_the_start_leaves_the_job_alone(tmp_path):
    """Each system call of ours on the way to the job fails once: it runs all the same, exactly once, with its status."""
    if not shutil.which("strace"):
        pytest.skip("needs strace, to let system calls fail")
    ran = tmp_path / "ran"
    job = ["sh", "-c", f"echo >>{ran}; exit 7"]
    log = tmp_path / "log"
    traced = subprocess.run(["strace", "-o", log, TACHO, "run", "-q", "-o", tmp_path / "a.tacho", "--", *job])
    if traced.returncode != 7:
        pytest.skip("strace may not follow processes here")
    seen, calls = Counter(), []
    for name in re.findall(r"^(\w+)\(", log.read_text(), re.M):
        seen[name] += 1
        if name in ("clone3", "vfork", "fork"):
            break
        if seen["fcntl"]:  # before it, the loader's
            calls.append((name, seen[name]))
    # Each kind of call, and of the many of a kind some that lie apart.
    kinds = {"openat": "EMFILE", "mmap": "ENOMEM", "signalfd4": "ENOSYS", "prctl": "EPERM", "pipe2": "ENFILE",
             "write": "ENOSPC", "linkat": "EPERM", "prlimit64": "EPERM", "getrandom": "ENOSYS", "clone": "EAGAIN",
             "rt_sigprocmask": "EPERM"}
    numbers = {name: [number for kind, number in calls if kind == name] for name in kinds}
    picked = [(name, number) for name, some in numbers.items() for number in some[:: 1 + len(some) // 4]]
    picked += [(name, seen[name]) for name in ("clone", "clone3", "vfork", "fork") if seen[name]]
    ran.unlink()
    for i, (name, number) in enumerate(picked):
        fail = f"inject={name}:error={kinds.get(name, 'EAGAIN')}:when={number}"
        words = ["strace", "-o", "/dev/null", "-e", fail, TACHO, "run", "-q", "-o", tmp_path / f"{i}.tacho", "--", *job]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=PATIENCE_S)
        assert (done.returncode, ran.read_text()) == (7, "\n"), (fail, done.stderr)
        ran.unlink()


@root_only
def test_without_proc(tmp_path):
    """Where there is no /proc, less is known, and the job runs."""
    need_mounts()
    words = ["mount -t tmpfs none /proc && exec", str(TACHO), "run", "-q", "-o", str(tmp_path / "a.tacho"), "-- sh -c 'echo ran; exit 7'"]
    done = subprocess.run(["unshare", "--mount", "sh", "-c", " ".join(words)], capture_output=True)
    assert (done.returncode, done.stdout) == (7, b"ran\n"), done.stderr


@root_only
def test_no_room_at_all(tmp_path):
    """When not even the beginning can be written, the job runs, and one line says that it is not recorded."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        (disk / "ballast").write_bytes(bytes(65536))
        done = record(["sh", "-c", "echo ran; exit 7"], "-q", output=disk / "a.tacho")
        assert (done.returncode, done.stdout) == (7, b"ran\n")
        assert b"No space left" in done.stderr and done.stderr.count(b"\n") == 1
        done = record(["touch", tmp_path / "ran"], "--strict", output=disk / "a.tacho")
        assert done.returncode == 125
        assert b"No space left" in done.stderr
        assert not (tmp_path / "ran").exists()
        assert not (disk / "a.tacho").exists()
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


# ---- time that passes unseen ----


def test_stopped_recorder(tmp_path):
    """Ticks that fell into the pause are counted as missed, and the job never noticed."""
    tacho, job, recording = lively(tmp_path)
    os.kill(tacho.pid, signal.SIGSTOP)
    until(lambda: state(tacho.pid) == "T", "the recorder stops")
    time.sleep(1)
    os.kill(tacho.pid, signal.SIGCONT)
    before = ticks(recording)
    until(lambda: ticks(recording) > before, "it samples again")
    os.kill(job, signal.SIGTERM)
    assert tacho.wait() == -signal.SIGTERM
    summary = show(recording)
    assert summary["complete"] is True
    # 100 ticks fell into the pause; on a loaded machine others may be missed too.
    assert summary["ticks"]["missed"] >= 50
    assert summary["wall_s"] >= 1


def test_suspended_job(tmp_path):
    tacho, job, recording = lively(tmp_path)
    os.kill(job, signal.SIGSTOP)
    until(lambda: state(job) == "T", "the job stops")
    time.sleep(0.3)
    os.kill(job, signal.SIGCONT)
    os.kill(job, signal.SIGTERM)
    assert tacho.wait() == -signal.SIGTERM
    assert show(recording)["complete"] is True


# ---- many ----


@pytest.mark.limit(240)
def test_tens_of_thousands_of_forks(tmp_path):
    nr = 30_000
    done = record([BURNERS / "storm", nr, "8"], "-i", "100ms", output=tmp_path / "a.tacho")
    assert done.returncode == 0
    assert check(tmp_path / "a.tacho")[0] == 0
    summary = show(tmp_path / "a.tacho")
    count = summary["processes"]
    if os.geteuid() == 0 and not count["unsampled_is_upper_bound"]:
        assert count["seen"] == nr + 1, "each once: exit events and exit records are of the same processes"
    else:
        assert count["seen"] + count["unsampled"] >= nr + 1
    # Our memory does not grow with the number of processes that ever lived.
    assert summary["self"]["peak_rss_bytes"] < 16 << 20


@pytest.mark.parametrize("limit", [64, 256])
def test_more_processes_than_descriptors(tmp_path, limit):
    """Beyond the limit files are opened for each sample: every process is still there, and the job keeps its limit."""
    script = "for n in $(seq 200); do sleep 1000 & done; read line; ulimit -n >limit; kill $(jobs -p)"
    with lasting(["bash", "-c", script], "-i", "50ms", output=tmp_path / "a.tacho", cwd=tmp_path,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))):
        until(lambda: (shown(tmp_path / "a.tacho").get("processes", {}).get("peak") or 0) >= 201, "all are sampled at once")
    assert (tmp_path / "limit").read_text().strip() == str(limit)
    summary = show(tmp_path / "a.tacho")
    assert summary["processes"]["peak"] >= 201
    # 200 sleepers of some 500 KiB and more each: their memory was read, not only their number.
    assert summary["memory"]["peak_rss_bytes"] > 200 * 300_000
    listed = run("show", "--processes", "--json", tmp_path / "a.tacho")
    assert listed.returncode == 0
    assert listed.stdout.count(b'"sleep') >= 200


def test_attach_and_detach_many_times(tmp_path):
    """Fifty recorders come and go; the process looked at has nothing to show for it."""
    target = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(1000)"],
                              stdout=subprocess.PIPE)
    try:
        status = Path(f"/proc/{target.pid}/status")
        target.stdout.readline() # from now on it opens nothing by itself
        before = len(os.listdir(f"/proc/{target.pid}/fd"))
        for _ in range(50):
            done = run("attach", "-q", "--force", "--duration", "1ms", "-o", tmp_path / "a.tacho", target.pid)
            assert done.returncode == 0, done.stderr
        assert len(os.listdir(f"/proc/{target.pid}/fd")) == before
        assert "TracerPid:\t0" in status.read_text()
        assert target.poll() is None
        assert check(tmp_path / "a.tacho")[0] == 0
    finally:
        target.kill()
        target.wait()


def test_attach_ends_with_its_target(tmp_path):
    target = subprocess.Popen(["sleep", "1000"])
    tacho = start("attach", "-q", "-i", "10ms", "--flush", "20ms", "-o", tmp_path / "a.tacho", target.pid)
    until(lambda: ticks(tmp_path / "a.tacho") >= 2, "it is being recorded")
    target.kill()
    target.wait()
    assert tacho.wait() == 0
    assert check(tmp_path / "a.tacho")[0] == 0


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
def test_attach_ends_with_a_signal(tmp_path, name):
    """An attached recorder has no job to pass a signal to: it ends, wholly, and leaves the target alone."""
    target = subprocess.Popen(["sleep", "1000"])
    try:
        tacho = start("attach", "-q", "-i", "10ms", "--flush", "20ms", "-o", tmp_path / "a.tacho", target.pid)
        until(lambda: ticks(tmp_path / "a.tacho") >= 2, "it is being recorded")
        tacho.send_signal(getattr(signal, f"SIG{name}"))
        tacho.wait()
        assert check(tmp_path / "a.tacho")[0] == 0
        assert target.poll() is None
    finally:
        target.kill()
        target.wait()


def test_attach_to_nothing(tmp_path):
    target = subprocess.Popen(["true"])
    target.wait()
    done = run("attach", "-o", tmp_path / "a.tacho", target.pid)
    assert done.returncode == 1
    assert str(target.pid).encode() in done.stderr
    assert list(tmp_path.iterdir()) == []


# ---- strange names ----

NAMES = [b"two words", b"new\nline", b"par) R 1 (en", b"\xff\xfe\x80bytes", "δοκιμή".encode(), b"tab\there", b'quo"te\\']


def test_strange_names(tmp_path):
    """Text for people stays one line a process and valid UTF-8; JSON is valid and gives every byte back."""
    names = []
    for name in NAMES:
        program = os.path.join(os.fsencode(tmp_path), name)
        os.symlink(b"/bin/sleep", program)
        names.append(program)
    script = 'for n; do "$n" 1000 & done; read line; kill $(jobs -p)'

    def known():
        listed = run("show", "--processes", "--json", tmp_path / "a.tacho")
        processes = json.loads(listed.stdout)["processes"] if listed.returncode == 0 else []
        return set(names) <= {original(process["argv"][0]) for process in processes if process["argv"]}

    with lasting(["bash", "-c", script, "bash", *names], "-i", "20ms", output=tmp_path / "a.tacho"):
        until(known, "all have their names")
    table = run("show", "--processes", tmp_path / "a.tacho")
    assert table.returncode == 0
    text = table.stdout.decode()  # raises when it is no UTF-8
    assert all(char == "\n" or char.isprintable() for char in text)
    for line_part in ("two words", "new\\nline", "par) R 1 (en", "\\xff\\xfe\\x80bytes", "δοκιμή", "tab\\there"):
        assert line_part in text

    listed = run("show", "--processes", "--json", tmp_path / "a.tacho")
    processes = json.loads(listed.stdout.decode())["processes"]
    programs = {word for process in processes for word in process["argv"][:1]}
    assert set(names) <= {original(word) for word in programs}


def original(text):
    """The bytes of a JSON text: as it is, or with the escapes that stand in every text that was no UTF-8."""
    if not re.search(r"\\x[0-9a-f]{2}", text):
        return text.encode()
    return re.sub(rb"\\(x[0-9a-f]{2}|.)", lambda m: ESCAPES.get(m[1]) or bytes.fromhex(m[1][1:].decode()), text.encode())


ESCAPES = {b"\\": b"\\", b"n": b"\n", b"t": b"\t"}


def test_long_command_line(tmp_path):
    """A megabyte of arguments; what is kept of it may be cut, what is measured may not."""
    words = ["x" * 100_000] * 10
    done = record(["bash", "-c", "sleep 0.3; exit 6", "bash", *words], "-q", "-i", "50ms", output=tmp_path / "a.tacho")
    assert done.returncode == 6
    assert check(tmp_path / "a.tacho")[0] == 0
    summary = show(tmp_path / "a.tacho")
    assert json.dumps(summary["command"]).count("sleep 0.3; exit 6") == 1
    assert run("show", "--processes", tmp_path / "a.tacho").returncode == 0
    for line in run("show", tmp_path / "a.tacho").stdout.decode().splitlines():
        assert len(line) < 1000


# ---- readers beside the writer ----


def test_readers_follow_a_growing_file(tmp_path):
    """At any moment a reader shows a whole picture, and never less than before."""
    tacho, job, recording = lively(tmp_path)
    seen = 0
    for _ in range(12):
        summary = show(recording)
        assert summary["complete"] is False
        assert summary["ticks"]["taken"] >= seen
        seen = summary["ticks"]["taken"]
        assert check(recording)[0] == 1
        assert run("show", "--processes", recording).returncode == 0
    os.kill(job, signal.SIGTERM)
    tacho.wait()
    assert check(recording)[0] == 0
    assert show(recording)["ticks"]["taken"] >= seen


def test_cut_anywhere(tmp_path):
    """Cut at every kind of place: readers say so, show what is before the cut, and show more of a longer piece."""
    assert record(["sh", "-c", BUSY], "-q", "-i", "5ms", "--flush", "20ms", output=tmp_path / "a.tacho").returncode == 5
    whole = (tmp_path / "a.tacho").read_bytes()
    taken = show(tmp_path / "a.tacho")["ticks"]["taken"]
    seen = 0
    for length in sorted(random.Random(1).sample(range(len(whole)), 30)):
        piece = tmp_path / "piece.tacho"
        piece.write_bytes(whole[:length])
        status, words = check(piece)
        assert status in (1, 2), words
        shown = run("show", "--json", piece)
        assert shown.returncode == (0 if status == 1 else 2), shown.stderr
        if status == 1:
            now = json.loads(shown.stdout)["ticks"]["taken"]
            assert seen <= now <= taken
            seen = now
    assert seen > taken // 2


@pytest.mark.parametrize("content", [b"", b"tacho", b"\0" * 10_000, b"\x7fELF" + os.urandom(5000)])
def test_no_recording(tmp_path, content):
    (tmp_path / "a.tacho").write_bytes(content)
    assert check(tmp_path / "a.tacho")[0] == 2
    done = run("show", tmp_path / "a.tacho")
    assert done.returncode == 2
    assert b"a.tacho" in done.stderr


def test_missing_recording(tmp_path):
    assert check(tmp_path / "none.tacho")[0] == 2
    assert run("show", tmp_path / "none.tacho").returncode == 2


# ---- memory checkers ----

READERS = [["show"], ["show", "--json"], ["show", "--processes"], ["show", "--processes", "--json"], ["check"]]
SMALL_JOB = ["sh", "-c", "sleep 0.1; (sleep 0.1; true) & true; wait; exit 3"]


@pytest.fixture(params=["valgrind", "asan"])
def checker(request):
    """A prefix under which the binary is watched, or the binary that watches itself."""
    if request.param == "asan":
        if not ASAN.exists():
            pytest.skip("no build-asan/ here: ./dev test builds it")
        return [str(ASAN)]
    return ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--child-silent-after-fork=yes", TACHO]


def watched(checker, *words):
    done = subprocess.run([*checker, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True)
    complaints = done.stderr.decode(errors="replace")
    assert done.returncode != 99 and "==ERROR" not in complaints and "runtime error" not in complaints, complaints
    assert "definitely lost" not in complaints, complaints
    return done.returncode


@pytest.mark.limit(240)
def test_memory_checkers(checker, tmp_path):
    recording, attached = tmp_path / "a.tacho", tmp_path / "b.tacho"
    assert watched(checker, "run", "-i", "20ms", "-o", recording, "--", *SMALL_JOB) == 3
    target = subprocess.Popen(["sleep", "1000"])
    try:
        options = ["-i", "20ms", "--duration", "200ms", "-o", attached]
        assert watched(checker, "attach", *options, target.pid) == 0
    finally:
        target.kill()
        target.wait()
    assert watched(checker, "run", "-o", tmp_path / "c.tacho", "--", "no-such-command-anywhere") == 127
    # What the compiler's checker does not see, memory that was never set, all forms have from the same readers.
    for words in READERS if len(checker) == 1 else READERS[-2:]:
        assert watched(checker, *words, recording) == 0
    assert watched(checker, "show", attached) == 0
    (tmp_path / "cut.tacho").write_bytes(recording.read_bytes()[:-200])
    assert watched(checker, "check", tmp_path / "cut.tacho") == 1
    assert watched(checker, "show", tmp_path / "cut.tacho") == 0
    assert watched(checker, "show", tmp_path / "none.tacho") == 2
    assert watched(checker, "metrics") == 0
    if len(checker) == 1:
        assert watched(checker, "help", "run") == 0


def test_sanitized_readers_on_damage(tmp_path):
    """Bits flipped at stepped offsets, read by the binary that watches itself: no crash, no hang, no lie."""
    if not ASAN.exists():
        pytest.skip("no build-asan/ here: ./dev test builds it")
    assert record(["sh", "-c", BUSY], "-q", "-i", "5ms", output=tmp_path / "a.tacho").returncode == 5
    whole = (tmp_path / "a.tacho").read_bytes()
    truth = show(tmp_path / "a.tacho")
    for offset in range(0, len(whole), max(1, len(whole) // 25)):
        damaged = bytearray(whole)
        damaged[offset] ^= 1 << (offset % 8)
        (tmp_path / "bad.tacho").write_bytes(damaged)
        status = watched([str(ASAN)], "check", tmp_path / "bad.tacho")
        assert status in (1, 2), f"a flipped bit at {offset} of {len(whole)} was not noticed"
        done = subprocess.run([ASAN, "show", "--json", tmp_path / "bad.tacho"], capture_output=True)
        assert done.returncode == (0 if status == 1 else 2), done.stderr
        if status == 1:
            assert json.loads(done.stdout)["ticks"]["taken"] <= truth["ticks"]["taken"]


# ---- privacy ----


def test_environment_is_not_recorded(tmp_path):
    """Neither by run nor by attach: secrets live in environments. The strings are looked for in all that readers say."""
    env = dict(os.environ, SECRET_TOKEN="hunter2-hunter2-hunter2")
    assert record(["sleep", "0.1"], "-q", "-i", "20ms", output=tmp_path / "a.tacho", env=env).returncode == 0
    assert b"hunter2" not in (tmp_path / "a.tacho").read_bytes()
    for words in READERS:
        assert b"hunter2" not in run(*words, tmp_path / "a.tacho").stdout


def test_attaching_into_a_storm_ends_with_it(tmp_path):
    """Children that end while we attach are known to us by one of the kernel's messages only: nobody waits for them."""
    recording, over = tmp_path / "a.tacho", tmp_path / "over"
    script = f"until [ -e {over} ]; do {BURNERS}/storm 10 2 5 >/dev/null; done"
    for moment in range(8):
        storm = subprocess.Popen(["sh", "-c", script])
        time.sleep(random.Random(moment).uniform(0, 0.08))
        tacho = start("attach", "-q", "-f", "-i", "50ms", "--flush", "50ms", "-o", recording, storm.pid)
        until(lambda: tacho.poll() is not None or ticks(recording) > 0, "it is recorded")
        assert tacho.poll() is None
        over.touch()
        storm.wait()
        assert tacho.wait(PATIENCE_S) == 0
        assert show(recording)["complete"] is True
        over.unlink()
        recording.unlink()
