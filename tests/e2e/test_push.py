"""tacho push: what all sinks have in common. Which values at which times, what happens when servers fail, pushers are killed, files
cannot be written; --status, --dry-run, several nodes, run --push."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from points import Points
from recorder import record, run, start, until

WORK = "import time\nx = []\nfor i in range(30):\n    x.append(bytearray(2000000)); sum(range(100000)); time.sleep(0.05)\n"
METRICS = ("tree.cores", "proc.mem.rss", "tree.processes")


@pytest.fixture
def server():
    points = Points()
    yield points
    points.stop()


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A run of some two seconds."""
    path = tmp_path_factory.mktemp("push") / "job.tacho"
    assert record([sys.executable, "-c", WORK], "-q", "-i", "100ms", output=path).returncode == 0
    return path


@pytest.fixture
def job(recording, tmp_path):
    """A copy of it that was not pushed anywhere yet."""
    copy = tmp_path / "job.tacho"
    copy.write_bytes(recording.read_bytes())
    return copy


def push(*words, status=0, **kwargs):
    done = run("push", *words, **kwargs)
    assert done.returncode == status, done.stderr.decode(errors="replace")
    return done.stderr.decode(errors="replace")


def exported(path, metric, table):
    """Values of a metric at each sample, by wall clock, as exports have them."""
    done = run("export", "--to", "jsonl", "--per", "node", "-d", table, "-m", metric, "-o", "-", path)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
    return {row["time"]: row[metric] for row in rows if row.get(metric) is not None}


def nanoseconds(text):
    """Of a time as exports write it."""
    seconds, _, fraction = text.rstrip("Z").partition(".")
    whole = subprocess.run(["date", "-u", "-d", seconds.replace("T", " ") + "Z", "+%s"], capture_output=True, check=True).stdout
    return int(whole) * 10**9 + int(fraction.ljust(9, "0") or 0)


def expected(path):
    """All of METRICS, sample by sample."""
    tables = {"proc.mem.rss": "process"}
    return {m: {nanoseconds(t): v for t, v in exported(path, m, tables.get(m, "tree")).items()} for m in METRICS}


def assert_all_came(server, path):
    for metric, values in expected(path).items():
        assert server.of(metric) == pytest.approx(values), metric
    assert server.contradictions == 0


def each_sample(server):
    return ("--every", "0", "-m", ",".join(METRICS), "--to", server.url)


def status_of(path):
    return run("push", "--status", path).stdout.decode()


# ---- values ----


def test_each_sample_comes_once_with_its_time(server, job):
    push(*each_sample(server), job)
    assert_all_came(server, job)
    assert server.doubles == 0


def test_a_second_push_sends_nothing(server, job):
    push(*each_sample(server), job)
    before = server.requests
    push(*each_sample(server), job)
    assert server.requests == before


def test_another_server_gets_all_of_it(server, job):
    other = Points()
    push(*each_sample(server), job)
    push(*each_sample(other), job)
    assert_all_came(other, job)
    assert "all sent" in status_of(job)
    assert status_of(job).count("influx  http://127.0.0.1") == 2
    other.stop()


