#!/usr/bin/env python3
"""Reads what "meson test" wrote of programs of checks, for test/run.

    unit_results.py TESTLOG_JSON MESONS_OUTPUT LOGS_DIR NAME...

A NAME is that of a test of test/run, as asan/unit/lock. Writes the log of each to LOGS_DIR, and prints a
line for each program and for each check that was skipped, its fields separated by tabs:

    passed   NAME   TIME_AND_COUNTS   CHECKS_PASSED
    failed   NAME   TIME_AND_COUNTS   CHECKS_FAILED   CHECKS_PASSED
    skipped  NAME: CASE:CHECK   WHY
"""

import json
import os
import re
import shutil
import sys

RESULT = re.compile(r"(ok|not ok) \d+ - (.*?)(?: # SKIP (.*))?$")


def runs(testlog):
    """What meson tells of each program, by the name of its test."""
    by_name = {}
    try:
        with open(testlog, errors="replace") as log:
            for line in log:
                run = json.loads(line)
                by_name[os.path.basename(run["command"][-1]).removeprefix("unit_")] = run
    except (FileNotFoundError, json.JSONDecodeError):
        pass  # meson ended before it wrote that: those tests did not run
    return by_name


def write_log(path, run):
    with open(path, "w") as log:
        log.write(re.sub(r"(?m)^# ", "", run.get("stdout", "")))
        log.write(run.get("stderr", ""))
        if run["result"] == "TIMEOUT":
            log.write(f"timed out after {run['duration']:.0f} s\n")


def tell(name, run):
    passed = failed = 0
    for line in run.get("stdout", "").splitlines():
        if not (found := RESULT.match(line)):
            continue
        result, check, why_skipped = found.groups()
        if result != "ok":
            failed += 1
        elif why_skipped:
            print("skipped", f"{name}: {check}", why_skipped, sep="\t")
        else:
            passed += 1
    if run["result"] not in ("OK", "SKIP"):
        failed = max(failed, 1)
    time = f"{run['duration']:.1f} s"
    if failed:
        print("failed", name, f"{time}, {failed} of {passed + failed} checks", failed, passed, sep="\t")
    elif passed:
        print("passed", name, f"{time}, {passed} checks", passed, sep="\t")


def main():
    testlog, mesons_output, logs, *names = sys.argv[1:]
    by_name = runs(testlog)
    for name in names:
        log = os.path.join(logs, name.replace("/", "_") + ".log")
        run = by_name.get(os.path.basename(name))
        if run:
            write_log(log, run)
            tell(name, run)
        else:
            shutil.copy(mesons_output, log)
            print("failed", name, "meson test did not run it", 1, sep="\t")


main()
