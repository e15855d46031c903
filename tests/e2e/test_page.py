"""The page of the HTML report in a real Chromium, opened from a file.

Most tests look at a page whose data is known to the last number (page_sample.py), put into a page that tacho wrote. Pixels
are read from the canvases: that an element is there does not mean that anything was drawn.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import page_sample
from recorder import PATIENCE_S, TACHO, record, run

ROOT = Path(__file__).resolve().parents[2]
SIZE_LIMIT = 300_000
DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.S)
PANELS = re.compile(r'<section class="panels".*?</section>\n', re.S)
CHROMIUM_OPTIONS = ["--no-sandbox", "--disable-background-networking", "--disable-gpu", "--disable-component-update",
                    "--disable-sync", "--no-first-run", "--no-default-browser-check", "--force-color-profile=srgb"]


def playwright_api():
    """Playwright where Python finds it, or in the project's own folder; see web/README.md."""
    folders = [os.environ.get("TACHO_PLAYWRIGHT"), *map(str, ROOT.glob(".dev/python/lib/python3*/site-packages"))]
    for folder in filter(None, folders):
        if folder not in sys.path and Path(folder, "playwright").is_dir():
            sys.path.append(folder)
    return pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed (web/README.md says how)")


def report(recording, page):
    done = run("report", "-o", page, recording)
    if done.returncode and b"tacho-report" in done.stderr:
        pytest.skip("tacho-report was not built (cairo and pango)")
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return page.read_text()