def test_windows_are_means_and_the_greatest(server, job):
    push("--every", "500ms", "-m", "proc.mem.rss", "--to", server.url, job)
    ticks = sorted(expected(job)["proc.mem.rss"].items())
    mean, greatest = server.of("proc.mem.rss"), server.of("proc.mem.rss.max")
    start_ns = json.loads(job.with_name("job.push-influx").read_text())["start_ns"]
    windows = {}
    for when, value in ticks:
        windows.setdefault((when - start_ns) // 500_000_000, []).append((when, value))
    assert len(windows) > 2
    assert mean == pytest.approx({w[-1][0]: sum(v for _, v in w) / len(w) for w in windows.values()})
    assert greatest == {w[-1][0]: max(v for _, v in w) for w in windows.values()}


def test_samples_are_windows_too(server, job):
    push("--samples", "5", "-m", "tree.processes", "--to", server.url, job)
    assert len(server.of("tree.processes")) == pytest.approx(len(expected(job)["tree.processes"]) / 5, abs=2)


def test_the_usual_choice(server, job):
    push("--to", server.url, job)
    names = {name for _, name in server.point}
    assert {"tree.cores", "tree.cores.max", "proc.mem.rss", "cpu.busy", "mem.used", "disk.read.rate", "net.rx.rate"} <= names
    assert not [n for n in names if n.startswith("proc.") and n not in ("proc.mem.rss", "proc.mem.rss.max", "proc.mem.pss_now",
                "proc.mem.pss_now.max", "proc.mem.swap", "proc.threads")]
    assert not [s for s, _ in server.point if "pid=" in s]


def test_processes_and_groups(server, job):
    push("--per", "process", "--to", server.url, job)
    assert [s for s, _ in server.point if "pid=" in s]


def test_a_part_of_the_time(server, job):
    push("--from", "0.5", "--until", "1", *each_sample(server), job)
    all_of_it = expected(job)["proc.mem.rss"]
    first = min(all_of_it)
    came = server.of("proc.mem.rss")
    assert came and set(came) <= set(all_of_it)
    assert all(0.4e9 < when - first < 1.1e9 for when in came)


def test_dry_run_sends_nothing_and_leaves_nothing(server, job):
    done = run("push", "--dry-run", *each_sample(server), job)
    assert done.returncode == 0 and b"tree.cores=" in done.stdout
    assert server.requests == 0
    assert sorted(p.name for p in job.parent.iterdir()) == ["job.tacho"]


def test_the_jobs_own_numbers(server, tmp_path):
    """Also those whose names come while it is pushed."""
    path = tmp_path / "job.tacho"
    script = "for i in 1 2 3 4 5 6; do sleep 0.3; $TACHO mark loss=0.$i; test $i -lt 4 || $TACHO mark late_loss=$i; done; sleep 0.3"
    recorder = start("run", "-q", "-i", "100ms", "--flush", "50ms", "-o", path, "--", "/bin/sh", "-c", script)
    until(path.exists, "the recording")
    push("--follow", "--every", "0", "--to", server.url, path)
    assert recorder.wait() == 0
    for metric in ("app.loss", "app.late_loss"):
        values = {nanoseconds(t): v for t, v in exported(path, metric, "app").items()}
        assert values and server.of(metric) == pytest.approx(values), metric
    assert server.contradictions == 0


# ---- while it runs ----


def test_follows_to_the_end(server, tmp_path):
    path = tmp_path / "job.tacho"
    recorder = start("run", "-q", "-i", "100ms", "--flush", "50ms", "-o", path, "--", sys.executable, "-c", WORK)
    until(path.exists, "the recording")
    pusher = start("push", "--follow", *each_sample(server), path, stderr=subprocess.PIPE)
    until(lambda: server.requests > 1 and recorder.poll() is None, "values while the job runs")
    assert recorder.wait() == 0 and pusher.wait() == 0, pusher.stderr.read()
    assert_all_came(server, path)
    assert server.doubles == 0


def test_run_push(server, tmp_path):
    """It outlives the job, and is not of the job."""
    path = tmp_path / "job.tacho"
    spec = f"{server.url} --every 0 -m {','.join(METRICS)}"
    done = record([sys.executable, "-c", WORK], "-i", "100ms", "--push", spec, output=path)
    assert done.returncode == 0 and b"tacho push --status" in done.stderr
    until(lambda: "all sent" in status_of(path), "the end of the push")
    assert_all_came(server, path)
    assert max(server.of("tree.processes").values()) == 1


def test_run_push_of_a_job_that_is_over_at_once(server, tmp_path):
    path = tmp_path / "job.tacho"
    assert record(["/bin/true"], "-q", "--push", server.url, output=path).returncode == 0
    until(lambda: "all sent" in status_of(path), "the end of the push")


def test_a_dead_server_costs_the_job_nothing(tmp_path):
    path = tmp_path / "job.tacho"
    done = record(["/bin/sh", "-c", "exit 7"], "-q", "--push", "influx=http://127.0.0.1:1?db=x --linger 1s", output=path)
    assert done.returncode == 7
    until(lambda: "no success for" in status_of(path), "the push's reason")
    log = path.with_name("job.push.log")
    until(lambda: "what is left waits in the recording" in log.read_text(), "the end of the push")


def calls_of_recorder(folder, *options):
    """System calls of the recorder itself, not of the job and of pushers."""
    log, out = folder / "strace.txt", folder / f"{len(options)}.tacho"
    words = ["strace", "-c", "-o", log, os.environ["TACHO"], "run", "-q", "-i", "100ms", *options, "-o", out, "--", "/bin/sleep", "1"]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return int(log.read_text().splitlines()[-1].split()[3])  # of the line "total"


def test_a_dead_server_costs_the_recorder_nothing(tmp_path):
    """But for the start of the pusher it does what it does without one."""
    without = calls_of_recorder(tmp_path)
    dead = calls_of_recorder(tmp_path, "--push", "influx=http://127.0.0.1:1?db=x --linger 1s")
    assert dead < without * 1.25 + 60, (dead, without)


CLOCK = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *ts)
{
	const char *off = getenv("CLOCK_IS_OFF_BY");
	int r = (int)syscall(SYS_clock_gettime, id, ts);
	if (r == 0 && off && id == CLOCK_REALTIME)
		ts->tv_sec += atol(off);
	return r;
}
"""


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_is_an_hour_off(server, tmp_path, seconds):
    """Times are those of the recording, wherever the pusher's own clock stands; nothing is taken for old or still to come."""
    if "build-asan" in os.environ["TACHO"]:
        pytest.skip("a preloaded library comes before the sanitizer's")
    library, path = tmp_path / "clock.so", tmp_path / "job.tacho"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=CLOCK.encode(), check=True)
    env = {**os.environ, "LD_PRELOAD": str(library), "CLOCK_IS_OFF_BY": str(seconds)}
    recorder = start("run", "-q", "-i", "100ms", "--flush", "50ms", "-o", path, "--", sys.executable, "-c", WORK, env=env)
    until(path.exists, "the recording")
    push("--follow", *each_sample(server), path)
    assert recorder.wait() == 0
    assert_all_came(server, path)
    assert abs(min(server.of("proc.mem.rss")) / 1e9 - seconds - path.stat().st_mtime) < 600


