"""Recording from Python: by a recorder outside of the process, which costs nothing inside of it and ends with it."""

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from python_package import environment, script, tacho  # noqa: F401 (a fixture)
from recorder import TACHO, can_trace, names, show, state, told, until


def live(pid, out):
    """The recorder of that file runs."""
    return state(pid) not in (None, "Z")


# ---- the ways to begin ----


def test_a_context_manager(tacho, tmp_path):  # noqa: F811
    before = dict(os.environ)
    with tacho.record("a.tacho", interval=0.05, tags={"k": "v"}, message="hello") as run:
        assert run.why is None and run.active and run.path == str(tmp_path / "a.tacho")
        assert os.environ["TACHO_RECORDING"] == run.path
        assert run.summary.complete is False  # live
        # Not alone: a process that runs other tests beside this one is a child of it.
        assert os.getpid() in run.open().table("processes").to_dict()["pid"]
        with run.phase("load", files=3):
            with run.phase("part"):
                pass
        assert run.mark("loss", 0.25, step=7) and run.mark("saved", size="3.1G")
    assert dict(os.environ) == before and not run.active and run.why is None
    events = told("a.tacho")
    assert names(events) == [
        ("phase.begin", "load"), ("phase.begin", "part"), ("phase.end", "part"), ("phase.end", "load"), ("mark", ""), ("mark", "saved"),
    ]
    assert [e.get("data") for e in events] == ["files=3", None, None, None, "loss=0.25\0step=7", "size=3.1G"]
    assert all(int(e["sent_ns"]) > 0 and int(e["thread"]) == os.getpid() for e in events)
    summary = show(run.path)
    assert summary["complete"] and summary["message"] == "hello" and summary["interval_s"] == 0.05
    assert run.summary == summary and {"app.loss", "app.step", "app.size"} <= set(run.open().table("app").columns)


def test_a_decorator_start_stop_and_async(tacho):  # noqa: F811
    import asyncio

    @tacho.record("function.tacho")
    def function(x):
        """doc"""
        return x + 1

    assert function(1) == 2 and function.__doc__ == "doc" and show("function.tacho")["complete"]

    run = tacho.start("started.tacho")

    @tacho.phase("step")
    def step():
        return 5

    @run.phase("later")
    async def later():
        return 6

    @run.phase("items")
    def items():
        tacho.mark("within")
        yield 7

    assert step() == 5 and asyncio.run(later()) == 6 and list(items()) == [7] and tacho.mark("x")
    assert tacho.stop() is run
    assert names(told("started.tacho")) == [
        ("phase.begin", "step"), ("phase.end", "step"), ("phase.begin", "later"), ("phase.end", "later"),
        ("phase.begin", "items"), ("mark", "within"), ("phase.end", "items"), ("mark", "x"),
    ]

    async def main():
        ticks = []

        async def other():
            while True:
                ticks.append(1)
                await asyncio.sleep(0.001)

        task = asyncio.create_task(other())
        async with tacho.record("async.tacho") as run:
            assert run.why is None
            async with run.phase("p"):
                pass
        task.cancel()
        return ticks

    assert len(asyncio.run(main())) > 1  # the loop went on meanwhile
    assert names(told("async.tacho")) == [("phase.begin", "p"), ("phase.end", "p")]


def test_the_name_without_a_path(tmp_path):
    (tmp_path / "train.py").write_text("import tacho\nwith tacho.record() as run: print(run.path)\n")
    said = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    path = Path(said.stdout.strip())
    assert path.parent == tmp_path and path.name.startswith("train.py-") and show(path)["complete"]


# ---- what it costs inside ----

IDLE = """
import sys, os, tacho
if sys.argv[1] == "yes":
    run = tacho.record(sys.argv[2], interval=0.02).start()
print(os.environ.get("TACHO_RECORDING"), len(os.listdir("/proc/self/task")), flush=True)
sys.stdin.read()
"""


def test_nothing_runs_inside(tmp_path):
    """While the program waits, twenty samples of it are taken: it has not used one nanosecond of CPU time, nor has any of its
    threads, of which there is one, been switched."""
    out = tmp_path / "a.tacho"
    job = [sys.executable, "-c", IDLE, "yes", out]
    with subprocess.Popen(job, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()) as idle:
        assert idle.stdout.readline().split() == [str(out), "1"]
        stat = Path(f"/proc/{idle.pid}/schedstat")
        until(lambda: state(idle.pid) == "S", "it waits")
        seen = until(lambda: show(out)["ticks"]["taken"] > 3 and show(out)["ticks"]["taken"], "samples")
        before = stat.read_text(), Path(f"/proc/{idle.pid}/status").read_text().partition("voluntary_ctxt")[2]
        until(lambda: show(out)["ticks"]["taken"] > seen + 20, "twenty samples")
        after = stat.read_text(), Path(f"/proc/{idle.pid}/status").read_text().partition("voluntary_ctxt")[2]
        idle.stdin.close()
    assert before == after


