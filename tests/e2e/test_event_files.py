"""Groups of events from the file to the summary: a job on machines of several makers, played from films.

The counters are the film's, the events and formulas are the event files', the recording and its reader are the real
ones; so are the refusals."""
import json

import pytest

from recorder import run, show

PMUS = "sys/bus/event_source/devices"
STAT = "100 (solver) R 1 100 100 0 -1 4194304 10 0 0 0 {} 10 0 0 20 0 1 0 1000 1000000 200 18446744073709551615" + " 0" * 28

INTEL = {"vendor_id": "GenuineIntel", "cpu family": 6}
AMD = {"vendor_id": "AuthenticAMD"}
SKYLAKE_X = {**INTEL, "model": 85, "stepping": 4}
HASWELL = {**INTEL, "model": 60, "stepping": 3}
ZEN3 = {**AMD, "cpu family": 25, "model": 1, "stepping": 1}
ZEN6 = {**AMD, "cpu family": 26, "model": 80, "stepping": 0}

CORE = {"cpu": (4, None)}
IMC = {"uncore_imc_0": (14, "0"), "uncore_imc_1": (15, "0")}
SECOND = 1_000_000_000


def lines(path, *content):
    return [f"file {path}", *(f"|{line}" for line in content)]


def film(path, cpu, pmus, counters, refused=(), paranoid=0, more=()):
    """One process. counters: (type, config) -> what is counted in the first second; then nothing more."""
    text = ["clock monotonic 100", "clock realtime 1700000000", "clock boottime 100"]
    text += lines("proc/loadavg", "0.1 0.1 0.1 1/3 200")
    text += lines("proc/stat", "cpu  10 0 5 100 0 0 0 0 0 0", "cpu0 10 0 5 100 0 0 0 0 0 0", "processes 200")
    text += lines("proc/meminfo", "MemTotal: 1000000 kB", "MemFree: 500000 kB")
    text += lines("proc/sys/kernel/pid_max", "32768") + lines("proc/self/stat", "1 (x) S 0 0")
    text += lines("proc/sys/kernel/perf_event_paranoid", str(paranoid))
    text += lines("proc/cpuinfo", "processor\t: 0", *(f"{key}\t: {value}" for key, value in cpu.items()))
    text += lines("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0")
    text += lines("proc/100/stat", STAT.format(90)) + ["dir proc/100/task/100", "cpu proc/100 0"]
    for name, (number, cpumask) in pmus.items():
        text += lines(f"{PMUS}/{name}/type", str(number)) + lines(f"{PMUS}/{name}/format/event", "config:0-7,32-35")
        text += lines(f"{PMUS}/{name}/format/umask", "config:8-15")
        text += lines(f"{PMUS}/{name}/cpumask", cpumask) if cpumask else []
    everything = {("1", "1"): SECOND, **counters}
    text += [f"counter {kind} {config} * * 0 0 0" for kind, config in everything]
    text += [f"counter_error {kind} {config} * * {error}" for kind, config, error in refused]
    text += more
    text += ["frame 1", f"cpu proc/100 {SECOND}", *lines("proc/100/stat", STAT.format(190))]
    text += [f"counter {kind} {config} * * {count} {SECOND} {SECOND}" for (kind, config), count in everything.items()]
    path.write_text("\n".join([*text, "frame 2", ""]))


def play(tmp_path, words, *machine, **more):
    film(tmp_path / "film.txt", *machine, **more)
    recording = tmp_path / "job.tacho"
    done = run("debug", "play", tmp_path / "film.txt", recording, "1s", f"+{words}", "100")
    assert done.returncode == 0, done.stderr.decode()
    return show(recording)


def core(**codes):
    return {("4", code.replace("x", "0x")): count for code, count in codes.items()}


def perf(summary, name):
    return summary["perf"][name]["value"]


def reason(summary, name):
    """Why there is no number."""
    assert perf(summary, name) is None
    return summary["unavailable"][f"perf.{name}"]


def test_operations_of_a_skylake(tmp_path):
    """Scalar and vector operations, weighed by their width: 1000 + 2 * 200 + 4 * 30 + 8 * 4."""
    codes = core(x01c7=1000, x04c7=200, x10c7=30, x40c7=4, x02c7=10, x08c7=20, x20c7=30, x80c7=40)
    summary = play(tmp_path, "flops", SKYLAKE_X, CORE, codes)
    assert perf(summary, "fp_scalar_double") == 1000
    assert perf(summary, "flops_dp") == pytest.approx(1552 / summary["wall_s"])
    assert perf(summary, "flops_sp") == pytest.approx((10 + 80 + 240 + 640) / summary["wall_s"])
    assert perf(summary, "vectorisation_dp") == pytest.approx(234 / 1234)
    assert summary["perf"]["flops_dp"]["unit"] == "flop/s"