def memory_of_push(server, path):
    """The most memory of a pusher, in bytes, as seen at its last request."""
    seen = []
    pusher = start("push", "--every", "0", "--to", server.url, path, stderr=subprocess.DEVNULL)

    def look(number):
        status = (Path("/proc") / str(pusher.pid) / "status").read_text()
        seen.append(int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024)

    server.fail = look
    assert pusher.wait() == 0
    return seen[-1]


def test_memory_does_not_grow_with_the_run(server, tmp_path):
    maker = Path(os.environ["TACHO"]).parent / "tests" / "unit" / "query_tool"
    if "build-asan" in os.environ["TACHO"]:
        pytest.skip("the sanitizer keeps what was freed")
    for name, seconds in (("short", 300), ("long", 6000)):
        subprocess.run([maker, "long", tmp_path / f"{name}.tacho", str(seconds), "1", "5"], check=True)
    short, long = (memory_of_push(server, tmp_path / f"{name}.tacho") for name in ("short", "long"))
    assert long < short * 1.3 + 2**20


# ---- servers that fail ----


@pytest.mark.parametrize("how", [500, 503, 429, "garbage", "late"])
def test_failures_lose_nothing(server, job, how):
    server.fail = lambda number: how if number in (1, 3) else None
    said = push(*each_sample(server), job)
    assert_all_came(server, job)
    assert "it is tried again" in said and "\x1b" not in said


def test_a_server_that_says_nothing(server, job):
    server.fail = lambda number: "hang" if number == 1 else None
    push("--timeout", "500ms", *each_sample(server), job)
    assert_all_came(server, job)


def test_no_server(job):
    said = push("--retries", "1", "--to", "influx=http://127.0.0.1:1?db=x", job, status=1)
    assert "the same command sends it" in said
    assert "no success for" in status_of(job)