def test_no_call_of_the_system_either(tmp_path):
    """Between two marks that the program writes, strace sees the same calls with and without a recorder."""
    trouble = can_trace()
    if trouble:
        pytest.skip(trouble)
    work = IDLE.replace("sys.stdin.read()", "os.getppid()\nx = sum(range(100000))\nos.getppid()")
    seen = {}
    for yes in ("yes", "no"):
        trace = tmp_path / f"{yes}.trace"
        done = subprocess.run(
            ["strace", "-o", trace, sys.executable, "-c", work, yes, tmp_path / f"{yes}.tacho"], env=environment(), capture_output=True
        )
        assert done.returncode == 0, done.stderr.decode()
        calls = [line.split("(")[0] for line in trace.read_text().splitlines()]
        first, last = (i for i, call in enumerate(calls) if call == "getppid")
        seen[yes] = [call for call in calls[first:last] if call not in ("brk", "mmap", "munmap")]
    assert seen["yes"] == seen["no"]


# ---- the end ----

LASTING = """
import os, sys, tacho
run = tacho.start(sys.argv[1], interval=0.05)
print(run._recorder.pid, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("end", ["killed", "returns", "_exit", "exec"])
def test_the_recorder_ends_with_the_interpreter(tmp_path, end):
    out = tmp_path / "a.tacho"
    last = {"_exit": "os._exit(3)", "exec": "os.execvp('true', ['true'])"}.get(end, "")
    job = [sys.executable, "-c", LASTING + last, out]
    with subprocess.Popen(job, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()) as program:
        recorder = int(program.stdout.readline())
        assert live(recorder, out)
        if end == "killed":
            program.kill()
        else:
            program.stdin.write("\n")
            program.stdin.flush()
        program.wait()
    until(lambda: not live(recorder, out), "the recorder ends")
    summary = show(out)
    assert summary["complete"] and summary["ended"] == "attach-end"


def test_a_recorder_that_was_killed(tacho):  # noqa: F811
    run = tacho.start("a.tacho")
    os.kill(run._recorder.pid, signal.SIGKILL)
    until(lambda: state(run._recorder.pid) in (None, "Z"), "it is gone")
    with pytest.warns(tacho.TachoWarning, match="killed"):
        assert not run.active
    assert "killed" in run.why and run.mark("x") is False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.stop()  # it was said
    assert run.summary.complete is False


# ---- processes and threads ----


def test_children_and_threads_are_heard(tmp_path):
    """fork, spawn, forkserver, threads; a recording that is sent to a worker; nothing of it ends the parent's recording."""
    (tmp_path / "job.py").write_text("""
import multiprocessing, os, pickle, sys, threading, tacho

def work(name, run=None):
    with tacho.phase(name):
        pass
    if run is not None:
        assert run.mark("by " + name, n=1)
        run.stop()

if __name__ == "__main__":
    with tacho.record("a.tacho", interval=0.05) as run:
        if os.fork() == 0:
            run.stop()
            tacho.mark("raw fork")
            os._exit(0)
        assert os.wait()[1] == 0
        try:
            os.wait()
        except ChildProcessError:
            print("the recorder is no child")
        for method in ("fork", "spawn", "forkserver"):
            child = multiprocessing.get_context(method).Process(target=work, args=(method, run))
            child.start()
            child.join()
            assert child.exitcode == 0
        thread = threading.Thread(target=work, args=("thread",))
        thread.start()
        thread.join()
        assert run.active
        with run.phase("still"):
            pass
""")
    done = subprocess.run([sys.executable, "job.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the recorder is no child\n", "")
    events = told(tmp_path / "a.tacho")
    heard = [e["name"] for e in events if e["kind"] != "phase.end"]
    assert heard == ["raw fork", "fork", "by fork", "spawn", "by spawn", "forkserver", "by forkserver", "thread", "still"]
    assert len({e["pid"] for e in events}) == 5 and show(tmp_path / "a.tacho")["complete"]


def test_signals_of_children_are_the_program_s_own(tmp_path):
    """A program that ignores or counts its children's ends."""
    for handler in ("signal.SIG_IGN", "lambda *_: None"):
        out = tmp_path / f"{len(handler)}.tacho"
        said = script(f"import signal, tacho; signal.signal(signal.SIGCHLD, {handler})\nwith tacho.record({str(out)!r}) as run: print(run.why)")
        assert said == "None\n" and show(out)["complete"]


# ---- what cannot be ----


def test_a_monitor_that_cannot_run(tacho, monkeypatch):  # noqa: F811
    Path("there.tacho").write_text("mine")
    with pytest.warns(tacho.TachoWarning, match="exists already") as caught:
        with tacho.record("there.tacho") as run:
            with run.phase("x"):
                run.mark("loss", 1)
            assert "exists already" in run.why and "exists already" in repr(run)
            assert not run.summary and f"{run.summary.memory.peak_bytes:.1f}" == "nan" and run.summary["cpu"]["total_s"] != 0
            assert list(run.summary) == [] and "exists already" in run._repr_html_()
    assert len(caught) == 1 and caught[0].filename == __file__
    assert Path("there.tacho").read_text() == "mine"
    with pytest.raises(tacho.TachoError, match="exists already"):
        tacho.record("there.tacho", strict=True).start()
    with tacho.record("there.tacho", force=True) as run:
        pass
    assert show("there.tacho")["complete"]


def test_without_an_executable(tacho, monkeypatch):  # noqa: F811
    monkeypatch.setenv("TACHO_BIN", "/nonexistent")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.warns(tacho.TachoWarning, match="TACHO_BIN"), tacho.record("a.tacho") as run:
        assert "no executable" in run.why
    with pytest.raises(FileNotFoundError, match="TACHO_BIN"):
        tacho.executable()


def test_warnings_as_errors_do_not_end_the_job(tmp_path):
    (tmp_path / "a.tacho").touch()
    done = script("import tacho\nwith tacho.record('a.tacho') as run: run.mark('x')\nprint('went on')", cwd=tmp_path, check=False,
                  env=environment(PYTHONWARNINGS="error"))
    assert (done.returncode, done.stdout) == (0, "went on\n") and "exists already" in done.stderr


def test_starting_twice_warns(tacho):  # noqa: F811
    first = tacho.start("a.tacho")
    with pytest.warns(tacho.TachoWarning, match="recorded already"):
        assert tacho.start("b.tacho") is first
    with pytest.warns(tacho.TachoWarning, match="started already"):
        first.start()
    with pytest.warns(tacho.TachoWarning, match="both recordings"), tacho.record("c.tacho") as second:
        assert second.active and tacho.mark("inner")
    assert tacho.mark("outer")
    assert tacho.stop() is first and not Path("b.tacho").exists()
    assert names(told("a.tacho")) == [("mark", "outer")] and names(told("c.tacho")) == [("mark", "inner")]
    with pytest.warns(tacho.TachoWarning, match="without"):
        assert tacho.stop() is None


def test_inside_of_tacho_run(tmp_path):
    """record(join=True) speaks to the recorder that is there; otherwise there are two recordings, and a warning."""
    text = """import sys, tacho
with tacho.record("inner.tacho", join=sys.argv[1] == "join") as run:
    print(run.why, run.active, run.path)
    with run.phase("p"):
        tacho.mark("m")
tacho.mark("after")"""
    for how in ("join", "both"):
        out = tmp_path / f"{how}.tacho"
        done = subprocess.run([TACHO, "run", "-q", "-o", out, "--", sys.executable, "-c", text, how], cwd=tmp_path, env=environment(),
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        heard = [("phase.begin", "p"), ("mark", "m"), ("phase.end", "p")]
        inner = tmp_path / "inner.tacho"
        if how == "join":
            assert done.stdout.split() == ["None", "True", str(out)] and done.stderr == "" and not inner.exists()
            assert names(told(out)) == [*heard, ("mark", "after")]
        else:
            assert "TachoWarning" in done.stderr and "both recordings" in done.stderr
            assert names(told(inner)) == heard and names(told(out)) == [("mark", "after")]


def test_texts_and_numbers_of_all_kinds(tacho):  # noqa: F811
    class Tensor:
        def __float__(self):
            return 2.5

    with tacho.record("a.tacho") as run:
        run.mark("line\nbreak \\ \udcff é", **{"a key": 1})
        run.mark("big", 2**70)
        run.mark("tensor", Tensor())
        run.mark("flag", True)
        run.mark("x" * 9000, text="y\nz")
        run.mark("nothing", None)
    events = told("a.tacho")
    assert [e.get("data") for e in events] == ["a_key=1", f"big={2**70}", "tensor=2.5", "flag=true", "text=y\nz", "nothing=None"]
    assert events[0]["name"] == "line\nbreak \\ ? é" and events[4]["name"].rstrip("…") in "x" * 4096 and len(events[4]["name"]) > 3500


def test_a_duration(tacho):  # noqa: F811
    """The recorder ends before it is asked to, as it was told: that is no trouble."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tacho.record("a.tacho", options=["--duration", "50ms"]) as run:
            recorder = run._recorder.pid
            until(lambda: state(recorder) in (None, "Z"), "the duration is over")
        assert run.why is None and run.summary.ended == "duration"


def test_a_path_is_a_path(tacho, tmp_path):  # noqa: F811
    """Braces and leading dashes mean nothing."""
    for name in ("{pid}.tacho", "-o.tacho", "a b'\".tacho", "\udcff.tacho"):
        with tacho.record(name) as run:
            assert run.why is None and run.path == str(tmp_path / name)
        assert os.path.exists(name) and run.summary.complete
