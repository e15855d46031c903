"""Names and command lines travel: to terminals, pages and spreadsheets. What people read never has characters that a
terminal obeys, that turn the text around or that cannot be seen; what programs read has every byte."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from exported import cell, reader
from recorder import TACHO, on_terminal, run

EXPORT = Path(TACHO).parent / "tacho-export"
REPORT = Path(TACHO).parent / "tacho-report"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
NAME = "=1\u202e\u009b\x1b\u2066z"  # 15 bytes at most: the name of a process
WORD = "-\x1b]0;x\x07\u202eevil\u202c\u009b2J\u200e\u2028\u200b\ufeff\u061c."
# Names itself, and lives until it has been sampled under that name.
PROGRAM = f"""import ctypes, time
ctypes.CDLL(None).prctl(15, {NAME.encode()!r}, 0, 0, 0)
end = time.monotonic() + 0.4
while time.monotonic() < end: pass
"""
PLAIN = {"NO_COLOR": "1", "TERM": "dumb"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The recording, in a folder and with a file name of the same kind, and what its summary on stderr was."""
    folder = tmp_path_factory.mktemp("text") / f"d{WORD}"
    folder.mkdir()
    path = folder / f"job{WORD}.tacho"
    done = run("run", "-i", "20ms", "-o", path, "--tag", f"note={WORD}", "--", sys.executable, "-c", PROGRAM, WORD,
               env={**os.environ, "SLURM_JOB_ID": "7", "SLURM_JOB_NAME": WORD})
    assert done.returncode == 0, done.stderr
    return path, done.stderr.decode()


def seen(text, what):
    found = HIDDEN.search(re.sub("\r+\n", "\n", text))
    assert not found, (what, text[max(0, found.start() - 40):found.end() + 20])


def test_nothing_that_people_read_has_hidden_characters(recorded, tmp_path):
    path, summary = recorded
    seen(summary, "the summary of tacho run")
    assert "\\u202e" in summary and "\\u009b" in summary and "\\x1b" in summary
    questions = [
        ("show",), ("show", "--processes"), ("show", "--stats"), ("show", "--json"), ("show", "--processes", "--json"),
        ("show", "--processes", "--csv"), ("show", "--stats", "--csv"), ("show", "--series", "proc.mem.rss", "--per", "instance"),
        ("show", "--series", "proc.mem.rss", "--per", "instance", "--csv"), ("check",), ("plot", "@", "proc.mem.rss"), ("ls",), ("ls", "--csv"),
        ("ls", "--json"), ("debug", "dump"), ("compare", "@", "@"), ("compare", "--format", "md", "@", "@"), ("doctor", "--no-cost"),
    ]
    for words in questions:
        words = [path if word == "@" else word for word in words]
        place = () if path in words or words[0] == "doctor" else (path,)
        seen(on_terminal(*words, *place, columns=300, **PLAIN), words)
        done = run(*words, *place)
        seen(done.stdout.decode(), words)
    for words in (("show", f"no{WORD}"), ("run", f"--{WORD}"), ("attach", WORD), ("show", "--series", WORD, path), ("export", "-t", WORD, path)):
        done = run(*words, cwd=tmp_path)
        assert done.returncode
        seen(done.stderr.decode(), words)


def test_reports_have_no_hidden_characters(recorded, tmp_path):
    if not REPORT.exists():
        pytest.skip("no tacho-report here: built without cairo and pango")
    path, _ = recorded
    done = run("report", "-f", "html,pdf,svg,json", "-o", tmp_path / "tree", path)
    assert done.returncode == 0, done.stderr
    run("plot", "-o", tmp_path / "x.svg", path, "proc.mem.rss")
    run("compare", "-o", tmp_path / "both/", path, path)
    texts = [file for file in tmp_path.rglob("*") if file.suffix in (".html", ".md", ".svg", ".json", ".csv", ".txt")]
    assert len(texts) > 8
    for file in texts:
        seen(file.read_bytes().decode().replace("\r\n", "\n"), file.name)
    seen(on_terminal("report", "-f", "md", "-o", "-", path, **PLAIN), "Markdown on a terminal")
    pdf, = (tmp_path / "tree").glob("*.pdf")
    text = subprocess.run(["pdftotext", pdf, "-"], stdout=subprocess.PIPE) if os.access("/usr/bin/pdftotext", os.X_OK) else None
    if text:
        seen(text.stdout.decode().replace("\f", ""), "PDF")


def exported(path, *words, **kwargs):
    done = run("export", "-o", "-", "-d", "processes", *words, path, **kwargs)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_exports_are_exact_but_on_terminals(recorded, tmp_path):
    if not EXPORT.exists():
        pytest.skip("no tacho-export here")
    path, _ = recorded
    for format in ("csv", "json", "jsonl", "openmetrics"):
        seen(on_terminal("export", "-t", format, "-d", "process" if format == "openmetrics" else "processes", "-o", "-", path, **PLAIN), format)
    commands = [row["command"] for row in rows(exported(path, "-t", "csv"))]
    assert any(WORD in command for command in commands)
    assert any(NAME in row["name"] for row in rows(exported(path, "-t", "csv")))
    lines = [json.loads(line) for line in exported(path, "-t", "jsonl").splitlines()]
    assert NAME in [line["name"] for line in lines]
    ours, theirs = os.openpty()
    done = run("export", "-t", "parquet", "-d", "node", "-o", "-", path, stdout=theirs)
    os.close(ours), os.close(theirs)
    assert done.returncode == 2 and b"terminal" in done.stderr


def test_cells_are_no_formulas(recorded, tmp_path):
    """An apostrophe before what a spreadsheet would compute; programs take it away, or ask for the texts as they are."""
    if not EXPORT.exists():
        pytest.skip("no tacho-export here")
    path, _ = recorded
    safe, exact = rows(exported(path, "-t", "csv")), rows(exported(path, "-t", "csv", "--no-safe-cells"))
    assert "'" + NAME in [row["name"] for row in safe]
    assert [cell(row["name"]) for row in safe] == [row["name"] for row in exact]
    assert NAME in [row["name"] for row in exact]
    for command in (("show", "--processes", "--csv", path), ("show", "--stats", "--csv", path), ("ls", "--csv", path)):
        for row in csv.reader(io.StringIO(run(*command).stdout.decode(), newline="")):
            for text in row:
                assert not re.match(r"[=+@\t\r\n]|-(?![0-9.])", text), (command, text)
    wide = run("export", "-t", "csv", "--wide", "-d", "process", "-m", "proc.mem.rss", "-o", "-", path).stdout.decode()
    assert not [text for text in next(csv.reader(io.StringIO(wide, newline=""))) if re.match(r"[=+\-@]", text)]


def test_cells_of_a_workbook(recorded, tmp_path):
    if not EXPORT.exists():
        pytest.skip("no tacho-export here")
    openpyxl = reader("openpyxl")
    path, _ = recorded
    for words, mark in (((), "'"), (("--no-safe-cells",), "")):
        book = tmp_path / f"job{len(words)}.xlsx"
        done = run("export", "-d", "processes", "-o", book, *words, path)
        if b"not in this build" in done.stderr:
            pytest.skip("built without libxlsxwriter")
        assert done.returncode == 0, done.stderr
        cells = [one for sheet in openpyxl.load_workbook(book) for row in sheet for one in row]
        assert mark + "=1" in [str(one.value)[:len(mark) + 2] for one in cells]
        assert all(one.data_type != "f" for one in cells) or not mark
