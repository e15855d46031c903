"""The job's own log: --watch FILE --phase REGEX --mark REGEX. Lines of the job's log become phases, marks and numbers."""

import os
import resource

import pytest

from recorder import TACHO, dump, record, run, show, start, until

KINDS = ("phase.begin", "phase.end", "mark", "watch.skipped", "watch.given-up")


def told(recording):
    return [{"kind": r["kind"], **dict(r["pairs"])} for r in dump(recording) if r["type"] == "event" and r["kind"] in KINDS]


def names(recording):
    return [(e["kind"], e["name"]) for e in told(recording)]


EPOCHS = ["--phase", r"epoch (?<n>\d+)/10 started|(?<end>epoch \d+ done)", "--mark", "loss: (?P<loss>[0-9.]+)"]


def watched(tmp_path, job, *options, patterns=EPOCHS):
    """A recording of a shell script whose log is $LOG."""
    out, log = tmp_path / "a.tacho", tmp_path / "job.log"
    env = {**os.environ, "LOG": str(log)}
    done = record(["sh", "-c", job], "-q", "-i", "20ms", "--watch", log, *patterns, *options, output=out, env=env)
    assert done.returncode == 0, done.stderr.decode()
    return out


def test_lines_become_phases_marks_and_numbers(tmp_path):
    out = watched(
        tmp_path,
        "printf 'hello\\nepoch 1/10 started\\nloss: 0.5\\n' >$LOG; sleep 0.1; printf 'epoch 2/10 started\\nloss: 0.25\\n' >>$LOG; sleep 0.1;"
        "printf 'epoch 2 done\\nother\\nloss: 0.125' >>$LOG",  # the last line has no end
    )
    assert names(out) == [
        ("phase.begin", "epoch 1/10 started"), ("mark", "loss: 0.5"), ("phase.end", "epoch 1/10 started"), ("phase.begin", "epoch 2/10 started"),
        ("mark", "loss: 0.25"), ("phase.end", "epoch 2/10 started"), ("mark", "loss: 0.125"),
    ]
    assert [e.get("data") for e in told(out)] == ["n=1", "loss=0.5", None, "n=2", "loss=0.25", None, "loss=0.125"]
    series = run("show", "--series", "app.loss", out).stdout.decode()
    assert "0.5" in series and "0.25" in series and "0.125" in series


def test_the_name_of_a_phase_is_a_group(tmp_path):
    out = watched(tmp_path, "echo '== stage: load data ==' >$LOG", patterns=["--phase", "stage: (?<name>[a-z]+)"])
    assert names(out) == [("phase.begin", "load")]


def test_what_was_there_before_is_not_read(tmp_path):
    (tmp_path / "job.log").write_text("loss: 9\nloss: 8\n")
    assert names(watched(tmp_path, "echo 'loss: 1' >>$LOG")) == [("mark", "loss: 1")]


def live(tmp_path, parts, *patterns):
    """Writes to a log while it is watched: each part when the one before has been seen."""
    out, log, go = tmp_path / "a.tacho", tmp_path / "job.log", tmp_path / "go"
    wait = ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.02; done"]
    with start("run", "-q", "-i", "20ms", "--flush", "20ms", "-o", out, "--watch", log, *(patterns or EPOCHS), "--", *wait) as tacho:
        until(lambda: out.exists() and run("show", out).returncode == 0, "it is recorded")
        for nr, part in enumerate(parts):
            part(log)
            until(lambda nr=nr: len(told(out)) > nr, f"part {nr} is seen")
        go.touch()
        assert tacho.wait() == 0
    return [e["name"] for e in told(out)]


def test_a_log_that_does_not_exist_yet_is_rotated_and_replaced(tmp_path):
    def begin(log):
        log.write_text("loss: 1\n")

    def rotate(log):
        with log.open("a") as f:
            log.rename(tmp_path / "job.log.1")
            f.write("loss: 2\n")  # the writer has the old one still open
        log.write_text("")

    def after(log):
        log.write_text("loss: 3\n")

    def replace(log):
        new = tmp_path / "new"
        new.write_text("loss: 5\n")
        new.rename(log)

    assert live(tmp_path, [begin, rotate, after, replace]) == [f"loss: {i}" for i in (1, 2, 3, 5)]


def test_a_log_that_is_cut_off_is_read_from_its_beginning(tmp_path):
    parts = [lambda log: log.write_text("x" * 100 + "\nloss: 1\n"), lambda log: log.write_text("loss: 2\n")]
    assert live(tmp_path, parts) == ["loss: 1", "loss: 2"]


