"""Did the applications of each node write, read and lock since a time?

goes_on.py TIME LOG...: says who did not do what, and fails.
"""

import json
import os
import sys

TAIL = 1 << 18


def done_since(time, log):
    with open(log, "rb") as f:
        f.seek(max(0, os.path.getsize(log) - TAIL))
        lines = f.read().split(b"\n")
    done = set()
    for line in lines:
        try:
            o = json.loads(line)
        except ValueError:
            continue  # cut off here, or being written
        if "end" in o and not o["error"] and o["begin"] > time:
            done.add(o["what"])
    return done


def main():
    time, *logs = sys.argv[1:]
    stuck = False
    for log in logs:
        missing = {"write", "read", "lock"} - done_since(float(time), log)
        if missing:
            stuck = True
            print(f"{os.path.basename(log)}: since all are in one view there was no {', no '.join(sorted(missing))}")
    sys.exit(1 if stuck else 0)


main()
