"""An overloaded machine: what a thousand processes that compute get done bare and recorded, and whether the recorder
keeps its rhythm among them. Bare runs and recorded ones take turns, and work is compared between neighbours."""

import json
import os
import statistics
import subprocess

import lab

HOGS, SECONDS, ROUNDS = 1000, 10, 3


def compile_hogs(folder):
    source = lab.HERE.parent / "tests" / "burners" / "hogs.c"
    flags = ["-O2", "-D_GNU_SOURCE", "-static", "-I", str(source.parent)]
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-o", str(folder / "hogs"), str(source)], check=True)
    return [str(folder / "hogs"), str(HOGS), str(SECONDS)]


def work(command):
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def recorded(binary, folder, command):
    """Work done, and ticks that were taken and missed."""
    file = folder / "hogs.tacho"
    done = work([binary, "run", "-q", "--force", "-o", file, "--", *command])
    shown = subprocess.run([binary, "show", "--json", file], stdout=subprocess.PIPE, check=True)
    return done, json.loads(shown.stdout)["ticks"]


def measure(bench):
    command = compile_hogs(bench.folder)
    names = {"tacho": bench.options.tacho, "tacho before": bench.options.before}
    rows, bare = {name: [] for name, binary in names.items() if binary}, work(command)
    for _ in range(1 if bench.options.quick else ROUNDS):
        for name in rows:
            done, ticks = recorded(names[name], bench.folder, command)
            after = work(command)
            rows[name].append((2 * done / (bare + after), ticks["taken"], ticks["missed"]))
            bare = after
    return [{"recorder": name, "work": statistics.median(r[0] for r in runs), "taken": sum(r[1] for r in runs),
             "missed": sum(r[2] for r in runs)} for name, runs in rows.items()]
