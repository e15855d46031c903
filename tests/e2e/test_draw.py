"""Drawings as other programs read them: XML, text of a PDF, the same in both themes.

draw_tool (tests/unit/draw_tool.c) draws charts of every form; it stands in the build directory of the binary.
"""

import os
import shutil
import struct
import subprocess
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

import pytest

TOOL = Path(os.environ["TACHO"]).parent / "tests" / "unit" / "draw_tool"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    if not TOOL.exists():
        pytest.skip(f"no {TOOL.name}: built without cairo")
    out = tmp_path_factory.mktemp("drawn")
    # The narrow half of a page, where there is least room for everything.
    subprocess.run([TOOL, out, "500"], check=True)
    return out


def title_of(path):
    return ElementTree.parse(path).getroot().find(f"{SVG}title").text


def find(drawn, title, ending):
    for svg in sorted(drawn.glob("??.svg")):
        if title_of(svg) == title:
            return svg.with_suffix(ending)
    raise AssertionError(f"no drawing is called {title}")


def test_every_drawing_is_xml_with_a_title(drawn):
    drawings = sorted(drawn.glob("*.svg"))
    assert len(drawings) == 2 * len(list(drawn.glob("??.png"))) > 20
    for path in drawings:
        root = ElementTree.parse(path).getroot()
        assert root.tag == f"{SVG}svg" and root.get("viewBox"), path
        assert root.find(f"{SVG}title").text, path


def test_ids_of_two_drawings_differ(drawn):
    """They stand in one page, where the ids of one must not be found by the other."""
    seen = {}
    for path in drawn.glob("*.svg"):
        for element in ElementTree.parse(path).iter():
            name = element.get("id")
            assert name is None or seen.setdefault(name, path) == path, name


def test_references_within_a_drawing_are_found(drawn):
    for path in drawn.glob("*.svg"):
        text = path.read_text()
        names = {element.get("id") for element in ElementTree.fromstring(text).iter()}
        for part in text.split("url(#")[1:]:
            assert part.split(")")[0] in names
        for part in text.split('href="#')[1:]:
            assert part.split('"')[0] in names


def test_text_of_a_pdf_can_be_read(drawn):
    if not shutil.which("pdftotext"):
        pytest.skip("no pdftotext (poppler-utils)")
    pdf = find(drawn, "Memory", ".pdf")
    text = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True).stdout
    for words in ("Memory", "mean 2.1 GiB, max 3.4 GiB", "memory, GiB", "60:00 min", "page cache", "limit 64 GiB, above"):
        assert words in text, text
    info = subprocess.run(["pdfinfo", pdf], capture_output=True, text=True, check=True).stdout
    assert "Title:           Memory" in info and "tacho" in info and "CreationDate" not in info


def pixels(path):
    """Rows of (r, g, b), of a PNG with 8 bits for each of three or four colours."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        (size,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8 : at + 18])
        elif kind == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += size + 12
    assert depth == 8 and colour in (2, 6)
    each = 3 if colour == 2 else 4
    raw, above, rows = zlib.decompress(packed), bytearray(width * each), []
    for y in range(height):
        start = y * (width * each + 1)
        way, line = raw[start], bytearray(raw[start + 1 : start + 1 + width * each])
        for i in range(len(line)):
            left = line[i - each] if i >= each else 0
            if way == 1:
                line[i] = (line[i] + left) & 255
            elif way == 2:
                line[i] = (line[i] + above[i]) & 255
            elif way == 3:
                line[i] = (line[i] + (left + above[i]) // 2) & 255
            elif way == 4:
                corner = above[i - each] if i >= each else 0
                guess = left + above[i] - corner
                nearest = min((abs(guess - v), n, v) for n, v in enumerate((left, above[i], corner)))[2]
                line[i] = (line[i] + nearest) & 255
        rows.append([tuple(line[x * each : x * each + 3]) for x in range(width)])
        above = line
    return rows


def heights(path):
    """Of each column: the first row with the colour of the first curve."""
    rows = pixels(path)
    return [
        next((y for y, row in enumerate(rows) if max(abs(a - b) for a, b in zip(row[x], (0x16, 0x60, 0xC8))) < 40), None)
        for x in range(0, len(rows[0]), 7)
    ]


def test_others_see_the_curve_where_we_drew_it(drawn):
    """The SVG as librsvg shows it against our own PNG."""
    if not shutil.which("rsvg-convert"):
        pytest.skip("no rsvg-convert (librsvg2-bin)")
    svg = find(drawn, "CPU of the job", ".svg")
    theirs = svg.with_name("theirs.png")
    subprocess.run(["rsvg-convert", "-z", "2", "-o", theirs, svg], check=True)
    both = [(a, b) for a, b in zip(heights(svg.with_suffix(".png")), heights(theirs)) if a is not None]
    assert len(both) > 60
    assert sum(b is not None and abs(a - b) <= 4 for a, b in both) > 0.9 * len(both)
