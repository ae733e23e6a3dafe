"""What is known to be wrong today, so that what works stays so. Each entry has its reason, and goes with the repair.
--all runs without this list.
"""

import os
import sys
from fnmatch import fnmatchcase

SIZE = "another node's kernel is not told of a change: it shows the old size and bytes until --attr-timeout is over"
TIMES = "a flush moves ctime, and nodes tell different times of one change"

KEPT = "through a descriptor from before another node's change of the attributes the old ones are shown"

MOVED = "the node that has the bytes of a file below a directory that was moved may not find it: ENOENT at the flush"

# Operations that are not made, as what follows them would differ: "rename-EXCHANGE", "mapstore", "kill", ...
OPERATIONS = {
    "rename-dir": MOVED,
    "rename-over dir": MOVED,
    "rename-EXCHANGE": MOVED,
    "outside-rename": MOVED,
    "chmod-while-dead": "of a file whose bytes are on a dead node chmod says EIO, but is done",
    "map-kept": SIZE,  # and a map beyond the bytes that are there ends the program
}

# Deviations that do not count (patterns of their keys, compare.py): what follows them is as it should be.
CHECKS = {
    "*/size": SIZE,
    "*/end": SIZE,
    "*/length": SIZE,
    "*/map-*": SIZE,
    "*/kept-*/bytes": SIZE,
    "result/read/*": SIZE,
    "result/reopen/ESTALE": "O_TRUNC through /proc/self/fd, of a file that another node has written to",
    "*/kept-*/mode": KEPT,
    "*/kept-*/owner": KEPT,
    "*/kept-*/nlink": KEPT,
    "*/ctime-moved": TIMES,
    "*/ctime-back": TIMES,
    "*/mtime-moved": TIMES,
}

# Programs of invariants (test_oracle_many_at_once.sh) that are not run: NAME, "all nodes" or "one node", and, if it
# matters, "passthrough" or "daemon", by which the bytes go.
PROGRAMS = {
    "records all nodes passthrough": "under a lock the kernel's old size is used, and records are lost",
    "lines all nodes daemon": "the kernel cuts a write at a page of where it thinks the end is, and lines are torn",
    "publish all nodes": "a name that was replaced gives ESTALE on another node",
    "publish one node": "a name that is being replaced gives an empty file",
    "follow all nodes": "a descriptor for reading shows zeros, or nothing, where another node has appended",
}


def is_known(key):
    return any(fnmatchcase(key, pattern) for pattern in CHECKS)


def is_made(operation):
    return operation not in OPERATIONS


def main():
    """known_wrong.py PROGRAM NODES: says why that is not run, and ends with 0; or ends with 1: it is."""
    name = " ".join(sys.argv[1:])
    way = "daemon" if "--no-passthrough" in os.environ.get("EDDY_TEST_OPTIONS", "") else "passthrough"
    why = PROGRAMS.get(name) or PROGRAMS.get(f"{name} {way}")
    if not why or os.environ.get("ORACLE_ALL"):
        sys.exit(1)
    print(f"not run: {name}: {why}")


if __name__ == "__main__":
    main()
