"""Is what the applications saw what close-to-open and locks promise?

check.py PFS EVENTS LOG...: EVENTS has "kill N TIME" for each daemon that was killed, and "whole N TIME" for each node
that took part from then on, without a fault. Checked:
  - a page that was read is one that was written, no older than the last write that was closed before the open, and no
    newer than what was begun before the read ended. A page that was being written while it was read may have bytes of
    both, as on a local disk (ext4, for one, reads a page without the lock of its writers); no other page may
  - no two nodes had one lock at one time; a daemon's death ends what was locked there
  - nothing took longer than it may, and nothing failed where all was whole again
  - what is on the PFS in the end is what was closed last, or of a write after it that failed
"""

import base64
import bisect
import json
import math
import os
import sys
import zlib

import pages

SHORTEST = 16  # of the pieces that a page is told to have
LONGEST_S = 75  # T_open, twice where an open and a write of it wait, and a loaded machine


class Writes:
    """Of one file: who closed when, what was begun when."""

    def __init__(self):
        self.closed = []  # (time, seq)
        self.begun = []
        self.times = {}  # seq: when each page was begun, and when the last one ended

    def lowest(self, t):
        at = bisect.bisect_left(self.closed, (t, -1))
        return self.closed[at - 1][1] if at else 0

    def highest(self, t):
        at = bisect.bisect_right(self.begun, (t, 1 << 60))
        return self.begun[at - 1][1] if at else 0

    def meets(self, seq, number, begin, end):
        """Was the page being written at some time in between? A write that failed may still be on its way."""
        times = self.times.get(seq, [])
        begun = times[number] if number < len(times) else math.inf
        ended = times[number + 1] if number + 1 < len(times) else math.inf
        return begun <= end and ended >= begin


def load(paths):
    for path in paths:
        with open(path) as f:
            for line in f:
                yield json.loads(line)


def writes_of(ops):
    files = {}
    for o in ops:
        if o["what"] != "write":
            continue
        w = files.setdefault(o["file"], Writes())
        if "started" in o:
            w.begun.append((o["started"], o["seq"]))
        else:
            w.times[o["seq"]] = o["times"]
            if not o["error"]:
                w.closed.append((o["end"], o["seq"]))
    for w in files.values():
        w.closed.sort()
        w.begun.sort()
    return files


def is_torn(w, o, number, low, high):
    """Is the page made of bytes of a write that it may be of, and of later ones that were writing it during the read?"""
    data = bytes_of(o, number)
    during = [s for s in range(low, high + 1) if w.meets(s, number, o["from"], o["to"])]
    for base in range(low, high + 1):
        seqs = {base, *(s for s in during if s > base)}
        sources = {s: pages.make(o["file"], number, s) for s in seqs}
        if all(source is not None for _, _, source in pages.pieces(data, sources)):
            return True
    return False


def bytes_of(o, number):
    return zlib.decompress(base64.b64decode(o["odd"][str(number)]))


def story(o, number, low, high):
    """What the page has, in words."""
    data, name = bytes_of(o, number), o["file"]
    seqs = range(max(0, low - 5), high + 6)
    sources = {f"write {seq}": pages.make(name, number, seq) for seq in seqs}  # of those that fit, the first is told
    sources["zeros"] = bytes(pages.PAGE)
    sources.update({f"page {n} of write {seq}": pages.make(name, n, seq) for seq in seqs for n in range(pages.PAGES)})
    parts = [
        f"{length} bytes at {at} of {source or 'nothing known: ' + data[at : at + min(length, 48)].hex()}"
        for at, length, source in pages.pieces(data, sources, SHORTEST)
    ]
    return f"page {number} has " + ", ".join(parts[:20]) + (" ..." if len(parts) > 20 else "")


def check_reads(ops, files, torn):
    for o in ops:
        if o["what"] != "read" or o["error"]:
            continue
        w = files.get(o["file"], Writes())
        low, high = w.lowest(o["begin"]), w.highest(o["end"])
        if "seqs" not in o:
            yield f"a short or long file: {o}"
            continue
        odd = [n for n, seq in enumerate(o["seqs"]) if seq is None]
        torn += (story(o, n, low, high) for n in odd if is_torn(w, o, n, low, high))
        wrong = [n for n in odd if not is_torn(w, o, n, low, high)]
        if wrong or any(s is not None and not low <= s <= high for s in o["seqs"]):
            brief = {k: v for k, v in o.items() if k != "odd"}
            stories = "; ".join(story(o, n, low, high) for n in wrong)
            times = {s: w.times.get(s) for s in range(low, high + 1)}
            yield f"read what it must not, between {low} and {high} it may: {brief} {stories} (written {times})"


def check_locks(ops, kills):
    held = {}
    for o in ops:
        if o["what"] == "lock" and "from" in o:
            ends = [k for k in kills.get(o["node"], []) if o["begin"] <= k]
            held.setdefault(o["file"], []).append((o["from"], min([o["to"]] + ends[:1]), o["node"]))
    for name, list_ in held.items():
        list_.sort()
        last = (0, 0, -1)
        for h in list_:
            if h[0] < last[1] and h[1] > h[0]:
                yield f"{name} was locked twice: {last} and {h}"
            last = max(last, h, key=lambda x: x[1])


def check_times(ops):
    for o in ops:
        if "end" in o and o["end"] - o["begin"] > LONGEST_S:
            yield f"took {o['end'] - o['begin']:.0f} s: {o}"


def check_errors(ops, whole):
    for o in ops:
        if o.get("error") not in (None, "EAGAIN") and o["begin"] > whole.get(o["node"], o["begin"]):
            yield f"failed without a fault: {o}"


def check_pfs(pfs, files):
    for name, w in files.items():
        with open(os.path.join(pfs, name), "rb") as f:
            data = f.read()
        low, high = w.lowest(1 << 60), w.highest(1 << 60)
        for n in range(pages.PAGES):
            seq = pages.seq_of(name, n, data[n * pages.PAGE : (n + 1) * pages.PAGE])
            if seq is None or not low <= seq <= high or len(data) != pages.PAGE * pages.PAGES:
                yield f"{name} on the PFS: page {n} is of write {seq}, closed was {low}"


def main():
    pfs, events, *logs = sys.argv[1:]
    ops = list(load(logs))
    kills, whole = {}, {}
    with open(events) as f:
        for line in f:
            what, node, t = line.split()
            if what == "kill":
                kills.setdefault(int(node), []).append(float(t))
            else:
                whole[int(node)] = float(t)
    files = writes_of(ops)
    torn = []
    wrong = [*check_reads(ops, files, torn), *check_locks(ops, kills), *check_times(ops)]
    wrong += [*check_errors(ops, whole), *check_pfs(pfs, files)]
    for text in wrong[:20]:
        print("WRONG:", text)
    for text in torn[:20]:
        print("torn by a write at the same time:", text)
    done = [o for o in ops if "end" in o]
    good = {w: sum(o["what"] == w and not o["error"] for o in done) for w in ("write", "read", "lock")}
    failed = {}
    for o in done:
        if o["error"]:
            failed[o["error"]] = failed.get(o["error"], 0) + 1
    longest = max((o["end"] - o["begin"] for o in done), default=0)
    print(f"{good} done, {failed} failed, the longest took {longest:.1f} s, {len(wrong)} wrong")
    sys.exit(1 if wrong or not all(good.values()) else 0)


main()
