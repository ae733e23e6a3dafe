#!/usr/bin/env python3
"""Processes on several nodes add records to one file, each under a lock of the whole file: none is lost or torn."""

import fcntl
import os
import sys
import time
import zlib

sys.dont_write_bytecode = True

import crowd  # noqa: E402

USAGE = """records.py [options] DIRECTORY...   (one for each node)

  --lock KIND      fcntl or flock (fcntl)
  --how HOW        seek: lseek to the end, then write; counter: read how many there are, write at that place, count;
                   append: O_APPEND (seek)
  --processes N    on each node (4)
  --records N      of each process (100)
  --stagger N      seconds by which each node opens the file later than the one before, which adds records already (0)
  --json FILE      what is printed

Exit codes: 0 nothing was wrong, 1 something was, 2 wrong usage.
"""
RECORD = 64
HEAD = 64  # of a file with a counter
NAME = "records"


def record(node, process, n):
    text = f"node {node} process {process:2} record {n:8} ".encode()
    text += b"%08x" % zlib.crc32(text)
    return text.ljust(RECORD - 1, b".") + b"\n"


def locked(fd, kind, do):
    take = fcntl.flock if kind == "flock" else fcntl.lockf
    take(fd, fcntl.LOCK_EX)
    try:
        return do()
    finally:
        take(fd, fcntl.LOCK_UN)


def add(fd, how, data):
    """Gives what was wrong with what was seen under the lock."""
    if how == "append":
        os.write(fd, data)
        return None
    if how == "counter":
        count = int(os.pread(fd, 16, 0) or b"0")
        before = os.pread(fd, RECORD, HEAD + (count - 1) * RECORD) if count else None
        os.pwrite(fd, data, HEAD + count * RECORD)
        os.pwrite(fd, b"%015d\n" % (count + 1), 0)
    else:
        end = os.lseek(fd, 0, os.SEEK_END)
        before = os.pread(fd, RECORD, end - RECORD) if end else None
        os.write(fd, data)
        if end % RECORD:
            return f"the size under the lock is {end}, which is within a record"
    if before is not None and (len(before) != RECORD or not is_whole(before)):
        return f"the record before is {before!r}"
    return None


def is_whole(data):
    text, _, rest = data.partition(b"record")
    end = len(text) + 6 + 10
    return data[end:end + 8] == b"%08x" % zlib.crc32(data[:end]) and bool(rest)


def work(many, directory, node, process, options):
    time.sleep(node * options.stagger)
    flags = os.O_RDWR | (os.O_APPEND if options.how == "append" else 0)
    fd = os.open(os.path.join(directory, NAME), flags)
    wrong = []
    for n in range(options.records):
        bad = locked(fd, options.lock, lambda n=n: add(fd, options.how, record(node, process, n)))
        if bad:
            wrong.append(f"node {node} process {process}, before record {n}: {bad}")
        many.step()
    os.close(fd)
    return {"records written": options.records}, wrong


def check(data, options, where):
    data = data[HEAD:] if options.how == "counter" else data
    expected = {record(node, process, n) for node in range(len(options.directories))
                for process in range(options.processes) for n in range(options.records)}
    found = [data[i:i + RECORD] for i in range(0, len(data), RECORD)]
    wrong = []
    lost, odd = expected - set(found), [r for r in found if r not in expected]
    if lost:
        wrong.append(f"{where}: {len(lost)} of {len(expected)} records are lost, as {sorted(lost)[0][:40]!r}")
    if odd:
        wrong.append(f"{where}: {len(odd)} are none, as {odd[0]!r}")
    if len(found) > len(set(found)) + len(odd):
        wrong.append(f"{where}: {len(found) - len(set(found))} are there more than once")
    return wrong


def main():
    options = crowd.parse(USAGE, {"lock": ("fcntl", str), "how": ("seek", str), "processes": (4, int),
                                  "records": (100, int), "stagger": (0, float)})
    with open(os.path.join(options.directories[0], NAME), "wb") as f:
        f.write(b"%015d\n" % 0 + b"\n" * (HEAD - 16) if options.how == "counter" else b"")
    many = crowd.Crowd()
    for node, directory in enumerate(options.directories):
        for process in range(options.processes):
            many.add(f"node {node} process {process}", work, directory, node, process, options)
    numbers, wrong = many.go()
    for node, directory in enumerate(options.directories):
        wrong += check(crowd.whole_file(directory, NAME), options, f"read on node {node}")
    crowd.end(f"records ({options.lock}, {options.how})", options, numbers, wrong)


if __name__ == "__main__":
    main()