@pytest.fixture(scope="module")
def browser():
    api = playwright_api()
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("chromium is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS, timeout=1000 * PATIENCE_S)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def written(folder):
    """A page as tacho writes it: of a job with a hostile name, children and some CPU time."""
    job = folder / "<img src=x onerror=alert(1)>"
    job.write_text("#!/bin/sh\ni=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sh -c 'sleep 0.3'; sleep 0.3\n")
    job.chmod(0o755)
    recording = folder / "job.tacho"
    done = record([job, "</script><script>alert(2)</script>", '"\' \u202e & \n'], "--interval", "20ms", output=recording)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    text = report(recording, folder / "job.html")
    if 'class="still"' in text:
        pytest.skip("the page was built without npm")
    return text


@pytest.fixture(scope="module")
def sample_path(written, folder):
    return write_sample(written, folder / "sample.html", page_sample.sample())


def write_sample(written, path, data):
    """The page with other data in it; the panels of the run that it was of are gone."""
    text = json.dumps(data).replace("<", "\\u003c")
    path.write_text(PANELS.sub("", DATA.sub(lambda match: match[1] + text + match[3], written)))
    return path


class Watch:
    """A page whose console, errors, dialogs and requests are kept."""

    def __init__(self, browser, path, live=True, **options):
        self.context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        self.context.set_default_timeout(1000 * PATIENCE_S)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(f"{message.text} {message.location}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        if live:
            self.page.wait_for_function("window.tacho !== undefined")

    def check(self):
        """It said nothing, and asked for nothing but itself."""
        assert not self.said
        assert len(self.asked) == 1, self.asked

    def close(self):
        self.context.close()
        self.check()


@pytest.fixture(scope="module")
def watched(browser, sample_path):
    watch = Watch(browser, sample_path)
    yield watch
    watch.close()


# Everything as it was when the page was opened.
AGAIN = """() => {
	const {view, table, panels} = tacho;
	localStorage.clear();
	delete document.documentElement.dataset.theme;
	view.shine(null);
	view.reset();
	view.point(null);
	view.themeChanged();
	document.activeElement.blur();
	table.search.value = "";
	table.change({words: "", group: ""});
	scrollTo(0, 0);
}"""


@pytest.fixture
def opened(watched):
    watched.page.mouse.move(5, 5)
    watched.page.evaluate(AGAIN)
    yield watched.page
    watched.check()


def bring(page, panel):
    """Scrolls a panel into view and waits until it is drawn."""
    page.evaluate("id => document.getElementById('panel-' + id).scrollIntoView({block: 'center'})", panel)
    page.wait_for_function("id => { const p = tacho.panels.find(p => p.panel.id === id); return p.u && !p.stale; }", arg=panel)
    page.evaluate("() => new Promise(requestAnimationFrame)")


# How many pixels of a panel's plot, on its paper, are nearly of that colour; with a range of times, only of those.
PIXELS = """([id, color, from, to]) => {
	const {u, figure} = tacho.panels.find((p) => p.panel.id === id);
	const {left, top, width, height} = u.bbox;
	const copy = new OffscreenCanvas(u.ctx.canvas.width, u.ctx.canvas.height).getContext("2d", {willReadFrequently: true});
	copy.fillStyle = getComputedStyle(figure).backgroundColor;
	copy.fillRect(0, 0, u.ctx.canvas.width, u.ctx.canvas.height);
	copy.drawImage(u.ctx.canvas, 0, 0);
	const x0 = from === null ? left : Math.round(u.valToPos(from, "x", true)), x1 = to === null ? left + width : Math.round(u.valToPos(to, "x", true));
	const {data} = copy.getImageData(x0, top, x1 - x0, height);
	const want = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
	let n = 0;
	for (let i = 0; i < data.length; i += 4)
		if (want.every((w, k) => Math.abs(data[i + k] - w) < 24))
			n++;
	return n;
}"""


AREA = "(id) => { const {bbox} = tacho.panels.find((p) => p.panel.id === id).u; return Math.floor(bbox.width) * Math.floor(bbox.height); }"


def pixels(page, panel, color, from_s=None, to_s=None):
    return page.evaluate(PIXELS, [panel, color, from_s, to_s])


def palette(dark=False):
    text = (ROOT / "src/analysis/palette.h").read_text()
    text = text[text.index("#define PALETTE("):text.index("#define PALETTE_PAPER")]
    return ["#" + (pair[1] if dark else pair[0]) for pair in re.findall(r"X\(\w+,\s*0x(\w{6}),\s*0x(\w{6})\)", text)]


def ranges(page):
    """The range of time of every panel that is drawn."""
    return page.evaluate("() => tacho.panels.filter((p) => p.u && p.near).map((p) => [p.u.scales.x.min, p.u.scales.x.max])")


def drag(page, panel, from_s, to_s, *keys):
    box = page.locator(f"#panel-{panel} .u-over").bounding_box()
    at = page.evaluate("([id, times]) => times.map((t) => tacho.panels.find((p) => p.panel.id === id).u.valToPos(t, 'x'))", [panel, [from_s, to_s]])
    y = box["y"] + box["height"] / 2
    for key in keys:
        page.keyboard.down(key)
    page.mouse.move(box["x"] + at[0], y)
    page.mouse.down()
    page.mouse.move(box["x"] + sum(at) / 2, y)
    page.mouse.move(box["x"] + at[1], y)
    page.mouse.up()
    for key in keys:
        page.keyboard.up(key)


def number(text):
    """What a cell of a legend says, as a number."""
    value, _, unit = text.replace(",", "").partition(" ")
    scale = {"": 1, "%": 0.01, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
    return float(value) * scale


def legend(page, panel, line):
    """The numbers of a line: at the pointer (or last), mean, min, max."""
    row = page.locator(f"#panel-{panel} .legend tbody tr", has_text=line).first
    return [number(text) for text in row.locator("td").all_inner_texts()]


def known(panel, name, from_s=0, to_s=page_sample.END_S):
    """Times and values of a line of the sample, as the page must have unpacked them."""
    data = page_sample.sample()
    node = data["nodes"][0]
    line = next(line for p in data["panels"] if p["id"] == panel for line in p["lines"] if line["name"] == name)
    values = page_sample.unpacked(line["mean"], node["ticks"])
    times = [node["times"]["from"] + i * node["times"]["step"] for i in range(node["ticks"])]
    return [(t, v) for t, v in zip(times, values) if from_s <= t <= to_s and v is not None]


# ---- what tacho wrote ----


def test_written_page_is_drawn_and_inert(browser, written, folder):
    watch = Watch(browser, folder / "job.html")
    page = watch.page
    ids = page.evaluate("() => tacho.panels.map((p) => p.panel.id)")
    assert "cpu" in ids and "memory" in ids
    for panel in ids:
        bring(page, panel)
        assert pixels(page, panel, "#ffffff") < page.evaluate(AREA, panel) - 20, panel
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text().count("<script>alert(2)</script>") == 1
    assert "\u202e" not in page.locator("h1").inner_text()
    assert page.title().count("onerror=alert(1)") == 1
    assert page.locator("dl.tiles .tile").count() >= 4
    assert page.locator("#processes tbody tr").count() >= 3
    watch.close()


def test_page_is_small_and_forbids_requests(written):
    data = DATA.search(written)
    assert len(written.encode()) - len(data[2].encode()) < SIZE_LIMIT
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', written)[1]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert "<" not in data[2]


def test_page_reads_without_script(browser, written, folder):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "job.html").as_uri())
    assert page.locator("#findings h2").is_visible()
    assert page.locator("#statistics table").first.is_visible()
    assert page.locator("#processes tbody tr").count() >= 1
    assert "need JavaScript" in page.locator("noscript").inner_text()
    context.close()


# ---- without npm ----


def colors_of(page, selector):
    """Every colour that an element shows, with how often, from a picture of it."""
    shown = page.evaluate("""async (selector) => {
        const image = document.querySelector(selector);
        await image.decode();
        const copy = new OffscreenCanvas(image.width, image.height).getContext("2d", {willReadFrequently: true});
        copy.drawImage(image, 0, 0, image.width, image.height);
        const {data} = copy.getImageData(0, 0, image.width, image.height);
        const colors = {};
        for (let i = 0; i < data.length; i += 4)
            if (data[i + 3] > 200) {
                const color = "#" + [0, 1, 2].map((k) => data[i + k].toString(16).padStart(2, "0")).join("");
                colors[color] = (colors[color] ?? 0) + 1;
            }
        return colors;
    }""", selector)
    return Counter(shown)


def test_page_of_drawings(browser, written, folder):
    tool = Path(TACHO).parent / "tests" / "unit" / "page_tool"
    if not tool.exists():
        pytest.skip("page_tool was not built (cairo and pango)")
    path = folder / "still.html"
    path.write_bytes(subprocess.run([tool, folder / "job.tacho"], stdout=subprocess.PIPE, check=True).stdout)
    for scheme, other, dark in (("light", "dark", False), ("dark", "light", True)):
        watch = Watch(browser, path, live=False, color_scheme=scheme)
        page = watch.page
        assert page.locator("script").count() == 0
        assert page.locator(f"#panel-cpu img.{scheme}").is_visible()
        assert not page.locator(f"#panel-cpu img.{other}").is_visible()
        assert colors_of(page, f"#panel-memory img.{scheme}")[palette(dark)[0]] > 20
        assert page.locator("#processes tbody tr").count() >= 1
        assert "This page has drawings" in page.locator("footer").inner_text()
        # Its images are in it: what they ask for is themselves.
        watch.asked = [url for url in watch.asked if not url.startswith("data:")]
        watch.close()


# ---- panels ----


def test_every_panel_is_drawn_in_its_colours(opened):
    colors = palette()
    for panel in page_sample.sample()["panels"]:
        bring(opened, panel["id"])
        if panel["form"] == "lines":
            for line in panel["lines"]:
                assert pixels(opened, panel["id"], colors[line["color"]]) > 100, (panel["id"], line["name"])
        if panel["form"] == "timeline":
            assert all(pixels(opened, "timeline", color) > 30 for color in colors)
    # Areas are tints: count what is neither paper nor a line of the grid.
    assert pixels(opened, "cpu-processes", "#578cd7", 5, 35) > 2000
    heat = [pixels(opened, "heat", color) for color in ("#151b56", "#2a7097", "#fcf483")]
    assert min(heat) > 200


def test_gap_stays_empty(opened):
    bring(opened, "cpu")
    assert pixels(opened, "cpu", palette()[0], 51, 57) == 0
    assert pixels(opened, "cpu", palette()[0], 40, 49) > 20


def test_zoom_is_of_all_panels(opened):
    bring(opened, "cpu")
    drag(opened, "cpu", 30, 60)
    for low, high in ranges(opened):
        assert abs(low - 30) < 0.5 and abs(high - 60) < 0.5
    bring(opened, "memory")
    assert all(abs(low - 30) < 0.5 and abs(high - 60) < 0.5 for low, high in ranges(opened))
    assert "30s" in opened.locator(".range").inner_text()
    drag(opened, "memory", 45, 35, "Shift")
    assert all(abs(low - 40) < 1 and abs(high - 70) < 1 for low, high in ranges(opened))
    opened.locator("#panel-memory .u-over").dblclick()
    assert all([low, high] == [0, page_sample.END_S] for low, high in ranges(opened))
    drag(opened, "memory", 10, 20)
    opened.get_by_role("button", name="Show all").click()
    assert ranges(opened)[0] == [0, page_sample.END_S]


def test_page_of_a_part_of_the_run(browser, written, folder):
    """Its axis is that part: there is nothing before it and nothing behind it."""
    data = {**page_sample.sample(), "window": {"from_s": 20, "to_s": 70, "phase": "epoch 2"}}
    watch = Watch(browser, write_sample(written, folder / "part.html", data))
    page = watch.page
    bring(page, "cpu")
    assert all([low, high] == [20, 70] for low, high in ranges(page))
    assert page.locator(".range").inner_text().startswith("20s – 1m10s")
    drag(page, "cpu", 30, 40)
    page.get_by_role("button", name="Show all").click()
    assert all([low, high] == [20, 70] for low, high in ranges(page))
    watch.close()


def test_wheel_zooms_only_with_a_key(opened):
    bring(opened, "cpu")
    opened.locator("#panel-cpu .u-over").hover()
    opened.mouse.wheel(0, -100)
    assert ranges(opened)[0] == [0, page_sample.END_S]
    bring(opened, "cpu")
    opened.locator("#panel-cpu .u-over").hover()
    opened.keyboard.down("Control")
    opened.mouse.wheel(0, -100)
    opened.keyboard.up("Control")
    opened.wait_for_function("() => tacho.view.to - tacho.view.from < 110")


def test_pointer_shows_values_in_all_panels(opened):
    bring(opened, "heat")
    bring(opened, "cpu")
    box = opened.locator("#panel-cpu .u-over").bounding_box()
    opened.mouse.move(box["x"] + 100, box["y"] + 50)
    opened.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 50)
    time = opened.evaluate("() => tacho.view.cursor")
    assert abs(time - 0.7 * page_sample.END_S) < 0.5
    for panel, line in (("cpu", "cores used"), ("cpu-processes", "others"), ("heat", "cpu7")):
        near = min(known(panel, line), key=lambda point: abs(point[0] - time))[1]
        assert legend(opened, panel, line)[0] == pytest.approx(near, rel=0.01, abs=0.002), (panel, line)
    left = opened.evaluate("() => tacho.panels.filter((p) => p.u && p.near).map((p) => p.u.posToVal(p.u.cursor.left, 'x'))")
    assert len(left) > 2 and all(abs(at - time) < 0.2 for at in left)
    opened.mouse.move(5, 5)
    last = known("cpu", "cores used")[-1][1]
    assert legend(opened, "cpu", "cores used")[0] == pytest.approx(last, rel=0.01)


