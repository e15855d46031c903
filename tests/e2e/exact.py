"""Ways to record burners whose use is known, and what may be said of them: for test_exact*.py."""

import csv
import json
import os
import pwd
import re
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from recorder import BURNERS, TACHO, until

MIB = 1 << 20
NOBODY = "nobody"
OWN_PIDS = ["unshare", "-pf", "--mount-proc"]
IS_ROOT = os.geteuid() == 0


class Lab:
    """One way to record: who does it, and with how much of the kernel's help."""

    def __init__(self, who, helpers, where, inside=()):
        """inside: the words of a command that starts the recorder somewhere else."""
        self.who, self.helpers, self.where, self.inside = who, helpers, where, inside
        self.has_all_help = who == "root" and helpers == "all"
        self.recording = where / "job.tacho"

    def start(self, words, stdin=subprocess.DEVNULL, **kwargs):
        identity = {}
        if self.who == "user" and IS_ROOT:
            user = pwd.getpwnam(NOBODY)
            identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        return subprocess.Popen(
            [str(word) for word in (*self.inside, *words)],
            stdin=stdin,
            stdout=subprocess.PIPE,
            cwd=self.where,
            text=True,
            **identity,
            **kwargs,
        )

    def tacho(self, *words):
        return [self.where / "tacho", *words]

    def pids_of(self, job):
        """The PID of what was started, and the number that it has for the recorder. nsenter(1) has forked."""
        if self.inside[:1] != ["nsenter"]:
            return job.pid, job.pid
        (pid,) = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        return pid, re.search(r"^NSpid:.*\s(\d+)$", Path(f"/proc/{pid}/status").read_text(), re.M)[1]

    def burner(self, name, *args):
        own = self.where / name
        return [own if own.exists() else name, *args]

    def run(self, name, *args, interval="100ms", options=(), status=0, lasts_until=None):
        """Records a burner; gives the summary and what the burner said of itself. A burner that holds something for as
        long as its input lasts has that until the recording so far fulfils the condition."""
        options = ["-q", "-i", interval, "-o", self.recording, f"--helpers={self.helpers}", *options]
        if lasts_until:
            options.append("--flush=50ms")
        before_s = children_s()
        words = self.tacho("run", *options, "--", *self.burner(name, *args))
        job = self.start(words, stdin=subprocess.PIPE if lasts_until else subprocess.DEVNULL)
        if lasts_until:
            try:
                until(lambda: is_sampling(self) and lasts_until(self), f"what {name} does is recorded")
            except BaseException:
                job.kill()
                raise
        said, _ = job.communicate()
        self.spent_s = children_s() - before_s
        assert job.returncode == status
        return self.summary(), account(said)

    def summary(self):
        return self.show("--json")

    def series(self, *metrics, at):
        """Rows of the metrics while the RSS of the tree was at least so much."""
        names = ",".join(("proc.mem.rss", *metrics))
        done = subprocess.run([TACHO, "show", "--series", names, "--csv", self.recording], stdout=subprocess.PIPE)
        rows = [line.split(",")[1:] for line in done.stdout.decode().splitlines()[1:]]
        return [[float(v) for v in row[1:]] for row in rows if all(row) and float(row[0]) >= at]

    def last_sample_s(self):
        """When the last number of any process was read."""
        words = ["show", "--series", "proc.cpu.time", "--per", "instance", "--csv", self.recording]
        done = subprocess.run([TACHO, *words], stdout=subprocess.PIPE, check=True, text=True)
        return max(float(row["time_s"]) for row in csv.DictReader(done.stdout.splitlines()) if row["proc.cpu.time"])

    def show(self, *options):
        done = subprocess.run([TACHO, "show", *options, self.recording], stdout=subprocess.PIPE)
        assert done.returncode == 0
        return json.loads(done.stdout)


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def account(text):
    return {key: float(value) for key, value in (line.split() for line in text.splitlines())}


@pytest.fixture(scope="module")
def place():
    """A directory that any user can read and write, with the programs in it."""
    where = Path(tempfile.mkdtemp(prefix="tacho-exact-"))
    shutil.copy(TACHO, where / "tacho")
    for program in BURNERS.iterdir():
        if program.is_file() and os.access(program, os.X_OK):
            shutil.copy(program, where)
    where.chmod(0o1777)
    yield where
    shutil.rmtree(where)


def lab_of(name, place):
    who, helpers = name.split("-")
    if who == "root" and not IS_ROOT:
        pytest.skip("needs root")
    if who == "user" and IS_ROOT:
        try:
            pwd.getpwnam(NOBODY)
        except KeyError:
            pytest.skip(f"no user {NOBODY} here")
    (place / "job.tacho").unlink(missing_ok=True)
    return Lab(who, helpers, place)


@pytest.fixture(params=["root-all", "root-none", "user-all", "user-none"])
def lab(request, place):
    return lab_of(request.param, place)


def about(value, truth, ratio=0.01, more=0.0):
    assert truth * (1 - ratio) - more <= value <= truth * (1 + ratio) + more, f"{value} is not about {truth}"


ENDING_S = 0.005  # what a process may use after it has told its account