def in_place(text):
    """Writes over what is there, without cutting it off."""

    def write(log):
        with log.open("r+" if log.exists() else "w") as f:
            f.write(text)

    return write


def test_a_status_file_that_is_rewritten_in_place_is_read_again(tmp_path):
    """Its inode and its size stay the same. A last line without an end is one when the file is rewritten."""
    out, log, beat, go = tmp_path / "a.tacho", tmp_path / "job.log", tmp_path / "beat.log", tmp_path / "go"
    wait = ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.02; done"]
    watch = ["--watch", log, "--watch", beat, "--mark", "loss: .|beat .*"]

    def seen(what):
        return [e["name"] for e in told(out) if what in e["name"]]

    in_place("loss: 0\n")(log)  # it was there before
    with start("run", "-q", "-i", "20ms", "--flush", "20ms", "-o", out, *watch, "--", *wait) as tacho:
        until(lambda: out.exists() and run("show", out).returncode == 0, "it is recorded")
        for text in ["loss: 1\n", "loss: 2\n", "loss: 3 ", "loss: 4 \nabc\n", "loss: 5 \nabc\n"]:
            in_place(text)(log)
            for i in range(2):  # all files were looked at between two lines of another
                with beat.open("a") as f:
                    f.write(f"beat {text[6]} {i}\n")
                until(lambda line=f"beat {text[6]} {i}": line in seen("beat"), "it is looked at")
        go.touch()
        assert tacho.wait() == 0
    assert seen("loss") == [f"loss: {i}" for i in range(1, 6)]


def test_room_that_is_reserved_is_no_text(tmp_path):
    """A file that is filled in place: its lines are not told again and again."""

    def reserve(log):
        log.write_bytes(b"loss: 1\n" + bytes(1000))

    def fill(log):
        with log.open("r+b") as f:
            f.seek(8)
            f.write(b"loss: 2\n")
            f.seek(0, os.SEEK_END)
            f.write(b"\nloss: 3\n")

    assert live(tmp_path, [reserve, fill]) == ["loss: 1", "loss: 3"]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("what", ["run log", "recording"])
def test_our_own_files_are_not_watched(tmp_path, what, before):
    """A run log that is watched would grow without end. The job is not started, and what was there stays as it was."""
    out, log, link = tmp_path / "a.tacho", tmp_path / "log.jsonl", tmp_path / "link"
    ours = log if what == "run log" else out
    if before:
        ours.write_text("{}\n")
    link.symlink_to(ours)
    words = ["-q", "--force", "-o", out, "--run-log", log, "--watch", tmp_path / "other.log", "--mark", "."]
    done = run("run", *words, "--watch", link, "--", "touch", tmp_path / "ran")
    assert done.returncode == 125 and f"--watch {link} is the {what} that tacho writes itself" in done.stderr.decode()
    assert not (tmp_path / "ran").exists()
    assert {p.name: p.read_text() for p in (out, log) if p.exists()} == ({ours.name: "{}\n"} if before else {})


def test_our_own_file_that_gets_the_name_later_is_not_read(tmp_path):
    out, log, name = tmp_path / "a.tacho", tmp_path / "log.jsonl", tmp_path / "job.log"
    job = f"ln -s {log} {name}; {TACHO} mark one; sleep 0.3; {TACHO} mark two"
    assert record(["sh", "-c", job], "-q", "-i", "20ms", "--run-log", log, "--watch", name, "--mark", ".*", output=out).returncode == 0
    assert names(out) == [("mark", "one"), ("mark", "two")]
    assert f"the log {name} could not be read: tacho writes it itself" in show(out)["notes"]


def test_a_line_waits_for_its_end(tmp_path):
    def in_pieces(log):
        with log.open("a") as f:
            for piece in ("lo", "ss: 0", ".12", "5\n"):
                f.write(piece)
                f.flush()

    assert live(tmp_path, [in_pieces]) == ["loss: 0.125"]


def test_hostile_lines(tmp_path):
    log = tmp_path / "bytes"
    log.write_bytes(b"loss: 1\0\xff\n" + b"a" * 100_000 + b" loss: 2\n" + b"\0" * 5000 + b"\nloss: 3\xfe\r50%\rloss: 4\r\n\x1b[31mloss: 5\n")
    out = watched(tmp_path, f"cat {log} >$LOG", patterns=["--mark", ".*loss: .*"])
    seen = [e["name"] for e in told(out)]
    assert len(seen) == 4  # of the longest line only its beginning is looked at
    assert run("check", out).returncode == 0 and b"\x1b[31m" not in run("log", out).stdout


