#!/usr/bin/env python3
"""One file that all nodes keep open for reading and writing. In each round one of them writes a piece somewhere, and says so when the
write has returned; then all others look, by fstat and pread, without a sync, a lock or an open: they have the new bytes and the exact
size, and where nobody wrote, the old ones."""

import os
import random
import sys

sys.dont_write_bytecode = True

import crowd  # noqa: E402

USAGE = """handed.py [options] DIRECTORY...   (one for each node)

  --rounds N       (200)
  --longest N      bytes of a piece (20000)
  --space N        the file's largest size (2000000)
  --seed N         (1)
  --json FILE      what is printed

Exit codes: 0 nothing was wrong, 1 something was, 2 wrong usage.
"""
NAME = "handed"
SHOWN = 5  # of what is wrong in one process


class File:
    """What the file is after each round; each process plays the same."""

    def __init__(self, options):
        self.chance = random.Random(options.seed)
        self.options = options
        self.bytes = bytearray()

    def next_piece(self):
        """(offset, bytes): often at the end, behind it, or at a place that is written often."""
        length = self.chance.randrange(1, self.options.longest)
        end, last = len(self.bytes), self.options.space - length
        offset = self.chance.choice((end, end + self.chance.randrange(100000), self.chance.randrange(last + 1),
                                     self.chance.randrange(8) * 65536 - 100))
        return max(0, min(offset, last)), self.chance.randbytes(length)

    def write(self, offset, data):
        self.bytes.extend(bytes(max(0, offset + len(data) - len(self.bytes))))
        self.bytes[offset:offset + len(data)] = data

    def anywhere(self):
        offset = self.chance.randrange(len(self.bytes))
        return offset, self.chance.randrange(1, self.options.longest)


def differs(fd, file, offset, length):
    expected = file.bytes[offset:offset + length]
    got = os.pread(fd, length, offset)
    if got == expected:
        return None
    at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
    return f"{len(got)} of {len(expected)} bytes at {offset}, the first that differs at {offset + at}"


def look(fd, file, piece):
    """What is wrong, or None."""
    size = os.fstat(fd).st_size
    if size != len(file.bytes):
        return f"size {size}, expected {len(file.bytes)}"
    return differs(fd, file, piece[0], len(piece[1])) or differs(fd, file, *file.anywhere())


def work(many, directory, node, meeting, options):
    file, wrong, looks = File(options), [], 0
    fd = os.open(os.path.join(directory, NAME), os.O_RDWR)
    for n in range(options.rounds):
        piece, writer = file.next_piece(), n % len(options.directories)
        file.write(*piece)
        if node == writer:
            done = os.pwrite(fd, piece[1], piece[0])
            assert done == len(piece[1]), f"round {n}: {done} of {len(piece[1])} bytes were written"
        meeting.wait(crowd.HANGS_SECONDS)
        bad = look(fd, file, piece)
        looks += node != writer
        if bad and len(wrong) < SHOWN:
            wrong.append(f"round {n}, written on node {writer}, read on node {node}: {bad}")
        meeting.wait(crowd.HANGS_SECONDS)
        many.step()
    os.close(fd)
    return {"looks": looks}, wrong


def main():
    options = crowd.parse(USAGE, {"rounds": (200, int), "longest": (20000, int), "space": (2000000, int), "seed": (1, int)})
    with open(os.path.join(options.directories[0], NAME), "wb"):
        pass
    many = crowd.Crowd()
    meeting = crowd.FORK.Barrier(len(options.directories))
    for node, directory in enumerate(options.directories):
        many.add(f"node {node}", work, directory, node, meeting, options)
    numbers, wrong = many.go()
    crowd.end("handed", options, numbers, wrong)


if __name__ == "__main__":
    main()
