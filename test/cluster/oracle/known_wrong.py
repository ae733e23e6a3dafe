"""What is known to be wrong today, so that what works stays so. Each entry has its reason, and goes with the repair.
--all runs without this list.
"""

from fnmatch import fnmatchcase

SIZE = "another node's kernel is not told of a change: it shows the old size and bytes until the attributes' time is over"
TIMES = "a flush moves ctime, and nodes tell different times of one change"

KEPT = "through a descriptor from before another node's change of the attributes the old ones are shown"
NAMELESS = "a file without a name, open on a node that has not its bytes, gives ESTALE, or EIO after half a minute"

# Operations that are not made, as what follows them would differ: "rename-EXCHANGE", "mapstore", "kill", ...
OPERATIONS = {
    "append-seek": SIZE,
    "locked-append": SIZE,
    "copy": SIZE,
    "nameless": NAMELESS,
    "map-kept": SIZE,  # and a map beyond the bytes that are there ends the program
}

# Deviations that do not count (patterns of their keys, compare.py): what follows them is as it should be.
CHECKS = {
    "*/size": SIZE,
    "*/end": SIZE,
    "*/length": SIZE,
    "*/map-*": SIZE,
    "*/kept-*/bytes": SIZE,
    "*/pos": SIZE,
    "result/append/position": SIZE,
    "result/read/*": SIZE,
    "result/locked/*": SIZE,
    "*/kept-*/mode": KEPT,
    "*/kept-*/owner": KEPT,
    "*/kept-*/nlink": KEPT,
    "*/ctime-moved": TIMES,
    "*/ctime-back": TIMES,
    "*/mtime-moved": TIMES,
    "*/mtime": TIMES,
}


def is_known(key):
    return any(fnmatchcase(key, pattern) for pattern in CHECKS)


def is_made(operation):
    return operation not in OPERATIONS
