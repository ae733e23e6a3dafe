#!/usr/bin/env python3
"""Runs a program of checks (test/unit), and tells in TAP, which meson reads, how each of them ended.

    tap.py PROGRAM [ARGUMENT...]

Check writes TAP itself, but does not know of checks that are skipped: NOT_CHECKED (suite.h) prints a
line before such a check ends. All other lines that the program prints become comments. Where the program
does not end as its checks did (a crash, a sanitizer's report at the end, the signal of a time-out), that
is one more result, so what is told here is the whole of it and the exit code is 0.
"""

import os
import re
import signal
import subprocess
import sys

NOT_CHECKED = re.compile(r"not checked: [^:]*: (.*)")
RESULT = re.compile(r"(ok|not ok) \d+ - [^:]*:(.+?:\w+): (.*)")  # FILE:CASE:CHECK: MESSAGE
PLAN = re.compile(r"1\.\.(\d+)$")


class Results:
    def __init__(self):
        self.count = 0
        self.failed = 0
        self.planned = None
        self.why_skipped = None

    def say(self, result, name, skipped=None):
        self.count += 1
        self.failed += result != "ok"
        print(f"{result} {self.count} - {name}" + (f" # SKIP {skipped}" if skipped else ""), flush=True)

    def hear(self, line):
        if found := RESULT.match(line):
            result, name, message = found.groups()
            if result != "ok":
                print("# " + message)
            self.say(result, name, self.why_skipped if result == "ok" else None)
            self.why_skipped = None
        elif found := PLAN.match(line):
            self.planned = int(found[1])
        else:
            if found := NOT_CHECKED.match(line):
                self.why_skipped = found[1]
            print("# " + line, flush=True)

    def wrong_end(self, code):
        """What the program did wrong besides its checks, if anything."""
        if code < 0:
            return f"ended by {signal.Signals(-code).name}"
        if self.planned is None:
            return f"ended with code {code} before its checks did"
        if self.planned == 0:
            return "has no checks"
        if self.planned != self.count:
            return f"told the results of {self.count} of {self.planned} checks"
        if code != 0 and not self.failed:
            return f"ended with code {code}"
        return None


def main():
    results = Results()
    env = dict(os.environ, CK_TAP_LOG_FILE_NAME="-")
    program = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, env=env, text=True, errors="replace")
    # Meson's time-out sends it to both: what there is to tell comes when the program has ended.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in program.stdout:
        results.hear(line.rstrip("\n"))
    if wrong := results.wrong_end(program.wait()):
        results.say("not ok", f"{os.path.basename(sys.argv[1])} {wrong}")
    print(f"1..{results.count}")


main()