def test_a_server_that_comes_later(job):
    """What could not be sent waits in the recording."""
    probe = Points()
    port = probe.server_address[1]
    probe.stop()
    words = ("--every", "0", "-m", ",".join(METRICS), "--to", f"influx=http://127.0.0.1:{port}?db=test", job)
    push("--retries", "0", *words, status=1)
    server = Points(port)
    push(*words)
    assert_all_came(server, job)
    server.stop()


def test_one_value_that_is_refused_holds_up_no_other(server, job):
    class Refusing:
        def __call__(self, number):
            return self.judge

        @staticmethod
        def judge(body):
            if b"proc.mem.rss" in body:
                return 400, b"no such field\x1b[31m"
            server.take(body)
            return 204, b""

    server.fail = Refusing()
    said = push(*each_sample(server), job, status=1)
    assert "no such field" in said and "\x1b" not in said
    assert not server.of("proc.mem.rss")
    assert server.of("tree.processes") == pytest.approx(expected(job)["tree.processes"])
    assert "were not taken" in status_of(job)


def test_a_wrong_address_is_said_at_once(server, job):
    server.fail = lambda number: 404
    said = push(*each_sample(server), job, status=1)
    assert "404" in said and server.requests == 1


# ---- pushers that are stopped ----


def test_killed_ten_times(server, tmp_path):
    """Nothing is lost, nothing comes with another value; what was on its way may come again."""
    path = tmp_path / "job.tacho"
    recorder = start("run", "-q", "-i", "50ms", "--flush", "50ms", "-o", path, "--", sys.executable, "-c", WORK * 2)
    until(path.exists, "the recording")
    for _ in range(10):
        before = server.requests
        pusher = start("push", "--follow", *each_sample(server), path, stderr=subprocess.DEVNULL)
        until(lambda: server.requests > before or pusher.poll() is not None, "a request")
        pusher.kill()
        pusher.wait()
    push("--follow", *each_sample(server), path)
    assert recorder.wait() == 0
    assert_all_came(server, path)


def test_two_at_once(server, tmp_path):
    path = tmp_path / "job.tacho"
    recorder = start("run", "-q", "-i", "100ms", "--flush", "50ms", "-o", path, "--", "cat", stdin=subprocess.PIPE)
    until(path.exists, "the recording")
    first = start("push", "--follow", *each_sample(server), path, stderr=subprocess.DEVNULL)
    until(lambda: server.requests, "a request of the first")
    assert "already" in push("--follow", *each_sample(server), path, status=1)
    recorder.stdin.close()
    assert recorder.wait() == 0 and first.wait() == 0
    assert_all_came(server, path)


def test_a_signal_ends_it_and_it_goes_on_later(server, job):
    server.fail = lambda number: 500
    pusher = start("push", "--retries", "1000", *each_sample(server), job, stderr=subprocess.DEVNULL)
    until(lambda: server.requests, "a request")
    pusher.send_signal(signal.SIGTERM)
    assert pusher.wait() == -signal.SIGTERM
    server.fail = lambda number: None
    push(*each_sample(server), job)
    assert_all_came(server, job)


# ---- what is remembered ----


def test_the_state_is_private_and_has_no_secret(server, job):
    env = {**os.environ, "INFLUX_USERNAME": "me", "INFLUX_PASSWORD": "hunter2"}
    push(*each_sample(server), job, env=env)
    state = job.with_name("job.push-influx")
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert "hunter2" not in state.read_text()


def test_a_password_on_the_command_line_is_refused(job):
    said = push("--to", "influx=http://me:hunter2@127.0.0.1:1?db=x", job, status=2)
    assert "password" in said and "hunter2" not in said


def test_a_damaged_state_is_said(server, job):
    job.with_name("job.push-influx").write_text("not ours")
    assert "remove it" in push(*each_sample(server), job, status=1)
    assert server.requests == 0


def test_a_state_of_a_former_recording_of_that_name(server, job):
    push(*each_sample(server), job)
    assert record([sys.executable, "-c", WORK], "-q", "--force", "-i", "100ms", output=job).returncode == 0
    push(*each_sample(server), job)
    for metric, values in expected(job).items():
        came = server.of(metric)
        assert {t: came.get(t) for t in values} == pytest.approx(values)