def test_more_logs_than_open_files_are_allowed(tmp_path):
    """Those that can be opened are read, and the reason for the others is said."""
    out, logs = tmp_path / "a.tacho", [tmp_path / f"{i}.log" for i in range(60)]
    words = [word for log in logs for word in ("--watch", log)]
    job = ["sh", "-c", f"for i in $(seq 0 59); do echo loss: 1 >{tmp_path}/$i.log; done"]
    done = record(job, "-q", *words, *EPOCHS, output=out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48)))
    refused = [dict(r["pairs"]) for r in dump(out) if r["type"] == "event" and r["kind"] == "watch.absent"]
    assert done.returncode == 0 and refused and {one["reason"] for one in refused} == {"Too many open files"}
    assert 0 < len(told(out)) == len(logs) - len(refused)


@pytest.mark.parametrize("what", ["fifo", "directory", "device"])
def test_what_is_no_file_is_left_alone(tmp_path, what):
    log = tmp_path / "job.log"
    if what == "fifo":
        os.mkfifo(log)
    elif what == "directory":
        log.mkdir()
    else:
        log.symlink_to("/dev/zero")
    out = tmp_path / "a.tacho"
    assert record(["sleep", "0.1"], "-q", "--watch", log, *EPOCHS, output=out).returncode == 0
    assert told(out) == [] and f"the log {log} could not be read: it is not a regular file" in show(out)["notes"]


def test_a_wrong_name_and_a_wrong_expression_are_said(tmp_path):
    out, log = tmp_path / "a.tacho", tmp_path / "job.log"
    words = ["--watch", log, "--watch", tmp_path / "typo.log", "--phase", "epoche [0-9]+", "--mark", "loss: (?<loss>[0-9.]+)"]
    done = record(["sh", "-c", f"echo 'loss: 1' >{log}"], *words, output=out)
    notes = [f"the log {tmp_path}/typo.log did not appear", f"no line of {log} matched --phase 'epoche [0-9]+'"]
    assert [note for note in show(out)["notes"] if note.startswith(("the log", "no line"))] == notes
    said = " ".join(done.stderr.decode().split())
    assert done.returncode == 0 and all(f"note {note}" in said for note in notes)
    # Two files: one matching line in any of them is enough.
    both = tmp_path / "both.tacho"
    job = f"echo 'loss: 1' >>{log}; echo epoche 1 >{tmp_path}/typo.log"
    assert record(["sh", "-c", job], "-q", *words, output=both).returncode == 0
    assert not [note for note in show(both)["notes"] if note.startswith(("the log", "no line"))]


def test_several_files_have_phases_of_their_own(tmp_path):
    out, logs = tmp_path / "a.tacho", [tmp_path / "1.log", tmp_path / "2.log"]
    job = f"echo 'epoch 1/10 started' >{logs[0]}; sleep 0.1; echo 'epoch 2/10 started' >{logs[1]}"
    assert record(["sh", "-c", job], "-q", "-i", "20ms", "--watch", logs[0], "--watch", logs[1], *EPOCHS, output=out).returncode == 0
    assert names(out) == [("phase.begin", "epoch 1/10 started"), ("phase.begin", "epoch 2/10 started")]


def test_attach_watches_as_well(tmp_path):
    out, log, go = tmp_path / "a.tacho", tmp_path / "job.log", tmp_path / "go"
    with start("run", "-q", "-o", tmp_path / "job.tacho", "--", "sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done") as job:
        with start("attach", "-q", "-i", "20ms", "--flush", "20ms", "-o", out, "--watch", log, *EPOCHS, str(job.pid)) as tacho:
            until(lambda: out.exists() and run("show", out).returncode == 0, "it is recorded")
            log.write_text("loss: 7\n")
            until(lambda: names(out) == [("mark", "loss: 7")], "the line is seen")
            go.touch()
            assert tacho.wait() == 0 and job.wait() == 0