def between_cpu(summary, said, lab):
    """At least what the job said before it ended, at most what the recorder and the job used together."""
    within_cpu(summary, said["cpu_s"], lab.spent_s)


def about_cpu(summary, said, processes):
    """As much as the job said before it ended, and the ends of so many processes, of which we are not charged."""
    within_cpu(summary, said["cpu_s"], said["cpu_s"] + 0.01 + processes * ENDING_S)


def within_cpu(summary, least, most):
    cpu = summary["cpu"]
    assert least - 1e-5 <= cpu["total_s"] <= most, (least, cpu, most)
    about(cpu["user_s"] + cpu["system_s"], cpu["total_s"], 0, 1e-5)


def count_of_processes(lab, summary, truth):
    """All of them where the kernel tells of each; elsewhere no fewer than there were, and marked as a bound."""
    processes = summary["processes"]
    if processes["unsampled_is_upper_bound"]:
        assert not lab.has_all_help
        assert processes["seen"] <= truth <= processes["seen"] + processes["unsampled"]
    else:
        assert processes["seen"] == truth


# ---- other places ----

BECOME_NOBODY = 'echo $$ >"$0"/cgroup.procs && exec setpriv --reuid=nobody --regid=65534 --clear-groups "$@"'
# The system's directories and the programs, at their usual paths, and nothing else.
CHANGE_ROOT = """set -e
root=$1/root; shift; mkdir -p "$root"; mount -t tmpfs tmpfs "$root"
for dir in usr bin sbin lib lib64 etc proc dev sys "$0"; do
    if [ -L "/$dir" ]; then cp -P "/$dir" "$root/$dir"
    elif [ -d "/$dir" ]; then mkdir -p "$root/$dir"; mount --rbind "/$dir" "$root/$dir"; fi
done
exec chroot "$root" sh -c 'cd "$0" && exec "$@"' "$0" "$@"
"""


def may_start(words):
    """Skips where the kernel does not let us make such a place."""
    done = subprocess.run([*map(str, words), "true"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        pytest.skip(f"cannot be made here: {done.stderr.strip()}")
    return words


def group_directory():
    """Of the hierarchy in which the recorder makes its group: v2 where it is mounted, else v1's cpuacct."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, kind = line.split(" - ")[0].split(), line.split(" - ")[1].split()
        if kind[0] == "cgroup2":
            return Path(fields[4])
    return Path("/sys/fs/cgroup/cpuacct")


@pytest.fixture
def other_group():
    group = group_directory() / f"tests-of-tacho-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield group
    until(lambda: not (group / "cgroup.procs").read_text(), "the other group is empty")
    group.rmdir()


ELSEWHERE = ["a delegated control group", "a PID namespace", "a chroot"]


def lab_elsewhere(name, place, request):
    """A lab that is not where we are; with all of the kernel's help that there is."""
    if not IS_ROOT:
        pytest.skip("needs root")
    lab = lab_of("root-all", place)
    lab.has_all_help = False
    if name == "a PID namespace":
        lab.inside = may_start(OWN_PIDS)
    elif name == "a chroot":
        scratch = request.getfixturevalue("tmp_path")
        lab.inside = may_start(["unshare", "-m", "--propagation", "private", "sh", "-c", CHANGE_ROOT, place, scratch])
    else:
        group = request.getfixturevalue("other_group")
        for path in (group, *group.glob("cgroup.*"), *group.glob("tasks")):
            shutil.chown(path, NOBODY)
        lab.inside = may_start(["sh", "-c", BECOME_NOBODY, group])
    lab.name = name
    return lab


# ---- attaching ----


def ticks_of(pid):
    """CPU seconds of a process and of all it has reaped."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[i]) for i in range(11, 15)) / os.sysconf("SC_CLK_TCK")


def attach(lab, job, interval="100ms", target=None):
    """Attaches to a job; gives the process and bounds on what the job had used when its recording began."""
    pid, number = lab.pids_of(job)
    before = ticks_of(pid)
    words = ["attach", "-q", "-i", interval, "-o", lab.recording, "--flush=50ms", f"--helpers={lab.helpers}", target or number]
    recorder = lab.start(lab.tacho(*words))
    until(lambda: recorder.poll() is not None or is_sampling(lab), "first tick of the recording")
    assert recorder.poll() is None
    return recorder, before, ticks_of(pid)


def is_sampling(lab):
    if not lab.recording.exists():
        return False
    done = subprocess.run([TACHO, "show", "--json", lab.recording], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.returncode == 0 and (json.loads(done.stdout)["ticks"]["taken"] or 0) > 0


def is_between(lab, summary, least, most, at_once=1):
    """CPU seconds of an attached tree, by the clock ticks in which /proc keeps those of children. Without records of
    exits, what a process used after its last sample is not known when a stranger reaps it; the source says so."""
    unseen = 0 if summary["cpu"]["source"] == "rusage" else at_once * (summary["wall_s"] - lab.last_sample_s())
    assert least - 0.03 - unseen <= summary["cpu"]["total_s"] <= most + 0.03, (least, unseen, summary["cpu"], most)
