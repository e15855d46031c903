"""`tacho show --follow`: a run in progress, line by line, from its first moment or from its middle, to its end, whatever that is."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from recorder import TACHO, can_trace, lasting, record, run, start, until

QUICK = ["-i", "50ms"]
RARELY = ["-i", "1h"]  # nothing comes after the first moments
WAITS = ["cat"]


@contextlib.contextmanager
def follower(*words, **kwargs):
    """`tacho show --follow --json WORDS`, with a list of what it has said so far."""
    kwargs.setdefault("stderr", subprocess.PIPE)
    tacho = start("show", "--follow", "--json", *words, stdout=subprocess.PIPE, **kwargs)
    try:
        yield tacho
    finally:
        tacho.kill()
        tacho.communicate()


def next_line(tacho):
    line = tacho.stdout.readline()
    return json.loads(line) if line else None


def rest_of(tacho):
    """Its other lines; it must end by itself."""
    lines = [json.loads(line) for line in tacho.stdout]  # not communicate(): some may be read already
    err = tacho.stderr.read().decode()
    tacho.wait()
    return lines, err


def points_of(recording, line):
    """What a series says of the metrics in a line."""
    names = [name for name in line if "." in name]
    done = run("show", "--json", "--series", ",".join(names), recording)
    told = json.loads(done.stdout)["recordings"][0]
    return [dict(zip(told["columns"], point)) for point in told["points"]]


def without_host(line):
    return {name: value for name, value in line.items() if name not in ("host", "time")}


@pytest.fixture
def growing(tmp_path):
    """A recording that is there, and lasts."""
    recording = tmp_path / "job.tacho"
    with lasting(WAITS, *QUICK, output=recording) as tacho:
        until(recording.exists, "a recording")
        yield recording, tacho


def test_each_line_is_a_point_of_the_series(tmp_path):
    """From the file's first moment on: it has no schema yet. Lines come while the job runs."""
    recording = tmp_path / "job.tacho"
    with lasting(WAITS, *QUICK, output=recording) as tacho:
        until(recording.exists, "a recording")
        with follower("--from", "0", recording) as all_of_it, follower(recording) as from_now:
            lines = [next_line(all_of_it) for _ in range(10)]
            news = [next_line(from_now) for _ in range(3)]
            tacho.stdin.close()
            more, err = rest_of(all_of_it)
            other, _ = rest_of(from_now)
            assert (all_of_it.returncode, from_now.returncode, err) == (0, 0, "")
    points = points_of(recording, lines[0])
    assert [without_host(line) for line in lines + more] == points
    assert [without_host(line) for line in news + other] == points[-len(news + other):]
    assert {"tree.cores", "proc.mem.pss_now", "tree.processes", "tree.io.read_rate"} <= set(lines[0])


def test_a_finished_one_ends_at_once(tmp_path):
    recording = tmp_path / "job.tacho"
    record(["true"], output=recording)
    with follower(recording) as tacho:
        lines, _ = rest_of(tacho)
    assert [without_host(line) for line in lines] == points_of(recording, lines[0])[-1:]
    text = run("show", "--follow", recording).stdout.decode().splitlines()
    assert text[0].split() == ["time", "cores", "memory", "processes", "read", "write"] and len(text) == 2
    assert re.fullmatch(r"\d+m\d\d\.\ds", text[1].split()[0])  # lines may be less than a second apart


def test_chosen_metrics(tmp_path):
    recording = tmp_path / "job.tacho"
    record(["true"], output=recording)
    done = run("show", "--follow", "--json", "--series", "proc.mem.rss,tree.joined", "--rate", recording)
    assert set(json.loads(done.stdout)) == {"host", "time", "time_s", "proc.mem.rss", "tree.joined"}
    assert run("show", "--follow", "--series", "proc.mem.rsss", recording).returncode == 2


