"""Real programs, and what the report finds in them: the right findings, and no wrong ones.

How busy the machine is otherwise is nobody's to decide: what it does to a job (starved, crowded, pressure) may be found or
not. All else must be as said. The runs are made once, side by side, and every test looks at one."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from recorder import BURNERS, TACHO, run, show, start, until
from test_cgroup import Group, enter

REPORT = Path(TACHO).parent / "tacho-report"
FAST = ["-q", "-i", "100ms", "--flush", "100ms"]
MIB = 1 << 20
# What others on the machine do to a job.
OF_THE_MACHINE = {"starved", "crowded", "stolen", "io-wait", "io-pressure", "memory-pressure", "energy", "swapping"}

if not REPORT.exists():
    pytest.skip("tacho-report is not built (cairo and pango)", allow_module_level=True)


def story_of(recording):
    done = run("report", "--format", "json", "-o", "-", recording)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return json.loads(done.stdout)


def findings_of(story):
    return {f["id"]: f for f in story["findings"]}


def check_form(story):
    """What holds for every finding: words, evidence, a place that there is."""
    panels = {p["id"] for p in story["panels"]}
    weights = ["serious", "warning", "note", "fine"]
    places = [weights.index(f["weight"]) for f in story["findings"]]
    assert places == sorted(places), "the gravest come first"
    end = story["summary"]["wall_s"] + 1
    for f in story["findings"]:
        assert f["title"] and f["text"].endswith("."), f
        assert f["evidence"], f
        assert f["panel"] is None or any(p == f["panel"] or p.startswith(f["panel"] + "-") for p in panels), f
        for at in (f["from_s"], f["to_s"]):
            assert at is None or -1 <= at <= end, f


def expect(story, present, allowed=()):
    check_form(story)
    found = set(findings_of(story))
    assert set(present) <= found, (found, story["findings"])
    wrong = found - set(present) - set(allowed) - OF_THE_MACHINE
    assert not wrong, [f for f in story["findings"] if f["id"] in wrong]


LEAK = """
import time
keep = []
for _ in range(115):
    keep.append(b"x" * (2 << 20))
    time.sleep(0.1)
"""

WARM = """
import time
keep = [b"x" * (2 << 20) for _ in range(60)]
for i in range(110):
    piece = b"y" * ((1 + i % 10) << 20)
    time.sleep(0.1)
    del piece
"""


POOL = """
import multiprocessing, time
def work(burns):
    end = time.monotonic() + 11
    while time.monotonic() < end:
        if burns:
            sum(range(1000))
        else:
            time.sleep(0.1)
if __name__ == "__main__":
    jobs = [multiprocessing.Process(target=work, args=(burns,)) for burns in %s]
    for job in jobs: job.start()
    for job in jobs: job.join()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("findings")


def pool(home, name, burns):
    program = home / f"{name}.py"
    program.write_text(POOL % burns)
    return [sys.executable, program]


def run_all(home, jobs, **kwargs):
    """All at once; the recordings by name."""
    started = {n: start("run", *FAST, "-o", home / f"{n}.tacho", "--", *command, **kwargs) for n, command in jobs.items()}
    for one in started.values():
        one.wait()
    return {n: home / f"{n}.tacho" for n in jobs}


MANY = "i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done; sleep 4.5"


@pytest.fixture(scope="module")
def together(home):
    """Runs that mostly sleep, and one of which one process does not."""
    return run_all(home, {
        "leak": [sys.executable, "-c", LEAK],
        "warm": [sys.executable, "-c", WARM],
        "short": [sys.executable, "-c", "b'x' * (64 << 20)"],
        "fails": ["sh", "-c", "sleep 0.3; exit 3"],
        "segv": ["sh", "-c", "sleep 0.3; kill -SEGV $$"],
        "many": ["sh", "-c", MANY],
        "uneven": pool(home, "uneven", "(1, 0, 0)"),
    })


