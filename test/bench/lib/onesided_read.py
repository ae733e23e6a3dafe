"""onesided_read.py FILE: reads it to its end, 1 MiB a read, after its pages were dropped; prints the seconds.

onesided_read.py --table NAME MIB: a row of the table from the lines of measure (onesided) on the standard input.
"""
import os
import statistics
import sys
import time


def read(path):
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    buf = bytearray(1 << 20)
    begun = time.monotonic()
    while os.readv(fd, [buf]):
        pass
    print(time.monotonic() - begun)


def cell(values):
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def table(name, mib):
    rows = [[float(x) for x in line.split()] for line in sys.stdin]
    gib = mib / 1024
    columns = [
        [mib / r[0] for r in rows],
        [mib / r[1] for r in rows],
        [r[2] / 1e6 / gib for r in rows],
        [r[3] / 1e6 / gib for r in rows],
        [100 * r[4] / mib for r in rows],
    ]
    print("| " + " | ".join([name] + [cell(c) for c in columns]) + " |")


if sys.argv[1] == "--table":
    table(sys.argv[2], int(sys.argv[3]))
else:
    read(sys.argv[1])
