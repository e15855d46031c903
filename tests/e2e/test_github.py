"""`tacho report --format github`: the summary of a step of GitHub Actions. Its charts are drawn by the real Mermaid in Chromium,
as GitHub draws them, and what was drawn is counted."""

import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from exported import ROOT, recordings  # noqa: F401
from recorder import PATIENCE_S, TACHO, run
from test_page import CHROMIUM_OPTIONS, playwright_api

MOST = 1 << 20
BLOCK = re.compile(r"^```mermaid\n(.*?)\n```$", re.S | re.M)
HOSTILE = ['a|b`c"d', "<img src=x onerror=alert(1)>", '%%{init: {"theme": "forest"}}%%', "two\nlines", "end", "section", "title x",
           "```", "gantt : 1, 2", "done, crit", "#quot;;", "x" * 300, "ünïcödé 日本 🚀", ":::"]


def report(*words, status=0, **environment):
    env = {key: value for key, value in os.environ.items() if key != "GITHUB_STEP_SUMMARY"}
    done = run("report", "--format", "github", *words, env={**env, **{key: str(value) for key, value in environment.items()}})
    if done.returncode == 127 and b"tacho-report" in done.stderr:
        pytest.skip("tacho-report was not built (cairo and pango)")
    assert done.returncode == status, done.stderr.decode(errors="replace")
    return done


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """A job with a hostile name whose phases have hostile names, and which uses CPU, memory and files."""
    folder = tmp_path_factory.mktemp("github")
    job = folder / "job|`<b>%%.sh"
    job.write_text("#!/bin/sh\nwhile [ $# -gt 0 ]; do "
                   f"{TACHO} phase begin \"$1\"; head -c 3000000 /dev/zero | gzip | cat >/dev/null; {TACHO} phase end \"$1\"; shift; done\n")
    job.chmod(0o755)
    done = run("run", "-q", "-i", "20ms", "-o", folder / "job.tacho", "--", job, *HOSTILE)
    assert done.returncode == 0, done.stderr
    return folder / "job.tacho"


@pytest.fixture(scope="module")
def mermaid():
    """Draws blocks; of each its kind, how many lines or bars it has and its texts, or the error."""
    script = ROOT / ".dev" / "mermaid.min.js"
    if not script.exists():
        pytest.skip("Mermaid is not there: `./dev test` fetches it with npm into .dev")
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("chromium is not installed")
    with playwright_api().sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS, timeout=1000 * PATIENCE_S)
        page = browser.new_page()
        page.set_content("<body></body>")
        page.add_script_tag(path=script)

        def draw(blocks):
            return page.evaluate("""async blocks => {
                mermaid.initialize({startOnLoad: false, securityLevel: "strict"});
                const drawn = [];
                for (const [i, block] of blocks.entries()) {
                    const {svg, diagramType} = await mermaid.render("chart" + i, block);
                    const place = document.createElement("div");
                    place.innerHTML = svg;
                    drawn.push({kind: diagramType, lines: [...place.querySelectorAll("[class^=line-plot] path")].map(p => p.getAttribute("stroke")),
                                bars: new Set([...place.querySelectorAll("rect.task")].map(r => r.id)).size, harm: place.querySelectorAll("img, script, b").length,
                                texts: [...place.querySelectorAll("text")].map(t => t.textContent)});
                }
                return drawn;
            }""", blocks)

        yield draw
        browser.close()


def made(recording, folder, *words):
    path = folder / "summary.md"
    report("-o", path, "--force", *words, recording)
    return path.read_text()


def test_phases_and_curves_are_drawn(spoken, mermaid, tmp_path):
    text = made(spoken, tmp_path)
    blocks = BLOCK.findall(text)
    phases, *curves = mermaid(blocks)
    assert phases["kind"] == "gantt" and phases["bars"] == len(HOSTILE) and not phases["harm"]
    names = [text.strip("\u200b ") for text in phases["texts"]]
    assert {"end", "section", "title x", "ünïcödé 日本 🚀"} <= set(names) and "<" not in "".join(names)
    assert len(curves) >= 3 and all(chart["kind"].startswith("xychart") for chart in curves)
    for chart, block in zip(curves, blocks[1:]):
        colors = re.search('plotColorPalette: "(.*)"', block).group(1).split(", ")
        assert chart["lines"] == colors and len(colors) == block.count("\n  line ["), block


@pytest.mark.parametrize("name", ["gpus", "hostile", "long", "energy", "one_tick", "no_tick", "nodes", "damaged"])
def test_every_recording_can_be_drawn(recordings, mermaid, tmp_path, name):
    blocks = BLOCK.findall(made(recordings[name], tmp_path))
    assert len(mermaid(blocks)) == len(blocks) and (blocks or name in ("one_tick", "no_tick"))


def test_it_says_what_the_markdown_report_says(spoken, tmp_path):
    """Head, findings, advice and tables are the same; only the plots differ."""
    text = made(spoken, tmp_path)
    done = run("report", "--format", "md", "-o", tmp_path / "full.md", spoken)
    assert done.returncode == 0, done.stderr
    full = (tmp_path / "full.md").read_text()
    for title in re.findall("^## (.*)$", full, re.M):
        if title not in ("Plots", "Statistics"):
            part = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |^---$)", full, re.S | re.M).group()
            assert part in text, title
    assert full.split("## Findings")[0] in text and "## By phase" in text
    for table in re.findall(r"^\|.*?(?=\n\n)", full.split("## Statistics")[1], re.S | re.M):
        assert table in text
    assert text.count("<details>") == text.count("</details>") > 0


