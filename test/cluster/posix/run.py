#!/usr/bin/env python3
"""Names and attributes as POSIX has them, one behaviour per function, in the directory given.

Usage: run.py DIRECTORY [NAME...]     only the checks of these names

Every check runs in an empty directory of its own. Those that need root, other
users, ACLs or extended attributes are skipped, and say so, where there are none.
Run on a plain file system all must pass: that is the check of the checks.
"""
import os
import subprocess
import sys
import time
import traceback

import attributes  # noqa: F401 (each registers its checks)
import links  # noqa: F401
import listing  # noqa: F401
import make  # noqa: F401
import rename  # noqa: F401
import users  # noqa: F401
import xattrs  # noqa: F401
from common import Skip, checks


def run_one(fn, top):
    where = os.path.join(top, fn.__name__)
    os.mkdir(where)
    os.chmod(where, 0o755)
    os.chdir(where)
    os.umask(0o022)
    began = time.monotonic()
    try:
        fn()
        result = "passed"
    except Skip as e:
        result = f"skipped: {e}"
    except BaseException:
        result = "FAILED"
        traceback.print_exc(file=sys.stdout)
    print(f"{fn.__name__}: {result} ({time.monotonic() - began:.2f} s)", flush=True)
    os.chdir(top)
    subprocess.run(["rm", "-rf", where], check=True)
    if os.path.lexists(where):
        print(f"{fn.__name__}: FAILED: could not be removed")
        return "FAILED"
    return result


def main():
    top = os.path.realpath(sys.argv[1])
    wanted = sys.argv[2:]
    results = [run_one(fn, top) for fn in checks if not wanted or fn.__name__ in wanted]
    failed = results.count("FAILED")
    print(f"{results.count('passed')} passed, {failed} failed, {len(results) - results.count('passed') - failed} skipped")
    sys.exit(1 if failed or not results else 0)


main()
