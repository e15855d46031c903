"""Burners whose use is known, and what the recorder says of them.

Each case runs as root and as an ordinary user, with all of the kernel's help that there is and with none of it. What
may differ between these is what the recorder must admit: which source its CPU total has, whether it is a lower bound,
how many processes it may not have seen. Everything else must be right in all four.

Errors allowed are written where they are used. CPU lies between what the job said of itself before it ended and what
the recorder and the job used together; where nobody of ours is charged for it, what a process uses after it has told
its account (its exit) is bounded by far less than what it used before.

How long anything takes is nobody's business: a job whose samples matter lasts until they are in the recording.
"""

import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from exact import (
    ELSEWHERE, ENDING_S, IS_ROOT, MIB, OWN_PIDS, Lab, about, about_cpu, account, attach, between_cpu, count_of_processes, is_sampling, lab,
    lab_elsewhere, lab_of, may_start, other_group, place, within_cpu,
)
from recorder import BURNERS, TACHO, until

# ---- CPU ----


@pytest.mark.parametrize("mode", ["user", "sys"])
def test_cpu_seconds(lab, mode):
    summary, said = lab.run("cpu", 0.8, mode)
    between_cpu(summary, said, lab)
    # The kernel divides by sampling at ticks, of which there are few in a second.
    assert summary["cpu"]["user_s" if mode == "user" else "system_s"] > 0.3 * said["cpu_s"]
    assert summary["cpu"]["lower_bound"] is False
    assert summary["cpu"]["source"] == "cgroup" or not lab.has_all_help
    assert summary["cpu"]["observed_ratio"] > 0.9
    # A tick is as long as it was planned to be, or longer: what is used while the recorder waits for a CPU in the midst
    # of one is in it. Twice the one CPU there is would be counted twice.
    assert summary["cpu"]["mean_cores"] <= 1
    assert summary["cpu"]["mean_cores"] <= summary["cpu"]["peak_cores"] < 1.9


def test_threads(lab):
    summary, said = lab.run("threads", 8, 0.05, "-", interval="50ms", lasts_until=lambda lab: lab.summary()["threads"]["peak"] == 8)
    assert summary["threads"]["peak"] == 8
    assert summary["processes"]["seen"] == 1
    between_cpu(summary, said, lab)


def test_children_that_are_waited_for(lab):
    """Sampled for long, then reaped by a parent that ends at once: they are in its account, and only there."""
    burner = lab.where / "cpu"
    summary, said = lab.run("sh", "-c", f"{burner} 0.3 >/dev/null & {burner} 0.3 >/dev/null & wait; echo cpu_s 0.6")
    between_cpu(summary, said, lab)
    assert summary["cpu"]["lower_bound"] is False
    count_of_processes(lab, summary, 3)


def test_storm_with_exit_records_alone(place):
    """Records of processes whose parent was not known either are told: the number is right, or a bound."""
    lab = lab_of("root-taskstats", place)
    summary, _ = lab.run("sh", "-c", "sh -c 'for i in $(seq 200); do /bin/true; done'; :", interval="1s")
    count_of_processes(lab, summary, 203)


def test_storm_of_short_lives(lab):
    nr, each_s = 300, 0.005
    summary, said = lab.run("storm", nr, 2, 1000 * each_s)
    between_cpu(summary, said, lab)
    assert summary["cpu"]["lower_bound"] is False
    count_of_processes(lab, summary, nr + 1)
    if not lab.has_all_help:
        return
    table = lab.show("--processes", "--json")
    assert len(table["processes"]) == table["total"] == nr + 1
    # Exit records miss the last moments of a life, which come after what it burns; the group has them.
    in_rows = sum(p["cpu_s"] or 0 for p in table["processes"])
    assert nr * each_s <= in_rows <= summary["cpu"]["total_s"] + 1e-5
    if summary["cpu"]["source"] == "cgroup":
        about(in_rows + table["cpu_in_no_row_s"], summary["cpu"]["total_s"], 0, 1e-4)
        said = subprocess.run([TACHO, "show", "--processes", lab.recording], stdout=subprocess.PIPE, text=True).stdout
        assert ("of CPU time is in no row" in said) == (table["cpu_in_no_row_s"] >= 0.001)
    else:
        assert table["cpu_in_no_row_s"] is None


def has_own_pid_max():
    """Since Linux 6.14 a PID namespace has one; before, writing it would change that of the whole machine."""
    return tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2]) >= (6, 14)