@pytest.mark.parametrize(
    "words, says",
    [
        (["--watch", "x.log"], b"--watch needs"),
        (["--phase", "x"], b"needs --watch"),
        (["--watch", "x.log", "--mark", "(x"], b"cannot be used"),
        (["--watch", "x.log", "--mark", "(?<a b>x)"], b"(?<NAME>"),
        (["--watch", "x.log", "--mark", "(?=x)"], b"(?<NAME>"),
        (["--watch", "x.log", "--mark", r"(a)\1"], b"may not refer"),
        (["--watch", "x.log", "--mark", ""], b"empty"),
        (["--watch", "x.log", "--mark", "((a{1,255}){1,255}){1,255}"], b"too large"),
        (["--watch", "x.log", "--mark", "a{255}*{255}"], b"too large"),
        (["--watch", "x.log", "--mark", "(?:(?:[a-z)]{9}){9}|b){99}"], b"too large"),
        (["--watch", "x.log", "--mark", "(a{0,50}){0,6}$"], b"too large"),
        (["--watch", "x.log", "--mark", "x" * 5000], b"...' cannot be used: it is longer"),
        (["--watch", "x.log", "--mark", "(" + "x" * 1000], b"...' cannot be used: Unmatched"),
    ],
)
def test_wrong_expressions(tmp_path, words, says):
    done = run("run", "-o", tmp_path / "a.tacho", *words, "--", "touch", tmp_path / "ran")
    assert done.returncode == 125 and says in done.stderr and not (tmp_path / "ran").exists()


def test_what_is_read_at_the_end_is_no_time_of_the_job(tmp_path):
    """The log's rest is read after the job's end: nothing is later than this, and it is the time of the last sample."""
    job = "sleep 0.2; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo \"loss: $i and more of this line, which is longer\"; done >$LOG"
    out = watched(tmp_path, job, "-i", "10s")
    records = dump(out)
    end = int(dict(next(r for r in records if r["type"] == "summary")["pairs"])["end_ns"])
    marks = [r for r in records if r["type"] == "event" and r["kind"] == "mark"]
    assert [dict(r["pairs"])["name"] for r in marks] == [f"loss: {i}" for i in range(1, 2001)]
    assert [r["time"] for r in records if r["type"] == "tick"][-1] == end
    assert max(r["time"] for r in records if "time" in r) == end


def test_an_expression_that_takes_too_long_is_given_up(tmp_path):
    """The other one goes on, and the recording says so. What a line costs is CPU time, so that this does not depend on other work of the machine."""
    slow = "(" + "|".join("a" * n for n in range(1, 44)) + ")*$"
    job = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); head -c 1000 /dev/zero | tr '\\0' a; echo b; done >$LOG; echo 'loss: 1' >>$LOG"
    out = watched(tmp_path, job, patterns=["--mark", slow, "--mark", "loss: .*"])
    seen = told(out)
    assert [e["expression"] for e in seen if e["kind"] == "watch.given-up"] == [slow]
    assert [e["name"] for e in seen if e["kind"] == "mark"][-1:] == ["loss: 1"]
    assert "was not applied any longer" in run("log", out).stdout.decode()


def test_of_a_long_line_its_beginning_is_matched(tmp_path):
    """One match cannot be interrupted, so the line is bounded: 1024 bytes."""
    out = watched(tmp_path, "printf '%01020d loss: 1\\n%01010d loss: 2\\n' 0 0 >$LOG", patterns=["--mark", "loss: [0-9]"])
    assert names(out) == [("mark", "loss: 2")]


def test_marks_that_come_too_fast_are_dropped_and_counted(tmp_path):
    """As those of the socket: 2 MiB a second. A line of the log is a mark, dropped or skipped."""
    (tmp_path / "lines").write_text(("a" * 999 + "\n") * 8000)
    out = watched(tmp_path, f"sleep 0.2; cat {tmp_path}/lines >$LOG", "-i", "10s", patterns=["--mark", "a+"])
    records = [r for r in dump(out) if r["type"] == "event"]
    number = {r["kind"]: int(dict(r["pairs"])["number"]) for r in records if r["kind"] in ("marks.dropped", "watch.skipped")}
    marks = sum(r["kind"] == "mark" for r in records)
    assert marks > 0 and number["marks.dropped"] > 0
    assert marks + number["marks.dropped"] + number.get("watch.skipped", 0) // 1000 == 8000


def test_lines_within_usual_limits_repeat(tmp_path):
    out = watched(tmp_path, "echo 'loss: 2026-11-18 1.5' >$LOG", patterns=["--mark", r"loss: \d{4}-(\d{2}-){0,3}(?<n>[0-9 .]{1,40})"])
    assert [e["data"] for e in told(out)] == ["n=18 1.5"]