def test_beside_a_recording_that_cannot_be_written_to(server, job, tmp_path):
    if os.getuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and there is no setpriv")
    cache = tmp_path / "cache"
    cache.mkdir()
    os.chmod(job, 0o644)
    os.chmod(cache, 0o777)
    for place in [tmp_path, *list(tmp_path.parents)[:2]]:  # those that pytest made
        os.chmod(place, stat.S_IMODE(place.stat().st_mode) | 0o055)
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
    tacho = os.environ["TACHO"]
    done = subprocess.run([*words, tacho, "push", *each_sample(server), str(job)], env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert_all_came(server, job)
    assert list(cache.glob("tacho/push/*"))
    before = server.requests
    assert subprocess.run([*words, tacho, "push", *each_sample(server), str(job)], env=env, capture_output=True).returncode == 0
    assert server.requests == before


# ---- several recordings, and wrong use ----


def test_several_nodes(server, recording, tmp_path):
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    (nodes / "a.tacho").write_bytes(recording.read_bytes())
    assert record([sys.executable, "-c", WORK], "-q", "-i", "100ms", output=nodes / "b.tacho").returncode == 0
    push(*each_sample(server), nodes)
    both = {**expected(nodes / "a.tacho")["proc.mem.rss"], **expected(nodes / "b.tacho")["proc.mem.rss"]}
    assert server.of("proc.mem.rss") == pytest.approx(both)


@pytest.mark.parametrize(
    "words, told",
    [
        ((), "--to SINK"),
        (("--to", "inflx"), "did you mean 'influx'"),
        (("--to", "influx=http://127.0.0.1:1?db=x", "--label", "novalue"), "KEY=VALUE"),
        (("--to", "influx=http://127.0.0.1:1?db=x", "-m", "no.such.metric"), "no.such.metric"),
        (("--to", "influx=ftp://x"), "http"),
    ],
)
def test_wrong_use(job, words, told):
    assert told in push(*words, job, status=2)


def test_no_recording(tmp_path):
    assert "no.tacho" in push("--to", "influx=http://127.0.0.1:1?db=x", tmp_path / "no.tacho", status=2)


# ---- what a pusher must not do ----


def test_a_pusher_keeps_nothing_open_of_the_job(server, tmp_path):
    """Who waits for the end of a pipe of the job's does not wait for the pusher."""
    server.fail = lambda number: 500
    path = tmp_path / "job.tacho"
    mine, theirs = os.pipe()
    recorder = start("run", "-q", "--push", f"{server.url} --linger 1h", "-o", path, "--", "sleep", "0.2", pass_fds=[theirs])
    os.close(theirs)
    assert recorder.wait() == 0
    until(lambda: server.requests, "the pusher")
    os.set_blocking(mine, False)
    assert os.read(mine, 1) == b""  # not BlockingIOError: the last writer has closed it
    os.close(mine)
    server.fail = lambda number: None
    until(lambda: "all sent" in status_of(path), "the end of the push")


def test_a_misspelt_sink_is_said_when_the_run_begins(tmp_path):
    done = record(["/bin/true"], "--push", "inflx=http://127.0.0.1:1", output=tmp_path / "job.tacho")
    assert done.returncode == 0
    assert b"there is no sink 'inflx'" in done.stderr and b"did you mean 'influx'" in done.stderr
    assert b"goes on until all is sent" not in done.stderr


def test_run_knows_all_sinks(tmp_path):
    """It has their names without having the sinks."""
    listed = [line.split()[0] for line in run("push", "--sinks").stdout.decode().splitlines() if line[0] != " "]
    assert "influx" in listed
    for sink in listed:
        done = record(["/bin/true"], "-q", "--push", f"{sink} --dry-run", output=tmp_path / f"{sink}.tacho")
        assert b"there is no sink" not in done.stderr


def test_a_pusher_that_ended_before_the_job_is_said(tmp_path):
    path = tmp_path / "job.tacho"
    log = path.with_name("job.push.log")
    script = f"while ! grep -q 'no address' {log}; do sleep 0.1; done; sleep 0.3"
    env = {k: v for k, v in os.environ.items() if not k.startswith("INFLUX")}
    done = run("run", "--push", "influx", "-o", path, "--", "/bin/sh", "-c", script, env=env)
    assert done.returncode == 0 and b"job.push.log says why" in done.stderr
    assert b"goes on until all is sent" not in done.stderr


def test_a_log_that_is_no_file(server, tmp_path):
    """The pusher neither waits for a reader of a pipe nor follows a link to another file."""
    for name in ("pipe", "link"):
        path, log = tmp_path / f"{name}.tacho", tmp_path / f"{name}.push.log"
        if name == "pipe":
            os.mkfifo(log)
        else:
            log.symlink_to(tmp_path / "victim")
        assert record(["/bin/true"], "-q", "--push", server.url, output=path).returncode == 0
        until(lambda path=path: "all sent" in status_of(path), "the end of the push")
    assert not (tmp_path / "victim").exists()


# ---- several sinks at once ----


def test_several_addresses_at_once_have_a_state_each(server, job):
    targets = [word for n in range(6) for word in ("--to", f"{server.url}{n}")]
    push("--every", "0", *targets, job)
    assert status_of(job).count("all sent") == 6
    before = server.requests
    assert push("--every", "0", *targets, job).count("all was sent before") == 6
    assert server.requests == before


@pytest.mark.parametrize("wrong, status", [("influx=http://127.0.0.1:1?db=x", 1), ("influx=http://127.0.0.1:1", 2)])
def test_the_worst_of_several_is_the_status(server, job, wrong, status):
    push("--retries", "0", "--to", server.url, "--to", wrong, job, status=status)
    push("--retries", "0", "--to", wrong, "--to", server.url, job, status=status)
    assert "all sent" in status_of(job)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all_of_several(server, job, how):
    server.fail = lambda number: 500
    words = ("--retries", "1000", "--to", server.url, "--to", f"{server.url}2", "--to", f"{server.url}3", job)
    pusher = start("push", *words, stderr=subprocess.PIPE)
    until(lambda: server.requests > 5, "requests of all")
    pusher.send_signal(how)
    assert pusher.wait() == -how
    pusher.stderr.read()  # ends with the last of them


def test_a_signal_does_not_wait_for_a_silent_server(server, job):
    server.fail = lambda number: "hang"
    pusher = start("push", "--timeout", "1h", "--to", server.url, job, stderr=subprocess.PIPE)
    until(lambda: server.requests, "a request")
    pusher.send_signal(signal.SIGINT)
    assert pusher.wait() == -signal.SIGINT
    assert "no success" not in status_of(job)


# ---- states that others made ----


def test_a_state_of_another_user_is_not_believed(server, job, tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    push(*each_sample(server), job, env=env)
    os.chown(job.with_name("job.push-influx"), 65534, 65534)
    before = server.requests
    push(*each_sample(server), job, env=env)
    assert server.requests > before and list(tmp_path.glob("cache/tacho/push/*"))
    assert_all_came(server, job)


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1, 2**62, -(2**62)])
def test_numbers_of_a_state_may_be_any(server, job, number):
    push(*each_sample(server), job)
    state = job.with_name("job.push-influx")
    text = json.loads(state.read_text())
    changed = {key: number for key, value in text.items() if isinstance(value, int) and key not in ("version", "start_ns")}
    text.update(changed, all=False, done=False, sent={table: number for table in text["sent"]}, notes={f"n{i}": "x" for i in range(900)})
    state.write_text(json.dumps(text))
    assert "sent" in push(*each_sample(server), job)
    assert "all sent" in status_of(job)
    assert_all_came(server, job)


def test_an_event_file_is_never_another(job, tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("precious")
    words = ("--to", f"tensorboard={tmp_path}/runs", job)
    push(*words)
    state = job.with_name("job.push-tensorboard")
    for name in ("../mine", "job/../../mine", "../events.out.tfevents.1", "/mine", str(mine)):
        text = json.loads(state.read_text())
        assert text["notes"]
        key = next(k for k, v in text["notes"].items() if "tfevents" in v)
        text["notes"] = {key: name}
        text.update(all=False, done=False, sent={})
        state.write_text(json.dumps(text))
        push(*words)
        assert mine.read_text() == "precious"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["job.push-tensorboard", "job.tacho", "mine", "runs"]
