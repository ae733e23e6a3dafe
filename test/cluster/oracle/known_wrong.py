"""What is known to be wrong today, so that what works stays so. Each entry has its reason, and goes with the repair.
--all runs without this list.
"""

import os
import sys
from fnmatch import fnmatchcase

CTIME = "an attribute or name that is set while the file is flushed, or a home that ends: ctime moves by the flush"

# Operations that are not made, as what follows them would differ: "rename-EXCHANGE", "mapstore", "kill", ...
OPERATIONS = {}

# Deviations that do not count (patterns of their keys, compare.py): what follows them is as it should be.
CHECKS = {
    "*/ctime-moved": CTIME,
    "*/ctime-back": CTIME,
}

# Programs of invariants (test_oracle_many_at_once.sh) that are not run: NAME, "all nodes" or "one node", and, if it
# matters, "passthrough" or "daemon", by which the bytes go.
PROGRAMS = {}


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
