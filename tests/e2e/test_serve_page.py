"""The page of tacho serve in a real Chromium: what comes while one looks at it.

Most tests have a server that does what they say when they say it (page_server.py). The others, at the end, look at tacho serve.
"""

import csv
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import page_server
from page_server import NS, Run, Server, known
from recorder import PATIENCE_S, TACHO, lasting, record, run, start, until
from test_page import CHROMIUM_OPTIONS, DATA, PANELS, playwright_api, report

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def browser():
    api = playwright_api()
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("chromium is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*CHROMIUM_OPTIONS, "--js-flags=--expose-gc"], timeout=1000 * PATIENCE_S)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The page that tacho writes, with the data of the stand-in in it, allowed to ask its own server."""
    folder = tmp_path_factory.mktemp("template")
    assert record(["sleep", "0.3"], "--interval", "50ms", output=folder / "job.tacho").returncode == 0
    written = report(folder / "job.tacho", folder / "job.html")
    if 'class="still"' in written:
        pytest.skip("the page was built without npm")
    written = PANELS.sub("", written).replace("img-src data:;", "img-src data:; connect-src 'self';")

    def page(data):
        text = json.dumps(data).replace("<", "\\u003c")
        made = DATA.sub(lambda match: match[1] + text + match[3], written)
        findings = "".join(f'<li class="finding note" data-key="finding-{i}"><h3><span>Finding {i} at {data["nodes"][0]["end_s"]} s</span></h3><p>Text</p>'
                           f"<details><summary>Evidence</summary><dl><dt>a</dt><dd>{i}</dd></dl></details></li>" for i in range(data.get("findings_shown", 0)))
        sections = "".join(section(name, [p for p in data["panels"] if p["section"] == name]) for name in ("cpu", "memory"))
        made = made.replace('<section id="statistics">', sections + '<section id="statistics">')
        return made.replace("<h2>Findings</h2>", f'<h2>Findings</h2><ol class="findings shown">{findings}</ol>')

    return page


def section(name, panels):
    """As src/document/html.c writes it."""
    figures = "".join(f'<figure class="panel" id="panel-{p["id"]}">\n<figcaption><h3>{html.escape(p["title"])}</h3></figcaption>\n<div class="body">'
                      '<div class="plot"></div><div class="legend"></div></div>\n</figure>\n' for p in panels)
    return f'<section class="panels" id="section-{name}">\n<h2>{name}</h2>\n{figures}</section>\n'


class Look:
    """A page in a context of its own; what it says is kept, and what it asks for."""

    def __init__(self, browser, url, **options):
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        self.context.set_default_timeout(1000 * PATIENCE_S)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(f"{message.text} {message.location}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)
        self.until("window.tacho !== undefined")

    def until(self, condition, arg=None):
        """Asked from here: Playwright's own waiting needs eval(), which the page forbids."""
        return until(lambda: self.page.evaluate(condition, arg), condition)

    def eval(self, script, arg=None):
        return self.page.evaluate(script, arg)

    def close(self, unreachable=False):
        self.context.close()
        said = [text for text in self.said if not (unreachable and "Failed to load resource" in text)]
        assert not said


@pytest.fixture
def server(template):
    made = Server(template)
    yield made
    made.kill()


@pytest.fixture
def look(browser, server):
    opened = []

    def open_page(**options):
        opened.append(Look(browser, server.url, **options))
        until(lambda: server.streams, "a stream")
        opened[-1].eval("() => document.getElementById('panel-cpu').scrollIntoView({block: 'center'})")
        opened[-1].until("tacho.panels[0].u && tacho.feed.status.state === 'recording'")
        return opened[-1]

    yield open_page
    for one in opened:
        one.context.close()


# All points that the page has of a line.
POINTS = """([id, k]) => { const p = tacho.data.panels.find((p) => p.id === id); const {times, mean} = tacho.data.line(p, k); return [times, mean]; }"""
VIEW = "() => [tacho.view.from, tacho.view.to, tacho.view.end]"


def points(seen, panel="cpu", k=0):
    return seen.eval(POINTS, [panel, k])


def has(seen, ticks):
    """Waits until all ticks up to that one are drawn."""
    seen.until("(n) => Math.round(tacho.view.end) === n && (!tacho.panels[0].near || tacho.panels[0].u.data[0].length === n)", ticks)


def is_exact(seen, ticks):
    """Every point of every line, each once."""
    for panel, names in page_server.LINES.items():
        for k in range(len(names)):
            times, values = points(seen, panel, k)
            assert times == pytest.approx(list(range(1, ticks + 1))), (panel, k)
            assert values == pytest.approx(known(panel, k, ticks), abs=1e-3), (panel, k)


# ---- the data alone ----

NODE = """
import {open} from "./web/src/data.js";
const {text, news, ask} = JSON.parse(await new Promise((done) => {
	let all = "";
	process.stdin.on("data", (part) => { all += part; }).on("end", () => done(all));
}));
const data = open(text), told = {};
const look = () => Object.fromEntries(data.panels.map((p) => [p.id, p.lines.map((_, i) => ({...data.line(p, i)}))]));
if (ask === "drawn first")
	look();
for (const {data: given, after} of news)
	data.append(given, after ?? -Infinity);
console.log(JSON.stringify({lines: look(), size: data.size, end: data.end, phases: data.phases, more: data.hasMore(0)}));
"""


def in_node(text, news, ask=""):
    node = shutil.which("node") or shutil.which("nodejs")
    if not node:
        pytest.skip("node is not installed")
    done = subprocess.run([node, "--input-type=module", "-e", NODE], input=json.dumps({"text": text, "news": news, "ask": ask}),
                          capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("ask", ["", "drawn first"])
def test_data_is_added_to_lines(ask):
    run = Run(10)
    text, news = json.dumps(run.data()), []
    for ticks in (11, 12, 40):
        before, run.ticks = run.ticks, ticks
        news.append({"data": run.news(before)})
    del news[1]["data"]["panels"][0]  # of a tick in which nothing of it is known
    got = in_node(text, news, ask)
    times = got["lines"]["cpu"][0]["times"]
    assert times == list(range(1, 41)) and got["end"] == 40 and got["more"]
    assert got["lines"]["memory"][1]["mean"] == pytest.approx(known("memory", 1, 40), abs=1e-3)
    cpu = got["lines"]["cpu"][0]["mean"]
    assert cpu[11] is None and cpu[:11] + cpu[12:] == pytest.approx(known("cpu", 0, 11) + known("cpu", 0, 40)[12:], abs=1e-3)


def test_data_is_added_once():
    run = Run(10)
    text = json.dumps(run.data())
    run.ticks = 15
    news = {"data": run.news(5), "after": 10}
    got = in_node(text, [news, news])
    assert got["lines"]["cpu"][0]["times"] == list(range(1, 16))
    assert got["lines"]["cpu"][0]["mean"] == pytest.approx(known("cpu", 0, 15), abs=1e-3)


def test_what_is_added_is_bounded_and_keeps_its_range():
    run = Run(10)
    text, news = json.dumps(run.data()), []
    for _ in range(40):
        before, run.ticks = run.ticks, run.ticks + 500
        news.append({"data": run.news(before)})
    news[-1]["data"]["phases"] = [{"time_s": 5, "end_s": None, "node": 0, "kind": "phase", "label": "a"}]
    news.append({"data": {**run.news(run.ticks), "phases": [{"time_s": 5, "end_s": 9, "node": 0, "kind": "phase", "label": "a"}]}})
    for ask in ("", "drawn first"):
        got = in_node(text, news, ask)
        line = got["lines"]["cpu"][0]
        assert len(line["times"]) == len(line["mean"]) == len(line["low"]) == len(line["high"]) <= 6010
        assert line["times"] == sorted(line["times"]) and got["end"] == 20010
        assert max(line["high"]) == pytest.approx(max(known("cpu", 0, 20010)), abs=1e-3)
        assert min(line["low"]) == pytest.approx(min(known("cpu", 0, 20010)), abs=1e-3)
        assert line["mean"][:10] == pytest.approx(known("cpu", 0, 10), abs=1e-3)
        assert [phase["end_s"] for phase in got["phases"]] == [9]


# ---- in the browser ----


def test_curves_move_and_are_exact(server, look):
    seen = look()
    assert points(seen)[0][-1] == 20
    for ticks in (21, 22, 30):
        server.tick(ticks - server.run.ticks)
        has(seen, ticks)
    is_exact(seen, 30)
    assert seen.page.locator(".status").inner_text() == "recording · 30s"
    assert seen.eval(VIEW) == [0, 30, 30]
    assert all(url.startswith(server.url) for url in seen.asked)
    seen.close()


def test_zoom_holds_still_and_the_edge_follows(server, look):
    seen = look()
    seen.eval("() => tacho.view.show(5, 12)")
    button = seen.page.get_by_role("button", name="Live")
    assert button.get_attribute("aria-pressed") == "false"
    server.tick(5)
    has(seen, 25)
    assert seen.eval(VIEW) == [5, 12, 25]
    assert seen.eval("() => [tacho.panels[0].u.scales.x.min, tacho.panels[0].u.scales.x.max]") == [5, 12]
    button.click()
    assert seen.eval(VIEW) == [18, 25, 25] and button.get_attribute("aria-pressed") == "true"
    server.tick(2)
    has(seen, 27)
    assert seen.eval(VIEW) == [20, 27, 27]
    seen.page.keyboard.press("l")
    server.tick(1)
    has(seen, 28)
    assert seen.eval(VIEW) == [20, 27, 28] and button.get_attribute("aria-pressed") == "false"
    # All of it, stopped; and let go.
    seen.page.get_by_role("button", name="Show all").click()
    assert seen.eval(VIEW) == [0, 28, 28]
    seen.page.keyboard.press("l")
    server.tick(1)
    has(seen, 29)
    assert seen.eval(VIEW) == [0, 28, 29]
    seen.page.keyboard.press("0")
    server.tick(1)
    has(seen, 30)
    assert seen.eval(VIEW) == [0, 30, 30]
    seen.close()


def test_nothing_moves_while_the_mouse_drags(server, look):
    seen = look()
    box = seen.page.locator("#panel-cpu .u-over").bounding_box()
    y, at = box["y"] + 40, [box["x"] + box["width"] * part for part in (0.25, 0.4, 0.5)]
    seen.page.mouse.move(at[0], y)
    seen.page.mouse.down()
    seen.page.mouse.move(at[1], y)
    server.tick(20)
    seen.until("tacho.data.end === 40")
    seen.page.mouse.move(at[2], y)
    assert seen.eval(VIEW) == [0, 20, 20]
    seen.page.mouse.up()
    has(seen, 40)
    assert seen.eval(VIEW) == [pytest.approx(5, abs=0.1), pytest.approx(10, abs=0.1), 40]
    seen.close()


def test_newer_page_replaces_this_one_in_its_place(server, look):
    seen = look()
    page = seen.page
    server.run.findings = 2
    template = server.template
    server.template = lambda data: template({**data, "findings_shown": server.run.findings})
    server.tick(1)
    server.page()
    page.locator(".finding").first.wait_for()
    page.locator(".finding summary").nth(1).click()
    page.locator("#panel-memory .line-name", has_text="PSS").click()
    page.get_by_label("Search processes").fill("job")
    page.get_by_role("button", name="PID").click()
    seen.eval("() => tacho.view.show(3, 9)")
    seen.eval("() => { document.querySelector('#panel-memory').scrollIntoView({block: 'start'}); tacho.panels.at(-1).plot.focus({preventScroll: true}); }")
    seen.until("tacho.panels.at(-1).u")
    where = "() => document.querySelector('#panel-memory').getBoundingClientRect().top"
    top = seen.eval(where)
    server.run.findings, server.run.processes, server.run.mark = 9, 5, ""
    server.run.panels = ["cpu", "heat", "memory"]  # one less
    server.tick(3)
    server.page()
    seen.until("tacho.feed.pages === 2")
    assert page.locator(".finding").count() == 9
    assert page.locator(".finding details[open]").count() == 1
    assert page.locator(".finding").nth(1).locator("details[open]").count() == 1
    assert "at 24 s" in page.locator(".finding").nth(1).inner_text()
    assert seen.eval(where) == pytest.approx(top, abs=1)
    assert seen.eval(VIEW)[:2] == [3, 9]
    assert page.locator("#panel-memory .line-name[aria-pressed=false]").inner_text() == "PSS"
    assert seen.eval("() => tacho.panels.at(-1).isHidden(1)")
    assert page.get_by_label("Search processes").input_value() == "job"
    assert page.locator("#processes tbody tr").count() == 5
    assert page.locator("#processes th[aria-sort=ascending]").inner_text().startswith("PID")
    assert seen.eval("() => document.activeElement.closest('figure')?.id") == "panel-memory"
    assert page.locator("#panel-cpu-processes").count() == 0
    server.run.panels = list(page_server.LINES)
    server.tick(1)
    server.page()
    page.locator("#panel-cpu-processes").wait_for()
    seen.until("tacho.panels.length === 4")
    is_exact(seen, 25)
    server.tick(1)
    seen.until("tacho.data.end === 26")
    is_exact(seen, 26)
    seen.close()


def test_what_came_while_the_page_was_made_is_added_again(server, look):
    seen = look()
    server.pages_wait.clear()
    server.page()
    seen.until("tacho.data.end === 20")
    made = server.template(server.run.data())
    server.template = lambda data: made  # of tick 20, while ticks go on
    for ticks in range(21, 26):
        server.tick()
        seen.until("(n) => tacho.data.end === n", ticks)
    server.pages_wait.set()
    seen.until("tacho.feed.pages === 1")
    is_exact(seen, 25)
    # And a page that is ahead of the stream.
    server.tick(2)
    has(seen, 27)
    is_exact(seen, 27)
    seen.close()


def test_server_that_died_and_came_again(server, look):
    seen = look()
    server.tick(3)
    has(seen, 23)
    server.kill()
    seen.until("tacho.feed.status.state === 'reconnecting'")
    assert seen.page.locator(".status").inner_text() == "reconnecting…"
    server.run.ticks = 31
    server.start()
    has(seen, 31)
    is_exact(seen, 31)
    assert seen.page.locator(".status").inner_text() == "recording · 31s"
    asked = server.asked_for("/events")
    assert asked[0] == str(20 * NS) and set(asked[1:]) == {str(23 * NS)}
    seen.close(unreachable=True)


def test_sleep(server, look):
    """The network is gone without a word; then the machine wakes up."""
    seen = look()
    cdp = seen.context.new_cdp_session(seen.page)
    cdp.send("Network.enable")
    cdp.send("Network.emulateNetworkConditions", {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
    server.mute = True
    server.tick(30)
    cdp.send("Network.emulateNetworkConditions", {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
    server.speak()
    has(seen, 50)
    is_exact(seen, 50)
    seen.close(unreachable=True)


def test_stream_without_a_sign_of_life_is_opened_anew(browser, server):
    """Nothing tells the page that its machine slept, but that the server says nothing."""
    context = browser.new_context()
    page = context.new_page()
    page.clock.install()
    page.goto(server.url)
    until(lambda: len(server.streams) == 1, "the stream")
    server.mute = True
    server.tick(13)
    page.clock.fast_forward("02:00")
    until(lambda: len(server.asked_for("/events")) == 2, "another stream")
    server.speak()
    until(lambda: page.evaluate("tacho.data.end === 33"), "the ticks of the night")
    assert server.asked_for("/events") == [str(20 * NS)] * 2
    context.close()


def test_frozen_page(server, look):
    seen = look()
    cdp = seen.context.new_cdp_session(seen.page)
    cdp.send("Page.setWebLifecycleState", {"state": "frozen"})
    server.tick(30)
    cdp.send("Page.setWebLifecycleState", {"state": "active"})
    has(seen, 50)
    is_exact(seen, 50)
    seen.close()


def test_refused_after_a_restart(server, look):
    seen = look()
    server.refusing = 403
    server.kill()
    server.start()
    seen.until("tacho.feed.status.state === 'refused'")
    assert "Open the address that it printed" in seen.page.locator(".warning-line").inner_text()
    assert seen.page.locator(".status").inner_text() == "no access"
    # Opened again in another tab: the cookie is of both.
    server.refusing = None
    server.tick(2)
    seen.eval("() => dispatchEvent(new Event('online'))")
    has(seen, 22)
    assert not seen.page.locator(".warning-line").is_visible()
    seen.close(unreachable=True)


def test_silence_and_end(server, look):
    seen = look()
    server.tell(("lost", {"silent_s": 12}))
    seen.until("tacho.feed.status.state === 'silent'")
    assert re.match(r"silent for 1\d s", seen.page.locator(".status").inner_text())
    server.tick()
    seen.until("tacho.feed.status.state === 'recording'")
    server.run.ended = True
    server.tick()
    server.page()
    seen.until("tacho.feed.status.state === 'ended'")
    assert seen.page.locator(".status").inner_text() == "the job has ended"
    assert not seen.page.get_by_role("button", name="Live").is_visible()
    is_exact(seen, 22)
    assert seen.eval("() => tacho.data.live.state") == "ended"
    # The stream is closed, and nothing is asked any more.
    seen.page.locator("[role=status]", has_text="The job has ended").wait_for(state="attached")
    assert not server.streams or all(None not in stream for stream in server.streams)
    seen.close()


def test_tab_in_the_background_draws_nothing(server, look):
    """Chromium without a window never hides a tab: the page is told that it is hidden."""
    seen = look()
    hide = """(state) => { Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
        document.dispatchEvent(new Event("visibilitychange")); }"""
    seen.eval(hide, "hidden")
    drawn = seen.eval("() => tacho.feed.drawing.count")
    for _ in range(5):
        server.tick()
    server.page()
    seen.until("tacho.data.end === 25")
    assert seen.eval("() => [tacho.feed.drawing.count, tacho.feed.pages]") == [drawn, 0]
    seen.eval(hide, "visible")
    has(seen, 25)
    seen.until("tacho.feed.pages === 1")
    is_exact(seen, 25)
    seen.close()


def test_tab_does_not_grow(server, look):
    """Thousands of ticks with newer pages that know fewer points, as reports reduce them."""
    seen = look()
    cdp = seen.context.new_cdp_session(seen.page)
    cdp.send("Performance.enable")

    def heap():
        seen.eval("() => gc()")
        return next(m["value"] for m in cdp.send("Performance.getMetrics")["metrics"] if m["name"] == "JSHeapUsedSize")

    sizes = []
    for turn in range(1, 9):
        for _ in range(4):
            server.tick(500)
            seen.until("(n) => tacho.data.end === n", server.run.ticks)
        before = seen.eval("() => tacho.data.size")
        # A page of a run that has the same length: all that was added is in it.
        server.run.ticks = 20
        made = server.template({**server.run.data(), "live": {"after": str((20 + 2000 * turn) * NS), "state": "recording"}})
        server.run.ticks = 20 + 2000 * turn
        template, server.template = server.template, lambda data, made=made: made
        server.page()
        seen.until("(n) => tacho.feed.pages === n", turn)
        server.template = template
        sizes.append((before, seen.eval("() => tacho.data.size"), seen.eval("() => tacho.feed.kept.length"), heap(),
                      seen.eval("() => document.querySelectorAll('*').length")))
    assert max(size[0] for size in sizes) < 30_000 and max(size[1] for size in sizes) < 1000
    assert sizes[-1][2] == 0 and sizes[-1][4] <= sizes[1][4] * 1.2
    assert sizes[-1][3] < sizes[1][3] * 1.25 + 2e6
    seen.close()


def test_hostile_names(server, look):
    server.run.mark = "<img src=x onerror=alert(1)></script><script>alert(2)</script>\u202e"
    seen = look()
    violations = "() => { window.violated = []; document.addEventListener('securitypolicyviolation', (e) => violated.push(e.violatedDirective)); }"
    seen.eval(violations)
    server.run.processes = 4
    server.run.phases = [{"time_s": 2, "end_s": None, "node": 0, "kind": "phase", "label": "<b>x</b>"}]
    server.tick(2)
    server.page()
    seen.until("tacho.feed.pages === 1")
    server.tick(1)
    has(seen, 23)
    assert seen.page.locator("main img, main script, main b").count() == 0
    assert "<img src=x onerror=alert(1)>" in seen.page.locator("#processes tbody").inner_text()
    assert "<img src=x onerror=alert(1)>" in seen.page.locator("#panel-memory .legend").inner_text()
    assert seen.eval("() => violated") == []
    seen.close()


def test_screen_readers_and_keys(server, look):
    seen = look()
    page = seen.page
    spoken = page.locator(".bar [role=status].sr")
    assert spoken.get_attribute("aria-live") == "polite" and spoken.inner_text() == ""
    server.tick(3)
    has(seen, 23)
    # Growing is not news.
    assert spoken.inner_text() == "" and page.locator(".range").get_attribute("aria-live") == "off"
    bar = page.locator(".bar").aria_snapshot()
    assert 'button "Live" [pressed]' in bar and "recording" in bar
    assert 'group "CPU use' in page.locator("main").aria_snapshot()
    page.keyboard.press("?")
    assert "follow what is new" in page.locator("dialog").inner_text()
    page.keyboard.press("Escape")
    page.locator("#panel-cpu .plot").focus()
    page.keyboard.press("ArrowUp")
    assert page.get_by_role("button", name="Live").get_attribute("aria-pressed") == "false"
    page.keyboard.press("End")
    assert page.get_by_role("button", name="Live").get_attribute("aria-pressed") == "true"
    server.tick(1)
    seen.until("Math.round(tacho.view.to) === 24")
    seen.close()


@pytest.mark.parametrize("options", [{"viewport": {"width": 375, "height": 800}}, {"color_scheme": "dark"}], ids=["phone", "dark"])
def test_other_looks(server, look, options):
    seen = look(**options)
    server.tick()
    has(seen, 21)
    width = options.get("viewport", {"width": 1280})["width"]
    assert seen.eval("() => document.documentElement.scrollWidth") <= width
    assert seen.page.locator(".status").is_visible() and seen.page.get_by_role("button", name="Live").is_visible()
    paper = seen.eval("() => getComputedStyle(document.querySelector('.panel')).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == ("viewport" in options)
    seen.close()


def test_report_has_nothing_of_it(browser, template, tmp_path):
    """Without `live` no request is made and nothing of it is in the bar."""
    data = Run().data()
    del data["live"]
    (tmp_path / "page.html").write_text(template(data))
    seen = Look(browser, (tmp_path / "page.html").as_uri())
    assert seen.page.locator(".status, .follow, .warning-line").count() == 0
    assert seen.eval("() => [tacho.feed ?? null, tacho.live]") == [None, False]
    seen.page.keyboard.press("l")
    assert len(seen.asked) == 1
    seen.close()


# ---- tacho serve itself ----


class Serve:
    """tacho serve at a port of its own, which is killed and comes again with the same token."""

    def __init__(self, folder, tokens):
        self.folder, self.tokens, self.port = folder, tokens, 0
        self.start()

    def start(self):
        self.process = start("serve", self.folder, "--port", self.port, "--token-file", self.tokens, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/#\S+", text)):
            line = self.process.stdout.readline().decode()
            assert line, f"tacho serve ended: {text}"
            text += line
        self.url, self.port = found[0], int(found[1])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    if not Path(TACHO).with_name("tacho-serve").exists():
        pytest.skip("tacho-serve was not built (libmicrohttpd)")
    folder = tmp_path_factory.mktemp("served")
    (folder / "runs").mkdir()
    job = f"{TACHO} phase begin '{HOSTILE}'; {TACHO} mark '{HOSTILE}' '<b>x</b>=1'; sleep 0.2; {TACHO} phase end '{HOSTILE}'"
    done = record(["sh", "-c", job, HOSTILE], "-i", "20ms", output=folder / "runs" / "<b>hostile.tacho")
    assert done.returncode == 0, done.stderr
    made = Serve(folder / "runs", folder / "token")
    yield made
    made.kill()


@pytest.fixture(scope="module")
def signed_in(browser, served):
    """A browser that has traded the token for the cookie."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(1000 * PATIENCE_S)
    page = context.new_page()
    page.goto(served.url)
    page.locator("body.index").wait_for()
    assert "#" not in page.url
    page.close()
    yield context
    context.close()


@pytest.fixture
def tab(signed_in):
    """A page whose words and requests are kept."""
    page = signed_in.new_page()
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(f"{message.text} {message.location}"))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    yield page
    page.close()


def find_run(tab, served, command):
    """Its row; the list may be some seconds old."""
    row = tab.locator("tr", has_text=command)
    until(lambda: tab.goto(served.url.split("#")[0]) and row.count(), f"{command} is in the list")
    return row


def open_run(tab, served, command):
    find_run(tab, served, command).locator(".command a").click()
    until(lambda: tab.evaluate("window.tacho?.data !== undefined"), "the page of a run")


def series(recording, metric):
    done = run("show", "--csv", "--series", metric, recording)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.decode().splitlines()))
    return {round(float(row["time_s"]), 3): float(row[metric]) for row in rows if row[metric]}


def is_series(tab, recording):
    """Each point of the curve, but for those that the page has of the time before, is a tick of the recording, and no tick is missing."""
    times, values = tab.evaluate(POINTS, ["cpu", 0])
    known = series(recording, "tree.cores")
    shown = {round(t, 3): v for t, v in zip(times, values) if v is not None}
    assert len(shown) == len([v for v in values if v is not None])
    upto = max(shown)
    wanted = {t: v for t, v in known.items() if t <= upto + 1e-3}
    assert len(shown) == len(wanted)
    most = max(wanted.values())
    for (t, v), (at, value) in zip(sorted(shown.items()), sorted(wanted.items())):
        assert t == pytest.approx(at, abs=0.003) and v == pytest.approx(value, abs=most / 1000)


def test_life_of_a_run(tab, served):
    """From its first ticks over a server that was killed to its end: the curve is that of the recording, and the end is the report."""
    recording = served.folder / "live.tacho"
    job = "while read cores; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; done"
    with lasting(["sh", "-c", job], "-i", "100ms", output=recording) as recorder:
        recorder.stdin.write(b"1\n1\n")
        recorder.stdin.flush()
        until(lambda: len(series_or_none(recording)) > 5, "the first ticks")
        open_run(tab, served, "while read cores")
        assert tab.locator(".status.recording").count() == 1 and "in progress" in tab.locator("header").inner_text()
        tab.evaluate("() => document.getElementById('panel-cpu').scrollIntoView({block: 'center'})")
        first = tab.evaluate("tacho.data.end")
        until(lambda: tab.evaluate("tacho.view.end") > first + 0.5, "curves that move")
        recorder.stdin.write(b"1\n")
        recorder.stdin.flush()
        is_series(tab, recording)
        served.kill()
        until(lambda: tab.locator(".status.reconnecting").count(), "the page says that the server is gone")
        served.start()
        before = tab.evaluate("tacho.data.end")
        until(lambda: tab.evaluate("tacho.view.end") > before + 0.5, "curves that move again")
        is_series(tab, recording)
        here = [url for url in tab.asked if not url.startswith(f"http://127.0.0.1:{served.port}/")]
        assert not here
    until(lambda: tab.locator(".status.ended").count(), "the end")
    done = run("report", "--format", "json", "-o", served.folder.parent / "live.json", recording)
    assert done.returncode == 0, done.stderr
    reported = json.loads((served.folder.parent / "live.json").read_text())
    shown_data = json.loads(tab.evaluate("async () => new DOMParser().parseFromString(await (await fetch(location.href)).text(), 'text/html').getElementById('data').textContent"))
    assert shown_data.pop("live")["state"] == "ended"
    assert shown_data == reported
    # And it is in the page.
    cpu = next(panel for panel in reported["panels"] if panel["id"] == "cpu")
    assert tab.locator("#panel-cpu .sub").inner_text() == cpu["subtitle"]
    assert tab.evaluate("tacho.data.end") == pytest.approx(max(node["end_s"] for node in reported["nodes"]), abs=0.2)
    assert tab.locator("#processes tbody tr").count() == min(reported["processes"]["shown"], 50)
    assert not [text for text in tab.said if "Failed to load resource" not in text]


def series_or_none(recording):
    done = run("show", "--csv", "--series", "tree.cores", recording)
    return done.stdout.splitlines() if done.returncode == 0 else []


def test_list_follows(tab, served):
    recording = served.folder / "listed.tacho"
    with lasting(["sh", "-c", "cat; exit 4"], "-i", "50ms", output=recording, status=4):
        until(lambda: len(series_or_none(recording)) > 3, "the first ticks")
        row = find_run(tab, served, "listed.tacho")
        row.locator(".state.recording").wait_for()
        assert tab.locator("tbody tr").first.inner_text() == row.inner_text()
        field = tab.get_by_label("Find recordings")
        field.fill("HOSTILE")
        assert not row.is_visible() and tab.locator("tr", has_text="hostile").is_visible()
        assert "1 of" in tab.locator(".count").inner_text()
        field.fill("")
    until(lambda: "complete, exit 4" in row.inner_text() and not tab.locator(".state.recording").count(), "the list says that it has ended")
    assert tab.evaluate("() => document.activeElement.id") == "filter"
    assert not tab.said
    for width in (375, 1280):
        tab.set_viewport_size({"width": width, "height": 800})
        assert tab.evaluate("() => document.documentElement.scrollWidth") <= width


def test_hostile_recording(tab, served):
    open_run(tab, served, "hostile")
    assert HOSTILE in tab.locator("h1").inner_text()
    assert HOSTILE in tab.locator("#phases").inner_text()
    assert tab.locator("main img, main b, main script, header img, header script").count() == 0
    assert tab.locator(".status").count() == 0  # it has ended: this is its report
    tab.locator(".served a", has_text="All recordings").click()
    tab.locator("body.index").wait_for()
    assert HOSTILE in tab.locator("tbody").inner_text()
    assert tab.locator("td b, td script, td img[onerror]").count() == 0
    assert not tab.said


def test_without_the_token(browser, served):
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.url.split("#")[0])
    assert "Open the address that tacho serve printed" in page.locator("main").inner_text()
    page.goto(served.url.split("#")[0] + "#wrong")
    page.reload()
    page.locator("main", has_text="is not right").wait_for()
    assert "recordings," not in page.content()
    context.close()


def test_nothing_to_show(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("empty")
    if not Path(TACHO).with_name("tacho-serve").exists():
        pytest.skip("tacho-serve was not built (libmicrohttpd)")
    (folder / "runs").mkdir()
    served = Serve(folder / "runs", folder / "token")
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.url)
    page.locator("main", has_text="tacho run -- COMMAND").wait_for()
    assert not page.locator("table").is_visible() and not page.locator("#filter").is_visible()
    # The first one comes by itself.
    assert record(["true"], output=folder / "runs" / "first.tacho").returncode == 0
    page.locator("tr", has_text="first.tacho").wait_for()
    context.close()
    served.kill()