def test_events_and_lives_are_told_at_the_pointer(opened):
    bring(opened, "timeline")
    at = opened.evaluate("() => { const {u} = tacho.panels.find((p) => p.panel.id === 'timeline'); return [u.valToPos(62, 'x'), u.valToPos(3, 'x'), u.valToPos(-0.5, 'y')]; }")
    box = opened.locator("#panel-timeline .u-over").bounding_box()
    opened.mouse.move(box["x"] + at[0], box["y"] + 5)
    assert "stopped by SIGSTOP" in opened.locator("#panel-timeline .pointed").inner_text()
    opened.mouse.move(box["x"] + at[1], box["y"] + at[2])
    assert opened.locator("#panel-timeline .pointed").inner_text().startswith("python3: 0")


def test_range_statistics_are_right(opened):
    bring(opened, "memory")
    drag(opened, "memory", 20, 80)
    opened.mouse.move(5, 5)
    low, high = ranges(opened)[0]
    values = [value for _, value in known("memory", "PSS", low, high)]
    expected = [values[-1], sum(values) / len(values), min(values), max(values)]
    assert legend(opened, "memory", "PSS") == [pytest.approx(value, rel=0.006) for value in expected]


def test_reduced_page_has_ranges_and_says_so(browser, written, folder):
    path = write_sample(written, folder / "reduced.html", page_sample.sample(points=600, spread=0.2))
    watch = Watch(browser, path)
    page = watch.page
    bring(page, "cpu")
    assert pixels(page, "cpu", "#cbdcf3") > 500
    top = max(value for _, value in known("cpu", "cores used"))
    assert legend(page, "cpu", "cores used")[3] == pytest.approx(top * 1.2, rel=0.01)
    assert "a point is 200ms" in page.locator(".range").inner_text()
    drag(page, "cpu", 10, 14)
    assert "the recording has every tick" in page.locator(".range").inner_text()
    watch.close()


