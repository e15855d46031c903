"""Readers of recordings that somebody built to take memory and time (hostile.py): every command ends by itself, within a memory that
is small, and `check` says what was refused. What real recordings need is in tests/unit/test_store_guard.c."""

import json
import os
import re
import subprocess

import pytest

import hostile
from recorder import BURNERS, TACHO, record, run

MEMORY = 256 << 20  # of any reader; a report has its libraries
READERS = [("show",), ("show", "--processes"), ("show", "--processes", "--json"), ("show", "--stats", "--by", "all"),
           ("show", "--series", "tree.cores", "--csv"), ("check",), ("ls",), ("plot",), ("log",), ("log", "--follow", "--json")]
MAKERS = [("report", "-f", "md,html", "-o", "report"), ("export", "-t", "parquet", "-o", "tables/"), ("export", "-t", "perfetto", "-o", "trace"),
          ("export", "-t", "runlog", "-o", "runlog"), ("export", "-t", "snakemake", "-o", "benchmark")]


def cost_of(*words, cwd):
    """Exit status and the most memory of `tacho WORDS`; Python's own memory would be in what it is told of its children."""
    command = [BURNERS / "largest", TACHO, *map(str, words)]
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return done.returncode, int(re.findall(rb"^max_rss_kib (\d+)$", done.stderr, re.M)[-1]) * 1024


@pytest.mark.parametrize("weapon", hostile.WEAPONS, ids=lambda weapon: weapon.__name__)
def test_no_reader_is_harmed(tmp_path, weapon):
    path = tmp_path / "weapon.tacho"
    path.write_bytes(weapon())
    makers = MAKERS if weapon in (hostile.reused_ids, hostile.long_commands, hostile.many_rows, hostile.phases) else []
    for words in [*READERS, *makers]:
        status, memory = cost_of(*words, path, cwd=tmp_path)
        assert status in (0, 1, 2), (words, status)
        assert memory < MEMORY, (words, memory)


@pytest.mark.parametrize("weapon, reason", [
    (hostile.reused_ids, "an instance has the id of one that had ended"),
    (hostile.reused_ids_without_rows, "an instance has the id of one that had ended"),
    (hostile.gone_strangers, "an instance has the id of one that had ended"),
    (hostile.long_commands, "it unpacks to far more than a recorder writes"),
    (hostile.ticks, "its ticks are more than its size can explain"),
    (hostile.events, "its events are more than its size can explain"),
    (hostile.far_future, "a segment contradicts itself"),
    (hostile.many_rows, "its rows are more than its size can explain"),
])
def test_what_is_refused_is_said(tmp_path, weapon, reason):
    path = tmp_path / "weapon.tacho"
    path.write_bytes(weapon())
    checked = run("check", "--json", path)
    assert checked.returncode == 1
    loss = json.loads(checked.stdout)["files"][0]["losses"][0]
    assert loss["reason"].startswith(reason)
    assert 0 < loss["at_byte"] < path.stat().st_size
    if "--max-expansion" in loss["reason"] and weapon is not hostile.many_rows:
        assert run("check", "--max-expansion", "0", path).returncode == 0
        assert run("check", path, env={**os.environ, "TACHO_MAX_EXPANSION": "100000000"}).returncode == 0


def test_a_log_that_is_followed_may_be_longer_than_memory(tmp_path):
    """All that is there already is printed line by line, as without --follow."""
    path = tmp_path / "weapon.tacho"
    path.write_bytes(hostile.events())
    env = {**os.environ, "TACHO_MAX_EXPANSION": "100000000"}
    sizes = []
    for words in (["log"], ["log", "--follow"]):
        with subprocess.Popen([TACHO, *words, path], stdout=subprocess.PIPE, env=env) as tacho:
            sizes.append(int(subprocess.run(["wc", "-c"], stdin=tacho.stdout, stdout=subprocess.PIPE, check=True).stdout))
            assert tacho.wait() == 0
    assert sizes[0] == sizes[1] > 1 << 26


def test_memory_that_is_not_allowed(tmp_path):
    path = tmp_path / "many.tacho"
    path.write_bytes(hostile.distinct_ids(200_000))
    refused = run("show", "--processes", "--max-memory", "64M", path)
    assert refused.returncode == 1
    assert b"--max-memory allows more" in refused.stderr
    assert run("show", "--processes", "--max-memory", "0", path).returncode == 0
    assert run("show", "--max-memory", "much", path).returncode == 2


def test_a_real_recording_is_within(tmp_path):
    path = tmp_path / "job.tacho"
    assert record(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done"], "-i", "0.02", output=path).returncode == 0
    assert run("check", "--max-expansion", "16", path).returncode == 0
    assert run("show", "--processes", "--max-memory", "64M", path).returncode == 0
