"""Secrets in command lines are not in the recording."""

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from recorder import lasting, run, show, shown, until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import decoder  # noqa: E402

# A shell that becomes nothing else, and a child: both wait for the end of standard input.
JOB = ["sh", "-c", ": --password=hunter2; cat; exit 0", "name", "--token", "hunter2", "https://me:hunter2@host/"]


def texts(recording):
    """Every byte that is told by a decoder that is not ours, one text a record."""
    return [repr(record) for record in decoder.records(Path(recording).read_bytes())]


def sampled(recording, nr):
    summary = shown(recording)
    return summary and summary["ticks"]["taken"] > 1 and summary["processes"]["seen"] >= nr


def record_job(tmp_path, *options):
    recording = tmp_path / "run.tacho"
    recording.unlink(missing_ok=True)
    with lasting(JOB, "-i", "20ms", *options, output=recording, cwd=tmp_path, stdout=subprocess.DEVNULL):
        until(lambda: sampled(recording, 2), "both processes are sampled")
    return recording


def test_known_forms_are_blanked_unless_told_otherwise(tmp_path):
    recording = record_job(tmp_path)
    assert not [text for text in texts(recording) if "hunter2" in text]
    for words in (["show", "-p"], ["show", "--json"], ["export", "-t", "jsonl", "-o", "-"], ["ls", "--json"]):
        done = run(*words, recording)
        assert b"hunter2" not in done.stdout and (done.returncode or done.stdout), words
    summary = show(recording)
    # The shell's line, and that of its child where it was seen before its exec; not the one in the metadata once more.
    told = [text for text in texts(recording) if "'cmdline'" in text and "***" in text and "'again': True" not in text]
    assert summary["redaction"] == {"command_lines": len(told), "of": "known forms"}
    assert "https://me:***@host/" in summary["command"] and "***" in summary["command"]
    assert any("blanked" in note for note in summary["notes"])

    recording = record_job(tmp_path, "--redact", "none")
    assert sum("hunter2" in text for text in texts(recording)) >= 2
    assert show(recording)["redaction"] == {"command_lines": 0, "of": "none"}


def test_expressions_of_the_users_and_targets_by_command_line(tmp_path):
    """Targets are found by the whole command line; the name that a tool gets from it is blanked, too."""
    target = subprocess.Popen(["sleep", "1000.4242"])
    recording = tmp_path / "run.tacho"
    try:
        words = ["--redact", "none", "--redact", r"1000\.(4242)", "--also", r"match:1000\.42+"]
        with lasting(["cat"], "-i", "20ms", *words, output=recording):
            until(lambda: sampled(recording, 2), "the target is found")
        attached = tmp_path / "attached.tacho"
        assert run("attach", "-q", *words[:4], "--duration", "100ms", "-o", attached, target.pid).returncode == 0
    finally:
        target.kill()
        target.wait()
    told = texts(recording)
    assert any("1000.***" in text for text in told)
    assert not [text for text in told if "1000.4242" in text]
    assert show(recording)["redaction"]["of"] == "1 expression"
    summary = show(attached)  # is called after what it has recorded, rather than after its PID
    assert summary["argv"] == ["sleep", "1000.***"] and summary["target"] == str(target.pid)
    assert summary["redaction"]["command_lines"] == 1
    assert f"sleep '1000.***'   attached to {target.pid}" in run("show", attached).stdout.decode()
    assert "attached" in run("ls", attached).stdout.decode() and "1000.***" in run("ls", attached).stdout.decode()


def test_what_is_no_expression_is_refused(tmp_path):
    for wrong in ("(", r"(a)\1", ""):
        done = run("run", "-q", "--redact", wrong, "--", "touch", "ran", cwd=tmp_path)
        assert done.returncode == 125 and b"--redact takes" in done.stderr
    assert not list(tmp_path.iterdir())


# Each is repeated until a line is full: names, quotes that are never closed, URLs, programs, flags and blanks. \1 is NUL.
PIECES = ["token", "token=", "token=a ", "token: ", "token = ", 'token="', "token='", 'token=\\"', "a_", "-", "--password ", "--password\1",
          "://", "a://b:", "a://b:c@", "@", "://aaaaaaaaaaaaaaaaaaaaaaaa", "?token=a&", "curl\1-u\1", "curl -u a:", "mysql -p", "docker login -p ",
          "sh\1-c\1", "sh\1-c\1token=a'", "sh\1-c\1token=a\\'", "'", '"', "\\", "\\'", ";", " ", "\1", "bearer ", "ghp_", "eyJ", "Authorization: ",
          "--user=a:", "--user\1", "aB", "=", ":", "&"]


def instructions(tool, folder, lines):
    """What redacting each of them takes: callgrind counts while it is done, and makes a file each time."""
    command = ["valgrind", "--tool=callgrind", "--toggle-collect=redact_line", "--dump-after=redact_line",
               f"--callgrind-out-file={folder / 'count'}", tool]
    text = "".join(line + "\n" for line in lines)
    subprocess.run(command, input=text.encode(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    files = [folder / f"count.{n + 1}" for n in range(len(lines))]
    return [int(re.search(r"^summary: (\d+)", file.read_text(), re.M)[1]) for file in files]


def test_the_work_grows_with_the_length_alone(tmp_path):
    """Lines of an attacker's making: were the rest looked at again for each of its words, twice the length would cost four times
    as much."""
    tool = Path(os.environ["TACHO"]).parent / "tests" / "unit" / "redact_tool"
    if not tool.exists() or not shutil.which("valgrind"):
        pytest.skip(f"needs {tool} and valgrind")
    chance = random.Random(7)
    repeated = PIECES + ["".join(chance.sample(PIECES, 3)) for _ in range(14)]
    kinds = [(first, piece) for first in ("", "sh\1-c\1") for piece in repeated]
    lines = [(first + length * piece)[:length] for first, piece in kinds for length in (4000, 8000)]
    counts = instructions(tool, tmp_path, lines)
    for kind, short, long in zip(kinds, counts[::2], counts[1::2]):
        assert long < 2.8 * short, (kind, short, long)