@pytest.fixture(scope="module")
def at_work(home):
    """Runs that want more CPUs than there are."""
    place = home / "build"
    place.mkdir()
    return run_all(home, {
        "even": pool(home, "even", "(1, 1, 1)"),
        **({"build": build(place)} if shutil.which("make") and shutil.which("gcc") else {}),
        **({"mix": mix(place)} if shutil.which("stress-ng") else {}),
    })


def test_a_leak(together):
    story = story_of(together["leak"])
    expect(story, {"memory-growth"}, {"unused-cores"})
    growth = findings_of(story)["memory-growth"]
    evidence = {e["name"]: e["value"] for e in growth["evidence"]}
    # 230 MiB, however long the machine took for it.
    rate = 230 * MIB / story["summary"]["wall_s"]
    assert evidence["slope_bytes_per_s"] == pytest.approx(rate, rel=0.5)
    assert "python" in growth["text"]
    assert growth["panel"] == "memory" and growth["to_s"] - growth["from_s"] > 5


def test_memory_that_was_filled_once_is_no_leak(together):
    story = story_of(together["warm"])
    expect(story, set(), {"unused-cores"})
    assert story["advice"]["schedulers"], story["advice"]
    slurm = next(s["lines"] for s in story["advice"]["schedulers"] if s["scheduler"] == "slurm")
    memory = next(line for line in slurm if "--mem=" in line)
    peak = story["summary"]["memory"]["peak_pss_bytes"]
    assert peak + 256 * MIB <= int(memory.partition("=")[2].rstrip("M")) * MIB <= peak + 400 * MIB
    assert "PSS" in story["advice"]["headroom"] or "high-water" in story["advice"]["headroom"]


def test_a_short_run_tells_nothing(together):
    story = story_of(together["short"])
    # Unless the machine stood still for seconds.
    if story["summary"]["wall_s"] < 5:
        assert story["findings"] == []
    assert story["advice"]["schedulers"] == []
    assert "too short" in story["advice"]["why_none"]


def test_how_it_ended(together):
    story = story_of(together["fails"])
    expect(story, {"failed"})
    assert "exit code 3" in findings_of(story)["failed"]["title"]
    assert "failed" in story["advice"]["why_none"]
    story = story_of(together["segv"])
    expect(story, {"signal"})
    assert "SIGSEGV" in findings_of(story)["signal"]["title"]


def build(place):
    """Built again and again, for as long as a report needs."""
    body = "\n".join(f"int f{{n}}_{i}(int a) {{{{ return a * {i} + (a > {i} ? f(a - 1) : 3); }}}}" for i in range(80))
    for n in range(8):
        (place / f"u{n}.c").write_text("static int f(int a) { return a * a; }\n" + body.format(n=n))
    (place / "Makefile").write_text("all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\tgcc -O2 -c -o $@ $<\n")
    return ["sh", "-c", f"end=$(($(date +%s) + 7)); while [ $(date +%s) -lt $end ]; do make -s -B -j2 -C {place} || exit 1; done"]


def mix(place):
    words = ["stress-ng", "-q", "--temp-path", place, "--cpu", "1", "--vm", "1", "--vm-bytes", "64M", "--hdd", "1"]
    return [*words, "--hdd-bytes", "16M", "--timeout", "6"]


def test_a_build(at_work, home):
    if "build" not in at_work:
        pytest.skip("needs make and gcc")
    assert len(list((home / "build").glob("*.o"))) == 8
    summary = show(at_work["build"])
    assert summary["exit"]["code"] == 0 and summary["processes"]["seen"] > 16
    # On two CPUs it uses them well, on more it does not: both are right. Compilers are no ranks and no leak.
    expect(story_of(at_work["build"]), set(), {"cores-used", "unused-cores"})


def test_a_pool_with_even_work(at_work):
    story = story_of(at_work["even"])
    expect(story, set(), {"cores-used", "unused-cores"})


def test_a_mix(at_work):
    if "mix" not in at_work:
        pytest.skip("needs stress-ng")
    assert show(at_work["mix"])["exit"]["code"] == 0
    expect(story_of(at_work["mix"]), set(), {"cores-used", "unused-cores"})


