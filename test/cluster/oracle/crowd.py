"""Many processes at once, on several nodes: what the programs of invariants share.

Each process is forked, works in the directory of one node, and gives what it found to the one that started it. All
begin at the same time.
"""

import argparse
import errno
import json
import os
import queue
import sys
import time
import traceback

from worker import FORK, die_with_parent

HANGS_SECONDS = 120  # without an answer and a step of any process, beyond the time that it was told to work


def parse(usage, options):
    """options: {name: (default, type)}; then --json FILE and the nodes' directories."""
    parser = argparse.ArgumentParser(usage=usage, add_help=False)
    for name, (default, type_) in options.items():
        parser.add_argument("--" + name, default=default, type=type_)
    parser.add_argument("--json")
    parser.add_argument("directories", nargs="+")
    return parser.parse_args()


class Crowd:
    def __init__(self):
        self.results = FORK.Queue()
        self.start_together = FORK.Event()
        self.stop = FORK.Event()
        self.steps = FORK.Value("Q", 0)
        self.processes = []

    def add(self, name, work, *arguments):
        """work(self, *arguments) gives (a dictionary of numbers, a list of what was wrong)."""
        def process():
            die_with_parent()
            self.start_together.wait()
            try:
                numbers, wrong = work(self, *arguments)
            except OSError as e:
                numbers, wrong = {}, [f"{name}: {errno.errorcode.get(e.errno, e.errno)} at {where(e)}"]
            except BaseException:
                numbers, wrong = {}, [f"{name}: {traceback.format_exc()}"]
            self.results.put((numbers, wrong))
        self.processes.append(FORK.Process(target=process, daemon=True))
        self.processes[-1].start()

    def step(self):
        """Of a process that works for as long as it takes: it does not hang."""
        with self.steps.get_lock():
            self.steps.value += 1

    def answer(self):
        """Of the next process that has done its work; None: nobody does anything."""
        while True:
            before = self.steps.value
            try:
                return self.results.get(timeout=HANGS_SECONDS)
            except queue.Empty:
                if self.steps.value == before:
                    return None

    def go(self, seconds=None):
        """All work, until they have done it, or for so many seconds: (numbers added up, wrong)."""
        self.start_together.set()
        numbers, wrong = {}, []
        if seconds:
            time.sleep(seconds)
            self.stop.set()
        for _ in self.processes:
            answer = self.answer()
            if not answer:
                wrong.append(f"a process hangs for {HANGS_SECONDS} s, or was ended")
                break
            found, bad = answer
            wrong += bad
            for key, value in found.items():
                numbers[key] = numbers.get(key, 0) + value if isinstance(value, (int, float)) else value
        for process in self.processes:
            process.kill() if process.is_alive() and wrong else process.join(HANGS_SECONDS)
        return numbers, wrong


def where(error):
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.line} ({frame.name})"


def end(name, options, numbers, wrong):
    """Says it, and ends with 0 or 1."""
    for text in wrong[:10]:
        print(f"{name}: WRONG: {text}")
    told = ", ".join(f"{v:.3g} {k}" if isinstance(v, float) else f"{v} {k}" for k, v in numbers.items())
    print(f"{name}: {told}, {len(wrong)} wrong", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump({**numbers, "wrong": wrong}, f, indent=1)
    sys.exit(1 if wrong else 0)


def whole_file(directory, name):
    with open(os.path.join(directory, name), "rb") as f:
        return f.read()
