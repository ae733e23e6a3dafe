"""Reads all files below a directory once, in an order of its own, past the page cache, and looks at
every byte: epoch.py DIR SUMS SEED. Prints one line: seconds, the longest open, the longest read.

SUMS has lines "SHA256  NAME". A wrong byte, an error, or something left out ends it with 1.
"""
import hashlib
import mmap
import os
import random
import sys
import time

PIECE = 1 << 20


def read_file(path, buf, slow):
    digest = hashlib.sha256()
    begin = time.monotonic()
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    slow["open"] = max(slow["open"], time.monotonic() - begin)
    try:
        offset = 0
        while True:
            begin = time.monotonic()
            n = os.preadv(fd, [buf], offset)
            slow["read"] = max(slow["read"], time.monotonic() - begin)
            if not n:
                return digest.hexdigest()
            digest.update(memoryview(buf)[:n])
            offset += n
    finally:
        os.close(fd)


def main():
    top, sums, seed = sys.argv[1:4]
    with open(sums, encoding="utf-8") as lines:
        files = [line.split() for line in lines]
    random.Random(seed).shuffle(files)
    buf = mmap.mmap(-1, PIECE)
    slow = {"open": 0.0, "read": 0.0}
    begin = time.monotonic()
    for expected, name in files:
        found = read_file(os.path.join(top, name), buf, slow)
        if found != expected:
            sys.exit(f"{name}: wrong bytes")
    print(f"{time.monotonic() - begin:.2f} {slow['open']:.2f} {slow['read']:.2f}")


main()
