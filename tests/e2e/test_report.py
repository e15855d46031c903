"""`tacho report`: every format of a real run, where the files go, and what happens when they cannot."""

import csv
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from recorder import BURNERS, TACHO, need_mounts, record, run, show, start, until

PROGRAM = Path(TACHO).parent / "tacho-report"
if not PROGRAM.exists():
    pytest.skip("no tacho-report here: built without cairo and pango", allow_module_level=True)

# A parent with two children that compute, and one argument with all that the formats must escape.
ODD = "<script>alert(1)</script> | `x` *b* [y](z) \\ \" ' & \n \udcff {} #"
WORK = "for i in 1 2; do (i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done) & done; wait"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "job.tacho"
    done = record(["sh", "-c", WORK, ODD], "-q", "-i", "20ms", output=path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def job(recording, tmp_path):
    """A copy in a directory of its own: reports go beside it."""
    return Path(shutil.copy(recording, tmp_path / "job.tacho"))


@pytest.fixture(scope="module")
def tree(recording, tmp_path_factory):
    """Everything, once for all tests that look into it."""
    place = tmp_path_factory.mktemp("tree") / "out"
    done = report("--all", "--verbose", "-o", place, recording)
    return place, done


def report(*words, status=0, **kwargs):
    done = run("report", *words, **kwargs)
    assert done.returncode == status, done.stderr.decode(errors="replace")
    return done


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"no {program} here")


def names(directory):
    return sorted(path.name for path in directory.iterdir())


# ---- where it goes ----


def test_a_page_beside_the_recording(job):
    done = report(job)
    page = job.with_suffix(".html")
    assert done.stdout.decode() == f"{page}\n"
    assert done.stderr == b""
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert names(job.parent) == ["job.html", "job.tacho"]  # and nothing temporary
    assert page.read_bytes().startswith(b"<!doctype html>") or page.read_bytes().startswith(b"<!DOCTYPE html>")


def test_the_newest_without_operand(job):
    done = report(cwd=job.parent)
    assert "reporting" in done.stderr.decode() and "job.tacho" in done.stderr.decode()
    assert (job.parent / done.stdout.decode().strip()).resolve() == job.with_suffix(".html")


def test_nothing_is_replaced_unasked(job):
    page = job.with_suffix(".html")
    page.write_text("mine")
    done = report(job, status=2)
    assert b"--force" in done.stderr and done.stdout == b""
    assert page.read_text() == "mine"
    report("--force", job)
    assert page.read_text() != "mine"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_a_refusal_leaves_nothing_behind(job):
    """The last file of many is in the way: none of the others is made."""
    out = job.parent / "out"
    out.mkdir()
    (out / "job-report-job.pdf").write_text("mine")
    done = report("--all", "-o", out, job, status=2)
    assert b"job-report-job.pdf" in done.stderr
    assert names(out) == ["job-report-job.pdf"]
    assert (out / "job-report-job.pdf").read_text() == "mine"


def test_a_device_is_not_replaced(job):
    fifo = job.parent / "pipe.html"
    os.mkfifo(fifo)
    assert b"no regular file" in report("--force", "-o", fifo, job, status=2).stderr
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_the_ending_chooses_the_format(job):
    for ending, magic in ((".pdf", b"%PDF-"), (".json", b"{"), (".html", b"<!")):
        path = job.parent / f"named{ending}"
        done = report("-o", path, job)
        assert path.read_bytes().startswith(magic)
        assert done.stdout.decode().splitlines()[0] == str(path)


def test_to_stdout(job):
    assert report("-o", "-", "--format", "pdf", job).stdout.startswith(b"%PDF-")
    assert json.loads(report("-o", "-", "--format", "json", job).stdout)["format"] == 1
    text = report("-o", "-", "-f", "md", job).stdout.decode()
    assert text.startswith("# ") and "![" not in text  # pictures have no place there
    assert names(job.parent) == ["job.tacho"]