def outside(text):
    return BLOCK.sub("", re.sub(r"^(```+)\w*\n.*?\n\1$", "", text, flags=re.S | re.M))


def test_hostile_names_do_not_break_out(spoken, tmp_path):
    text = made(spoken, tmp_path)
    for line in outside(text).splitlines():
        line = re.sub(r"</?(details|summary)>", "", line)
        assert not re.search(r"(?<!\\)<[a-zA-Z/!]", line), line
        assert "```" not in line, line
    for block in BLOCK.findall(text):
        assert "%%" not in block and "`" not in block


def test_the_summary_of_a_step_is_appended_to(spoken, tmp_path):
    summary = tmp_path / "step_summary"
    summary.write_text("of another step, without an end")
    done = report(spoken, GITHUB_STEP_SUMMARY=summary)
    assert done.stdout.decode() == f"{summary}\n"
    first = summary.read_text()
    assert first.startswith("of another step, without an end\n# Resource report\n")
    report(spoken, GITHUB_STEP_SUMMARY=summary)
    assert summary.read_text() == first + "\n" + first.removeprefix("of another step, without an end\n")
    assert not list(spoken.parent.glob("*.md"))


def test_without_github_it_is_a_file(spoken, tmp_path):
    recording = tmp_path / "job.tacho"
    recording.write_bytes(spoken.read_bytes())
    summary = tmp_path / "step_summary"
    assert report(recording).stdout.decode().endswith("job.github.md\n")
    text = (tmp_path / "job.github.md").read_text()
    assert (tmp_path / "job.github.md").stat().st_mode & 0o777 == 0o600
    report("-o", tmp_path / "mine.md", recording, GITHUB_STEP_SUMMARY=summary)
    assert (tmp_path / "mine.md").read_text() == text and not summary.exists()
    assert report("-o", "-", recording, GITHUB_STEP_SUMMARY=summary).stdout.decode() == text and not summary.exists()
    report(recording, GITHUB_STEP_SUMMARY="", status=2)  # it is there already
    report("-o", f"{tmp_path}/tree/", recording)
    assert (tmp_path / "tree" / "github_summary.md").read_text() == text


@pytest.mark.parametrize("room", [200_000, 6_000, 3_000])
def test_it_never_exceeds_what_github_takes(spoken, tmp_path, room):
    summary = tmp_path / "step_summary"
    summary.write_bytes(b"x" * (MOST - room))
    report(spoken, GITHUB_STEP_SUMMARY=summary)
    assert MOST - room < summary.stat().st_size < MOST
    text = summary.read_text()
    assert "Made by tacho" in text and ("left out" in text) == (room < 100_000)
    assert "```" not in outside(text) and text.count("<details>") == text.count("</details>")


def test_a_full_summary_is_left_as_it_is(spoken, tmp_path):
    summary = tmp_path / "step_summary"
    for size in MOST - 100, MOST, MOST + 100:
        summary.write_bytes(b"x" * size)
        done = report(spoken, GITHUB_STEP_SUMMARY=summary, status=1)
        assert b"1 MiB" in done.stderr and summary.stat().st_size == size


def test_a_long_command_is_cut(tmp_path):
    done = run("run", "-q", "-o", tmp_path / "long.tacho", "--", "true", *(["ü" * 1000] * 100))
    assert done.returncode == 0, done.stderr
    text = made(tmp_path / "long.tacho", tmp_path)
    assert len(text) < 20_000 and "…\n```" in text


def test_what_is_no_file_is_refused(spoken, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in fifo, tmp_path, tmp_path / "not" / "there", "/dev/null":
        assert b"cannot write" in report(spoken, GITHUB_STEP_SUMMARY=path, status=1).stderr


def test_a_limit_leaves_the_summary_as_it_was(spoken, tmp_path):
    summary = tmp_path / "step_summary"
    summary.write_text("before\n")
    env = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary)}
    done = run("report", "--format", "github", spoken, env=env,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))
    assert done.returncode == 1 and b"cannot write" in done.stderr
    assert summary.read_text() == "before\n"


def test_the_recipe_of_the_documentation(tmp_path):
    """The commands of the workflow, with a Makefile whose tests fail: the report is made all the same."""
    workflow = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.S).group(1)
    record, tell = re.findall(r"run: (.*)", workflow)
    (tmp_path / "Makefile").write_text("test:\n\tsleep 0.1; false\n")
    summary = tmp_path / "summary.md"
    env = {**os.environ, "PATH": f"{Path(TACHO).parent}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(summary)}
    first = subprocess.run(["sh", "-ec", record], cwd=tmp_path, env=env, capture_output=True)
    assert first.returncode == 2, first.stderr
    second = subprocess.run(["sh", "-ec", tell], cwd=tmp_path, env=env, capture_output=True)
    if second.returncode == 127 and b"tacho-report" in second.stderr:
        pytest.skip("tacho-report was not built (cairo and pango)")
    assert second.returncode == 0, second.stderr
    assert summary.read_text().startswith("# Resource report") and "exit 2" in summary.read_text()
    assert re.search("path: (.*)", workflow).group(1) in os.listdir(tmp_path)
