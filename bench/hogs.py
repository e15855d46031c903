"""An overloaded machine: whether the recorder keeps its rhythm among a thousand processes that compute, and what these get
done with it and without.

Runs with and without take turns. What other programs take meanwhile must not count, so work is not compared by the
clock. Two ratios have nothing to do with others: how much the processes get done in a second of CPU time, recorded
beside the bare runs before and after; and how much of the CPU time that they and the recorder could have had (what both
used, and what was idle) they got. Their product is the job's speed."""

import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess

import lab

HOGS, SECONDS, ROUNDS = 1000, 20, 5
NOBODY = 65534


def compile_hogs(folder):
    source = lab.HERE.parent / "tests" / "burners" / "hogs.c"
    flags = ["-O2", "-D_GNU_SOURCE", "-static", "-I", str(source.parent)]
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-o", str(folder / "hogs"), str(source)], check=True)
    return [str(folder / "hogs"), str(HOGS), str(SECONDS)]


def idle_s():
    words = pathlib.Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=6)
    return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")


def measured(command, how):
    """Work in a second of CPU time, and the part of the CPU time that was to be had."""
    idle = idle_s()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **how) as process:
        done, cpu_s = map(float, process.stdout.read().split())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise lab.Trouble(f"{command[0]} ended with {process.returncode}")
    all_s = usage.ru_utime + usage.ru_stime + idle_s() - idle
    return done / cpu_s, cpu_s / all_s


def mounts(kind):
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        words, _, rest = line.partition(" - ")
        found, _, options = rest.split(" ")[:3]
        if found == kind and words.split()[3] == "/":
            yield pathlib.Path(words.split()[4]), options.split(",")


def delegable():
    """Where groups can be made whose cpu controller a user may have, or nothing."""
    v1 = [path for path, options in mounts("cgroup") if {"cpu", "cpuacct"} & set(options)]
    v2 = [path for path, _ in mounts("cgroup2") if "cpu" in (path / "cgroup.subtree_control").read_text(encoding="ascii").split()]
    return v2 or v1


@contextlib.contextmanager
def delegated():
    made = [path / f"tacho-bench-{os.getpid()}" for path in delegable()]
    try:
        for group in made:
            group.mkdir()
            for path in (group, *(group / name for name in ("cgroup.procs", "tasks", "cgroup.subtree_control"))):
                if path.exists():
                    os.chown(path, NOBODY, NOBODY)
        yield made
    finally:
        for group in made:
            group.rmdir()


def enter(groups):
    def now():
        for group in groups:
            (group / "cgroup.procs").write_text("0", encoding="ascii")

    return {"preexec_fn": now, "user": NOBODY, "group": NOBODY, "extra_groups": []}


def compare(bench, binary, command, how):
    """Bare, recorded, bare, recorded … bare."""
    file = bench.folder / "shared" / "hogs.tacho"
    rows, taken, missed = [], 0, 0
    before = measured(command, how)
    for _ in range(1 if bench.options.quick else ROUNDS):
        now = measured([binary, "run", "-q", "--force", "-o", file, "--", *command], how)
        after = measured(command, how)
        rows.append((2 * now[0] / (before[0] + after[0]), 2 * now[1] / (before[1] + after[1])))
        before = after
        shown = subprocess.run([binary, "show", "--json", file], stdout=subprocess.PIPE, check=True)
        ticks = json.loads(shown.stdout)["ticks"]
        taken, missed = taken + ticks["taken"], missed + ticks["missed"]
        file.unlink()
    return {"taken": taken, "missed": missed, **{name: spread([row[i] for row in rows]) for i, name in enumerate(("pace", "part"))},
            "work": spread([pace * part for pace, part in rows])}


def spread(values):
    """Least, median, most."""
    return [min(values), statistics.median(values), max(values)]


def measure(bench):
    shared = bench.folder / "shared"  # as another user it cannot write beside the others' files
    shared.mkdir()
    shared.chmod(0o777)
    bench.folder.chmod(0o755)
    command = compile_hogs(bench.folder)
    rows = []
    for name, binary in (("tacho", bench.options.tacho), ("tacho before", bench.options.before)):
        if not binary:
            continue
        own = shutil.copy(binary, shared / name.replace(" ", "-"))
        rows.append({"recorder": name, "user": "root" if os.geteuid() == 0 else "this user", **compare(bench, own, command, {})})
        if os.geteuid() != 0:
            continue
        rows.append({"recorder": name, "user": "an ordinary one", **compare(bench, own, command, enter([]))})
        with delegated() as groups:
            if groups:
                rows.append({"recorder": name, "user": "an ordinary one, cpu controller delegated",
                             **compare(bench, own, command, enter(groups))})
    return rows
