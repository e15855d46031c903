"""The recording from outside: the independent decoder, kills, full disks, reading while it is written, old recordings.

Recordings come from `store_tool` (tests/unit), whose lives are a function of a seed: what a killed writer has left must be
the beginning of what the same life looks like when nobody disturbs it."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import decoder  # noqa: E402
from recorder import TACHO, dump, lasting, record, run, shown, until  # noqa: E402

TOOL = Path(TACHO).parent / "tests" / "unit" / "store_tool"
GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def tool(*words, **kwargs):
    if not TOOL.exists():
        pytest.skip(f"{TOOL} was not built (it needs cmocka)")
    return subprocess.run([TOOL, *map(str, words)], check=True, **kwargs)


def check(recording):
    done = run("check", "--json", recording)
    [finding] = json.loads(done.stdout)["files"]
    return done.returncode, finding


def ticks(records):
    return [record["number"] for record in records if record["type"] == "tick"]


# ---- the independent decoder ----


@pytest.mark.parametrize("words", [("write", 1, 80), ("write", 2, 45), ("busy", 3, 25)], ids=str)
def test_decoder_agrees_on_invented_lives(tmp_path, words):
    file = tmp_path / "life.tacho"
    tool(*words, file)
    ours, theirs = dump(file), list(decoder.records(file.read_bytes()))
    assert sum(record.get("again", False) for record in ours) > 50  # several segments
    assert len(ticks(ours)) == words[2]
    assert ours == theirs


def test_decoder_agrees_on_a_real_job(tmp_path):
    file = tmp_path / "job.tacho"
    odd = "a b\n(c) \\ \t \udcff\udcfe é"
    with lasting(["sh", "-c", "for i in 1 2 3; do sleep 0.05 & wait; done; read line; true", odd], "-i", "20ms", output=file):
        until(lambda: shown(file).get("ticks", {}).get("taken", 0) > 3, "some ticks")
    ours, theirs = dump(file), list(decoder.records(file.read_bytes()))
    assert len(ticks(ours)) > 3
    assert ours == theirs


def test_index_points_at_segments(tmp_path):
    file = tmp_path / "life.tacho"
    tool("write", 4, 60, file)
    starts, index = [], None
    for offset, kind, flags, payload in decoder.blocks(file.read_bytes()):
        if kind == decoder.SEGMENT and flags & decoder.FIRST:
            starts.append(offset)
        elif kind == decoder.INDEX:
            index = decoder.decode_index(payload)
    assert len(starts) > 3
    assert [offset for offset, _ in index] == starts
    assert [time for _, time in index] == sorted(time for _, time in index)


# ---- kills ----


def killed_life(file, seed, patience):
    """A writer that is killed after it has reported so many flushes. Ticks and bytes it had reported."""
    if not TOOL.exists():
        pytest.skip(f"{TOOL} was not built (it needs cmocka)")
    writer = subprocess.Popen([TOOL, "ever", str(seed), "100000", file], stdout=subprocess.PIPE, text=True)
    reported = "0 0"
    for _ in range(patience):
        reported = writer.stdout.readline()
    writer.kill()
    writer.wait()
    rest = writer.stdout.read().splitlines()
    writer.stdout.close()
    if rest and len(rest[-1].split()) == 2:
        reported = rest[-1]
    return [int(word) for word in reported.split()]


@pytest.mark.parametrize("seed", range(10, 18))
def test_killed_writer(tmp_path, seed):
    file, whole = tmp_path / "killed.tacho", tmp_path / "whole.tacho"
    count, size = killed_life(file, seed, random.Random(seed).randint(1, 60))
    found = dump(file)
    status, finding = check(file)
    assert status == 1
    assert finding["state"] == "unfinished" and not finding["writing"] and finding["damaged_places"] == 0
    assert finding["bytes"] >= size
    assert len(ticks(found)) in (count, count + 1)
    tool("write", seed, len(ticks(found)), whole)
    undisturbed = dump(whole)
    assert [record["type"] for record in undisturbed].count("summary") == 1
    undisturbed = [record for record in undisturbed if record["type"] != "summary"]
    # What was written after the last whole tick of the killed one is not in the other.
    last = max(i for i, record in enumerate(undisturbed) if record["type"] == "tick")
    assert found[:last + 1] == undisturbed[:last + 1]


# ---- a full disk ----


def test_file_size_limit_of_a_real_job(tmp_path):
    """RLIMIT_FSIZE makes a full disk for any user; the job itself must not notice."""
    shortest, file, out = tmp_path / "shortest.tacho", tmp_path / "full.tacho", tmp_path / "out"
    options = ["-i", "2ms", "--budget", "100", "--flush", "50ms"]
    assert record(["sleep", "0.2"], *options, output=shortest).returncode == 0  # it lives to see its schema
    enough = shortest.stat().st_size + 200

    def little_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (enough, resource.RLIM_INFINITY))

    with open(out, "wb") as stdout:
        job = "i=0; while [ $i -lt 60 ]; do sleep 0.02; i=$((i+1)); done; echo done; exit 7"
        done = record(["sh", "-c", job], *options, output=file, preexec_fn=little_disk, stdout=stdout)
    assert done.returncode == 7, done.stderr
    assert out.read_bytes() == b"done\n"
    assert file.stat().st_size <= enough
    status, finding = check(file)
    assert status == 1
    assert finding["ticks"] > 0
    assert len(ticks(dump(file))) == finding["ticks"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_small_file_system(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("this machine does not let us mount a tmpfs")
    try:
        file = disk / "life.tacho"
        done = subprocess.run([TOOL, "ever", "5", "200", file], stdout=subprocess.PIPE, text=True, check=True)
        assert int(done.stdout.split()[-1]) <= 65536
        found = dump(file)
        status, finding = check(file)
        assert status == 1 and finding["state"] == "unfinished"
        assert 2 < len(ticks(found)) < 200
        assert all(entry["type"] != "lost" for entry in found)
    finally:
        subprocess.run(["umount", disk], check=True)


# ---- reading while it is written ----


def test_reading_while_it_is_written(tmp_path):
    if not TOOL.exists():
        pytest.skip(f"{TOOL} was not built (it needs cmocka)")
    file = tmp_path / "growing.tacho"
    writer = subprocess.Popen([TOOL, "paced", "77", "100000", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    reported = [0]

    def drain():
        for line in writer.stdout:
            if len(line.split()) == 2:
                reported[0] = int(line.split()[0])

    drainer = threading.Thread(target=drain)
    drainer.start()
    try:
        until(file.exists, "the recording appears")
        before = 0
        for i in range(12):
            least = reported[0]
            writer.stdin.write(b"." * 15)
            writer.stdin.flush()  # from here on it writes, and we read
            found = dump(file)
            assert all(entry["type"] != "lost" for entry in found)
            assert max(least, before) <= len(ticks(found)) <= 15 * (i + 1)
            before = len(ticks(found))
            status, finding = check(file)
            assert status == 1 and finding["writing"] and finding["state"] == "unfinished"
    finally:
        writer.kill()
        writer.wait()
        drainer.join()
        writer.stdin.close()
        writer.stdout.close()
    assert before > 0
    assert not check(file)[1]["writing"]


# ---- check ----


def test_check_speaks_and_exits(tmp_path):
    whole, cut, flipped, text = (tmp_path / name for name in ("whole.tacho", "cut.tacho", "flipped.tacho", "text.tacho"))
    tool("write", 9, 40, whole)
    data = whole.read_bytes()
    cut.write_bytes(data[:-10])
    middle = len(data) // 2
    flipped.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1:])
    text.write_text("This is no recording.\n" * 10)

    def says(*files):
        done = run("check", *files)
        return done.returncode, done.stdout.decode()

    assert says(whole)[0] == 0 and "whole: 40 ticks up to 40" in says(whole)[1]
    status, words = says(cut)
    assert status == 1 and "unfinished: 40 ticks" in words and "its end is missing" in words
    status, words = says(flipped)
    assert status == 1 and "damaged" in words and "a block is damaged" in words and "lost: " in words
    assert says(text) == (2, f"{text}: no recording\n")
    assert says(tmp_path / "missing.tacho")[0] == 2
    # The worst of several counts; a directory stands for what is in it.
    assert says(whole, cut)[0] == 1
    assert says(whole, text, cut)[0] == 2
    status, words = says(tmp_path)
    assert status == 2 and words.count("\n/") + 1 >= 4
    done = run("check", "--json", whole, flipped, text)
    states = [finding["state"] for finding in json.loads(done.stdout)["files"]]
    assert done.returncode == 2 and states == ["whole", "damaged", "none"]
    assert run("check").returncode == 2


def test_check_of_a_damaged_file_tells_when(tmp_path):
    whole, damaged = tmp_path / "whole.tacho", tmp_path / "damaged.tacho"
    tool("write", 12, 60, whole)
    data = bytearray(whole.read_bytes())
    middle = len(data) // 2
    data[middle:middle + 100] = bytes(100)
    damaged.write_bytes(data)
    records = dump(damaged)
    lost = [i for i, entry in enumerate(records) if entry["type"] == "lost"]
    assert len(lost) == 1
    last_before = ticks(records[:lost[0]])[-1]
    time_before = [entry["time"] for entry in records[:lost[0]] if entry["type"] == "tick"][-1]
    status, finding = check(damaged)
    assert status == 1 and finding["complete"]
    [loss] = finding["losses"]
    assert loss["after_s"] >= time_before / 1e9
    assert finding["good_bytes"] + finding["lost_bytes"] == len(data)
    # Everything before the damage is there, and everything from the next segment on.
    wanted = dump(whole)
    assert records[:lost[0]] == wanted[:lost[0]]
    after = ticks(records[lost[0]:])
    assert len(after) > 5 and after == [n for n in ticks(wanted) if n >= after[0]] and after[0] > last_before + 1
    assert records[-1] == wanted[-1]


# ---- old recordings ----


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.tacho"), key=str), ids=lambda path: path.stem)
def test_golden_recordings_stay_readable(file):
    expected = [json.loads(line) for line in file.with_suffix(".jsonl").read_text().splitlines()]
    assert len(ticks(expected)) > 3
    assert dump(file) == expected
    assert list(decoder.records(file.read_bytes())) == expected
    assert check(file)[0] == 0
