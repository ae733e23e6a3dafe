#!/usr/bin/env python3
"""What a headless Chromium makes of a page of `eddy report`.

  report_page.py PAGE PICTURE.png      draws the page into PICTURE.png, and fails with the reason where a scientist would see nothing
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

CHARTS = 5
COLOURS = {"own cache": (0x4f, 0x9d, 0x69), "other nodes": (0x4f, 0x7f, 0xb0), "PFS": (0xd0, 0x8a, 0x4e)}

# Runs in a copy of the page that is let run it, and leaves what it measured in the document.
MEASURE = """
const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const charts = [...document.querySelectorAll("svg")].map(s => ({
    name: s.getAttribute("aria-label"), box: box(s),
    shapes: [...s.querySelectorAll("path, rect")].map(box),
    texts: [...s.querySelectorAll("text")].map(t => ({text: t.textContent, box: box(t)}))}));
const pre = document.createElement("pre");
pre.id = "measured";
pre.textContent = JSON.stringify({charts, wide: document.documentElement.scrollWidth - window.innerWidth});
document.body.appendChild(pre);
"""


def chromium(*options):
    """Its standard output; what it logs of the page (CONSOLE) is an error of the page."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", "--enable-logging=stderr", f"--user-data-dir={home}", *options],
            env={**os.environ, "HOME": home}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=True)
    said = [line for line in done.stderr.decode(errors="replace").splitlines() if "CONSOLE" in line]
    assert not said, "the page makes the browser complain: " + "; ".join(said)
    return done.stdout.decode()


def measured(page):
    with open(page, encoding="utf-8") as f:
        text = f.read()
    text, n = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert n == 1, "the page does not say that it may load nothing"
    copy = page + ".measured.html"
    with open(copy, "w", encoding="utf-8") as f:
        f.write(text.replace("</body>", f"<script>{MEASURE}</script></body>"))
    dom = chromium("--window-size=1100,900", "--dump-dom", "file://" + copy)
    found = re.search(r'<pre id="measured">(.*?)</pre>', dom, re.S)
    assert found, "the page was not measured"
    return json.loads(found.group(1).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def overlap(a, b):
    return min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 3


def check_chart(chart):
    name, (left, top, right, bottom) = chart["name"], chart["box"]
    assert right - left > 500 and bottom - top > 40, f"{name}: is {right - left} x {bottom - top}"
    large = [b for b in chart["shapes"] if b[2] - b[0] > 2 and b[3] - b[1] > 2]
    assert large, f"{name}: nothing is drawn in it"
    assert len(chart["texts"]) >= 3, f"{name}: has {len(chart['texts'])} words at its axes"
    for i, t in enumerate(chart["texts"]):
        b = t["box"]
        assert b[0] >= left - 1 and b[2] <= right + 1 and b[1] >= top - 1 and b[3] <= bottom + 1, f"{name}: {t['text']!r} is cut off"
        assert b[3] - b[1] >= 9, f"{name}: {t['text']!r} is {b[3] - b[1]} pixels high"
        for u in chart["texts"][:i]:
            assert not overlap(b, u["box"]), f"{name}: {t['text']!r} lies on {u['text']!r}"


def pixels(path):
    """The rows of a PNG of 8 bits a channel, without interlace, as bytes; and how many bytes a pixel has."""
    with open(path, "rb") as f:
        data = f.read()
    assert data.startswith(b"\x89PNG\r\n\x1a\n"), "is no PNG"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (2, 6) and not interlace
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    n = 3 if colour == 2 else 4
    raw, stride = zlib.decompress(packed), width * n
    before, rows = bytes(stride), []
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        unfilter(kind, row, before, n)
        rows.append(bytes(row))
        before = row
    return rows, n


def unfilter(kind, row, above, n):
    for i in range(len(row) if kind else 0):
        a, b, c = (row[i - n] if i >= n else 0), above[i], (above[i - n] if i >= n else 0)
        if kind == 4:
            p = a + b - c
            guess = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        else:
            guess = (0, a, b, (a + b) // 2)[kind]
        row[i] = (row[i] + guess) & 255


def check_picture(path):
    """Each source's colour covers a part of the picture."""
    rows, n = pixels(path)
    counts = {}
    for row in rows:
        for i in range(0, len(row), n):
            rgb = row[i:i + 3]
            counts[rgb] = counts.get(rgb, 0) + 1
    assert len(counts) > 20, f"the picture has {len(counts)} colours"
    for name, colour in COLOURS.items():
        seen = counts.get(bytes(colour), 0)
        assert seen > 200, f"the colour of {name} is on {seen} pixels"


def main():
    page, picture = sys.argv[1:]
    m = measured(page)
    assert m["wide"] <= 0, f"the page is {m['wide']} pixels wider than the window"
    assert len(m["charts"]) == CHARTS, f"{len(m['charts'])} charts"
    for chart in m["charts"]:
        check_chart(chart)
    chromium("--window-size=1100,2000", f"--screenshot={picture}", "file://" + page)
    check_picture(picture)


try:
    main()
except AssertionError as e:
    sys.exit(f"report_page: {e}")