# The colour at a time and a value, upon paper.
SPOT = """([id, time, value]) => {
	const {u, figure} = tacho.panels.find((p) => p.panel.id === id);
	const copy = new OffscreenCanvas(u.ctx.canvas.width, u.ctx.canvas.height).getContext("2d", {willReadFrequently: true});
	copy.fillStyle = getComputedStyle(figure).backgroundColor;
	copy.fillRect(0, 0, u.ctx.canvas.width, u.ctx.canvas.height);
	copy.drawImage(u.ctx.canvas, 0, 0);
	return [...copy.getImageData(Math.round(u.valToPos(time, "x", true)), Math.round(u.valToPos(value, "y", true)), 1, 1).data];
}"""


def test_reduced_areas_keep_the_peak_of_their_sum(browser, written, folder):
    """Areas are means: a peak of one tick, that a point has in its range, stands above them."""
    data = page_sample.sample(points=600, spread=0.2)
    panel = next(panel for panel in data["panels"] if panel["id"] == "cpu-processes")
    panel["total_high"] = page_sample.packed([9 if i in (500, 501) else 0.2 for i in range(600)])
    watch = Watch(browser, write_sample(written, folder / "peak.html", data))
    page = watch.page
    bring(page, "cpu-processes")
    time_s = 501 * page_sample.END_S / 600
    assert page.evaluate(SPOT, ["cpu-processes", time_s, 5]) != page.evaluate(SPOT, ["cpu-processes", time_s - 3, 5])
    assert page.evaluate("() => tacho.panels.find((p) => p.panel.id === 'cpu-processes').u.scales.y.max") > 9
    # Without one of them it is not known.
    page.locator("#panel-cpu-processes .line-name").first.click()
    page.mouse.move(5, 5)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert page.evaluate("() => tacho.panels.find((p) => p.panel.id === 'cpu-processes').u.scales.y.max") < 5
    watch.close()