@pytest.mark.parametrize(
    "words, hint",
    [
        (["--format", "docx"], "docx"),
        (["-o", "-", "--format", "png"], "one format"),
        (["-o", "-", "--format", "html,md"], "one format"),
        (["-o", "x.png"], "directory"),
        (["--verbose"], "--all"),
        (["--from", "2", "--to", "1"], "--from"),
        (["-o", ""], "-o"),
    ],
)
def test_wrong_use(job, words, hint):
    done = report(*words, job, status=2, cwd=job.parent)
    assert hint in done.stderr.decode() and done.stdout == b""
    assert names(job.parent) == ["job.tacho"]


def test_a_place_that_cannot_be_written(job):
    for place in ("/proc/report.html", f"{job}/report.html", "/proc/self/report/"):
        done = report("-o", place, job, status=1)
        assert b"cannot write" in done.stderr and done.stdout == b""


def test_full_disk(job):
    need_mounts()
    disk = job.parent / "disk"
    disk.mkdir()
    script = 'mount -t tmpfs -o size=16k tmpfs "$1" && "$2" report -o "$1/a.html" "$3"; echo $?; ls -A "$1"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", disk, TACHO, job], capture_output=True)
    assert done.stdout == b"1\n", done.stderr  # the status, and an empty directory
    assert b"No space left" in done.stderr


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_a_limit_of_files_leaves_nothing(job):
    """It is an error like a full disk: said in words, and neither files nor directories are left behind."""
    for words in (("-f", "png,svg", "-o", "a/b/tree"), ("-f", "html,md"), ("--all",), ("-o", "page.html")):
        done = report(*words, job, status=1, cwd=job.parent, preexec_fn=small_files)
        assert b"file size limit" in done.stderr and b"ulimit -f" in done.stderr and done.stdout == b"", words
        assert names(job.parent) == ["job.tacho"], words
    for words in (("plot", "-o", "x.png", job), ("compare", "-o", "both/", job, job), ("compare", "-o", "x.html", job, job)):
        done = run(*words, cwd=job.parent, preexec_fn=small_files)
        assert done.returncode == 1 and b"ulimit -f" in done.stderr, (words, done.stderr)
        assert names(job.parent) == ["job.tacho"], words
    with open(job.parent / "out", "wb") as out:
        done = report("-o", "-", job, status=1, stdout=out, preexec_fn=small_files)
    assert b"ulimit -f" in done.stderr


def test_a_later_failure_leaves_nothing(job):
    """A report is all of its files or none: also those that were whole before one failed."""
    plots = job.parent / "job-plots"
    plots.mkdir(mode=0o500)
    if os.access(plots, os.W_OK):  # root may do everything
        plots.rmdir()
        plots.write_text("no directory")
    done = report("-f", "html,md", job, status=1)
    assert b"cannot write" in done.stderr and done.stdout == b""
    assert names(job.parent) == ["job-plots", "job.tacho"]


def test_what_a_killed_report_left_is_removed(job):
    """The next one in the same place removes it, but only when its owner is gone, and only what is ours."""
    left, used, other = (job.parent / f".tacho-stage-{name}" for name in ("killed", "in-use", "other"))
    for stage in (left, used, other):
        stage.mkdir(mode=0o700)
        (stage / "0.html").write_text("half")
    for stage in (left, used):
        (stage / "owner").write_text(f"tacho stage\n{socket.gethostname()}")
    (left / "1").mkdir()
    (left / "1" / "link").symlink_to(job)
    with open(used / "owner", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        report(job)
        assert names(job.parent) == [".tacho-stage-in-use", ".tacho-stage-other", "job.html", "job.tacho"]
    report("--force", job)
    assert names(job.parent) == [".tacho-stage-other", "job.html", "job.tacho"]


def test_stdout_that_is_full(job):
    with open("/dev/full", "wb") as full:
        assert report("-o", "-", job, status=1, stdout=full).stderr.count(b"No space left") == 1


def test_without_the_executable(job, tmp_path):
    """Recorders are installed alone: the words say what is missing, and what brings it."""
    alone = tmp_path / "bin"
    alone.mkdir()
    shutil.copy(TACHO, alone)
    environment = {**os.environ, "PATH": "/nowhere"}
    done = subprocess.run([alone / "tacho", "report", job], capture_output=True, env=environment)
    assert done.returncode == 127
    for word in (b"tacho-report", b"libcairo2-dev", b"package"):
        assert word in done.stderr
    assert subprocess.run([alone / "tacho", "report", "--help"], capture_output=True, env=environment).returncode == 0


# ---- Markdown ----


def plain(text):
    """Markdown without its escapes."""
    return re.sub(r"\\([^\w\s])", r"\1", text)


def table_rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]


