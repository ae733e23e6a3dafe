#!/usr/bin/env python3
"""A file is published again and again (written under another name, renamed over the name) on the first node, and read
on all: each open gives one whole version, none older than one that this process has read before; it is never empty, and
there is never an error."""

import os
import sys
import time
import zlib

sys.dont_write_bytecode = True

import crowd  # noqa: E402

USAGE = """publish.py [options] DIRECTORY...   (one for each node)

  --seconds N      (5)
  --every N        milliseconds between two versions (10)
  --readers N      on each node (2)
  --longest N      bytes of a version (20000)
  --within N       seconds in which a reader must have seen a version, or a newer one (1.5)
  --json FILE      what is printed

Exit codes: 0 nothing was wrong, 1 something was, 2 wrong usage.
"""
NAME = "published"


def version(n, longest):
    body = b"%08d %.6f " % (n, time.monotonic())
    body += b"x" * (n * 7919 % longest)
    return body + b" %08x\n" % zlib.crc32(body)


def put(directory, n, longest):
    new = os.path.join(directory, f"{NAME}.new.{n}")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, version(n, longest))
    os.close(fd)
    os.rename(new, os.path.join(directory, NAME))


def write(many, directory, options):
    n = 1
    while not many.stop.is_set():
        put(directory, n, options.longest)
        n += 1
        time.sleep(options.every / 1000)
    return {"versions": n}, []


def look(directory):
    """(what was read, the size that fstat told)"""
    fd = os.open(os.path.join(directory, NAME), os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        data = b""
        while part := os.pread(fd, 1 << 20, len(data)):
            data += part
        return data, size
    finally:
        os.close(fd)


def judge(data, size):
    """(the version's number, when it was made, or None and what is wrong)"""
    if not data:
        return None, None, f"it is empty (fstat: {size})"
    if data[-10:] != b" %08x\n" % zlib.crc32(data[:-10]):
        return None, None, f"{len(data)} bytes are no whole version (fstat: {size}): {data[:30]!r} ... {data[-12:]!r}"
    if size != len(data):
        return None, None, f"fstat told {size} of {len(data)} bytes"
    return int(data[:8]), float(data[9:].split(b" ", 1)[0]), None


def read(many, directory, node, options):
    wrong, count, newest = [], 0, 0
    while not many.stop.is_set():
        began = time.monotonic()
        try:
            n, made, bad = judge(*look(directory))
        except OSError as e:
            bad = f"{e.strerror} at {crowd.where(e)}"
        count += 1
        if bad:
            wrong.append(f"node {node}: {bad}")
        elif n < newest:
            wrong.append(f"node {node}: version {n} after version {newest}")
        else:
            newest = n
            if began - made > options.within + options.every / 1000:
                wrong.append(f"node {node}: version {n}, which is {began - made:.2f} s old")
        time.sleep(0.002)
    return {"reads": count}, wrong


def main():
    options = crowd.parse(USAGE, {"seconds": (5, float), "every": (10, float), "readers": (2, int),
                                  "longest": (20000, int), "within": (1.5, float)})
    put(options.directories[0], 0, options.longest)
    many = crowd.Crowd()
    many.add("the writer", write, options.directories[0], options)
    for node, directory in enumerate(options.directories):
        for _ in range(options.readers):
            many.add(f"a reader on node {node}", read, directory, node, options)
    numbers, wrong = many.go(options.seconds)
    crowd.end("publish", options, numbers, wrong)


if __name__ == "__main__":
    main()