def test_line_is_taken_out_and_put_back(opened):
    bring(opened, "memory")
    color = palette()[1]
    button = opened.locator("#panel-memory .line-name", has_text="PSS")
    button.click()
    opened.mouse.move(5, 5)
    assert button.get_attribute("aria-pressed") == "false"
    assert pixels(opened, "memory", color) == 0
    button.click()
    opened.mouse.move(5, 5)
    assert pixels(opened, "memory", color) > 100


# ---- the table ----


def column_texts(page, index):
    return page.locator(f"#processes tbody tr > :nth-child({index})").all_inner_texts()


def test_table_sorts_searches_and_turns_pages(browser, written, folder):
    path = write_sample(written, folder / "many.html", page_sample.sample(processes=500))
    watch = Watch(browser, path)
    page = watch.page
    pid = page.locator("#processes thead th").all_inner_texts().index("PID") + 1
    assert column_texts(page, pid)[:2] == ["1499", "1498"]
    assert "1–50 of 500" in page.locator("#processes .count").inner_text()
    page.get_by_role("button", name="Next page").click()
    assert column_texts(page, pid)[0] == "1449"
    page.get_by_role("button", name="PID").click()
    assert column_texts(page, pid)[:2] == ["1000", "1001"]
    assert page.locator("#processes th[aria-sort=ascending]").inner_text().startswith("PID")
    page.get_by_role("button", name="PSS peak").click()
    assert column_texts(page, pid)[0] == "1499"
    page.get_by_role("button", name="PSS peak").click()
    assert "–" not in page.locator("#processes tbody tr").first.inner_text()
    page.locator("#search").fill("GCC worker 421")
    assert column_texts(page, pid) == ["1421"]
    page.locator("#search").fill("no such thing")
    assert page.locator("#processes tbody tr").count() == 0
    page.locator("#search").fill("")
    page.get_by_label("All groups").select_option("test")
    assert "of 250" in page.locator("#processes .count").inner_text()
    watch.close()