def cells(row):
    return re.split(r"(?<!\\)\|", row)[1:-1]


def test_markdown(tree):
    place, _ = tree
    text = (place / "resource_report.md").read_text()
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    for head in ("Resource report", "Findings", "Plots", "Statistics", "By process", "The whole run"):
        assert head in heads
    assert heads.index("Findings") < heads.index("Plots") < heads.index("Statistics")
    width = None
    for line in text.splitlines():
        if not line.startswith("|"):
            width = None
            continue
        width = width or len(cells(line))
        assert len(cells(line)) == width, line
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert len(pictures) > 5
    for picture in pictures:
        assert (place / picture).read_bytes().startswith(b"\x89PNG")


def test_markdown_is_escaped(tree):
    place, _ = tree
    text = (place / "resource_report.md").read_text()
    outside = re.sub(r"^(`{3,})[^`]*\n.*?\n\1$", "", text, flags=re.M | re.S)
    assert "<script>" not in re.sub(r"\\<", "", outside)
    assert re.search(r"^```+\n.*<script>alert\(1\)", text, re.M)  # the command, as it was, in a block


def test_markdown_tells_what_show_tells(tree, recording):
    summary = show(recording)
    text = (tree[0] / "resource_report.md").read_text()
    rows = {cells(row)[0].strip(): plain(cells(row)[1]) for row in table_rows(text)}
    assert rows["Processes"].split()[0] == str(summary["processes"]["seen"])
    assert f"of {summary['limits']['cpus']:g} cores" in rows["CPU, mean"]
    assert "exit 0" in rows["Time"]


def test_an_estimate_is_marked_in_reports_too(tmp_path):
    """A budget that never reaches for PSS of a large process."""
    path = tmp_path / "estimated.tacho"
    record(["python3", "-S", "-c", "held = bytearray(30 << 20); import time; time.sleep(0.3)"],
           "--budget", "0.01", "-i", "100ms", output=path)
    assert show(path)["memory"]["peak_pss_estimated_ratio"] > 0.01
    assert re.search(r"^\| Memory, peak \| (\\~.* PSS |.* \(in one process, between samples)", report("-f", "md", "-o", "-", path).stdout.decode(), re.M)


def test_plots_beside_a_named_markdown(job):
    done = report("-o", job.parent / "my report.md", job)
    text = (job.parent / "my report.md").read_text()
    links = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert links and all(link.startswith("my%20report-plots/") for link in links)
    for link in links:
        assert (job.parent / link.replace("%20", " ")).exists()
    assert str(job.parent / "my report-plots") in done.stdout.decode()


# ---- PDF ----


def pdf_pages(path):
    need("pdfinfo", "pdftotext")
    info = subprocess.run(["pdfinfo", "-isodates", path], capture_output=True, text=True, check=True).stdout
    fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    text = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True).stdout
    return {name: value.strip() for name, value in fields.items()}, text.split("\f")[:-1]


def test_pdf(tree, recording):
    place, _ = tree
    fields, pages = pdf_pages(place / "job-report-job.pdf")
    assert int(fields["Pages"]) == len(pages) >= 3
    assert "A4" in fields["Page size"]
    assert fields["Title"].startswith("Job report: sh -c")
    assert fields["CreationDate"][:13] == show(recording)["start"][:13]
    for number, page in enumerate(pages, 1):
        assert f"page {number} of {len(pages)}" in page
        head = page.split("\n\n")[0] + page[:600]
        for word in ("Recording", "User", "Nodes", "Date", show(recording)["start"][:10], os.uname().nodename[:8]):
            assert word in head, f"page {number}"
    assert "Job report" in pages[0] and "Findings" in pages[0]
    assert "Statistics" in "".join(pages[1:])
    data = (place / "job-report-job.pdf").read_bytes()
    assert b"/Outlines" in data
    assert str(recording.parent).encode() not in data


