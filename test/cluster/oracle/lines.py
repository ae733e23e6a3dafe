#!/usr/bin/env python3
"""Processes on several nodes append lines to one file, with O_APPEND and without locks: each line is there once, in one
piece, and those of one process are in their order."""

import os
import random
import sys

sys.dont_write_bytecode = True

import crowd  # noqa: E402

USAGE = """lines.py [options] DIRECTORY...   (one for each node)

  --processes N    on each node (2)
  --lines N        of each process (300)
  --longest N      bytes of a line (110)
  --json FILE      what is printed

Exit codes: 0 nothing was wrong, 1 something was, 2 wrong usage.
"""
NAME = "lines"


def line(node, process, n, longest):
    """Of a length by chance."""
    head = b"%02d %02d %06d " % (node, process, n)
    length = random.Random(f"{node} {process} {n}").randrange(len(head) + 1, longest + 1)
    return head + bytes([97 + (node * 7 + process) % 26]) * (length - len(head) - 1) + b"\n"


def work(_crowd, directory, node, process, options):
    fd = os.open(os.path.join(directory, NAME), os.O_WRONLY | os.O_APPEND)
    wrong = []
    for n in range(options.lines):
        data = line(node, process, n, options.longest)
        done = os.write(fd, data)
        if done != len(data):
            wrong.append(f"node {node} process {process} line {n}: {done} of {len(data)} bytes were written")
    os.close(fd)
    return {"lines written": options.lines}, wrong


def check(data, options, where):
    next_ = {}
    wrong, odd, at = [], 0, 0
    for text in data.split(b"\n")[:-1]:
        try:
            node, process, n = int(text[:2]), int(text[3:5]), int(text[6:12])
        except ValueError:
            node = None
        if node is None or text + b"\n" != line(node, process, n, options.longest):
            odd += 1
            if odd == 1:
                wrong.append(f"{where}: at {at} is {text[:60]!r}, which nobody wrote")
        elif n != next_.get((node, process), 0):
            wrong.append(f"{where}: at {at} is line {n} of node {node} process {process}, expected "
                         f"{next_.get((node, process), 0)}")
            next_[node, process] = n + 1
        else:
            next_[node, process] = n + 1
        at += len(text) + 1
    for node in range(len(options.directories)):
        for process in range(options.processes):
            if next_.get((node, process), 0) != options.lines:
                wrong.append(f"{where}: the last line of node {node} process {process} is "
                             f"{next_.get((node, process), 0) - 1} of {options.lines - 1}")
    if odd > 1:
        wrong.append(f"{where}: {odd} pieces are no lines")
    return wrong


def main():
    options = crowd.parse(USAGE, {"processes": (2, int), "lines": (300, int), "longest": (110, int)})
    with open(os.path.join(options.directories[0], NAME), "wb"):
        pass
    many = crowd.Crowd()
    for node, directory in enumerate(options.directories):
        for process in range(options.processes):
            many.add(f"node {node} process {process}", work, directory, node, process, options)
    numbers, wrong = many.go()
    for node, directory in enumerate(options.directories):
        wrong += check(crowd.whole_file(directory, NAME), options, f"read on node {node}")
    crowd.end("lines", options, numbers, wrong)


if __name__ == "__main__":
    main()