def test_a_killed_recorder_is_the_end(tmp_path):
    recording = tmp_path / "job.tacho"
    with lasting(WAITS, *QUICK, output=recording, status=-signal.SIGKILL) as tacho:
        until(recording.exists, "a recording")
        with follower(recording) as follows:
            assert next_line(follows)
            tacho.kill()
            _, err = rest_of(follows)
            assert follows.returncode == 0 and "is gone: the recording is unfinished" in err


def test_a_recorder_that_died_where_there_are_no_locks(tmp_path):
    """As long as it writes, the follower goes on, though no lock is seen; three flushes that do not come are the end."""
    why_not = can_trace()
    if why_not:
        pytest.skip(why_not)
    recording, log = tmp_path / "job.tacho", tmp_path / "log"
    # The first three look whether the standard descriptors are open.
    no_locks = ["strace", "-f", "-e", "trace=fcntl,fstat,pread64", "-e", "inject=fcntl:error=ENOLCK:when=4+", "-o", log]
    with lasting(WAITS, *QUICK, output=recording, status=-signal.SIGKILL) as tacho:
        until(recording.exists, "a recording")
        follows = subprocess.Popen([*no_locks, TACHO, "show", "--follow", "--json", recording], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            lines = [next_line(follows) for _ in range(80)]  # of more than three flushes, which are a second apart
            tacho.kill()
            more, err = rest_of(follows)
        finally:
            follows.kill()
    assert follows.returncode == 0 and "is gone: the recording is unfinished" in err
    times = [line["time_s"] for line in lines + more]
    assert times == sorted(set(times)) and times[79] - times[0] > 3
    asked = [line for line in log.read_text().splitlines() if "F_GETFD" not in line and ("OFD_GETLK" in line or "pread64" in line)]
    assert any("OFD_GETLK" in line for line in asked)
    assert all("INJECTED" in line for line in asked if "OFD_GETLK" in line), asked
    # After the last bytes were read: a look a second, and it did not give up at the first.
    last = max(i for i, line in enumerate(asked) if "pread64" in line and not line.endswith("= 0"))
    assert 2 <= sum("OFD_GETLK" in line for line in asked[last + 1:]) <= 10, asked[last:]


@pytest.mark.parametrize("way", ["replaced", "cut"])
def test_another_file_under_its_name(tmp_path, growing, way):
    recording, _ = growing
    with follower(recording) as tacho:
        assert next_line(tacho)
        if way == "replaced":
            shutil.copy(recording, tmp_path / "other")
            os.replace(tmp_path / "other", recording)
        else:
            os.truncate(recording, 100)
        _, err = rest_of(tacho)
        assert tacho.returncode == 1 and f"{recording} was replaced or cut" in err


def test_nodes_that_come_later(tmp_path):
    """The directory is empty at first. The second node comes when the first has told something."""
    with follower(tmp_path) as tacho:
        with lasting(WAITS, *QUICK, output=tmp_path / "a.tacho"):
            assert next_line(tacho)
            with lasting(["sh", "-c", "cat; true"], *QUICK, output=tmp_path / "b.tacho"):
                while next_line(tacho)["tree.processes"] != 2:  # the second has a shell, too, from its first tick on
                    pass
        _, err = rest_of(tacho)
        assert tacho.returncode == 0 and "waiting for a recording in" in err


def test_nobody_reads_its_lines(growing):
    recording, _ = growing
    with follower(recording) as tacho:
        assert next_line(tacho)
        tacho.stdout.close()
        tacho.stdout = None
        assert tacho.wait() in (0, 1, -signal.SIGPIPE)


def test_interrupted(growing):
    recording, _ = growing
    with follower(recording) as tacho:
        assert next_line(tacho)
        tacho.send_signal(signal.SIGINT)
        assert tacho.wait() == -signal.SIGINT


def test_wrong_use(tmp_path):
    recording = tmp_path / "job.tacho"
    record(["true"], output=recording)
    for words in (["--csv"], ["--stats"], ["-p"], ["--to", "3"], ["--per", "instance", "--series", "proc.mem.rss"]):
        assert run("show", "--follow", *words, recording).returncode == 2
    assert run("show", "--follow", tmp_path / "none.tacho").returncode == 2
    assert run("show", "--from", "3", recording).returncode == 2


def traced(log):
    """Names of the system calls so far."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.split(maxsplit=1)[-1].split("(")[0] for line in lines]


def test_waiting_costs_a_few_looks(tmp_path):
    """Without news: one look at the size a quarter of a second, and one at lock and name a second. Nothing is read."""
    why_not = can_trace()
    if why_not:
        pytest.skip(why_not)
    recording, log = tmp_path / "job.tacho", tmp_path / "log"
    with lasting(WAITS, *RARELY, output=recording):
        until(recording.exists, "a recording")
        tacho = subprocess.Popen(["strace", "-f", "-o", log, TACHO, "show", "--follow", recording], stdout=subprocess.DEVNULL)
        until(lambda: traced(log).count("poll") >= 11, "some rounds of waiting")
        names = traced(log)
    assert tacho.wait() == 0  # with the recording
    last = len(names) - names[::-1].index("poll")
    first = [i for i, name in enumerate(names) if name == "poll"][-7]
    idle = names[first:last]
    assert not {"pread64", "read", "write", "openat"} & set(idle), idle
    assert len(idle) <= 7 + 7 + 3 * 3, idle


def opened(log, since):
    """Recordings that were opened since that line of the trace, and how often."""
    names = re.findall(r'openat\(.*?"[^"]*/([^"/]*\.tacho)"', "\n".join(log.read_text().splitlines()[since:]))
    return {name: names.count(name) for name in names}


@pytest.mark.parametrize("command", ["log", "show"])
def test_what_is_there_already_is_not_opened_again(tmp_path, command):
    """A follower of a directory looks at the directory, and opens what is new in it."""
    why_not = can_trace()
    if why_not:
        pytest.skip(why_not)
    runs, log = tmp_path / "runs", tmp_path / "log"
    runs.mkdir()
    assert record(["true"], "-q", output=runs / "a.tacho").returncode == 0
    for name in "bcd":
        shutil.copy(runs / "a.tacho", runs / f"{name}.tacho")

    def looks(since):
        return sum(f'"{runs}"' in line and "stat" in line for line in log.read_text().splitlines()[since:])

    with lasting(WAITS, *RARELY, output=runs / "job.tacho"):
        until((runs / "job.tacho").exists, "a recording")
        tacho = subprocess.Popen(["strace", "-f", "-o", log, TACHO, command, "--follow", "--json", runs], stdout=subprocess.DEVNULL)
        until(lambda: traced(log).count("poll") >= 5, "all of them were read")
        before = len(log.read_text().splitlines())
        until(lambda: looks(before) >= 2, "it looks for more")
        assert not set(opened(log, before)) - {"job.tacho"}
        shutil.copy(runs / "a.tacho", tmp_path / "e.tacho")
        (tmp_path / "e.tacho").rename(runs / "e.tacho")
        until(lambda: "e.tacho" in opened(log, before), "it finds the new one")
        polls = traced(log).count("poll")
        until(lambda: traced(log).count("poll") >= polls + 5, "some rounds")
    assert tacho.wait() == 0
    assert not set(opened(log, before)) - {"job.tacho", "e.tacho"} and opened(log, before)["e.tacho"] <= 8


@pytest.mark.parametrize("command", ["log", "show"])
def test_a_job_of_which_nothing_is_there_yet_is_waited_for(tmp_path, command):
    """Recordings of another job in the directory are not it."""
    assert record(["true"], "-q", output=tmp_path / "11.tacho", env={**os.environ, "SLURM_JOB_ID": "11"}).returncode == 0
    tacho = start(command, "--follow", "--json", "--job", "12", tmp_path, stdout=subprocess.PIPE)
    assert record(["sleep", "0.2"], "-q", *QUICK, output=tmp_path / "12.tacho", env={**os.environ, "SLURM_JOB_ID": "12"}).returncode == 0
    told = tacho.communicate()[0].decode().splitlines()
    assert tacho.returncode == 0 and told and not any('"true"' in line for line in told)