def test_pdf_has_every_plot(tree):
    place, _ = tree
    _, pages = pdf_pages(place / "job-report-job.pdf")
    text = re.sub(r"\s+", "", "".join(pages))
    titles = [ElementTree.parse(svg).getroot().find("{*}title").text for svg in sorted((place / "plots").glob("*.svg"))]
    assert len(titles) > 5
    for title in titles:
        assert re.sub(r"\s+", "", title.split(":")[0])[:30] in text, title


def test_pdf_is_the_same_again(job):
    once = report("-o", "-", "-f", "pdf", job).stdout
    assert once == report("-o", "-", "-f", "pdf", job).stdout


def test_pdf_is_not_for_terminals(job):
    import pty

    ours, theirs = pty.openpty()
    try:
        done = report("-o", "-", "-f", "pdf", job, status=2, stdout=theirs)
        assert b"terminal" in done.stderr
    finally:
        os.close(ours)
        os.close(theirs)


# ---- the tree ----


def test_tree(tree):
    place, done = tree
    assert names(place) == ["configs", "job-report-job.pdf", "metrics", "plots", "report.html", "resource_report.md"]
    assert done.stdout.decode().splitlines() == [
        str(place / name)
        for name in ("report.html", "resource_report.md", "job-report-job.pdf", "plots", "metrics", "configs")
    ]
    for path in place.rglob("*"):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_pictures(tree):
    place, _ = tree
    pngs, svgs = (sorted(p.stem for p in (place / "plots").glob(f"*.{end}")) for end in ("png", "svg"))
    assert pngs == svgs
    for name in ("cpu", "memory", "timeline", "tool-cpu-time"):
        assert name in pngs
    for name in pngs:
        width, height = struct.unpack(">II", (place / "plots" / f"{name}.png").read_bytes()[16:24])
        assert width == 1920 and 200 < height < 8000
        root = ElementTree.parse(place / "plots" / f"{name}.svg").getroot()
        assert root.tag.endswith("svg")


def test_dark_is_another_picture(job):
    light, dark = job.parent / "light", job.parent / "dark"
    report("-f", "svg", "-o", light, job)
    report("-f", "svg", "--dark", "-o", dark, job)
    assert names(light) == names(dark) == ["plots"]
    assert names(light / "plots") == names(dark / "plots")
    assert (light / "plots/cpu.svg").read_bytes() != (dark / "plots/cpu.svg").read_bytes()


