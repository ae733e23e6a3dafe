#!/usr/bin/env python3
"""A file grows on the first node, and processes on all nodes follow it through descriptors that they had before: each
byte comes once, as it was written, and soon after its write was answered."""

import os
import random
import statistics
import sys
import time

sys.dont_write_bytecode = True

import crowd  # noqa: E402

USAGE = """follow.py [options] DIRECTORY...   (one for each node)

  --seconds N      (5)
  --every N        milliseconds between two writes (5)
  --longest N      bytes of a write (5000)
  --how HOW        read: until it gives nothing; stat: fstat, then read what is new; seek: lseek to the end instead
                   (read)
  --within N       milliseconds from a write's answer until it is seen; 0: only told (0)
  --json FILE      what is printed

Exit codes: 0 nothing was wrong, 1 something was, 2 wrong usage.
"""
NAME = "grows"
PERIOD = 65521  # a prime: no page and no chunk is as another one
PATTERN = bytes(1 + b % 255 for b in random.Random(5).randbytes(PERIOD))  # no zeros
LAST_SECONDS = 20  # for what was written last


def pattern(at, length):
    begin = at % PERIOD
    return (PATTERN * (2 + length // PERIOD))[begin:begin + length]


class Answers:
    """What the writer was told, and when, in memory that all share."""

    def __init__(self, most):
        self.ends, self.times = crowd.FORK.RawArray("q", most), crowd.FORK.RawArray("d", most)
        self.count, self.whole = crowd.FORK.RawValue("q", 0), crowd.FORK.RawValue("b", 0)

    def add(self, end, when):
        self.ends[self.count.value], self.times[self.count.value] = end, when
        self.count.value += 1


def write(many, directory, options, answers):
    fd = os.open(os.path.join(directory, NAME), os.O_WRONLY | os.O_APPEND)
    lengths, at = random.Random(1), 0
    while not many.stop.is_set():
        at += os.write(fd, pattern(at, lengths.randrange(1, options.longest)))
        answers.add(at, time.monotonic())
        time.sleep(options.every / 1000)
    os.close(fd)
    answers.whole.value = 1
    return {"bytes written": at}, []


def new_bytes(fd, at, how):
    if how == "read":
        return os.pread(fd, 1 << 20, at)
    size = os.fstat(fd).st_size if how == "stat" else os.lseek(fd, 0, os.SEEK_END)
    return os.pread(fd, size - at, at) if size > at else b""


def follow(_many, directory, node, options, answers):
    fd = os.open(os.path.join(directory, NAME), os.O_RDONLY)
    at, seen, latencies = 0, 0, []
    end = time.monotonic() + options.seconds + LAST_SECONDS
    while time.monotonic() < end:
        data = new_bytes(fd, at, options.how)
        now = time.monotonic()
        if data != pattern(at, len(data)):
            bad = next(i for i in range(len(data)) if data[i] != pattern(at, len(data))[i])
            zeros = len(data[bad:]) - len(data[bad:].lstrip(b"\0"))
            return {}, [f"node {node}: byte {at + bad} is wrong: {zeros} zeros there" if zeros else
                        f"node {node}: byte {at + bad} is wrong"]
        at += len(data)
        whole = answers.whole.value
        while seen < answers.count.value and answers.ends[seen] <= at:
            latencies.append(max(0, now - answers.times[seen]))
            seen += 1
        if whole and seen == answers.count.value:
            return judge(node, latencies, options)
        time.sleep(0.001)
    return {}, [f"node {node}: {at} bytes were seen, and nothing after them, {LAST_SECONDS} s after the end"]


def judge(node, latencies, options):
    longest = max(latencies, default=0) * 1000
    middle = statistics.median(latencies or [0]) * 1000
    numbers = {f"writes seen on node {node} (median {middle:.1f} ms, longest {longest:.1f} ms)": len(latencies)}
    if options.within and longest > options.within:
        return numbers, [f"node {node}: a write was seen {longest:.1f} ms after its answer"]
    return numbers, []


def main():
    options = crowd.parse(USAGE, {"seconds": (5, float), "every": (5, float), "longest": (5000, int),
                                  "how": ("read", str), "within": (0, float)})
    with open(os.path.join(options.directories[0], NAME), "wb"):
        pass
    many = crowd.Crowd()
    answers = Answers(int(options.seconds * 1000 / options.every) + 1000)
    for node, directory in enumerate(options.directories):
        many.add(f"a follower on node {node}", follow, directory, node, options, answers)
    many.add("the writer", write, options.directories[0], options, answers)
    numbers, wrong = many.go(options.seconds)
    crowd.end(f"follow ({options.how})", options, numbers, wrong)


if __name__ == "__main__":
    main()
