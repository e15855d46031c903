"""What people type who know other tools: aliases, short options, the same command twice, words that are no commands."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from recorder import TACHO, run, show, start, until

RECORDING = Path(__file__).resolve().parent.parent / "golden" / "findings" / "growth.tacho"
OTHER = RECORDING.with_name("session.tacho")
HAS_REPORT = (Path(TACHO).parent / "tacho-report").exists()
needs_report = pytest.mark.skipif(not HAS_REPORT, reason="tacho-report is not built (cairo and pango)")


@pytest.fixture
def job(tmp_path):
    return Path(shutil.copy(RECORDING, tmp_path / "job.tacho"))


@pytest.mark.parametrize("word, metric", [
    ("cpu", "tree.cores"), ("mem", "proc.mem.pss_now"), ("memory", "proc.mem.pss_now"), ("io", "tree.disk.write_rate"),
    ("net", "net.rx.rate"), ("disk", "disk.read.rate"),
])
def test_plots_by_their_usual_names(job, word, metric):
    done = run("plot", word, job, "--size", "100x12", env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, done.stderr
    assert metric in done.stdout.decode()


def test_a_plot_of_what_is_not_there_says_why(job):
    done = run("plot", "gpu", job)
    assert done.returncode == 2 and b"gpu.util" in done.stderr
    done = run("plot", "gpus", job)
    assert done.returncode == 2 and b"cpu, mem, io, disk, gpu, net and power" in done.stderr


def test_a_file_comes_before_a_word(job):
    shutil.copy(job, job.with_name("cpu"))
    done = run("plot", "cpu", cwd=job.parent)
    assert done.returncode == 0, done.stderr


@needs_report
def test_a_second_report_replaces_its_own_page(job):
    page = job.with_suffix(".html")
    first = run("report", job)
    again = run("report", job)
    assert first.stdout == again.stdout == f"{page}\n".encode() and again.returncode == 0, again.stderr
    # Of another run, made by hand, or a link: never.
    shutil.copy(OTHER, job)
    assert b"is there already" in run("report", job).stderr
    shutil.copy(RECORDING, job)
    whole = page.read_bytes()
    page.write_bytes(whole + b"my notes\n")
    assert run("report", job).returncode == 2 and page.read_bytes().endswith(b"my notes\n")
    page.rename(job.with_name("real.html"))
    job.with_name("real.html").write_bytes(whole)
    page.symlink_to("real.html")
    assert run("report", job).returncode == 2 and page.is_symlink()
    # Another format than the page is not its own.
    page.unlink()
    assert run("report", "--format", "md", job).returncode == 0
    assert run("report", "--format", "md", job).returncode == 2


@needs_report
def test_a_report_is_opened(job, tmp_path):
    opened = tmp_path / "opened"
    viewer = tmp_path / "xdg-open"
    viewer.write_text(f'#!/bin/sh\necho "$1" >{opened}\necho noise\n')
    viewer.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = run("report", "--open", job, env=env)
    assert done.returncode == 0 and done.stdout == f"{job.with_suffix('.html')}\n".encode(), done.stderr
    assert opened.read_text() == f"{job.with_suffix('.html')}\n"
    viewer.write_text("#!/bin/sh\nexit 3\n")
    assert run("report", "--open", job, env=env).returncode == 1
    assert run("report", "--open", "--format", "md", job, env=env).returncode == 2
    assert run("report", "--open", "-o", "-", job, env=env).returncode == 2


def test_attach_by_option_and_by_name(tmp_path):
    # A name of its own, so that no other program of the machine has it.
    name = f"habit{os.getpid() % 100000}"
    program = Path(shutil.copy(shutil.which("sleep"), tmp_path / name))
    jobs = [subprocess.Popen([program, "1000"]) for _ in range(2)]
    try:
        for one in jobs:
            until(lambda one=one: Path(f"/proc/{one.pid}/comm").read_text().strip() == name, "the job runs")
        by_pid = tmp_path / "pid.tacho"
        options = ["-q", "-i", "50ms", "--duration", "200ms"]
        done = run("attach", *options, "-o", by_pid, "-p", jobs[0].pid)
        assert done.returncode == 0, done.stderr
        assert show(by_pid)["processes"]["seen"] == 1
        by_name = tmp_path / "name.tacho"
        done = run("attach", *options, "-o", by_name, name)
        assert done.returncode == 0, done.stderr
        assert show(by_name)["processes"]["seen"] == 2
        assert list(show(by_name)["groups"]) == [name]
        # What it is of stands in the list.
        listed = run("ls", "-l", tmp_path).stdout.decode()
        assert f"{name} 1000" in listed and len(listed.splitlines()) == 3
    finally:
        for one in jobs:
            one.kill()
            one.wait()
    done = run("attach", name, cwd=tmp_path)
    assert done.returncode == 1 and f"no process is called '{name}'".encode() in done.stderr
    assert run("attach", "-p", "12x", cwd=tmp_path).returncode == 125


def test_a_command_several_times(tmp_path):
    done = run("run", "-r", 3, "-i", "20ms", "-o", tmp_path / "base.tacho", "--", "sh", "-c", "echo out; sleep 0.1")
    assert done.returncode == 0 and done.stdout == b"out\n" * 3
    words = done.stderr.decode()
    assert "3 runs" in words and words.count(" from ") == 3 and words.count("±" if "±" in words else "+-") == 3, words
    recordings = [tmp_path / f"base-{i}.tacho" for i in (1, 2, 3)]
    assert all(f"{one}" in words for one in recordings)
    assert [show(one)["exit"]["code"] for one in recordings] == [0, 0, 0]
    compared = run("compare", *recordings, "--", *recordings)
    assert compared.returncode == 0 and b"(3 runs)" in compared.stdout
    again = run("run", "-q", "-r", 2, "-o", tmp_path / "base.tacho", "--", "true")
    assert again.returncode == 125 and b"exists already" in again.stderr


def test_a_run_that_fails_is_the_last(tmp_path):
    counter = tmp_path / "counter"
    script = f"echo x >>{counter}; [ $(wc -l <{counter}) -lt 2 ]"
    done = run("run", "-r", 5, "-o", tmp_path / "f.tacho", "--", "sh", "-c", script)
    assert done.returncode == 1 and b"run 2 of 5 ended with 1" in done.stderr
    assert sorted(p.name for p in tmp_path.glob("*.tacho")) == ["f-1.tacho", "f-2.tacho"]


def test_a_signal_ends_all_runs(tmp_path):
    recording = tmp_path / "s-1.tacho"
    tacho = start("run", "-q", "-r", 5, "-o", tmp_path / "s.tacho", "--", "sleep", "1000")
    try:
        until(recording.exists, "the first run is recorded")
        until(lambda: run("show", "--json", recording).returncode == 0, "and its job runs")
        tacho.send_signal(signal.SIGTERM)
        assert tacho.wait() == -signal.SIGTERM
    finally:
        if tacho.poll() is None:
            tacho.kill()
            tacho.wait()
    assert show(recording)["exit"]["signal"] == signal.SIGTERM
    assert not (tmp_path / "s-2.tacho").exists()


def test_export_takes_the_option_of_the_others(job):
    done = run("export", "-f", "json", "-o", "-", "-d", "summary", job)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


@pytest.mark.parametrize("word, answer", [
    ("version", "did you mean `tacho --version`?"),
    ("stats", "did you mean `tacho show --stats`?"),
    ("info", "did you mean `tacho show`?"),
    ("record", "did you mean `tacho run`?"),
    ("diff", "did you mean `tacho compare`? To record the program diff: tacho run -- diff"),
    ("gzip", "to record that program: tacho run -- gzip"),
])
def test_words_of_other_tools(word, answer):
    done = run(word, "x")
    assert done.returncode == 2 and done.stdout == b""
    assert done.stderr.decode() == f"tacho: there is no command '{word}'; {answer}\n"


def test_an_export_that_was_meant(tmp_path):
    done = run("run", "-o", tmp_path / "out.json", "--", "true")
    assert done.returncode == 0, "the job runs all the same"
    words = done.stderr.decode()
    assert "was an export meant?" in words and f"tacho export -o {tmp_path}/out.json {tmp_path}/out.tacho" in words
    done = run("run", "-q", "-o", tmp_path / "q.json", "--", "true")
    assert done.returncode == 0 and done.stderr == b""