def test_what_a_haswell_cannot_count_has_a_reason(tmp_path):
    summary = play(tmp_path, "flops", HASWELL, CORE, core(x07c6=123))
    assert perf(summary, "avx_instructions") == 123
    assert "Haswell has no counter of floating-point operations" in reason(summary, "flops_dp")


def test_both_precisions_of_a_zen3(tmp_path):
    summary = play(tmp_path, "flops_dp", ZEN3, CORE, core(x0f03=5000))
    assert perf(summary, "flops") == pytest.approx(5000 / summary["wall_s"])
    assert "together" in reason(summary, "flops_dp")


def test_an_unknown_processor_says_which_file_it_lacks(tmp_path):
    summary = play(tmp_path, "flops,perf", ZEN6, CORE, {("0", "1"): 700})
    assert perf(summary, "instructions") == 700
    assert "no event file for AuthenticAMD family 26 model 80 (zen6)" in reason(summary, "flops_dp")


def test_a_file_of_ones_own(tmp_path):
    mine = ["variable TACHO_EVENTS=/mine", *lines("mine/zen6.txt", "cpu zen6", "group MINE Own", "event mine = r1234",
                                                 "formula my_rate count/s = rate(mine)", "help Mine.")]
    summary = play(tmp_path, "MINE", ZEN6, CORE, core(x1234=600), more=mine)
    assert perf(summary, "mine") == 600
    assert perf(summary, "my_rate") == pytest.approx(600 / summary["wall_s"])


def test_memory_bandwidth_of_the_node(tmp_path):
    boxes = {("14", "0x304"): 1000, ("15", "0x304"): 500, ("14", "0xc04"): 30, ("15", "0xc04"): 40}
    summary = play(tmp_path, "membw", SKYLAKE_X, {**CORE, **IMC}, boxes)
    assert summary["memory_bandwidth"]["read_bytes"] == 1500 * 64
    assert summary["memory_bandwidth"]["write_bytes"] == 70 * 64


def test_what_was_asked_for_and_is_not_there_is_said(tmp_path):
    """Of what is recorded where it is there, nobody wants to hear where it is not."""
    assert not [note for note in play(tmp_path, "cpu", SKYLAKE_X, {}, {})["notes"] if "requested" in note]
    notes = [note for note in play(tmp_path, "membw,energy", SKYLAKE_X, {"software": (1, None)}, {})["notes"] if "requested" in note]
    assert [note.split(" was ")[0] for note in notes] == ["energy", "membw"]
    assert "no counters of the memory controllers" in notes[1]
    assert "requested" not in json.dumps(play(tmp_path, "membw", SKYLAKE_X, {**CORE, **IMC}, {("14", "0x304"): 1})["notes"])


@pytest.mark.parametrize("word, advice", [("FLOPS_D", "did you mean 'FLOPS_DP'?"), ("X", "'X': `tacho metrics`")])
def test_a_group_that_nobody_knows(tmp_path, word, advice):
    done = run("run", "-m", word, "-o", tmp_path / "job.tacho", "--", "touch", tmp_path / "ran")
    assert done.returncode == 125 and advice in done.stderr.decode()
    assert not (tmp_path / "ran").exists()


def test_a_machine_without_counters_of_hardware(tmp_path):
    summary = play(tmp_path, "flops", SKYLAKE_X, {"software": (1, None)}, {})
    assert "as in most virtual machines" in reason(summary, "fp_scalar_double")


@pytest.mark.parametrize("word", ["membw", "MEM"])
def test_without_rights_the_cores_tell_instead(tmp_path, word):
    summary = play(tmp_path, word, SKYLAKE_X, {**CORE, **IMC}, core(x412e=5000), paranoid=2,
                   refused=[("14", "*", "EACCES"), ("15", "*", "EACCES"), ("1", "0", "EACCES")])
    assert perf(summary, "mem_proxy_bandwidth") == pytest.approx(5000 * 64 / summary["wall_s"])
    assert summary["memory_bandwidth"]["read_bytes"] is None
    assert "perf_event_paranoid" in json.dumps(summary["unavailable"])