def test_a_pool_in_which_one_does_everything(together):
    story = story_of(together["uneven"])
    ranks = findings_of(story).get("rank-imbalance")
    # The rule asks that the busiest computes for half of the time: a machine that is overrun does not let it.
    if story["summary"]["cpu"]["total_s"] >= 0.55 * story["summary"]["wall_s"]:
        assert ranks, story["findings"]
        assert ranks["title"].startswith("3 processes python")
    expect(story, set(), {"rank-imbalance", "unused-cores"})


def test_killed_at_the_limit_of_its_group(tmp_path):
    memory = Group("memory", f"tacho-findings-{os.getpid()}", memory_limit_in_bytes=64 * MIB)
    recording, go = tmp_path / "oom.tacho", tmp_path / "go"
    command = f"echo 1000 >/proc/self/oom_score_adj; until [ -e {go} ]; do sleep 0.02; done; exec {BURNERS}/mem private 300 1"
    tacho = start("run", *FAST, "-o", recording, "--", "sh", "-c", command, preexec_fn=enter(memory))
    try:
        until(lambda: run("show", "--json", recording).returncode == 0 and show(recording)["cgroup"]["path"], "a group")
        go.touch()
        assert tacho.wait() == -signal.SIGKILL
    finally:
        tacho.kill()
        tacho.wait()
        memory.remove()
    story = story_of(recording)
    expect(story, {"oom"})
    oom = findings_of(story)["oom"]
    assert oom["weight"] == "serious"
    assert "the kernel killed mem (PID " in oom["title"]
    assert memory.name in oom["text"] and "limit of 64 MiB" in oom["text"]
    # More than before, and no time: how long it would have taken nobody knows.
    slurm = next(s["lines"] for s in story["advice"]["schedulers"] if s["scheduler"] == "slurm")
    assert "#SBATCH --mem=" in "\n".join(slurm) and "--time" not in "\n".join(slurm)
    asked = next(line for line in slurm if "--mem=" in line).partition("=")[2]
    assert asked.endswith("M") and int(asked[:-1]) >= 96
    assert "lower bound" in story["advice"]["headroom"]


def test_killed_by_somebody(tmp_path):
    memory = Group("memory", f"tacho-findings-{os.getpid()}", memory_limit_in_bytes=64 * MIB)
    recording = tmp_path / "killed.tacho"
    try:
        done = subprocess.run(
            [TACHO, "run", *FAST, "-o", recording, "--", "sh", "-c", "sleep 0.5; kill -9 $$"],
            preexec_fn=enter(memory),
            stdin=subprocess.DEVNULL,
        )
    finally:
        memory.remove()
    assert done.returncode == -signal.SIGKILL
    story = story_of(recording)
    expect(story, {"killed"})
    assert "Memory had not run out" in findings_of(story)["killed"]["text"]


def test_held_back_by_a_quota(tmp_path):
    # So little that it is used up also where many want the CPU.
    cpu = Group("cpu", f"tacho-findings-{os.getpid()}", cpu_cfs_quota_us=5000)
    recording = tmp_path / "quota.tacho"
    try:
        done = subprocess.run(
            [TACHO, "run", *FAST, "-o", recording, "--", "timeout", "6", "sh", "-c", "while :; do :; done"],
            preexec_fn=enter(cpu),
            stdin=subprocess.DEVNULL,
        )
    finally:
        cpu.remove()
    assert done.returncode == 124
    story = story_of(recording)
    expect(story, {"throttled", "failed"}, {"cores-used"})
    text = findings_of(story)["throttled"]["text"]
    assert "quota of 0.05 cores" in text and cpu.name in text


def test_thousands_of_short_processes(together):
    story = story_of(together["many"])
    if story["summary"]["processes"]["unsampled_is_upper_bound"]:
        pytest.skip("the kernel does not report every fork here")
    expect(story, {"short-processes"}, {"unused-cores", "serial", "cores-used"})
    assert "true" in findings_of(story)["short-processes"]["text"]
