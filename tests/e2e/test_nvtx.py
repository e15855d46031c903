"""NVTX ranges and marks of a job become phases and marks: tacho run --nvtx."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exported import reader
from recorder import TACHO, names, record, run, show, told

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = "libtacho-nvtx.so"


def python(tmp_path, text, *options, **env):
    """Records a Python program that uses PyPI's nvtx; what it told."""
    folder = Path(reader("nvtx").__file__).parents[1]
    out = tmp_path / "a.tacho"
    done = record(
        [sys.executable, "-c", f"import sys; sys.path.append({str(folder)!r})\nimport nvtx, os, threading\n{text}"], "-q", *options,
        output=out, env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr.decode()
    return done, told(out)


def data(event):
    return set(event.get("data", "").split("\0")) - {""}


def test_ranges_are_phases_and_marks_are_marks(tmp_path):
    _, events = python(tmp_path, '''
nvtx.mark("before", payload=3)
with nvtx.annotate("outer", domain="demo", payload=-2.5):
    with nvtx.annotate("grün → 🙂"):
        pass
nvtx.push_range("pushed", domain="other")
nvtx.pop_range(domain="other")
''', "--nvtx")
    assert names(events) == [
        ("mark", "before"), ("phase.begin", "outer"), ("phase.begin", "grün → 🙂"), ("phase.end", "grün → 🙂"), ("phase.end", "outer"),
        ("phase.begin", "pushed"), ("phase.end", "pushed"),
    ]
    assert data(events[0]) == {"payload=3"} and data(events[1]) == {"domain=demo", "payload=-2.5"}
    assert data(events[2]) == set() and data(events[4]) == {"domain=demo"} and data(events[5]) == {"domain=other"}
    for e in events:
        assert 0 < int(e["sent_ns"]) <= e["time"]


def test_ranges_deeper_than_two_are_counted(tmp_path):
    """Two of each thread are told, in whatever domain; the rest is a number in the recording."""
    _, events = python(tmp_path, '''
def work():
    with nvtx.annotate("a"), nvtx.annotate("b", domain="x"), nvtx.annotate("c"), nvtx.annotate("d", domain="x"):
        pass
work()
t = threading.Thread(target=work)
t.start()
t.join()
''', "--nvtx")
    assert names(events[:-1]) == 2 * [("phase.begin", "a"), ("phase.begin", "b"), ("phase.end", "b"), ("phase.end", "a")]
    assert events[-1]["kind"] == "marks.within" and events[-1]["number"] == "4"
    table = run("export", "--to", "csv", "-d", "events", "-o", "-", tmp_path / "a.tacho").stdout.decode()
    assert "4 NVTX ranges were not recorded: they lie within two others" in table
    assert "4 NVTX ranges were not recorded: they lie within two others" in show(tmp_path / "a.tacho")["notes"]


def test_the_rest_is_told_when_all_are_deep(tmp_path):
    """Also when no message follows: the count is told at the end of the program."""
    _, events = python(tmp_path, "for i in range(1000): nvtx.push_range(str(i))", "--nvtx")
    assert names(events[:-1]) == [("phase.begin", "0"), ("phase.begin", "1")]
    assert events[-1]["kind"] == "marks.within" and events[-1]["number"] == "998"


def test_ranges_that_start_and_end_in_other_threads(tmp_path):
    _, events = python(tmp_path, '''
ranges = [nvtx.start_range(name, domain="d") for name in ("one", "two", "three")]
t = threading.Thread(target=lambda: [nvtx.end_range(r) for r in ranges])
t.start()
t.join()
nvtx.end_range(nvtx.start_range("again"))
nvtx.end_range(ranges[0])
''', "--nvtx")
    assert names(events[:-1]) == [
        ("phase.begin", "one"), ("phase.begin", "two"), ("phase.end", "one"), ("phase.end", "two"),
        ("phase.begin", "again"), ("phase.end", "again"),
    ]
    assert events[-1]["number"] == "1"


def test_a_child_tells_only_of_its_own(tmp_path):
    """It has the parent's ranges open, which the parent ends; and what the parent counted is not counted twice."""
    _, events = python(tmp_path, '''
nvtx.push_range("parent")
nvtx.push_range("second")
nvtx.push_range("third")
if os.fork() == 0:
    nvtx.push_range("child")
    for _ in range(4):
        nvtx.pop_range()
    os._exit(0)
os.wait()
for _ in range(3):
    nvtx.pop_range()
''', "--nvtx")
    assert names(events[:-1]) == [
        ("phase.begin", "parent"), ("phase.begin", "second"), ("phase.begin", "child"), ("phase.end", "child"),
        ("phase.end", "second"), ("phase.end", "parent"),
    ]
    assert events[-1]["number"] == "1" and events[2]["pid"] != events[0]["pid"]


def test_without_the_option_there_is_nothing(tmp_path):
    assert python(tmp_path, 'nvtx.mark("x"); print(os.environ.get("NVTX_INJECTION64_PATH"))')[1] == []


def test_another_tool_stays(tmp_path):
    done, events = python(
        tmp_path, 'nvtx.mark("x"); print(os.environ["NVTX_INJECTION64_PATH"])', "--nvtx", NVTX_INJECTION64_PATH="/nonexistent/tool.so"
    )
    assert done.stdout == b"/nonexistent/tool.so\n" and events == []
    assert b"NVTX_INJECTION64_PATH is /nonexistent/tool.so already" in done.stderr


def test_without_the_library(tmp_path):
    """A tacho that was copied alone: the job runs, and what is missing is said; so does the doctor."""
    alone = tmp_path / "bin" / "tacho"
    alone.parent.mkdir()
    shutil.copy(TACHO, alone)
    done = subprocess.run(
        [alone, "run", "-q", "--nvtx", "-o", tmp_path / "a.tacho", "--", "sh", "-c", "echo $NVTX_INJECTION64_PATH; exit 3"], capture_output=True
    )
    assert done.returncode == 3 and done.stdout == b"\n" and LIBRARY.encode() in done.stderr
    doctor = subprocess.run([alone, "doctor", "--json", "--no-cost"], capture_output=True)
    (found,) = (f for f in json.loads(doctor.stdout) if f["source"] == "nvtx")
    assert found["state"] == "absent" and f"{LIBRARY} is not installed" in found["reason"]


def test_the_library_of_an_installation(tmp_path):
    """bin/tacho finds what `ninja install` puts beside it."""
    build = Path(TACHO).parent
    done = subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", tmp_path / "root"], capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (installed,) = (tmp_path / "root").rglob("bin/tacho")
    done = subprocess.run(
        [installed, "run", "-q", "--nvtx", "-o", tmp_path / "a.tacho", "--", "sh", "-c", "echo $NVTX_INJECTION64_PATH"], capture_output=True
    )
    assert Path(done.stdout.decode().strip()).resolve() in [p.resolve() for p in (tmp_path / "root").rglob(LIBRARY)]


PROGRAM = r"""
#include <nvtx3/nvToolsExt.h>
#include <assert.h>
#include <string.h>
#include <stdlib.h>
int main(void)
{
	char most[5000];
	nvtxDomainHandle_t domain = nvtxDomainCreateW(L"Dom\u00e4ne");
	nvtxStringHandle_t narrow = nvtxDomainRegisterStringA(domain, "narrow"), wide = nvtxDomainRegisterStringW(domain, L"\u4e2d\U0001f600");
	nvtxEventAttributes_t e = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE, .messageType = NVTX_MESSAGE_TYPE_REGISTERED};

	assert(nvtxRangePushW(L"\u00fcber") == 0);
	e.message.registered = narrow;
	assert(nvtxDomainRangePushEx(domain, &e) == 0);
	assert(nvtxRangePushA("deep") == 1 && nvtxRangePop() == 1);
	assert(nvtxDomainRangePop(domain) == 0);
	assert(nvtxRangePop() == 0 && nvtxRangePop() < 0 && nvtxDomainRangePop(domain) < 0);
	e.message.registered = wide;
	nvtxDomainMarkEx(domain, &e);
	nvtxMarkW(L"lone \xd800");
	memset(most, 'x', sizeof(most) - 1);
	memcpy(most + 254, "\303\274", 2); /* a character on the border */
	most[sizeof(most) - 1] = 0;
	nvtxMarkA(most);
	nvtxMarkA(NULL);
	nvtxDomainDestroy(domain);
	assert(nvtxDomainCreateA("Dom\303\244ne") == domain);
	return 0;
}
"""


def with_headers(tmp_path, text):
    """A program in C that uses the headers of NVTX."""
    compiler = shutil.which("cc") or pytest.skip("needs a C compiler")
    include = Path(next(iter(reader("nvidia.nvtx").__path__))) / "include"
    (tmp_path / "p.c").write_text(text)
    subprocess.run([compiler, "-UNDEBUG", "-I", include, "-o", tmp_path / "p", tmp_path / "p.c", "-ldl", "-pthread"], check=True)
    return tmp_path / "p"


NUMBERS = r"""
#include <nvtx3/nvToolsExt.h>
#include <locale.h>
#include <math.h>
int main(void)
{
	static const double value[] = {0.5, -1234.25, 7, 1e-300, INFINITY};
	nvtxEventAttributes_t e = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE, .payloadType = NVTX_PAYLOAD_TYPE_DOUBLE};

	if (!setlocale(LC_ALL, ""))
		return 1;
	for (int i = 0; i < 5; i++) {
		e.payload.dValue = value[i];
		nvtxMarkEx(&e);
	}
	return 0;
}
"""


def test_numbers_have_a_point_in_every_locale(tmp_path):
    if not shutil.which("localedef") or subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"], capture_output=True).returncode:
        pytest.skip("needs localedef and the sources of locales, to make a German one")
    out = tmp_path / "a.tacho"
    env = {**os.environ, "LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}
    assert record([with_headers(tmp_path, NUMBERS)], "-q", "--nvtx", output=out, env=env).returncode == 0
    found = [float(e["data"].removeprefix("payload=")) for e in told(out)]
    assert found == [0.5, -1234.25, 7, 1e-300, float("inf")]


def test_a_program_in_c_with_the_headers_of_nvtx(tmp_path):
    """Wide and registered texts, levels, domains by name."""
    out = tmp_path / "a.tacho"
    assert record([with_headers(tmp_path, PROGRAM)], "-q", "--nvtx", output=out).returncode == 0
    events = told(out)
    assert names(events[:-1]) == [
        ("phase.begin", "über"), ("phase.begin", "narrow"), ("phase.end", "narrow"), ("phase.end", "über"),
        ("mark", "中😀"), ("mark", "lone �"), ("mark", "x" * 254), ("mark", "unnamed"),
    ]
    assert data(events[1]) == {"domain=Domäne"} and data(events[4]) == {"domain=Domäne"} and events[-1]["number"] == "1"


def test_a_wrong_library_is_no_trouble(tmp_path):
    """NVTX itself goes on without one; and ours does nothing in a program that is not recorded."""
    folder = Path(reader("nvtx").__file__).parents[1]
    library = Path(TACHO).parent / LIBRARY
    for path in ("/nonexistent", str(tmp_path), TACHO, str(library)):
        env = {k: v for k, v in os.environ.items() if k != "TACHO_SOCKET"}
        code = f"import sys; sys.path.append({str(folder)!r}); import nvtx; nvtx.mark('x'); nvtx.push_range('x'); print('ran')"
        done = subprocess.run([sys.executable, "-c", code], env={**env, "NVTX_INJECTION64_PATH": path}, capture_output=True)
        assert done.returncode == 0 and done.stdout == b"ran\n"