def test_row_lights_up_its_curve(opened):
    bring(opened, "cpu-processes")
    plain = pixels(opened, "cpu-processes", "#578cd7", 5, 35)
    row = opened.locator("#processes tr[data-process='2']")
    row.locator("button").click()
    assert row.get_attribute("class") == "lit"
    bring(opened, "cpu-processes")
    assert "lit" in opened.locator("#panel-cpu-processes").get_attribute("class")
    assert pixels(opened, "cpu-processes", "#578cd7", 5, 35) < plain / 10
    assert opened.locator("#panel-cpu-processes .legend tr.lit").inner_text().startswith("python3 1002")
    bring(opened, "timeline")
    assert pixels(opened, "timeline", palette()[5]) == 0
    assert pixels(opened, "timeline", palette()[2]) > 30
    opened.keyboard.press("Escape")
    bring(opened, "cpu-processes")
    assert pixels(opened, "cpu-processes", "#578cd7", 5, 35) == plain


def test_process_without_colour_is_taken_out_of_the_others(browser, written, folder):
    data = page_sample.sample()
    panel = data["panels"][1]
    for line in panel["lines"][3:]:
        line["color"] = -1
    watch = Watch(browser, write_sample(written, folder / "others.html", data))
    page = watch.page
    bring(page, "cpu-processes")
    names = "#panel-cpu-processes .legend tbody th"
    assert page.locator(names).count() == 4
    whole = legend(page, "cpu-processes", "others")[3]
    page.locator("#processes tr[data-process='4'] button").click()
    bring(page, "cpu-processes")
    assert page.locator(names).count() == 5
    assert page.locator("#panel-cpu-processes .legend tr.lit").inner_text().startswith("python3 1004")
    assert legend(page, "cpu-processes", "others")[3] < whole
    watch.close()


# ---- keys, findings, themes, paper ----