def test_short_lives_where_pids_come_round(place):
    """With few PIDs the last one given out says nothing about how many there were."""
    lab, nr = lab_of("root-none", place), 400
    if not has_own_pid_max() or subprocess.run([*OWN_PIDS, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no PID namespace with a limit of its own can be made here")
    recorder = f"{place / 'tacho'} run -q -i 30s --helpers=none -o {lab.recording} -- {place / 'storm'} {nr} 2 0"
    job = lab.start([*OWN_PIDS, "sh", "-c", f"echo 400 >/proc/sys/kernel/pid_max && exec {recorder}"])
    job.communicate()
    assert job.returncode == 0
    processes = lab.summary()["processes"]
    assert processes["unsampled_is_upper_bound"] is True
    assert processes["seen"] <= nr + 1 <= processes["seen"] + processes["unsampled"]


@pytest.mark.parametrize("how", ["daemon", "reparent"])
def test_orphans_are_not_lost(lab, how):
    # It begins when it has been sampled: only then is a child that it has waited for told from none.
    script = f"read line; exec {lab.where / 'orphan'} {how} 0.5"
    summary, said = lab.run("sh", "-c", script, lasts_until=lambda lab: lab.summary()["processes"]["peak"] == 1)
    about_cpu(summary, said, 3)
    count_of_processes(lab, summary, 3)
    assert summary["processes"]["peak"] >= 2


def test_daemon_that_outlives_the_command(lab):
    summary, said = lab.run("orphan", "leave", 0.5, options=["--wait=tree"])
    about_cpu(summary, said, 3)
    assert summary["exit"]["code"] == 0


@pytest.mark.parametrize("how", ["ignore", "nocldwait"])
def test_children_nobody_waits_for(lab, how):
    """Their CPU reaches no rusage. A group of our own has it; without one the total must be marked."""
    summary, said = lab.run("nochld", how, 20, 30)
    if summary["cpu"]["source"] == "cgroup":
        about_cpu(summary, said, 21)
        assert summary["cpu"]["lower_bound"] is False
    else:
        assert not lab.has_all_help
        assert summary["cpu"]["lower_bound"] is True
        assert summary["cpu"]["total_s"] <= said["cpu_s"] + 0.01 + 21 * ENDING_S
    count_of_processes(lab, summary, 21)


# Children whose end is noticed nowhere, then waits for the end of its input.
DROPS_CHILDREN = """import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for i in range(30):
    os.fork() or os._exit(0)
sys.stdin.read()"""


def test_short_children_nobody_waits_for_are_counted(place):
    lab = lab_of("user-none", place)

    def are_counted(lab):
        processes = lab.summary()["processes"]
        return processes["seen"] + processes["unsampled"] >= 31

    summary, _ = lab.run("/usr/bin/python3", "-S", "-c", DROPS_CHILDREN, interval="50ms", lasts_until=are_counted)
    count_of_processes(lab, summary, 31)
    assert summary["cpu"]["lower_bound"] is True


# Children that work, then sleep until the input ends, and end one after another.
SLEEPERS = """import os, resource, signal, sys, time
def used(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
def sleeper():
    while time.process_time() < 0.01:
        pass
    signal.pause()
children = [os.fork() or sleeper() for i in range(120)]
sys.stdin.read()
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    time.sleep(0.002)
print("cpu_s", used(resource.RUSAGE_SELF) + used(resource.RUSAGE_CHILDREN))"""


@pytest.mark.parametrize("helpers", ["none", "taskstats"])
def test_sleepers_whose_clocks_take_turns_count_once(place, helpers):
    """One that ends while its clock is not looked at is in the account of its parent, and not beside it."""
    lab = lab_of(f"root-{helpers}", place)

    def clocks_take_turns(lab):
        return any("of processes that sleep was read in turns" in note for note in lab.summary()["notes"])

    options = ["--force", "--budget", "0.01"]
    words = ["/usr/bin/python3", "-S", "-c", SLEEPERS]
    summary, said = lab.run(*words, interval="20ms", options=options, lasts_until=clocks_take_turns)
    about_cpu(summary, said, 1)


def test_exit_records_alone(place):
    """Without a group, records of exits tell of children nobody waits for: beside samples, not on top of them."""
    lab = Lab("root", "connector,taskstats", place)
    summary, said = lab.run("nochld", "ignore", 60, 20, interval="50ms", options=["--force"])
    if "exit-record" not in {process["how"] for process in lab.show("--processes", "--json")["processes"]}:
        pytest.skip("no exit records here")
    # Records miss the last moments of a life, so their sum is a lower bound.
    assert summary["cpu"]["lower_bound"] is True
    within_cpu(summary, said["cpu_s"] - 61 * ENDING_S, said["cpu_s"] + 0.01 + 61 * ENDING_S)


@pytest.mark.parametrize("helpers, parent", [("taskstats", "exec"), ("taskstats", ""), ("connector,taskstats", "exec"), ("connector", "exec"),
                                             ("connector", ""), ("none", "exec")])
def test_children_nobody_waits_for_between_two_samples(place, helpers, parent):
    """No sample meets the parent while it ignores SIGCHLD: it is looked at before we wait for it; where a shell does that,
    when the kernel's events are heard. Exit records tell what its children used."""
    lab = lab_of(f"root-{helpers}", place)
    script = f"read line; {parent} {lab.where / 'nochld'} ignore 2 400; exit"
    summary, said = lab.run("sh", "-c", script, interval="30s", lasts_until=is_sampling)
    assert summary["cpu"]["lower_bound"] is True
    if "exit-record" in {process["how"] for process in lab.show("--processes", "--json")["processes"]}:
        within_cpu(summary, said["cpu_s"] - 21 * ENDING_S, said["cpu_s"] + 0.01 + 21 * ENDING_S)


# ---- random trees ----


def has_one(lab):
    return lab.summary()["processes"]["peak"] == 1


HELPERS = ["root-all", "root-connector", "root-taskstats", "root-cgroup", "root-connector,taskstats", "root-none", "user-none"]


@pytest.fixture(params=HELPERS)
def each_helper(request, place):
    return lab_of(request.param, place)


def all_of_it(summary, said):
    """Everything that a process used is counted once, or the total is marked, and not above the truth. A process touches
    some 200 pages and writes 32 KiB, so one that is counted twice shows; its end adds a few page faults."""
    nr = said["processes"]
    cpu, faults, written = summary["cpu"], summary["faults"]["minor"], summary["io"]["write_chars"]
    assert cpu["total_s"] <= said["cpu_s"] + 0.01 + nr * ENDING_S, (cpu, said)
    assert faults <= said["minor_faults"] + 4 * nr, (faults, said)
    assert written <= said["write_chars"] + 1000, (written, said)
    if not cpu["lower_bound"]:
        assert cpu["total_s"] >= said["cpu_s"] - 1e-4, (cpu, said)
    if not summary["io"]["lower_bound"]:
        assert written >= said["write_chars"], (written, said)
    return faults >= said["minor_faults"] and not summary["io"]["lower_bound"]


def test_random_trees_of_processes_that_are_waited_for(each_helper):
    """Whatever the kernel tells: parents wait, or we do, so nothing is lost and nothing is marked."""
    seed = HELPERS.index(f"{each_helper.who}-{each_helper.helpers}")
    summary, said = each_helper.run("family", seed, 8, "wwossetu", interval="20ms")
    assert all_of_it(summary, said), (summary["faults"], summary["io"], said)
    assert summary["cpu"]["lower_bound"] is False


def test_bytes_of_processes_that_no_sample_met(each_helper):
    """They come home to us when they have ended, and an ordinary user cannot open their files any more."""
    summary, said = each_helper.run("family", 5, 6, "o", interval="30s")
    assert all_of_it(summary, said), (summary["faults"], summary["io"], said)


def test_random_trees_with_parents_that_do_not_wait(each_helper):
    """What their children used may be lost, and is never counted twice. The first process is one of them; it begins
    when it has been sampled, so that this is known."""
    script = f"read line; exec {each_helper.where / 'family'} 1 8 Iwwsin"
    summary, said = each_helper.run("sh", "-c", script, interval="20ms", lasts_until=has_one)
    all_of_it(summary, said)
    assert summary["cpu"]["source"] == "cgroup" or summary["cpu"]["lower_bound"]


# ---- users ----

ONE_USER = 20000 + 2 * (os.getpid() % 20000)  # used by no other program, and by no other run of these tests
OTHER_USER = ONE_USER + 1
OF_USERS = [f"--also=user:{ONE_USER}", f"--also=user:{OTHER_USER}"]
SUMS = [("cpu", "total_s"), ("faults", "minor"), ("switches", "voluntary"), ("switches", "involuntary"),
        ("io", "write_chars"), ("io", "write_calls"), ("io", "read_chars")]


@pytest.fixture(params=[name for name in HELPERS if name.startswith("root-")])
def lab_of_users(request, place, monkeypatch):
    monkeypatch.setenv("FAMILY_UID", str(OTHER_USER))
    lab = lab_of(request.param, place)
    may_start(["setpriv", f"--ruid={ONE_USER}"])
    return lab


# Writes as one user, then as the other; each step begins with a line of input.
CHANGES_USER = f"""
import os, sys
null = os.open("/dev/null", os.O_WRONLY)
sys.stdin.readline()
if os.fork() == 0:
    os.write(null, bytes(100000))
    sys.stdin.readline()
    os.setresuid({OTHER_USER}, {OTHER_USER}, {OTHER_USER})
    sum(range(300000))
    sys.stdin.readline()
    os.write(null, bytes(50000))
    sys.stdin.readline()
    os._exit(0)
os.wait()
sys.stdin.readline()
"""


@pytest.mark.parametrize("targets", [OF_USERS, OF_USERS[1:]], ids=["both", "the other"])
def test_bytes_belong_to_the_user_who_wrote_them(lab_of_users, targets):
    """Before it changes its user, after that, and when its parent has it in its own account."""
    lab, one, other = lab_of_users, f"user:{ONE_USER}", f"user:{OTHER_USER}"
    python = ["setpriv", f"--ruid={ONE_USER}", shutil.which("python3", path="/usr/bin"), "-S", "-c", CHANGES_USER]
    words = ["run", "-q", "-i", "20ms", "--flush=50ms", "-o", lab.recording, f"--helpers={lab.helpers}", *targets, "--", *python]
    job = lab.start(lab.tacho(*words), stdin=subprocess.PIPE)

    def written(group=None):
        summary = lab.summary()
        return ((summary["groups"].get(group, {}) if group else summary).get("io") or {}).get("write_chars") or 0

    def live(group):
        return lab.summary()["groups"].get(group, {}).get("processes", {}).get("seen")

    try:
        until(lambda: is_sampling(lab), "the recording begins")
        for condition in (lambda: has_one(lab), lambda: written() >= 100000, lambda: live(other),
                          lambda: written(other) >= 50000, lambda: True):
            until(condition, "the step is recorded")
            job.stdin.write("\n")
            job.stdin.flush()
    finally:
        job.stdin.close()
        job.wait()
    assert job.returncode == 0
    assert len(targets) == 1 or 100000 <= written(one) < 101000
    assert 50000 <= written(other) < 51000
    assert 150000 <= written() < 151000


@pytest.mark.parametrize("interval", ["20ms", "1s"])  # with samples of most, and of few
def test_random_trees_of_two_users(lab_of_users, interval):
    """A process that changes its user is never in both sums: together they are no more than the whole."""
    lab, seed = lab_of_users, random.randrange(1 << 16)
    words = ["setpriv", f"--ruid={ONE_USER}", lab.where / "family", seed, 8, "uwwvse"]
    summary, said = lab.run(*words, interval=interval, options=OF_USERS)
    assert all_of_it(summary, said), (seed, summary["faults"], summary["io"], said)
    groups = [summary["groups"][f"user:{user}"] for user in (ONE_USER, OTHER_USER)]
    for part, key in SUMS:
        whole, of_groups = summary[part][key], [group[part][key] for group in groups]
        assert all(value >= 0 for value in of_groups), (seed, part, key, of_groups)
        assert sum(of_groups) <= whole + 1e-9, (seed, part, key, of_groups, whole)


# ---- other places ----


@pytest.fixture(params=ELSEWHERE)
def elsewhere(request, place):
    return lab_elsewhere(request.param, place, request)


def test_exact_in_other_places(elsewhere):
    lab = elsewhere
    for name, *args in (("cpu", 0.2), ("storm", 60, 2, 5), ("family", 3, 8, "wwosset")):
        summary, said = lab.run(name, *args, interval="20ms", options=["--force"])
        if name == "family":
            assert all_of_it(summary, said), (summary["faults"], summary["io"], said)
        else:
            between_cpu(summary, said, lab)
        assert summary["cpu"]["lower_bound"] is False
        assert summary["cpu"]["source"] == "cgroup" or lab.name != "a delegated control group"
        if name == "storm":
            count_of_processes(lab, summary, 61)
    lab.helpers = "none"
    summary, said = lab.run("family", 4, 8, "wwosset", interval="20ms", options=["--force"])
    assert all_of_it(summary, said), (summary["faults"], summary["io"], said)
    assert (summary["cpu"]["lower_bound"], summary["cpu"]["source"]) == (False, "rusage")


@pytest.mark.parametrize("helpers", ["all", "none"])
def test_without_proc(place, helpers):
    """What is not measured is missing and has a reason; what the kernel tells us otherwise is exact."""
    if not IS_ROOT:
        pytest.skip("needs root")
    lab = lab_of(f"root-{helpers}", place)
    hide = 'mount -t tmpfs tmpfs /proc && exec "$@"'
    lab.inside = may_start(["unshare", "-m", "--propagation", "private", "sh", "-c", hide, "sh"])
    summary, said = lab.run("family", 3, 8, "wwosset")
    within_cpu(summary, said["cpu_s"], lab.spent_s)
    assert summary["cpu"]["lower_bound"] is False
    assert summary["faults"]["minor"] >= said["minor_faults"]
    assert summary["io"].pop("lower_bound") is False and set(summary["io"].values()) == {None}
    for name in ("io.write_chars", "memory.peak_rss_bytes", "threads.peak"):
        assert summary["unavailable"][name].startswith("/proc is not mounted"), name
    for name in ("memory.installed_bytes", "self.peak_rss_bytes"):
        part, _, key = name.partition(".")
        assert summary[part][key] is None and summary["unavailable"][name]
    processes = summary["processes"]
    assert processes["active_s"] > 0.5 * summary["wall_s"]
    if processes["seen"] < said["processes"]:
        assert processes["unsampled"] is None and "loadavg" in summary["unavailable"]["processes.unsampled"]


@pytest.mark.parametrize("helpers", ["all", "cgroup", "none"])
def test_where_proc_is_of_another_pid_namespace(place, helpers):
    """There our numbers name strangers: none of them is read, and what is not known has the reason."""
    if not IS_ROOT:
        pytest.skip("needs root")
    lab = lab_of(f"root-{helpers}", place)
    lab.inside = may_start(["unshare", "-pf"])
    summary, said = lab.run("family", 3, 8, "wwosset", interval="20ms")
    within_cpu(summary, said["cpu_s"], lab.spent_s)
    assert summary["cpu"]["lower_bound"] is False and summary["cpu"]["source"] in ("cgroup", "rusage")
    assert said["minor_faults"] <= summary["faults"]["minor"] <= said["minor_faults"] + 4 * said["processes"]
    assert summary["processes"]["seen"] <= said["processes"]
    for name in ("io.write_chars", "memory.peak_rss_bytes", "threads.peak"):
        part, _, key = name.partition(".")
        assert summary[part][key] is None
        assert summary["unavailable"][name].startswith("/proc is of another PID namespace"), name
    for words in (["doctor"], ["attach", "--duration=1ms", "-o", lab.recording, "1"]):
        done = subprocess.run([*lab.inside, TACHO, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert "PID namespace" in done.stdout and "--mount-proc" in done.stdout, done.stdout


def test_what_lives_between_two_samples_is_counted(lab):
    """How many at once and for how long, by births and ends; and what is known of each is in the table."""
    summary, _ = lab.run("sh", "-c", "sleep 0.2 & sleep 0.2 & sleep 0.2 & wait; /bin/true; /bin/true", interval="30s")
    processes = summary["processes"]
    assert processes["active_s"] >= 0.2
    assert processes["peak"] <= 4
    if not lab.has_all_help:
        return
    assert (processes["seen"], processes["peak"], summary["threads"]["peak"]) == (6, 4, 4)
    table = lab.show("--processes", "--json")["processes"]
    assert all(p["minor_faults"] > 0 and p["hwm_bytes"] > 0 for p in table)
    shell = next(p for p in table if p["argv"][:1] == ["sh"])
    assert [p["cpu_lower_bound"] for p in table] == [p is not shell for p in table]


# ---- a job that leaves our control group ----




WITH_GROUP = ["all", "cgroup", "connector,cgroup", "taskstats,cgroup"]


def run_leaving(place, helpers, *words, interval="30s"):
    lab = lab_of(f"root-{helpers}", place)
    # What is asked for by name is opened at once: there is no sample when the rest is opened.
    summary, said = lab.run(*words, interval=interval, options=["-m", "+load"])
    if summary["cpu"]["source"] in ("rusage", "rusage+last samples"):
        pytest.skip("no control group of our own here")
    return lab, summary, said


@pytest.mark.parametrize("part", ["all of it", "a child"])
@pytest.mark.parametrize("helpers", WITH_GROUP)
def test_a_job_that_leaves_our_control_group(place, other_group, helpers, part):
    """Between two samples: its own end shows it, or that it used more than the group has."""
    leave, burn = f"echo $$ >{other_group}/cgroup.procs", f"{place / 'cpu'} 0.15"
    script = f"{leave}; exec {burn}" if part == "all of it" else f"sh -c '{leave}; exec {burn}'; :"
    lab, summary, said = run_leaving(place, helpers, "sh", "-c", script)
    assert summary["cpu"]["source"] == "rusage; the job left tacho's control group"
    assert summary["cpu"]["lower_bound"] is False
    between_cpu(summary, said, lab)
    listed = subprocess.run([TACHO, "ls", "--json", lab.recording], stdout=subprocess.PIPE, check=True).stdout
    about(json.loads(listed)["recordings"][0]["cpu_s"], summary["cpu"]["total_s"], 0, 1e-4)


@pytest.mark.parametrize("part", ["all of it", "children"])
@pytest.mark.parametrize("helpers", WITH_GROUP)
def test_a_job_that_leaves_our_control_group_and_does_not_wait(place, other_group, helpers, part):
    """What its children use is then in no account: the total is marked."""
    door = other_group / "cgroup.procs"
    if part == "all of it":
        words, interval = ["sh", "-c", f"echo $$ >{door}; exec {place / 'nochld'} ignore 10 20"], "30s"
    else:
        # Without exit records and events a process is known only if it was sampled.
        words, interval = ["nochld", "ignore", 2, 400, door], "100ms" if helpers == "cgroup" else "30s"
    _, summary, said = run_leaving(place, helpers, *words, interval=interval)
    assert summary["cpu"]["source"].endswith("; the job left tacho's control group")
    assert summary["cpu"]["lower_bound"] is True
    assert summary["cpu"]["total_s"] <= said["cpu_s"] + 0.01 + 11 * ENDING_S


# ---- memory ----


def test_private_memory(lab):
    held = 150 * MIB

    def is_seen(lab):
        return (lab.summary()["memory"]["peak_uss_bytes"] or 0) >= held

    summary, _ = lab.run("mem", "private", 150, "-", lasts_until=is_seen)
    memory = summary["memory"]
    for view in ("peak_rss_bytes", "peak_pss_bytes", "peak_uss_bytes", "max_process_hwm_bytes"):
        about(memory[view], 152 * MIB, 0, 3 * MIB)
    assert memory["peak_vms_bytes"] >= memory["peak_rss_bytes"]
    assert memory["max_process_hwm_bytes"] >= memory["peak_rss_bytes"]


@pytest.mark.parametrize("how", ["shared", "forked"])
def test_shared_memory_is_counted_once(lab, how):
    """One has 64 MiB, then four have them. A budget that never makes the recorder estimate."""
    everywhere = 4 * 64 * MIB

    def shares(lab):
        return lab.series("proc.mem.pss_now", "proc.mem.uss_now", at=everywhere)

    def is_told(lab):
        # While they come to it, one after another, shares are read at different moments. Then they stay.
        found = shares(lab)
        return len(found) > 3 and found[-1] == found[-2]

    summary, _ = lab.run("mem", how, 64, "-", 3, options=["--budget=50"], lasts_until=is_told)
    memory = summary["memory"]
    about(memory["peak_rss_bytes"], 4 * 65 * MIB, 0, 8 * MIB)
    about(memory["max_process_hwm_bytes"], 65 * MIB, 0, 3 * MIB)
    pss, uss = next(now for before, now in zip(shares(lab)[2:], shares(lab)[3:]) if now == before)
    about(pss, 65 * MIB, 0, 2 * MIB)
    assert uss < 4 * MIB
    assert memory["peak_pss_bytes"] < 200 * MIB


def test_memory_of_those_that_come_and_go_is_not_counted_twice(lab):
    """Forked children share 48 MiB, write one each, and end, again and again: readings are of different moments."""
    least = (48 + 5) * MIB

    def is_seen(lab):
        return (lab.summary()["memory"]["peak_pss_bytes"] or 0) >= least

    summary, said = lab.run("sharers", 48, 5, 1, 20, 0.01, "-", interval="20ms", lasts_until=is_seen)
    memory = summary["memory"]
    if memory["peak_pss_estimated_ratio"] <= 0.01:  # else it is marked
        about(memory["peak_pss_bytes"], said["pss_bytes"], 0.05, 0)
    # An estimate may have a stale share of one of them beside what others bear by now, never all of it of each.
    assert memory["peak_pss_bytes"] <= 2 * said["distinct_bytes"]
    assert memory["peak_uss_bytes"] <= 2 * said["distinct_bytes"]


SMALL_COMMANDS = (
    ["ls", "/"],
    ["echo", "x"],
    ["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=3"],
    ["sh", "-c", ":"],
    ["sh", "-c", "ls / >/dev/null; dd if=/dev/zero of=/dev/null bs=2M count=1 2>/dev/null; :"],
    ["/usr/bin/python3", "-S", "-c", "pass"],
    ["true"],
)


def test_memory_of_commands_that_no_sample_sees(lab):
    """As the kernel tells it to whoever waits for them. Its counters are inexact by some pages for each CPU."""
    for command in SMALL_COMMANDS:
        told = subprocess.run([BURNERS / "largest", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        truth = 1024 * account("\n".join(told.stderr.splitlines()[-2:]))["max_rss_kib"]
        words = ["run", "-q", "-i", "30s", "-o", lab.recording, "--force", f"--helpers={lab.helpers}", "--", *command]
        assert lab.start(lab.tacho(*words)).wait() == 0
        most = lab.summary()["memory"]["max_process_hwm_bytes"]
        about(most, truth, 0.05, 600 * 1024)


def test_spike_between_two_samples(lab):
    # What is asked for by name is opened at once: there is no sample when the rest is opened.
    summary, said = lab.run("spike", 500, 0.3, interval="30s", options=["-m", "+load"])
    assert summary["ticks"]["taken"] == 2
    memory = summary["memory"]
    about(memory["max_process_hwm_bytes"], 502 * MIB, 0, 4 * MIB)
    assert memory["peak_rss_bytes"] < 20 * MIB
    # The answer to "how much memory" is the larger one, for people too.
    assert (memory["peak_bytes"], memory["ratio_view"]) == (memory["max_process_hwm_bytes"], "max_process_hwm_bytes")
    said = subprocess.run([TACHO, "show", lab.recording], stdout=subprocess.PIPE, text=True).stdout
    assert "in one process, between samples; sampled peak" in said


def test_spike_of_a_job_that_was_attached_to(lab):
    """Page faults tell of it: the kernel's mark is read in the same tick, not with the next reading of everything."""
    job = lab.start(lab.burner("spike", 500, "-"), stdin=subprocess.PIPE)
    options = ["-q", "-i", "1s", "--flush=50ms", "-o", lab.recording, f"--helpers={lab.helpers}"]
    tacho = lab.start(lab.tacho("attach", *options, str(job.pid)))

    def marks():
        words = ["show", "--series", "proc.faults.minor,proc.mem.hwm", "--csv", lab.recording]
        done = subprocess.run([TACHO, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
        return [(float(row[1]), float(row[2])) for row in rows if all(row[:3])]

    try:
        until(marks, "the job is recorded")
        job.stdin.write("x")
        job.stdin.flush()
        spiked = until(lambda: [row for row in marks() if row[0] > 127000], "the page faults are recorded")
    finally:
        job.stdin.close()
        job.wait()
    assert tacho.wait() == 0
    assert spiked[0][1] > 500 * MIB
    about(lab.summary()["memory"]["max_process_hwm_bytes"], 502 * MIB, 0, 4 * MIB)


@pytest.mark.parametrize("name", ["root-taskstats", "root-none", "user-none"])
def test_spike_before_the_end_of_an_attached_process(place, name):
    """Its exit record is heard, though it was not waited for when the recording ends; else what is known is marked."""
    lab = lab_of(name, place)
    job = lab.start(lab.burner("spike", 500, "-"), stdin=subprocess.PIPE)
    assert lab.start(lab.tacho("attach", "-q", "--duration=50ms", "-o", lab.recording, job.pid)).wait() == 0
    (process,) = lab.show("--processes", "--json")["processes"]
    assert not process["hwm_lower_bound"] and lab.summary()["memory"]["lower_bound"] is False
    lab.recording.unlink()
    recorder, _, _ = attach(lab, job, interval="30s")
    job.stdin.write("x")
    job.stdin.close()
    assert recorder.wait() == 0
    job.wait()
    (process,) = lab.show("--processes", "--json")["processes"]
    memory = lab.summary()["memory"]
    assert process["ended"] and process["hwm_upper_bound"] is False
    assert process["hwm_lower_bound"] is memory["lower_bound"] is (process["how"] != "exit-record")
    if process["how"] == "exit-record":
        about(process["hwm_bytes"], 502 * MIB, 0, 4 * MIB)
        assert process["exit"]["code"] == 0
    elif lab.helpers == "taskstats":
        pytest.skip("no exit records here")
    else:
        assert memory["peak_bytes"] < 20 * MIB
        words = f"{TACHO} show {lab.recording}; {TACHO} show -p {lab.recording}"
        said = subprocess.run(["sh", "-c", words], stdout=subprocess.PIPE, text=True, env={"LC_ALL": "C.UTF-8"}).stdout
        assert re.search("memory +peak ≥ (.*\n)+.*memory is a lower bound(.*\n)+.* ≥[0-9.]+ [KM]iB", said), said


# 150 MiB, then it is another program: after its exec, or in a child that has lost its parent.
STARTER = """
import os, sys
memory = bytearray(150 << 20)
if sys.argv[1] == "orphan" and os.fork():
    os._exit(0)
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("how", ["exec", "orphan"])
def test_memory_of_a_program_is_not_that_of_its_starter(lab, how):
    """The kernel keeps the most that a process had over its exec, a forked child begins with its parent's, and parents get
    their children's. A row has what the program that it names had, or is marked; the whole has had it all."""
    def programs(name):
        return [process for process in lab.show("--processes", "--json")["processes"] if process["name"] == name]

    def record(name, *words, **kwargs):
        memory = lab.run(*words, options=["--wait=tree", "--force"], **kwargs)[0]["memory"]
        assert memory["max_process_hwm_bytes"] >= 150 * MIB and memory["lower_bound"] is False
        return programs(name)[0]

    def is_seen(lab):
        return any((process["peak_rss_bytes"] or 0) >= 20 * MIB for process in programs("mem"))

    starter = ["/usr/bin/python3", "-S", "-c", STARTER, how]
    process = record("mem", *starter, lab.where / "mem", "private", 20, "-", lasts_until=is_seen)
    about(max(process["hwm_bytes"], process["peak_rss_bytes"]), 22 * MIB, 0, 3 * MIB)
    assert not process["hwm_upper_bound"] and (not process["hwm_lower_bound"] or not lab.has_all_help)
    # No sample meets these: what is known is what the kernel tells of all together.
    parent = ["sh", "-c", f"/usr/bin/python3 -S -c '{STARTER}' exec /bin/true; :"]
    for process in (record("true", *starter, "/bin/true", interval="30s"), record("sh", *parent, interval="30s")):
        assert (process["hwm_bytes"] or 0) < (1000 if process["hwm_upper_bound"] else 20) * MIB
        assert not process["hwm_upper_bound"] or not lab.has_all_help


# ---- files ----


def disk_counts(where):
    """Whether the file system of the place charges a writer for bytes that go to a disk."""
    def written():
        return int(Path("/proc/self/io").read_text().split("write_bytes:")[1].split()[0])

    before = written()
    with tempfile.TemporaryFile(dir=where) as file:
        file.write(bytes(MIB))
        file.flush()
        os.fsync(file.fileno())
        return written() >= before + MIB


def test_bytes_written_and_read(lab):
    size = 50_000_000
    file = lab.where / f"written-by-{lab.who}"
    summary, said = lab.run("write", file, size)
    file.unlink()
    io = summary["io"]
    assert size <= io["write_chars"] < size + 1000
    assert size <= io["read_chars"] < size + 100_000
    assert said["write_calls"] <= io["write_calls"] <= said["write_calls"] + 3
    if disk_counts(lab.where):
        about(io["write_bytes"], size, 0.01)


def test_descriptors(lab):
    summary, said = lab.run("fds", 100, "-", lasts_until=lambda lab: (lab.summary()["fds"]["peak"] or 0) > 100)
    assert summary["fds"]["peak"] == said["fds"]


# ---- names and ends ----


ODD_NAME = "a) R (\n\\xff\t b"


def has_its_name(lab):
    """However it is written: that is for the test to judge."""
    return all(process["name"].startswith(ODD_NAME[:5]) for process in lab.show("--processes", "--json")["processes"])


def test_strange_names(lab):
    """Blanks, newlines, parentheses and bytes that are not UTF-8, in the name and in the arguments."""
    summary, _ = lab.run("weird", "-", interval="50ms", lasts_until=has_its_name)
    odd = " two\nlines\t(and) \"quotes\" \\ \\xff\\xfe \u00e9 "
    (process,) = lab.show("--processes", "--json")["processes"]
    assert process["name"] == ODD_NAME
    assert process["argv"] == [odd, "--again", "-", "", odd]
    assert summary["argv"][0].endswith("/weird")


def test_the_last_program_names_a_process(lab):
    """Sampled as a shell, it becomes another program and is gone, in most cases before the next sample."""

    def has_both(lab):
        return [process["sampled"] for process in lab.show("--processes", "--json")["processes"]] == [True, True]

    lab.run("sh", "-c", "exec 3<&0; (read line <&3; exec sleep 0) & wait", lasts_until=has_both)
    first, second = sorted(lab.show("--processes", "--json")["processes"], key=lambda process: process["start_s"])
    assert first["name"] == "sh" and first["argv"][0] == "sh"
    if lab.has_all_help or second["name"] != "sh":
        assert second["name"] == "sleep" and second["argv"] in ([], ["sleep", "0"])


def test_command_lines_between_samples(place):
    """The kernel tells of an exec: what it made of a new process, and of one that was sampled before, is read then."""
    lab = lab_of("root-connector", place)
    lab.run("sh", "-c", "/bin/true; :", interval="30s")
    if lab.show("--processes", "--json")["total"] < 2:
        pytest.skip("the kernel does not tell of processes here")
    lab.run("sh", "-c", "sleep 0.5; sleep 1 & exec sleep 1.5", interval="30s", options=["--force"])
    argv = sorted(process["argv"] for process in lab.show("--processes", "--json")["processes"])
    assert argv[-2:] == [["sleep", "1"], ["sleep", "1.5"]]


def test_a_process_without_a_name_has_that_of_its_parent(place):
    """The kernel tells that it became another program; most are gone before their name can be read."""
    lab = lab_of("root-connector", place)
    lab.run("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; /bin/true; /bin/true; /bin/true; done; :", interval="30s")
    done = subprocess.run([TACHO, "show", "--processes", lab.recording], stdout=subprocess.PIPE, text=True)
    rows = done.stdout.splitlines()[2:]
    if not rows:
        pytest.skip("the kernel does not tell of processes here")
    assert len(rows) == 36
    assert not any(row.endswith("[]") for row in rows)
    assert all(row.endswith("  (not known; started by sh)") for row in rows if "(not known" in row)


def test_command_line_of_a_mebibyte(lab):
    lab.run("weird", "-", 1, interval="50ms", lasts_until=has_its_name)
    (process,) = lab.show("--processes", "--json")["processes"]
    assert process["argv"][1] == "--again"
    assert process["argv"][5].startswith("h" * 100)
    assert len(process["argv"]) == 5 + 11 or process["argv_cut"]


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_codes(lab, code):
    summary, said = lab.run("leave", "exit", code, status=code)
    assert summary["exit"] == {"code": code, "signal": None}
    between_cpu(summary, said, lab)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_deaths_by_signal(lab, number):
    summary, said = lab.run("leave", "signal", int(number), status=-number)
    assert summary["exit"] == {"code": None, "signal": number}
    between_cpu(summary, said, lab)


def test_a_stopped_job_is_waited_for(lab):
    summary, _ = lab.run("leave", "stop")
    assert summary["exit"] == {"code": 0, "signal": None}
    assert summary["wall_s"] >= 0.3


def test_main_thread_that_ends_first(lab):
    """The leader is a zombie while another thread burns on: the process has not ended."""
    summary, said = lab.run("leave", "leader", status=5)
    assert summary["exit"]["code"] == 5
    between_cpu(summary, said, lab)