def test_numbers(tree, recording):
    place, _ = tree
    metrics = place / "metrics"
    assert json.loads((metrics / "summary.json").read_text()) == show(recording)
    with open(metrics / "run.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == show(recording)["ticks"]["taken"]
    cores = [float(row["tree.cores"]) for row in rows if row["tree.cores"]]
    assert max(cores) > 0
    with open(metrics / "statistics.csv", newline="") as file:
        levels = [row["level"] for row in csv.DictReader(file)]
    assert levels.count("run") == 1 and "process" in levels
    with open(metrics / "processes.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == levels.count("process")
    with open(metrics / "cpu.csv", newline="") as file:
        assert {row["instance"] for row in csv.DictReader(file)} >= {"cpu0"}


def test_configs(tree):
    (path,) = (tree[0] / "configs").iterdir()
    text = path.read_text()
    assert "[hardware]" in text and "[environment]" in text
    assert re.search(r"^limits\.cpus_source = \S", text, re.M)


def test_a_part_of_the_run(job):
    whole = json.loads(report("-o", "-", "-f", "json", job).stdout)
    (series,) = json.loads(run("show", "--series", "tree.cores", "--json", job).stdout)["recordings"]
    ticks = [time for time, _ in series["points"]]
    assert len(ticks) == whole["nodes"][0]["ticks"] > 2
    last = (ticks[-2] + ticks[-1]) / 2
    part = json.loads(report("-o", "-", "-f", "json", "--from", f"{ticks[1]:.9f}", "--to", f"{last:.9f}", job).stdout)
    assert 0 < part["nodes"][0]["ticks"] < len(ticks)
    assert part["nodes"][0]["end_s"] <= last
    # As `tacho plot` takes them: times in parts, and shares of the whole.
    half = json.loads(report("-o", "-", "-f", "json", "--from", "0m0.0s", "--to", "50%", job).stdout)
    assert 0 < half["nodes"][0]["ticks"] < len(ticks)
    assert half["nodes"][0]["end_s"] <= 0.51 * whole["summary"]["wall_s"]
    # What is found is found of the whole: figures and curves must be of the same time.
    assert part["findings"] == half["findings"] == whole["findings"] and part["advice"] == whole["advice"]
    done = run("report", "-o", "-", "-f", "json", "--from", "1h", job)
    assert done.returncode == 2 and b"nothing was recorded from there on" in done.stderr


# ---- runs that are not whole, and more than one ----


def test_several_nodes(job):
    nodes = job.parent / "nodes"
    nodes.mkdir()
    for name in ("one.tacho", "two.tacho"):
        shutil.copy(job, nodes / name)
    done = report(nodes)
    assert done.stdout.decode().strip() == str(nodes / "report.html")
    text = report("-f", "md", "-o", "-", nodes).stdout.decode()
    assert "### By node" in text
    report("-f", "pdf,svg", "-o", nodes / "out", nodes)
    _, pages = pdf_pages(nodes / "out/job-report-one.pdf")
    assert "By node" in "".join(pages)
    assert "cpu-by-node.svg" in names(nodes / "out/plots")


def test_shares_of_several_nodes_are_averaged(tmp_path):
    if not os.access("/proc/pressure/cpu", os.R_OK):
        pytest.skip("the kernel does not measure pressure (/proc/pressure)")
    crowd = f"for i in $(seq {2 * os.cpu_count() + 2}); do {BURNERS}/cpu 0.2 & done; wait"
    (tmp_path / "nodes").mkdir()
    record(["sh", "-c", crowd], "-i", "50ms", output=tmp_path / "nodes/one.tacho")
    shutil.copy(tmp_path / "nodes/one.tacho", tmp_path / "nodes/two.tacho")
    panels = json.loads(report("-o", "-", "-f", "json", tmp_path / "nodes").stdout)["panels"]
    alone, both = ([panel for panel in panels if panel["id"].startswith("pressure-") and panel["node"] == 0],
                   [panel for panel in panels if panel["id"] == "pressure"])
    assert both[0]["title"].endswith("average of 2 nodes")
    assert 0 < both[0]["lines"][0]["most"] <= 1
    assert both[0]["lines"][0]["most"] == pytest.approx(alone[0]["lines"][0]["most"], rel=1e-3)


def test_everything_beside_it(job):
    """Where --all goes by itself, told by what is in its way."""
    nodes = job.parent / "nodes"
    for directory, operand in ((job.parent / "job-report", job), (nodes / "report", nodes)):
        directory.mkdir(parents=True)
        if operand == nodes:
            shutil.copy(job, nodes / "one.tacho")
        (directory / "report.html").write_text("mine")
        assert str(directory / "report.html") in report("--all", operand, status=2).stderr.decode()
        assert names(directory) == ["report.html"]


def test_while_it_is_being_written(tmp_path):
    path = tmp_path / "a.tacho"
    tacho = start("run", "-q", "-i", "10ms", "--flush", "10ms", "-o", path, "--", "sleep", "1000")
    try:
        until(lambda: path.exists() and run("show", path).returncode == 0, "there is something to read")
        until(lambda: show(path)["ticks"]["taken"] > 3, "ticks")
        done = report("-f", "md", "-o", "-", path)
        assert b"so far" in done.stderr
        assert "unfinished" in done.stdout.decode()
    finally:
        tacho.send_signal(signal.SIGTERM)
        tacho.wait()


def test_damaged(job):
    data = bytearray(job.read_bytes())
    middle = len(data) // 2
    data[middle:middle + 64] = bytes(64)
    job.write_bytes(data)
    done = report("-f", "html,pdf", "-o", job.parent / "out", job)
    text = report("-f", "md", "-o", "-", job).stdout.decode()
    assert "## About these numbers" in text
    assert re.search(r"damaged|lost", text)
    assert done.stdout
    assert b"cannot be read: this report is of the rest" in done.stderr


def test_head_is_plain(tmp_path):
    """One thread is no threads, and processes too short to have an owner are no user."""
    recording = tmp_path / "many.tacho"
    record(["sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done; sleep 0.3"], "--interval", "100ms", output=recording)
    assert re.search(r"^\| User \| [^,|]+ \|$", report("-f", "md", "-o", "-", recording).stdout.decode(), re.M)
    record(["sleep", "0.3"], "--interval", "50ms", output=tmp_path / "one.tacho")
    assert "1 at once, 1 thread)" in report("-f", "md", "-o", "-", tmp_path / "one.tacho").stdout.decode()


def test_nothing_left(job):
    """That nothing stands out is no verdict on a run of which nothing can be read."""
    data = bytearray(job.read_bytes())
    data[1000:] = bytes(len(data) - 1000)
    job.write_bytes(data)
    text = report("-f", "md", "-o", "-", job).stdout.decode()
    assert "Nothing can be told of this run" in text and "Nothing stands out" not in text


@pytest.mark.parametrize("part", [0, 1, 100, 0.1, 0.3, 0.9])
def test_cut_off(job, part):
    """Whatever is left of a recording: a report, or words about why there is none; never a crash."""
    data = job.read_bytes()
    job.write_bytes(data[:int(len(data) * part) if isinstance(part, float) else part])
    done = run("report", "-f", "html,pdf,json", "-o", job.parent / "out", job)
    assert done.returncode in (0, 1, 2) and done.stderr
    if done.returncode == 0:
        assert b"so far" in done.stderr
    else:
        assert not (job.parent / "out").exists()


def test_odd_names(tmp_path):
    path = tmp_path / "odd.tacho"
    done = record([BURNERS / "weird", "0.3"], "-q", "-i", "20ms", output=path)
    assert done.returncode == 0
    report("-f", "svg,html,pdf", "-o", tmp_path / "out", path)
    for svg in (tmp_path / "out/plots").glob("*.svg"):
        ElementTree.parse(svg)
    (tmp_path / "out/report.html").read_text(encoding="utf-8")
    report("-f", "md", "-o", "-", path).stdout.decode("utf-8")
    pdf_pages(tmp_path / "out/job-report-odd.pdf")


def test_called_by_its_own_name(job):
    done = subprocess.run([PROGRAM, "-f", "md", "-o", "-", job], capture_output=True)
    assert done.returncode == 0 and done.stdout.startswith(b"# ")
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout
    assert version == run("--version").stdout.decode()


FILMS = Path(__file__).resolve().parents[1] / "films"


def test_devices_that_this_machine_lacks(tmp_path):
    """Of a film: the interconnect, power by domain and GPUs have their plots, and where only one curve of several is left the
    page says which."""
    texts = {}
    for film, pid in {"ib-ports": 100, "rapl-wrap": 100, "gpu-amd": 1000}.items():
        recording = tmp_path / f"{film}.tacho"
        assert run("debug", "play", FILMS / f"{film}.txt", recording, "1s", pid).returncode == 0
        report("--format", "md", recording)
        texts[film] = recording.with_suffix(".md").read_text()
    assert "### Interconnect of the node\n\nin: mean " in texts["ib-ports"]
    assert "### Interconnect packets of the node" in texts["ib-ports"]
    assert re.search(r"### Interconnect troubles of the node\n\nsymbol errors: mean .*/s, max .*/s at ", texts["ib-ports"])
    assert "### Power by domain\n\nhighest 100 W: package-0 at " in texts["rapl-wrap"]
    for title in ("GPUs: share of time busy", "GPU memory in use", "GPU power", "GPU temperature", "GPU clock", "GPU use by process",
                  "GPUs: sent and received over PCIe in a second"):
        assert f"### {title}\n" in texts["gpu-amd"]