def test_keyboard(opened):
    opened.keyboard.press("/")
    assert opened.evaluate("() => document.activeElement.id") == "search"
    opened.keyboard.type("gcc")
    assert set(column_texts(opened, 1)) == {"gcc"}
    opened.keyboard.press("Escape")
    opened.keyboard.press("?")
    assert opened.locator("dialog").is_visible()
    opened.keyboard.press("Escape")
    assert not opened.locator("dialog").is_visible()
    bring(opened, "cpu")
    opened.locator("#panel-cpu .plot").focus()
    opened.keyboard.press("ArrowUp")
    assert ranges(opened)[0] == [pytest.approx(20), pytest.approx(100)]
    opened.keyboard.press("ArrowRight")
    assert ranges(opened)[0] == [pytest.approx(36), pytest.approx(116)]
    opened.keyboard.press("Shift+ArrowRight")
    assert opened.evaluate("() => tacho.view.cursor") == pytest.approx(36.8)
    opened.keyboard.press("0")
    assert ranges(opened)[0] == [0, page_sample.END_S]
    opened.keyboard.press("t")
    assert opened.evaluate("() => document.documentElement.dataset.theme") == "dark"


def test_finding_leads_to_its_place(browser, written, folder):
    link = '<a class="see" href="#panel-io" data-panel="io" data-from="40" data-to="60">show</a>'
    path = write_sample(written.replace("<h2>Findings</h2>", "<h2>Findings</h2>" + link), folder / "finding.html", page_sample.sample())
    watch = Watch(browser, path)
    page = watch.page
    page.locator("a.see[data-panel=io]").click()
    bring(page, "io")
    assert ranges(page)[0] == [pytest.approx(37), pytest.approx(63)]
    assert page.evaluate("() => document.activeElement.closest('figure').id") == "panel-io"
    assert page.evaluate("() => { const r = document.getElementById('panel-io').getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; }")
    watch.close()


def test_dark(browser, sample_path):
    watch = Watch(browser, sample_path, color_scheme="dark")
    page = watch.page
    bring(page, "memory")
    assert pixels(page, "memory", palette(dark=True)[0]) > 100
    assert pixels(page, "memory", palette()[0]) == 0
    paper = "() => getComputedStyle(document.querySelector('.panel')).backgroundColor"
    dark = page.evaluate(paper)
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate(paper) == "rgb(255, 255, 255)" != dark
    assert pixels(page, "memory", palette()[0]) > 100
    page.reload()
    page.wait_for_function("window.tacho !== undefined")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    del watch.asked[1:]
    watch.close()


def test_nodes_are_chosen(browser, written, folder):
    data = page_sample.sample()
    data["nodes"] = [dict(data["nodes"][0], host=host) for host in ("n1", "<b>n2", "all nodes")]
    own = [dict(panel, id=f"{panel['id']}-{i}", node=i) for panel in data["panels"][:2] for i in range(2)]
    data["panels"] += own
    data["phases"] += [dict(phase, node=1, time_s=phase["time_s"] + 0.1) for phase in data["phases"]]
    watch = Watch(browser, write_sample(written, folder / "nodes.html", data))
    page = watch.page
    shown = "() => tacho.panels.filter((p) => !p.figure.hidden).map((p) => p.panel.id)"
    assert page.evaluate(shown) == [panel["id"] for panel in page_sample.sample()["panels"]]
    of_panel = "(id) => { const p = tacho.panels.find((p) => p.panel.id === id); return p.ofNode(tacho.data.phases).length; }"
    assert [page.evaluate(of_panel, panel) for panel in ("cpu", "cpu-1")] == [2, 2]
    page.get_by_label("Nodes", exact=True).select_option("<b>n2")
    assert page.evaluate(shown) == ["cpu-1", "cpu-processes-1"]
    bring(page, "cpu-1")
    assert pixels(page, "cpu-1", palette()[0]) > 100
    page.get_by_label("Nodes", exact=True).select_option("Each node")
    assert len(page.evaluate(shown)) == len(data["panels"])
    watch.close()


