"""What is known to be wrong today, so that what works stays so. Each entry has its reason, and goes with the repair.
--all runs without this list.
"""

from fnmatch import fnmatchcase

# Operations that are not made, as what follows them would differ: "rename-EXCHANGE", "mapstore", "kill", ...
OPERATIONS = {
}

# Deviations that do not count (patterns of their keys, compare.py): what follows them is as it should be.
CHECKS = {
}


def is_known(key):
    return any(fnmatchcase(key, pattern) for pattern in CHECKS)


def is_made(operation):
    return operation not in OPERATIONS
