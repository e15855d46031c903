"""`tacho plot`: charts in the terminal and as pictures, of real runs and of made ones."""

import json
import os
import re
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from recorder import BURNERS, TACHO, on_terminal, record, run, start, until

MAKER = Path(TACHO).parent / "tests" / "unit" / "query_tool"
REPORT = Path(TACHO).parent / "tacho-report"
BRAILLE = re.compile("[\u2801-\u28ff]")
UTF8 = {**os.environ, "LC_ALL": "C.UTF-8"}
ASCII = {**os.environ, "LC_ALL": "C"}


@pytest.fixture(scope="module")
def burnt(tmp_path_factory):
    """A run that keeps one CPU busy and holds 60 MiB."""
    path = tmp_path_factory.mktemp("plot") / "burnt.tacho"
    job = f"{BURNERS}/mem private 60 0.6 & {BURNERS}/cpu 0.8; wait"
    done = record(["sh", "-c", job], "--interval", "50ms", output=path)
    assert done.returncode == 0, done.stderr.decode()
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Five minutes with three phases, a mark and twenty processes."""
    path = tmp_path_factory.mktemp("plot") / "made.tacho"
    subprocess.run([MAKER, "long", path, "300", "1", "20", "node1"], check=True)
    return path


def plot(*words, env=UTF8, **kwargs):
    return run("plot", *words, env=env, **kwargs)


def drawn(*words, **kwargs):
    done = plot(*words, **kwargs)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()


def need_report():
    if not REPORT.exists():
        pytest.skip("tacho-report was not built: cairo and pango are missing")


def test_cpu_and_memory_without_being_asked(burnt):
    text = drawn(burnt)
    assert "tree.cores" in text and "proc.mem.pss_now" in text
    assert BRAILLE.search(text)
    assert "MiB" in text
    most = float(re.search(r"tree\.cores .*max ([0-9.]+):", text)[1])
    assert 0 < most < 64
    assert all(len(line) <= 80 for line in text.splitlines())


def test_ascii_where_the_locale_knows_no_more(burnt):
    text = drawn(burnt, "tree.cores", env=ASCII)
    assert text.isascii() and "*" in text and "+---" in text


def test_sizes_are_kept(made):
    for columns, rows in ((80, 24), (120, 40), (40, 12)):
        lines = drawn(made, "proc.mem.rss", "--per", "process", "--size", f"{columns}x{rows}").splitlines()
        assert len(lines) <= rows
        assert max(map(len, lines)) <= columns


def test_a_terminal_has_colours_and_its_own_size(made):
    text = on_terminal("plot", made, "proc.cpu.cores", "--per", "process", columns=100, rows=30, NO_COLOR="")
    assert "\033[0;38;5;" in text
    lines = re.sub("\033\\[[0-9;]*m", "", text).splitlines()
    assert max(map(len, lines)) == 100
    assert len(lines) < 30
    assert "\033" not in on_terminal("plot", made, "tree.cores", columns=100, rows=30, NO_COLOR="1")


def test_processes_by_name_and_the_rest_as_others(made):
    text = drawn(made, "proc.mem.pss_now", "--per", "process", "--top", "3", "--size", "150x40")
    assert len(re.findall(r"(?:solver|loader|train) \d+", text)) == 3
    assert "others" in text
    pid = re.search(r"solver (\d+)", text)[1]
    one = drawn(made, "proc.mem.pss_now", "--pid", pid, "--size", "150x40")
    assert f"solver {pid}" in one and "others" not in one


def test_phases_and_marks_are_shown(made):
    text = drawn(made, "tree.cores", "--size", "120x24")
    assert not text.endswith("\n\n")
    for word in ("load", "solve", "write", "checkpoint"):
        assert word in text


def test_users_have_the_names_of_the_statistics(burnt):
    stats = json.loads(run("show", "--stats", "--by", "user", "--json", burnt).stdout)
    (user,) = [row["name"] for row in stats["users"]]
    assert not user.isdigit()
    assert re.search(rf"^ *\S {re.escape(user)}  mean", drawn(burnt, "proc.mem.rss", "--per", "user"), re.M)


def test_a_part_of_the_time(made):
    def ticks(*words):
        text = drawn(made, "tree.cores", *words, env=ASCII)
        return [line for line in text.splitlines() if re.fullmatch(r"[\s0-9hms.]+", line) and line.strip()][-1].split()

    assert ticks()[0] == "0"
    assert "2m" in ticks("--from", "1m30s", "--to", "150")
    assert "30s" not in ticks("--from", "50%")
    assert ticks("--from", "0s", "--to", "10%")[0] == "0"


def test_metrics_of_one_unit_share_a_chart(made):
    text = drawn(made, "proc.mem.rss,proc.mem.pss_now", "tree.cores", env=ASCII)
    assert "proc.mem.rss, proc.mem.pss_now" in text
    assert len(re.findall(r"^ *\+\+?-", text, re.M)) == 2


@pytest.mark.parametrize("words, says", [
    (["tree.coers"], "did you mean 'tree.cores'?"),
    (["nonsense"], "neither a file nor the name of a metric"),
    (["tree.cores", "--per", "instance"], "has no instances"),
    (["proc.state"], "cannot be added up"),
    (["proc.mem.rss", "--pid", "999999"], "no process 999999"),
    (["proc.mem.rss", "--group", "nobody"], "no group 'nobody'"),
    (["tree.cores", "--from", "soon"], "is no time"),
    (["tree.cores", "--from", "2m", "--to", "1m"], "--to must come after --from"),
    (["tree.cores", "--size", "big"], "columns and rows"),
    (["tree.cores", "--log", "--stacked"], "linear"),
])
def test_wrong_questions(made, words, says):
    done = plot(made, *words)
    assert done.returncode == 2, done.stdout.decode()
    assert says in done.stderr.decode()
    assert not done.stdout


def test_the_newest_here(burnt):
    done = plot("tree.cores", cwd=burnt.parent)
    assert done.returncode == 0
    assert b"burnt.tacho" in done.stderr


def test_a_recording_that_is_still_written(tmp_path):
    path = tmp_path / "live.tacho"
    job = start("run", "-o", path, "--interval", "20ms", "--", "sleep", "60", stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL)
    try:
        until(lambda: path.exists() and plot(path, "tree.processes").returncode == 0, "there is something to plot")
    finally:
        job.terminate()
        job.wait()


def test_several_nodes(tmp_path):
    for name in ("node1", "node2"):
        subprocess.run([MAKER, "long", tmp_path / f"{name}.tacho", "60", "1", "4", name], check=True)
    text = drawn(tmp_path, "tree.cores", "--per", "node", "--size", "120x30")
    assert "node1" in text and "node2" in text
    both = float(re.search(r"mean ([0-9.]+), max", drawn(tmp_path, "tree.cores"))[1])
    one = float(re.search(r"mean ([0-9.]+), max", drawn(tmp_path / "node1.tacho", "tree.cores"))[1])
    assert both == pytest.approx(2 * one, rel=0.1)


def test_damaged_recordings(made, tmp_path):
    data = bytearray(made.read_bytes())
    for at in range(len(data) // 3, len(data) // 3 + 200):
        data[at] ^= 0x5A
    cut = tmp_path / "cut.tacho"
    cut.write_bytes(data[:-100])
    assert plot(cut, "tree.cores").returncode in (0, 1, 2)
    cut.write_bytes(data[:50])
    done = plot(cut, "tree.cores")
    assert done.returncode in (1, 2) and done.stderr
    cut.write_bytes(b"no recording")
    assert plot(cut, "tree.cores").returncode == 2


# ---- pictures ----

def png_size(data):
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


def png_pixels(data):
    """All bytes of the picture, filtered as they are: enough to see that something is drawn."""
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    return zlib.decompress(packed)


def test_pictures(made, tmp_path):
    need_report()
    png = tmp_path / "p.png"
    done = plot(made, "tree.cores", "proc.mem.rss", "-o", png, "--size", "800x600")
    assert done.returncode == 0, done.stderr.decode()
    assert png_size(png.read_bytes()) == (800, 600)
    assert len(set(png_pixels(png.read_bytes()))) > 20
    dark = tmp_path / "d.png"
    assert plot(made, "tree.cores", "proc.mem.rss", "-o", dark, "--size", "800x600", "--dark").returncode == 0
    assert dark.read_bytes() != png.read_bytes()
    svg = tmp_path / "p.svg"
    assert plot(made, "tree.cores", "proc.mem.rss", "-o", svg, "--title", "a <b> & c").returncode == 0
    text = svg.read_text()
    assert "a &lt;b&gt; &amp; c" in text and "solve" in text
    assert text.count("<svg") == 3 and text.count("</svg>") == 3  # two panels in one picture
    pdf = tmp_path / "p.pdf"
    assert plot(made, "tree.cores", "-o", pdf).returncode == 0
    assert pdf.read_bytes().startswith(b"%PDF")
    assert png.stat().st_mode & 0o777 == 0o600


def test_pictures_to_a_pipe_and_never_over_another(made, tmp_path):
    need_report()
    done = plot(made, "tree.cores", "-o", "-", "--format", "svg")
    assert done.returncode == 0 and done.stdout.startswith(b"<svg")
    there = tmp_path / "there.svg"
    there.write_text("mine")
    assert plot(made, "tree.cores", "-o", there).returncode == 2
    assert there.read_text() == "mine"
    assert plot(made, "tree.cores", "-o", there, "--force").returncode == 0
    assert there.read_text().startswith("<svg")
    done = plot(made, "tree.cores", "-o", tmp_path / "p.jpeg")
    assert done.returncode == 2 and b"--format" in done.stderr


def test_without_the_drawing_executable_it_says_what_is_missing(made, tmp_path):
    alone = tmp_path / "tacho"
    alone.write_bytes(Path(TACHO).read_bytes())
    alone.chmod(0o755)
    done = subprocess.run([alone, "plot", made, "tree.cores", "-o", tmp_path / "p.png"], capture_output=True,
                          env={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode not in (0, 139)
    assert b"tacho-report" in done.stderr
