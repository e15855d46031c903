"""Targets: which processes are recorded, in which groups, from when to when, and with what to show for it."""

import json
import os
import pwd
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from recorder import BURNERS, TACHO, check, children, lasting, record, run, show, shown, start, until

FAST = ["-q", "-i", "50ms", "--flush", "100ms"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def tool(name, *words, burner="cpu", **kwargs):
    """A burner that calls itself NAME."""
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.Popen([name, *map(str, words)], executable=BURNERS / burner, **kwargs)


def sleeper(name, **kwargs):
    return subprocess.Popen([name, "1000"], executable="/bin/sleep", **kwargs)


def told_cpu(burner):
    """What the burner says it used."""
    text = burner.stdout.read()
    burner.wait()
    return float(re.search(rb"cpu_s? (\S+)", text)[1])


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processes(recording):
    done = run("show", "--processes", "--json", recording)
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    return listed["processes"] if isinstance(listed, dict) else listed


def alive(recording):
    """Processes that have been announced in a recording under way."""
    return shown(recording).get("processes", {}).get("seen")


def end(recorder, how=signal.SIGINT):
    recorder.send_signal(how)
    return recorder.wait()


def descriptors(pid):
    return list(Path(f"/proc/{pid}/fd").iterdir())


@pytest.fixture
def killed():
    """Processes that are killed at the end of the test."""
    started = []
    yield started
    for process in started:
        process.kill()
        process.wait()


# ---- tools by expression ----


def test_nothing_is_written_before_the_first_match(tmp_path, killed):
    recorder = start("attach", *FAST, "-o", tmp_path / "a.tacho", "match:(waited_for_[0-9]+)")
    stranger = sleeper("nobody_waits_for_it")
    killed += [recorder, stranger]
    until(lambda: Path(f"/proc/{recorder.pid}/stat").read_text().split()[2] == "S", "it waits")
    assert list(tmp_path.iterdir()) == []
    killed.append(sleeper("waited_for_7"))
    until(lambda: (tmp_path / "a.tacho").exists(), "the first match")
    until(lambda: alive(tmp_path / "a.tacho"), "it is recorded")
    assert end(recorder) == 0
    summary = show(tmp_path / "a.tacho")
    assert list(summary["groups"]) == ["waited_for_7"]
    assert summary["processes"]["seen"] == 1
    assert summary["groups"]["waited_for_7"]["processes"]["seen"] == 1


def test_no_match_is_told(tmp_path):
    done = run("attach", "--duration", "300ms", "-o", tmp_path / "a.tacho", "match:never_was_there_[x]{9}")
    assert done.returncode == 1
    assert b"nothing was recorded" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_tools_that_come_and_go(tmp_path):
    """Instances of several tools, some at once, some after each other, with a pause in which there is none: every tool
    has what its processes say they used, and the sum over tools is the sum over processes."""
    file = tmp_path / "a.tacho"
    # The first one is there until the recorder is at work: from then on it hears of all others.
    first = sleeper("first_0")
    recorder = start("attach", *FAST, "-o", file, r"match:^(fm|gul|eve|first)_[0-9]")
    until(lambda: alive(file), "the first is recorded")
    first.kill()
    first.wait()
    said = {"fm": 0.0, "gul": 0.0, "eve": 0.0, "first": 0.0}
    count = {"fm": 0, "gul": 0, "eve": 0, "first": 1}
    rounds = [["fm", "gul", "fm"], ["eve"], ["gul", "gul", "gul"]]
    for n, names in enumerate(rounds):
        # They burn when they are known: what a process used before is not its tool's.
        burners = [(name, tool(f"{name}_{n}", 0.001, "user", 0.2 + 0.1 * i, stdin=subprocess.PIPE)) for i, name in enumerate(names)]
        for name, _ in burners:
            count[name] += 1
        until(lambda: alive(file) == sum(count.values()), "they are known")
        for name, burner in burners:
            burner.stdin.close()
        for name, burner in burners:
            said[name] += told_cpu(burner)
    assert end(recorder) == 0
    assert check(file)[0] == 0
    summary = show(file)
    groups = summary["groups"]
    assert sorted(groups) == ["eve", "first", "fm", "gul"]
    listed = processes(file)
    for name, group in groups.items():
        assert group["processes"]["seen"] == count[name], name
        own = [p for p in listed if p["groups"] == [name]]
        assert len(own) == count[name]
        # A process's own CPU is known to its last moment, or (no exit records here) to its last sample.
        least = 0.98 if summary["cpu"]["source"] != "rusage+last samples" else 0.6
        assert least * said[name] <= group["cpu"]["total_s"] <= said[name] * 1.02 + 0.02, name
        assert group["cpu"]["total_s"] == pytest.approx(sum(p["cpu_s"] for p in own), abs=0.03), name
        assert group["memory"]["peak_rss_bytes"] > 0
    assert sum(g["cpu"]["total_s"] for g in groups.values()) == pytest.approx(summary["cpu"]["total_s"], abs=0.03)
    assert sum(g["processes"]["seen"] for g in groups.values()) == summary["processes"]["seen"] == 8


def test_children_of_a_tool_are_not_the_tool(tmp_path):
    """What a tool's children use is theirs: they do not match, and the tool has it in no account of its own."""
    script = "import subprocess, sys; sys.stdin.readline(); subprocess.run(sys.argv[1:]); sys.stdin.read()"
    worker = [str(BURNERS / "cpu"), "0.4"]
    parent = subprocess.Popen(["tool_parent", "-c", script, *worker], executable=sys.executable, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    recorder = start("attach", *FAST, "-o", tmp_path / "a.tacho", "match:^(tool_parent)")
    until(lambda: (tmp_path / "a.tacho").exists() and alive(tmp_path / "a.tacho"), "it is recorded")
    parent.communicate(b"go\n")
    assert end(recorder) == 0
    summary = show(tmp_path / "a.tacho")
    # Between fork and exec a child is a copy of the tool, which on a busy machine may be seen.
    assert summary["groups"]["tool_parent"]["processes"]["seen"] in (1, 2)
    assert summary["groups"]["tool_parent"]["cpu"]["total_s"] < 0.3
    assert summary["cpu"]["total_s"] < 0.3


def test_a_shell_becomes_a_tool(tmp_path):
    """exec makes a process another one: from then on it is in the group."""
    recorder = start("attach", *FAST, "-o", tmp_path / "a.tacho", "match:^(became_it)")
    shell = subprocess.Popen(["bash", "-c", "read line; exec -a became_it cat"], stdin=subprocess.PIPE)
    until(lambda: Path(f"/proc/{shell.pid}/comm").read_text() == "bash\n", "the shell waits")
    shell.stdin.write(b"go\n")
    shell.stdin.flush()
    until(lambda: alive(tmp_path / "a.tacho"), "it is seen")
    shell.communicate()
    assert end(recorder) == 0
    groups = show(tmp_path / "a.tacho")["groups"]
    assert list(groups) == ["became_it"]
    assert groups["became_it"]["processes"]["seen"] == 1


def test_strange_tools(tmp_path, killed):
    """Names of groups are bytes out of command lines."""
    names = ["odd tool", "par)en(", 'quo"te', "δ-tool"]
    killed += [sleeper(f"@{name}@") for name in names]
    killed.append(subprocess.Popen([b"@\xff\xfe@", b"1000"], executable="/bin/sleep"))
    done = run("attach", *FAST, "--duration", "300ms", "-o", tmp_path / "a.tacho", "match:^@([^@]+)@")
    assert done.returncode == 0, done.stderr
    groups = show(tmp_path / "a.tacho")["groups"]
    assert sorted(groups) == sorted([*names, "\\xff\\xfe"])
    text = run("show", tmp_path / "a.tacho").stdout.decode()
    assert "odd tool" in text and "δ-tool" in text


def test_a_tool_with_the_name_of_the_command(tmp_path, killed):
    """They are two groups: the command's has one process, the tool's all that are called so."""
    killed.append(sleeper("same_name"))
    command = ["bash", "-c", "exec -a same_name cat"]
    options = [*FAST, "--name", "same_name", "--also", "match:^(same_name)"]

    def tools_seen():
        return shown(tmp_path / "a.tacho").get("groups", {}).get("tool:same_name", {}).get("processes", {}).get("seen", 0)

    with lasting(command, *options, output=tmp_path / "a.tacho"):
        until(lambda: tools_seen() >= 2, "both tools are seen")
    groups = show(tmp_path / "a.tacho")["groups"]
    assert {name: (group["kind"], group["processes"]["seen"]) for name, group in groups.items()} == {
        "same_name": ("command", 1), "tool:same_name": ("match", 2)}


@pytest.mark.parametrize("helpers", ["all", "none"])
def test_those_too_short_to_be_asked_are_told(tmp_path, killed, helpers):
    """Of a process that is gone before its command line is read nobody knows whether it was the tool: the summary says
    how many there may have been."""
    killed.append(sleeper("short_anchor"))
    file = tmp_path / "a.tacho"
    recorder = start("attach", "-q", "-i", "1s", "--flush", "100ms", "--helpers", helpers, "-o", file, "match:^(short_[a-z]+)")
    killed.append(recorder)
    until(lambda: file.exists() and alive(file), "it is recorded")
    for _ in range(40):
        subprocess.run(["short_one"], executable="/bin/true", check=True)
    assert end(recorder) == 0
    summary = show(file)
    seen = summary["groups"].get("short_one", {"processes": {"seen": 0}})["processes"]["seen"]
    told = [re.match("up to ([0-9]+) process.* not counted for any tool", note) for note in summary["notes"]]
    assert sum(int(found[1]) for found in told if found) + seen >= 40, summary["notes"]


# ---- the other targets ----


def test_targets_side_by_side(tmp_path, killed):
    """Each its own group; a process in two of them is one process of the whole."""
    one, two = sleeper("side_one"), sleeper("side_two")
    killed += [one, two]
    me = pwd.getpwuid(os.geteuid()).pw_name
    done = run("attach", *FAST, "--duration", "400ms", "-o", tmp_path / "a.tacho", one.pid, f"b={two.pid}",
               "match:^(side_...)", "user:", "system")
    assert done.returncode == 0, done.stderr
    summary = show(tmp_path / "a.tacho")
    groups = summary["groups"]
    assert set(groups) == {str(one.pid), "b", "side_one", "side_two", f"user:{me}", "system"}
    assert groups[str(one.pid)]["processes"]["seen"] == 1
    assert groups["b"]["processes"]["seen"] == 1
    assert groups["side_one"]["processes"]["seen"] == groups["side_two"]["processes"]["seen"] == 1
    assert groups["system"]["processes"]["seen"] == summary["processes"]["seen"]
    assert 2 <= groups[f"user:{me}"]["processes"]["seen"] <= groups["system"]["processes"]["seen"]
    assert groups["system"]["kind"] == "system"
    rows = {p["pid"]: p["groups"] for p in processes(tmp_path / "a.tacho")}
    assert set(rows[one.pid]) == {str(one.pid), "side_one", f"user:{me}", "system"}
    assert os.getpid() in rows and 1 in rows
    # The recorder is never in its own recording.
    assert not [p for p in processes(tmp_path / "a.tacho") if p["name"] == "tacho" and "attach" in str(p["argv"])
                and str(tmp_path) in str(p["argv"])]


def test_a_process_and_its_descendants(tmp_path):
    """A PID stands for its tree, also what it starts later, and for all they use."""
    script = "read line; for i in 1 2 3; do \"$0\" 0.2; done"
    job = subprocess.Popen(["bash", "-c", script, BURNERS / "cpu"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    recorder = start("attach", *FAST, "-o", tmp_path / "a.tacho", f"tree={job.pid}")
    until(lambda: (tmp_path / "a.tacho").exists() and alive(tmp_path / "a.tacho"), "it is recorded")
    out = job.communicate(b"go\n")[0]
    said = sum(float(s) for s in re.findall(rb"cpu_s? (\S+)", out))
    assert recorder.wait() == 0
    summary = show(tmp_path / "a.tacho")
    group = summary["groups"]["tree"]
    assert group["processes"]["seen"] == summary["processes"]["seen"]
    assert group["cpu"]["total_s"] == pytest.approx(summary["cpu"]["total_s"], abs=0.02)
    assert group["cpu"]["total_s"] >= 0.5 * said


CONTAINED = """
mount -t proc proc /proc || exit 77
sleep 1001 &
setsid sleep 1002 &
until grep -qx sleep /proc/$!/comm; do :; done
"$TACHO" attach -q --duration 300ms -o "$1/a.tacho" 1
"""


@needs_root
def test_the_first_process_of_a_container(tmp_path):
    """There all others descend from process 1, those with sessions of their own too; elsewhere its children are orphans."""
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", CONTAINED, "sh", tmp_path],
                          env=dict(os.environ, TACHO=str(TACHO)), stderr=subprocess.PIPE, check=False)
    if done.returncode == 77 or b"unshare" in done.stderr:
        pytest.skip("no /proc of our own can be mounted")
    assert done.returncode == 0, done.stderr
    assert {"sleep 1001", "sleep 1002"} <= {" ".join(p["argv"]) for p in processes(tmp_path / "a.tacho")}


@needs_root
def test_another_user(tmp_path, killed):
    other = subprocess.Popen(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sleep", "1000"])
    killed.append(other)
    until(lambda: Path(f"/proc/{other.pid}/comm").read_text() == "sleep\n", "it runs")
    done = run("attach", *FAST, "--duration", "300ms", "-o", tmp_path / "a.tacho", "user:65534")
    assert done.returncode == 0, done.stderr
    assert other.pid in [p["pid"] for p in processes(tmp_path / "a.tacho")]
    # Of one that ended before its first sample the user need not be known.
    assert {p["uid"] for p in processes(tmp_path / "a.tacho")} - {None} == {65534}


def a_hierarchy():
    """A mounted hierarchy in which we may make groups."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        if " - cgroup" in line and os.access(words[4], os.W_OK) and "ro" not in words[5].split(","):
            return Path(words[4])
    return None


@needs_root
def test_a_control_group(tmp_path, killed):
    """The processes of a group and of those below it, later ones and moved ones too; it ends with the last."""
    top = a_hierarchy()
    if not top:
        pytest.skip("no control group hierarchy can be written")
    group = top / f"tacho-test-{os.getpid()}"
    below = group / "below"
    below.mkdir(parents=True)
    try:
        first, moved, stranger = sleeper("cg_first"), sleeper("cg_moved"), sleeper("cg_stranger")
        killed += [first, moved, stranger]
        (group / "cgroup.procs").write_text(str(first.pid))
        recorder = start("attach", *FAST, "-o", tmp_path / "a.tacho", f"cgroup:{group}")
        killed.append(recorder)
        until(lambda: (tmp_path / "a.tacho").exists() and alive(tmp_path / "a.tacho"), "it is recorded")
        later = subprocess.Popen(["sh", "-c", f"echo $$ >{below}/cgroup.procs; exec sleep 1000"])
        killed.append(later)
        (group / "cgroup.procs").write_text(str(moved.pid))
        until(lambda: alive(tmp_path / "a.tacho") >= 3, "the later ones are found")
        for process in (first, moved, later):
            process.kill()
            process.wait()
        assert recorder.wait() == 0
        assert {p["pid"] for p in processes(tmp_path / "a.tacho")} == {first.pid, moved.pid, later.pid}
        assert list(show(tmp_path / "a.tacho")["groups"]) == [f"cgroup:{group}"]
    finally:
        for process in killed:
            process.kill()
            process.wait()
        until(lambda: not (below / "cgroup.procs").read_text(), "it is empty")
        below.rmdir()
        until(lambda: not (group / "cgroup.procs").read_text(), "it is empty")
        group.rmdir()


def test_also_beside_a_command(tmp_path, killed):
    """run --also: the command's group and the others', the summary's exit is the command's."""
    other = sleeper("beside_it")
    killed.append(other)
    command = ["bash", "-c", f"{BURNERS / 'cpu'} 0.3; exit 7"]
    before_s = children_s()
    done = record(command, *FAST, "--name", "main", "--also", "match:^(beside_it)", "--also", f"pid={other.pid}",
                  output=tmp_path / "a.tacho")
    spent_s = children_s() - before_s  # by the recorder and by all that it has waited for
    assert done.returncode == 7
    summary = show(tmp_path / "a.tacho")
    assert set(summary["groups"]) == {"main", "beside_it", "pid"}
    assert summary["groups"]["main"]["processes"]["seen"] == 2
    assert 0.3 <= summary["groups"]["main"]["cpu"]["total_s"] <= spent_s
    assert summary["groups"]["beside_it"]["cpu"]["total_s"] < 0.05  # it sleeps
    assert summary["processes"]["seen"] == 3
    assert summary["exit"]["code"] == 7
    assert other.poll() is None


# ---- how it ends, and what is said ----


@pytest.mark.parametrize("target, status, said", [
    ("4194304", 1, "no process 4194304"),
    ("user:there-is-nobody", 1, "no user 'there-is-nobody'"),
    ("cgroup:/there/is/none", 1, "no control group"),
    ("container:0123456789abcdef0123456789abcdef", 1, "container"),
    ("job:987654321", 1, "987654321"),
    ("match:(", 125, "expression"),
    ("nonsense", 1, "no process is called 'nonsense'"),
    ("12nonsense", 125, "not a target"),
])
def test_targets_that_are_not_there(tmp_path, target, status, said):
    done = run("attach", "--wait", "0", "-o", tmp_path / "a.tacho", target)
    assert done.returncode == status, done.stderr
    assert said in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


def test_one_that_has_ended_is_told_apart(tmp_path):
    """A zombie is there, and yet there is nothing to record: neither a success nor no such process."""
    target = subprocess.Popen(["true"])
    until(lambda: Path(f"/proc/{target.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z", "it has ended")
    done = run("attach", "-q", "-o", tmp_path / "a.tacho", target.pid)
    target.wait()
    assert done.returncode == 4, done.stderr
    assert b"ended" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_until_file(tmp_path, killed):
    """FINISHED in the file ends the recording, nothing else does, and the processes go on."""
    target, word = sleeper("goes_on"), tmp_path / "word"
    killed.append(target)
    recorder = start("attach", *FAST, "--until-file", word, "-o", tmp_path / "a.tacho", target.pid)
    killed.append(recorder)
    until(lambda: (tmp_path / "a.tacho").exists() and alive(tmp_path / "a.tacho"), "it is recorded")
    word.write_text("INPROGRESS\n")
    before = show(tmp_path / "a.tacho")["ticks"]["taken"]
    until(lambda: show(tmp_path / "a.tacho")["ticks"]["taken"] > before + 40, "it goes on for more than a second")
    assert recorder.poll() is None
    word.write_text("FINISHED\n")
    assert recorder.wait() == 0
    assert target.poll() is None
    assert show(tmp_path / "a.tacho")["ended"] == "until-file"


@pytest.mark.parametrize("how", ["duration", "until-file"])
@pytest.mark.parametrize("helpers", ["all", "none"])
def test_a_command_that_goes_on_after_its_recording(tmp_path, killed, how, helpers):
    """Its children come and go, nobody writes it down, and its exit status is still ours."""
    (tmp_path / "word").write_text("FINISHED\n")
    end = {"duration": ["--duration", "300ms"], "until-file": ["--until-file", "word"]}[how]
    job = "while [ ! -e go ]; do sleep 0.02; done; sleep 0.1; exit 7"
    words = ["run", *FAST, *end, "--helpers", helpers, "-o", "a.tacho", "--", "sh", "-c", job]
    recorder = start(*words, cwd=tmp_path)
    killed.append(recorder)
    until(lambda: (tmp_path / "a.tacho").exists() and run("check", tmp_path / "a.tacho").returncode == 0, "it is whole")
    (tmp_path / "go").touch()
    assert recorder.wait() == 7
    assert show(tmp_path / "a.tacho")["ended"] == how


def test_one_that_nobody_has_waited_for_yet_runs_no_more(tmp_path):
    """A shell that waits for us collects its job after us."""
    job = sleeper("left_for_later")
    recorder = start("attach", *FAST, "-o", tmp_path / "a.tacho", job.pid)
    until(lambda: alive(tmp_path / "a.tacho"), "it is recorded")
    job.kill()
    assert recorder.wait() == 0
    job.wait()
    assert show(tmp_path / "a.tacho")["processes"]["unfinished"] == 0


@pytest.mark.parametrize("helpers", ["all", "none"])
def test_what_no_process_was_asked_for_is_not_zero(tmp_path, helpers):
    """Without processes, CPU time is known of a command that we wait for, and of nobody else."""
    options = [*FAST, "--helpers", helpers, "-m", "-process"]
    assert record([BURNERS / "cpu", "0.2"], *options, output=tmp_path / "run.tacho").returncode == 0
    told = show(tmp_path / "run.tacho")
    assert told["io"].pop("lower_bound") is False
    assert told["cpu"]["total_s"] > 0 and set(told["io"].values()) == {None}, told["io"]
    brief = [*options, "--helpers", "none", "--duration", "200ms"]
    assert record([BURNERS / "cpu", "0.6"], *brief, output=tmp_path / "short.tacho").returncode == 0
    assert show(tmp_path / "short.tacho")["cpu"]["total_s"] is None
    job = tool("busy", "1000")
    recorder = start("attach", *options, "-o", tmp_path / "attach.tacho", job.pid)
    until(lambda: alive(tmp_path / "attach.tacho"), "it is recorded")
    job.kill()
    assert recorder.wait() == 0
    job.wait()
    told = show(tmp_path / "attach.tacho")
    assert told["cpu"]["total_s"] is None and told["io"]["read_bytes"] is None


def test_until_file_before_anything_was_found(tmp_path):
    """A script that is over needs nobody who waits for its tools."""
    (tmp_path / "word").write_text("FINISHED\n")
    done = run("attach", "--until-file", tmp_path / "word", "-o", tmp_path / "a.tacho", "match:never_was_there_[x]{9}",
               timeout=60)
    assert done.returncode == 1
    assert b"nothing was recorded" in done.stderr
    assert not (tmp_path / "a.tacho").exists()


@pytest.mark.parametrize("target", ["4194304", "cgroup:/there/is/none", "job"])
def test_it_is_waited_for(tmp_path, target):
    """That is said once."""
    bare = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PBS", "OAR"))}
    done = run("attach", "--wait", "200ms", "-o", tmp_path / "a.tacho", target, env=bare)
    if target == "job" and b"trying" not in done.stderr and done.returncode == 0:
        pytest.skip("we run in a job")
    assert done.returncode == 1
    assert done.stderr.count(b"trying again for 0.2 s") == 1, done.stderr


def test_a_signal_while_we_wait(tmp_path, killed):
    """A signal ends the waiting, too, and leaves nothing behind."""
    recorder = start("attach", "-o", tmp_path / "a.tacho", "match:never_was_there_[x]{9}", stderr=subprocess.PIPE)
    killed.append(recorder)
    until(lambda: "signalfd" in " ".join(map(os.readlink, descriptors(recorder.pid))), "it listens")
    recorder.terminate()
    assert b"nothing was recorded" in recorder.communicate()[1]
    assert recorder.returncode == 1
    assert list(tmp_path.iterdir()) == []


HIDDEN = """
mount -t proc -o hidepid=2 proc /proc || exit 77
cd "$1" || exit 77
sleep 1000 & target=$!
as_user="setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent"
for who in $target user:root 'match:sleep 1000' system; do
    $as_user "$TACHO" attach -q --duration 300ms -o none.tacho "$who"
    echo "status $?"
done
$as_user "$TACHO" run -q -o some.tacho --also user:root -- true
echo "status $?"
kill $target
"""


@needs_root
def test_those_whom_proc_hides():
    """hidepid: not permitted is not the same as not there, and a recording says what it could not see."""
    with tempfile.TemporaryDirectory() as place:  # pytest's own cannot be reached by another user
        Path(place).chmod(0o777)
        shutil.copy(TACHO, place)  # which may lie where another user cannot look
        env = dict(os.environ, TACHO=f"{place}/tacho")
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", HIDDEN, "sh", place], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode == 77 or b"unshare" in done.stderr:
            pytest.skip("no /proc of our own can be mounted")
        assert done.stdout.split() == [b"status", b"3"] * 4 + [b"status", b"0"], done.stderr
        assert done.stderr.count(b"hidden") == 4, done.stderr
        assert not Path(place, "none.tacho").exists()
        assert [note for note in show(Path(place, "some.tacho"))["notes"] if "hidden" in note]


@needs_root
def test_a_job_that_might_be_somebody_elses():
    """An ordinary user cannot read whose environment names it, and is not told that there is no such job."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        shutil.copy(TACHO, f"{place}/tacho")
        become = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env", "HOME=/nonexistent"]
        done = subprocess.run([*become, f"{place}/tacho", "attach", "--wait", "0", "job:987654321"], cwd=place, check=False,
                              stderr=subprocess.PIPE)
        assert done.returncode == 1
        assert b"no process of job 987654321 is on this node now, as far as can be seen" in done.stderr
    assert b"as far as" not in run("attach", "--wait", "0", "job:987654321").stderr


@pytest.mark.parametrize("options", [["--max-cpus", "none"], ["--max-cpus", "0"], ["--max-memory", "5X"], ["--max-memory", "-1"]])
def test_wrong_limits(tmp_path, options):
    done = record(["true"], *options, output=tmp_path / "a.tacho")
    assert done.returncode == 125
    assert options[0].encode() in done.stderr


def test_limits_of_ones_own(tmp_path):
    done = record(["true"], "-q", "--max-cpus", "1.5", "--max-memory", "512M", output=tmp_path / "a.tacho")
    assert done.returncode == 0
    limits = show(tmp_path / "a.tacho")["limits"]
    assert limits["cpus"] == 1.5 and limits["cpus_source"] == "--max-cpus"
    assert limits["memory_bytes"] == 512 << 20 and limits["memory_source"] == "--max-memory"


def test_limits_of_groups(tmp_path, killed):
    """Each group has the limits of its own processes: one is bound to a CPU and has a ulimit, one comes later, others have
    the machine."""
    file = tmp_path / "a.tacho"
    cpu = min(os.sched_getaffinity(0))
    machine = os.cpu_count()

    def bind():
        os.sched_setaffinity(0, {cpu})
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    free, bound = sleeper("free"), sleeper("bound", preexec_fn=bind)
    killed += [free, bound]
    recorder = start("attach", *FAST, "-o", file, f"free={free.pid}", f"bound={bound.pid}", "match:^(late_comer)", "all=system")
    killed.append(recorder)
    until(lambda: alive(file), "they are recorded")
    killed.append(sleeper("late_comer", preexec_fn=bind))
    until(lambda: shown(file).get("groups", {}).get("late_comer", {}).get("limits", {}).get("cpus_source") == "affinity"
          or machine == 1 and "late_comer" in shown(file)["groups"], "the limits of the late one are written")
    assert end(recorder) == 0
    assert check(file)[0] == 0
    summary = show(file)
    limits = {name: group["limits"] for name, group in summary["groups"].items()}
    for name in ("bound", "late_comer"):
        assert limits[name]["cpus"] == 1
        assert limits[name]["memory_bytes"] <= 1 << 30
        if summary["limits"]["memory_bytes"] > 1 << 30:
            assert limits[name]["memory_source"] == "ulimit -v (each process)"
    assert limits["free"] == {name: summary["limits"][name] for name in limits["free"]}
    assert limits["all"]["cpus"] == summary["limits"]["machine_cpus"] and limits["all"]["cpus_source"] == "machine"
    assert limits["all"]["memory_bytes"] == summary["limits"]["machine_memory_bytes"]
    # Shares are of these limits, and the text says where they are not those of the whole.
    group = summary["groups"]["bound"]
    assert group["memory"]["of_allocation_ratio"] == pytest.approx(group["memory"]["peak_bytes"] / limits["bound"]["memory_bytes"])
    if summary["limits"]["cpus"] > 1:
        text = run("show", file).stdout.decode()
        assert "bound may use 1 CPU (affinity), " in text and "free may use" not in text


# ---- ten thousand processes ----

MANY = 10000


@pytest.fixture(scope="module")
def many():
    """Ten thousand processes that sleep."""
    left = int(Path("/proc/sys/kernel/threads-max").read_text()) - len(os.listdir("/proc"))
    if left < MANY + 2000:
        pytest.skip(f"the kernel allows only {left} more processes")
    herd = subprocess.Popen([BURNERS / "crowd", str(MANY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if herd.stdout.readline() != b"ready\n":
            pytest.skip("ten thousand processes cannot be started here")
        yield herd
    finally:
        herd.stdin.close()
        herd.wait()
        # It takes a while until all are gone; who measures next shall have the machine to himself.
        until(lambda: len(os.listdir("/proc")) < MANY / 2, "the crowd is gone")


def traced_calls(tmp_path, *words):
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-o", trace, TACHO, "attach", *map(str, words)], stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode and b"ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    return trace.read_text(errors="replace").splitlines()


def test_strangers_cost_nothing(tmp_path, many, killed):
    """After the first look at all of them, a tick asks nothing of ten thousand processes that are none of its own."""
    target = sleeper("the_only_one")
    killed.append(target)
    crowd = set(children(many.pid))
    assert len(crowd) == MANY
    for wanted in (target.pid, "match:^(the_only_one)"):
        began = time.monotonic()
        lines = traced_calls(tmp_path, *FAST, "--helpers", "none", "-f", "--duration", "1s", "-o", tmp_path / "a.tacho",
                             "-m", "none,+process", wanted)
        first = next(i for i, line in enumerate(lines) if "a.tacho" in line)
        asked = [line for line in lines[first:] if (found := re.search(r'"proc/(\d+)/', line)) and int(found[1]) in crowd]
        # A process's CPU clock is asked for by its complemented PID.
        clocks = [line for line in lines[first:] if (found := re.search(r"clock_gettime\(0x(f\w+)", line))
                  and (~(int(found[1], 16) - (1 << 32)) >> 3) in crowd]
        # All of them are looked at again every half minute: on a slow machine the trace may take that long.
        looks = int((time.monotonic() - began) / 30)
        assert len(asked) <= 2 * looks * MANY and len(clocks) <= looks * MANY, (len(asked), len(clocks), looks)


def test_all_of_them_within_the_budget(tmp_path, many):
    """`system` on ten thousand backs off until it fits the budget, in turns or with fewer ticks, and says so."""
    # What it spends is judged after five seconds, and an interval that is asked for would be kept.
    done = run("attach", "--duration", "9s", "--budget", "0.05", "-o", tmp_path / "a.tacho", "system")
    assert done.returncode == 0, done.stderr
    summary = show(tmp_path / "a.tacho")
    assert summary["groups"]["system"]["processes"]["seen"] > MANY
    assert [note for note in summary["notes"] if "budget" in note], summary["notes"]
