"""Is what the applications saw what close-to-open and locks promise?

check.py PFS EVENTS LOG...: EVENTS has "kill N TIME" for each daemon that was killed, and "whole N TIME" for each node
that took part from then on, without a fault. Checked:
  - a page that was read is one that was written, no older than the last write that was closed before the open, and no
    newer than what was begun before the read ended
  - no two nodes had one lock at one time; a daemon's death ends what was locked there
  - nothing took longer than it may, and nothing failed where all was whole again
  - what is on the PFS in the end is what was closed last, or of a write after it that failed
"""

import bisect
import json
import os
import sys

import pages

LONGEST_S = 75  # T_open, twice where an open and a write of it wait, and a loaded machine


class Writes:
    """Of one file: who closed when, what was begun when."""

    def __init__(self):
        self.closed = []  # (time, seq)
        self.begun = []

    def lowest(self, t):
        at = bisect.bisect_left(self.closed, (t, -1))
        return self.closed[at - 1][1] if at else 0

    def highest(self, t):
        at = bisect.bisect_right(self.begun, (t, 1 << 60))
        return self.begun[at - 1][1] if at else 0


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
        elif not o["error"]:
            w.closed.append((o["end"], o["seq"]))
    for w in files.values():
        w.closed.sort()
        w.begun.sort()
    return files


def check_reads(ops, files):
    for o in ops:
        if o["what"] != "read" or o["error"]:
            continue
        w = files.get(o["file"], Writes())
        low, high = w.lowest(o["begin"]), w.highest(o["end"])
        if "seqs" not in o:
            yield f"a short or long file: {o}"
        elif any(s is None or not low <= s <= high for s in o.get("seqs", [])):
            yield f"read what it must not, between {low} and {high} it may: {o}"


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
    wrong = [*check_reads(ops, files), *check_locks(ops, kills), *check_times(ops)]
    wrong += [*check_errors(ops, whole), *check_pfs(pfs, files)]
    for text in wrong[:20]:
        print("WRONG:", text)
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