def test_phone_has_no_sideways_scrolling(browser, sample_path):
    watch = Watch(browser, sample_path, viewport={"width": 375, "height": 800})
    assert watch.page.evaluate("() => document.documentElement.scrollWidth") <= 375
    bring(watch.page, "cpu")
    assert pixels(watch.page, "cpu", palette()[0]) > 100
    watch.close()


def colors_on(paper, page):
    """How often each colour is on a page of a PDF."""
    picture = subprocess.run(["pdftoppm", "-r", "60", "-f", str(page), "-l", str(page), paper], capture_output=True, check=True).stdout
    body = picture.split(b"\n", 3)[3]
    return Counter(body[i:i + 3] for i in range(0, len(body) - 2, 3))


def test_print(browser, sample_path, folder):
    if not shutil.which("pdftotext"):
        pytest.skip("pdftotext (poppler-utils) is not installed")
    watch = Watch(browser, sample_path, color_scheme="dark")
    paper = folder / "page.pdf"
    watch.page.pdf(path=str(paper), format="A4", print_background=True)
    pages = subprocess.run(["pdftotext", "-layout", paper, "-"], capture_output=True, text=True, check=True).stdout.split("\f")
    text = "".join(pages)
    for panel in page_sample.sample()["panels"]:
        assert panel["title"] in text
    assert "Search name" not in text and "Show all" not in text
    # Light, whatever the screen is; the far panels are drawn as well as the near ones.
    seen = colors_on(paper, max(i for i, page in enumerate(pages, 1) if "Storage" in page))
    assert seen.most_common(1)[0][0] == b"\xff\xff\xff"
    near = [n for color, n in seen.items() if all(abs(a - b) < 40 for a, b in zip(color, bytes.fromhex(palette()[1][1:])))]
    assert sum(near) > 50
    assert not watch.page.evaluate("() => document.documentElement.hasAttribute('data-print')")
    watch.close()


def test_legends_on_a_phone(browser, sample_path):
    """Numbers beside each other, not upon one another."""
    watch = Watch(browser, sample_path, viewport={"width": 390, "height": 844})
    for panel in page_sample.sample()["panels"]:
        if panel["form"] != "heat":
            bring(watch.page, panel["id"])
    wide = watch.page.evaluate("""() => [...document.querySelectorAll('.legend td')].filter((cell) => cell.scrollWidth > cell.clientWidth)
        .map((cell) => cell.textContent)""")
    assert not wide
    watch.close()


def test_legends_on_paper(browser, sample_path):
    """All of a legend is there, also of panels with a height of their own, and so are its colours: browsers print no backgrounds."""
    watch = Watch(browser, sample_path)
    bring(watch.page, "timeline")
    watch.page.emulate_media(media="print")
    styles = watch.page.evaluate("""() => ['.legend-scroll', '.swatch'].map((name) =>
        getComputedStyle(document.querySelector('#panel-timeline ' + name))).map((style) => [style.maxHeight, style.printColorAdjust])""")
    assert styles[0][0] == "none" and styles[1][1] == "exact"
    watch.close()


def test_hostile_names_are_text(opened):
    for panel in page_sample.sample()["panels"]:
        bring(opened, panel["id"])
    assert opened.locator("#processes b, #processes script, figure b, figure i").count() == 0
    assert "<b>sh</b>" in opened.locator("#processes tbody").inner_text()


def test_phases_without_a_band_are_counted(browser, written, folder):
    """Three rows of names have room for three phases at a time: the page says how many have none."""
    names = ["one", "two", "three", "four", "five"]
    told = [f"{TACHO} phase {verb} {name};" for verb in ("begin", "end") for name in names]
    recording, page = folder / "phases.tacho", folder / "phases.html"
    assert record(["sh", "-c", " ".join([*told[:5], "sleep 0.2;", *told[5:]])], "-q", "-i", "50ms", output=recording).returncode == 0
    report(recording, page)
    watch = Watch(browser, page)
    assert watch.page.inner_text("#phases .unnamed").startswith("2 phases have no band in the plots")
    watch.close()
