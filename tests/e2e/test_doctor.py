"""What `tacho doctor` says of this machine, of this machine with less permitted, and whether recordings agree with it."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from recorder import PATIENCE_S, TACHO, job_of, record, run, shown, start, until

NOBODY = "65534"
AS_NOBODY = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
WITH_SYS_CLASS = Path(__file__).resolve().parent.parent / "fakes" / "with-sys-class"
STATES = {"ok", "absent", "denied", "failed"}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def diagnose(*words, before=(), **kwargs):
    """The list, with metrics as keys."""
    command = [*map(str, before), TACHO, "doctor", "--json", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
    assert done.returncode == 0, (done.stdout[-300:], done.stderr)
    return {(entry["source"], entry["metric"]): entry for entry in json.loads(done.stdout)}


def page(*words, before=(), **kwargs):
    command = [*map(str, before), TACHO, "doctor", "--no-cost", *words]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


@pytest.fixture(scope="module")
def here():
    return diagnose("--no-cost")


@pytest.fixture
def nobodys_folder():
    """Open to an ordinary user, who can run the binary from there."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, int(NOBODY), int(NOBODY))
        trial = subprocess.run([*AS_NOBODY, TACHO, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if trial.returncode != 0:
            pytest.skip(f"an ordinary user cannot run {TACHO}: {trial.stderr}")
        yield Path(folder)


def namespace(script):
    """A prefix that runs what follows after the script in mounts of its own."""
    trial = subprocess.run(["unshare", "-m", "sh", "-c", script], stderr=subprocess.PIPE)
    if trial.returncode != 0:
        pytest.skip(f"no mounts of one's own here: {trial.stderr}")
    return ["unshare", "-m", "sh", "-c", f'{script}; exec "$@"', "sh"]


# ---- the list ----


def test_every_entry_is_as_documented(here):
    listed = json.loads(run("metrics", "--json").stdout)["collectors"]
    expected = {(collector["name"], metric["name"]) for collector in listed for metric in collector["metrics"]}
    assert expected <= set(here)
    for entry in here.values():
        assert {"source", "metric", "state", "reason", "remedy", "risk"} <= set(entry)
        assert set(entry) <= {"source", "metric", "state", "reason", "remedy", "risk", "detail", "value", "unit"}
        assert entry["remedy"] or not entry["risk"]
        assert entry["state"] in STATES
        assert entry["state"] == "ok" or entry["reason"]
        assert entry["reason"] is None or entry["reason"].strip()
        assert entry["remedy"] is None or entry["remedy"].strip()
        assert ("value" in entry) == ("unit" in entry)
    assert here["process", "proc.cpu.user"]["state"] == "ok"
    assert here["memory", "mem.total"]["state"] == "ok"


def test_the_list_is_a_list_without_duplicates():
    entries = json.loads(run("doctor", "--json", "--no-cost").stdout)
    assert isinstance(entries, list)
    names = [(entry["source"], entry["metric"]) for entry in entries]
    assert len(names) == len(set(names))


def test_metrics_and_doctor_agree(here):
    for collector in json.loads(run("metrics", "--json").stdout)["collectors"]:
        for metric in collector["metrics"]:
            entry = here[collector["name"], metric["name"]]
            assert metric["available"] == (entry["state"] == "ok"), metric
            assert metric["reason"] == (None if entry["state"] == "ok" else entry["reason"])


def test_clock_and_timer(here):
    assert here["clock", "source"]["state"] in ("ok", "absent")
    assert 0 < here["clock", "read"]["value"] < 1
    assert 0 < here["clock", "step"]["value"] < 1
    assert 0 <= here["timer", "late.median"]["value"] <= here["timer", "late.worst"]["value"]
    current = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if current.exists():
        assert here["clock", "source"]["detail"] == current.read_text().strip()


def test_what_a_sample_costs():
    done = run("doctor", "--json")
    assert done.returncode == 0 and not done.stderr, "who is no terminal is shown no progress"
    found = {(entry["source"], entry["metric"]): entry for entry in json.loads(done.stdout)}
    processes = len([name for name in os.listdir("/proc") if name.isdigit()])
    for hz in (1, 10, 100):
        tick, share = found["cost", f"{hz}hz.tick"]["value"], found["cost", f"{hz}hz.share"]["value"]
        assert 0 < tick < 10
        assert share == pytest.approx(tick * hz)
        # All but ourselves; processes come and go meanwhile.
        assert found["cost", f"{hz}hz.processes"]["value"] > processes / 3
        parts = {metric: entry["value"] for (source, metric), entry in found.items()
                 if source == "cost" and metric.startswith(f"{hz}hz.") and entry["unit"] == "seconds"}
        collectors = {source for source, _ in found} - {"cost", "clock", "timer"}
        assert {f"{hz}hz.process", f"{hz}hz.cpu", f"{hz}hz.memory"} <= set(parts)
        assert parts[f"{hz}hz.process"] > 0 and collectors
    assert found["cost", "budget"]["value"] == 0.01
    interval = found["cost", "budget.interval"]
    share = found["cost", "1hz.share"]["value"]
    assert interval["detail"] == ("fits" if share <= 0.01 else "backs off")
    assert interval["value"] == next(n for n in (1, 2, 4, 8, 16, 32, 64) if share / n <= 0.015 or n == 64)


# ---- agreement with recordings ----


class Dump:
    """Which metrics of a recording had values, and what it says of the others."""

    def __init__(self, recording):
        self.seen, self.why, lines = set(), {}, run("debug", "dump", recording).stdout.splitlines()
        for line in map(json.loads, lines):
            getattr(self, f"on_{line['type']}", lambda _: None)(line)

    def on_schema(self, line):
        self.sets = line["sets"]
        for group in self.sets:
            for metric in group["metrics"]:
                if metric["availability"] != "available":
                    self.why[metric["name"]] = metric["availability"], metric["why"]

    def on_event(self, line):
        pairs = dict(line["pairs"])
        if line["kind"] == "unavailable":
            why = ": ".join(filter(None, (pairs["why"], pairs.get("remedy"))))
            self.why.setdefault(pairs["metric"], (pairs["availability"], why))

    def on_tick(self, line):
        for row in line["rows"]:
            metrics = self.sets[row["set"]]["metrics"]
            self.seen |= {metric["name"] for i, metric in enumerate(metrics) if row["valid"] >> i & 1}


def compare(found, dump):
    """Of every metric: the same state and the same words."""
    name = {"available": "ok", "absent": "absent", "forbidden": "denied", "failed": "failed"}
    grouped = {"group", "app"}  # only recordings with several targets have groups, and only jobs that tell numbers have app
    figures = {"cost", "clock", "timer", "events", "taskstats", "delegation", "priority", "processes", "counters", "gpus", "nvtx", "output"}
    compared = 0
    for (source, metric), entry in found.items():
        if source in figures - {"cost"} or source in grouped or (source == "cost" and metric != "self.cost"):
            continue
        compared += 1
        assert (entry["state"] == "ok") == (metric in dump.seen), (entry, dump.why.get(metric))
        if metric in dump.why:
            availability, why = dump.why[metric]
            assert entry["state"] == "ok" or entry["state"] == name[availability], entry
            assert ": ".join(filter(None, (entry["reason"], entry["remedy"]))) == why
    assert compared > 100


WORKS = ["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]


def test_a_recording_made_now_agrees(here, tmp_path):
    recording = tmp_path / "all.tacho"
    done = record(WORKS, "-q", "-m", "all", "-i", "20ms", "--budget", "100", output=recording)
    assert done.returncode == 0, done.stderr
    compare(here, Dump(recording))


def test_a_recording_of_an_ordinary_user_agrees(nobodys_folder):
    found = diagnose("--no-cost", before=AS_NOBODY, cwd=nobodys_folder)
    words = [TACHO, "run", "-q", "-m", "all", "-i", "20ms", "--budget", "100", "-o", "all.tacho", "--", *WORKS]
    subprocess.run([*AS_NOBODY, *words], cwd=nobodys_folder, check=True)
    compare(found, Dump(nobodys_folder / "all.tacho"))


# ---- less permitted ----


def test_an_ordinary_user_is_told_what_would_help(nobodys_folder):
    found = diagnose("--no-cost", before=AS_NOBODY, cwd=nobodys_folder)
    exits = found["taskstats", "exits"]
    if exits["state"] == "absent":
        pytest.skip(f"no taskstats here: {exits['reason']}")
    assert exits["state"] == "denied"
    assert "CAP_NET_ADMIN" in exits["reason"]
    counters = "denied" in {found["counters", which]["state"] for which in ("kernel", "packages")}
    assert exits["remedy"] == f"sudo setcap cap_net_admin{',cap_perfmon' if counters else ''}+p {TACHO}"
    assert "everyone who may run" in exits["risk"]
    delegation = found["delegation", "cgroup"]
    offered = any("systemd-run" in (entry["remedy"] or "") for entry in found.values())
    assert not offered or (Path("/run/systemd/system").exists() and delegation["state"] != "ok")
    if delegation["state"] == "denied":
        exact = found["tree", "tree.cgroup.cpu"]
        assert (exact["state"], exact["reason"]) == ("denied", delegation["reason"])
    others = found["processes", "others"]
    assert (others["state"], others["remedy"]) == ("denied", "sudo tacho attach ...")
    assert found["processes", "own"]["state"] == "ok"
    assert found["priority", "rhythm"]["state"] in ("ok", "denied")
    assert found["output", "folder"]["state"] == "ok"
    assert found["process", "proc.io.read_bytes"]["state"] == "ok"  # our own child is read in full
    says = page(before=AS_NOBODY, cwd=nobodys_folder)
    assert says.returncode == 0
    assert f"\n      {exits['remedy']}\n" in says.stdout.decode()
    assert says.stdout.count(b"setcap") == 1  # each replaces what another gave
    assert says.stdout.count(b"sysctl kernel.perf_event_paranoid=") <= 1
    assert found["taskstats", "exits"]["state"] != diagnose("--no-cost")["taskstats", "exits"]["state"]


def test_the_remedy_for_taskstats_works(nobodys_folder):
    """Done as it is said, the finding is gone."""
    if not shutil.which("setcap"):
        pytest.skip("setcap is not installed")
    binary = nobodys_folder / "tacho"
    shutil.copy(TACHO, binary)
    words = [*AS_NOBODY, binary, "doctor", "--json", "--no-cost"]

    def exits():
        entries = json.loads(subprocess.run(words, stdout=subprocess.PIPE, cwd=nobodys_folder, check=True).stdout)
        return next(entry for entry in entries if entry["source"] == "taskstats")

    before = exits()
    if before["state"] != "denied":
        pytest.skip(f"taskstats is {before['state']} here")
    remedy = before["remedy"].split()
    assert remedy[0] == "sudo" and Path(remedy[-1]) == binary
    done = subprocess.run(remedy[1:], stderr=subprocess.PIPE)
    if done.returncode != 0:
        pytest.skip(f"no file capabilities here: {done.stderr}")
    assert exits()["state"] == "ok"
    # What the file has is part of what it is advised to have.
    subprocess.run(["setcap", "cap_sys_nice+p", binary], check=True)
    assert "setcap cap_net_admin," in exits()["remedy"] and ",cap_sys_nice+p " in exits()["remedy"]
    subprocess.run(remedy[1:], check=True)
    # And such a recorder still records what it starts.
    # It lives until it was sampled: a zombie's io is root's.
    words = [*AS_NOBODY, binary, "run", "-q", "-i", "20ms", "-o", "run.tacho", "--", "sh", "-c", "cat; exit 3"]
    job = subprocess.Popen(words, cwd=nobodys_folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def summary():
        shown = run("show", "--json", nobodys_folder / "run.tacho")
        return json.loads(shown.stdout) if shown.returncode == 0 else {}

    until(lambda: summary().get("ticks", {}).get("taken", 0) > 2 and summary()["processes"]["seen"] == 2, "two are seen")
    job.stdin.close()
    assert job.wait() == 3
    assert summary()["processes"]["seen"] == 2
    assert summary()["io"]["read_chars"] > 0


@pytest.fixture
def meters(tmp_path_factory):
    """Energy counters over /sys/class that only root may read."""
    if os.geteuid() != 0:
        pytest.skip("laying files over /sys/class needs root")
    sys_class = tmp_path_factory.mktemp("sys-class")
    sys_class.chmod(0o755)  # it becomes /sys/class
    zone = sys_class / "powercap" / "intel-rapl:0"
    zone.mkdir(parents=True)
    for name, value in (("name", "package-0"), ("max_energy_range_uj", 262143328850), ("energy_uj", 1000000)):
        (zone / name).write_text(f"{value}\n")
    (zone / "energy_uj").chmod(0o400)
    trial = subprocess.run([WITH_SYS_CLASS, sys_class, "true"], stderr=subprocess.PIPE, text=True)
    if trial.returncode != 0:
        pytest.skip(f"no overlay over /sys/class here: {trial.stderr.strip()}")
    return [WITH_SYS_CLASS, sys_class], zone / "energy_uj"


def test_energy_is_denied_to_an_ordinary_user(meters, nobodys_folder):
    overlay, counter = meters
    as_user = [*overlay, *AS_NOBODY]
    energy = diagnose("--no-cost", before=as_user, cwd=nobodys_folder)["energy", "energy.used"]
    assert energy["state"] == "denied"
    assert energy["remedy"] == "sudo chmod a+r /sys/class/powercap/*/energy_uj"
    text = page(before=as_user, cwd=nobodys_folder).stdout.decode()
    assert re.search(r"^  energy +denied ", text, re.M)
    assert f"\n      {energy['remedy']}\n" in text
    counter.chmod(0o444)  # what the remedy does; the overlay itself cannot be written
    assert diagnose("--no-cost", before=as_user, cwd=nobodys_folder)["energy", "energy.used"]["state"] == "ok"


def test_energy_is_there_for_root(meters):
    overlay, _ = meters
    assert diagnose("--no-cost", before=overlay)["energy", "energy.used"]["state"] == "ok"


def test_hidden_processes_are_told(nobodys_folder):
    hidden = namespace("mount -t proc -o hidepid=2 proc /proc")
    seen = diagnose("--no-cost", before=[*hidden, *AS_NOBODY], cwd=nobodys_folder)["processes", "seen"]
    assert seen["state"] == "denied"
    assert "hidepid=" in seen["reason"]
    assert seen["remedy"] == "sudo mount -o remount,hidepid=0 /proc"
    assert diagnose("--no-cost", before=hidden)["processes", "seen"]["state"] == "ok"  # root sees all
    shown = [*hidden, "sh", "-c", f'{seen["remedy"].removeprefix("sudo ")}; exec "$@"', "sh"]
    seen = diagnose("--no-cost", before=[*shown, *AS_NOBODY], cwd=nobodys_folder)["processes", "seen"]
    assert seen["state"] == "ok"


@needs_root
def test_a_container_without_sys(tmp_path):
    empty = namespace("mount -t tmpfs none /sys")
    found = diagnose("--no-cost", before=[*empty, "env", "-i"], cwd=tmp_path)
    assert found["process", "proc.cpu.user"]["state"] == "ok"
    assert found["memory", "mem.total"]["state"] == "ok"
    assert found["delegation", "cgroup"]["state"] == "absent"
    assert found["energy", "energy.used"]["state"] == "absent"
    assert found["clock", "source"]["state"] == "absent"


@needs_root
def test_nothing_can_be_recorded_without_proc(tmp_path):
    bare = namespace("mount -t tmpfs none /proc")
    done = page(before=bare, cwd=tmp_path)
    assert done.returncode == 1
    assert "This machine cannot be measured: " in done.stdout.decode()
    done = page("--json", before=bare, cwd=tmp_path)
    assert done.returncode == 1
    assert all(entry["state"] == "ok" or entry["reason"] for entry in json.loads(done.stdout))


def test_a_folder_that_cannot_be_written(nobodys_folder):
    os.chown(nobodys_folder, 0, 0)
    nobodys_folder.chmod(0o755)
    found = diagnose("--no-cost", before=AS_NOBODY, cwd=nobodys_folder)
    rhythm, folder = found["priority", "rhythm"], found["output", "folder"]
    assert rhythm["state"] == "denied" and "nice -20" in rhythm["remedy"] and "slow down" in rhythm["risk"]
    assert folder["state"] == "denied"
    assert "-o " in folder["remedy"]


# ---- GPUs ----


@pytest.fixture
def two_gpus(tmp_path):
    """The environment of a machine with two GPUs; more lines change what they do."""
    library = Path(TACHO).parent / "tests" / "fakes" / "libnvidia-ml.so.1"
    if not library.exists():
        pytest.skip(f"{library} was not built")

    def make(*lines):
        values = ["count 2", *lines]
        for n in range(2):
            values += [f"{n}.name NVIDIA-A100", f"{n}.uuid GPU-{n}", f"{n}.util 50", f"{n}.memutil 5", f"{n}.mem_total 1000", f"{n}.mem_used 10"]
        (tmp_path / "nvml.txt").write_text("\n".join(values) + "\n")
        return dict(os.environ, TACHO_NVML=str(library), FAKE_NVML=str(tmp_path / "nvml.txt"))

    return make


def test_gpus_are_named(two_gpus):
    found = diagnose("--no-cost", env=two_gpus())
    assert (found["gpus", "nvidia"]["state"], found["gpus", "nvidia"]["detail"]) == ("ok", "2 x NVIDIA-A100")
    assert found["gpu", "gpu.util"]["state"] == "ok"
    assert found["gpu", "gpu.memory.used"]["state"] == "ok"
    assert found["gpu", "gpu.energy"]["state"] == "absent"
    assert found["gpu_process", "gpu_process.memory"]["state"] == "absent"
    assert "use a GPU" in found["gpu_process", "gpu_process.memory"]["reason"]


def test_a_driver_that_answers_late_is_waited_for(two_gpus):
    found = diagnose("--no-cost", env=two_gpus("init ~700:0"))
    assert found["gpus", "nvidia"]["detail"] == "2 x NVIDIA-A100"
    assert found["gpu", "gpu.util"]["state"] == "ok"


def test_a_driver_of_another_version_is_told(two_gpus):
    found = diagnose("--no-cost", env=two_gpus("init !18"))
    util = found["gpu", "gpu.util"]
    assert util["state"] == "failed"
    assert "different versions" in util["reason"]
    assert "reboot" in util["remedy"]


def test_a_library_that_is_not_there_is_told(two_gpus):
    found = diagnose("--no-cost", env=dict(two_gpus(), TACHO_NVML="/nowhere/libnvidia-ml.so.1"))
    assert found["gpu", "gpu.util"]["state"] == "absent"
    assert "libnvidia-ml" in found["gpu", "gpu.util"]["reason"]
    assert "libnvidia-ml1" in found["gpu", "gpu.util"]["remedy"]


# ---- counters ----


def test_counters_are_as_the_kernel_allows(here):
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid")
    if not paranoid.exists():
        assert here["counters", "processes"]["state"] == "absent"
        pytest.skip("this kernel has no perf events")
    assert {metric for source, metric in here if source == "counters"} == {
        "processes", "kernel", "hardware", "packages", "events", "names"}
    if here["counters", "processes"]["state"] == "ok":
        assert here["perf", "perf.task_clock"]["state"] == "ok"
        # What the doctor says of hardware is what a recording finds.
        assert (here["counters", "hardware"]["state"] == "ok") >= (here["perf", "perf.cycles"]["state"] == "ok")


def test_an_ordinary_user_is_told_of_paranoid(nobodys_folder):
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid")
    if not paranoid.exists() or int(paranoid.read_text()) < 2:
        pytest.skip("kernel.perf_event_paranoid forbids nothing to an ordinary user")
    found = diagnose("--no-cost", before=AS_NOBODY, cwd=nobodys_folder)
    kernel = found["counters", "kernel"]
    assert kernel["state"] == "denied"
    assert "perf_event_paranoid" in kernel["reason"] and "kernel.perf_event_paranoid=" in kernel["remedy"]


# ---- the page ----


def test_the_page_fits(here):
    done = page()
    text = done.stdout.decode()
    assert done.returncode == 0 and not done.stderr
    body, _, verdict = text.partition("\nThis machine can be measured.")
    assert verdict and "\033" not in text
    assert max(map(len, body.splitlines())) <= 80
    assert text.isascii()
    for source in {source for source, _ in here} - {"cost"}:
        assert re.search(rf"^  {source} ", body, re.M), source
    for entry in here.values():
        if entry["remedy"] and (entry["state"] != "ok" or "detail" not in entry):
            assert f"      {entry['remedy']}\n" in verdict, entry
            assert "\n" not in entry["remedy"] and (not entry["risk"] or f"risk: {entry['risk']}" in " ".join(verdict.split())), entry


def test_every_metric_by_itself(here):
    text = page("-v").stdout.decode()
    listed = [metric["name"] for c in json.loads(run("metrics", "--json").stdout)["collectors"] for metric in c["metrics"]]
    for name in listed:
        assert re.search(rf"^ +{re.escape(name)} (ok|absent|denied|failed)\b", text, re.M), name
    assert page().stdout.count(b"\n") < text.count("\n") / 2


def test_it_leaves_nothing_behind(tmp_path):
    groups = {path for path in Path("/sys/fs/cgroup").rglob("tacho-*")} if Path("/sys/fs/cgroup").exists() else set()
    assert page(cwd=tmp_path).returncode == 0
    assert not list(tmp_path.iterdir())
    if groups or Path("/sys/fs/cgroup").exists():
        ours = {path for path in Path("/sys/fs/cgroup").rglob("tacho-*")} - groups
        # Others may be recording on this machine: theirs are locked and have a maker.
        assert not [path for path in ours if not Path(f"/proc/{path.name.split('-')[1]}").exists()]


def test_progress_is_shown_to_who_waits_and_nobody_else(tmp_path):
    main, side = pty.openpty()
    doctor = start("doctor", "--json", stdout=subprocess.DEVNULL, stderr=side)
    os.close(side)
    said = b""
    while True:
        readable, _, _ = select.select([main], [], [], PATIENCE_S)
        assert readable, "it never ended"
        try:
            part = os.read(main, 4096)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(main)
    assert doctor.wait() == 0
    assert b"s left" in said
    assert said.endswith(b"\r"), "the line is wiped"


def test_words_are_refused():
    done = run("doctor", "please")
    assert done.returncode == 2
    assert b"please" in done.stderr


# ---- starting twice ----


def test_a_recording_inside_a_recording_is_told(tmp_path):
    outer, inner = tmp_path / "outer.tacho", tmp_path / "inner.tacho"
    done = record([TACHO, "run", "--no-summary", "-o", inner, "--", "sh", "-c", "exit 5"], "-q", output=outer)
    assert done.returncode == 5
    assert done.stderr.decode() == (
        f"tacho: warning: tacho runs inside a job that is already being recorded in {outer}: the processes will be in both recordings\n")
    assert json.loads(run("show", "--json", inner).stdout)["exit"]["code"] == 5


def test_quiet_is_quiet_about_it(tmp_path):
    done = record([TACHO, "run", "-q", "-o", tmp_path / "inner.tacho", "--", "true"], "-q", output=tmp_path / "o.tacho")
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_recording_that_has_ended_warns_nobody(tmp_path):
    """A daemon started in a recorded job keeps the name in its environment for ever."""
    old = tmp_path / "old.tacho"
    assert record(["true"], "-q", output=old).returncode == 0
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "text").write_text("no recording\n")
    for name in (old, tmp_path / "gone.tacho", tmp_path, fifo, tmp_path / "text", "", "/dev/zero"):
        environment = dict(os.environ, TACHO_RECORDING=str(name))
        done = record(["true"], "--no-summary", output=tmp_path / "new.tacho", env=environment)
        assert (done.returncode, done.stderr) == (0, b""), name
        (tmp_path / "new.tacho").unlink()


def test_attaching_to_what_is_attached_is_told(tmp_path):
    """An attached process does not know its recording: the recorder is found, also by a child of what it was attached to."""
    outer, other = tmp_path / "outer.tacho", tmp_path / "other.tacho"
    words = ["attach", "--no-summary", "--force", "--duration", "10ms", "-o", other]
    job = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE)
    child = int(job.stdout.readline())
    recorder = start("attach", "-q", "-o", outer, f"tree={job.pid}")
    try:
        until(lambda: shown(outer).get("ticks"), "it records")
        for pid in (job.pid, child):
            done = run(*words, pid)
            assert done.returncode == 0
            assert done.stderr.decode() == f"tacho: warning: process {pid} is already being recorded in {outer}: it will be in both recordings\n"
        done = run(*words, os.getpid())
        assert (done.returncode, done.stderr) == (0, b"")
        recorder.terminate()
        recorder.wait()
        done = run(*words, child)
        assert (done.returncode, done.stderr) == (0, b"")
    finally:
        recorder.kill()
        recorder.wait()
        os.kill(child, signal.SIGKILL)
        job.kill()
        job.wait()


def test_attaching_to_what_is_recorded_is_told(tmp_path):
    outer = tmp_path / "outer.tacho"
    recorder = start("run", "-q", "-o", outer, "--", "sleep", "1000")
    try:
        pid = job_of(recorder, "sleep")
        words = ["attach", "--no-summary", "--duration", "10ms", "-o", tmp_path / "a.tacho", pid]
        done = run(*words)
        assert done.returncode == 0
        assert done.stderr.decode() == (
            f"tacho: warning: process {pid} is already being recorded in {outer}: it will be in both recordings\n")
    finally:
        recorder.terminate()
        recorder.wait()
