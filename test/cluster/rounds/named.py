"""Does a live node name the files whose latest bytes only a dead node has?

named.py PFS LOG NODE TIME: LOG is of the applications on NODE, which died at TIME; eddy status --json of the live node
comes on standard input. Due is a file that was not as closed on the PFS for MARGIN_S: nodes tell each other what is
unflushed up to a second late, and a loaded machine is slow.
"""

import json
import os
import sys

import pages

MARGIN_S = 4


def closed_writes(log):
    files = {}
    with open(log) as f:
        for line in f:
            try:
                o = json.loads(line)
            except ValueError:
                continue  # it is being written
            if o["what"] == "write" and "end" in o and not o["error"]:
                files.setdefault(o["file"], []).append((o["seq"], o["end"]))
    return files


def on_pfs(pfs, name):
    """The oldest write that a page there is of; None: in the middle of a flush."""
    with open(os.path.join(pfs, name), "rb") as f:
        data = f.read()
    seqs = [pages.seq_of(name, n, data[n * pages.PAGE : (n + 1) * pages.PAGE]) for n in range(pages.PAGES)]
    return None if None in seqs else min(seqs)


def is_due(pfs, name, writes, died):
    there = on_pfs(pfs, name)
    return there is not None and any(seq > there and end < died - MARGIN_S for seq, end in writes)


def main():
    pfs, log, node, died = sys.argv[1:]
    named = {f["path"] for f in json.load(sys.stdin)["lost_files"] if f["node"] == node}
    due = {name for name, writes in closed_writes(log).items() if is_due(pfs, name, writes, float(died))}
    missing = sorted(due - named)
    print(" ".join(missing) if missing else f"   {len(due)} files of {node} had to be named, {len(named)} were")
    sys.exit(1 if missing else 0)


main()
