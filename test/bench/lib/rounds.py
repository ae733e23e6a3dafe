"""Measuring in rounds.

In a round everybody is measured once, one directly after the other, in an order that turns from
round to round and is reversed in every second one. A figure is made of ratios of two measurements
of one round, so that what else the machine does hits both alike.

A Group is what shares mounts and files; its rows are measured one after the other, each in rounds.
"""
import os
import time
from contextlib import ExitStack

from lib.machine import load, touch_memory
from lib.targets import has_target
from lib.work import Failed, run

MIN_ROUNDS = 3  # where a target says something of the row; else one, when the time is short
WORK = {"GiB": 2**30, "10k ops": 10000, "run": 1}


class Line:
    """One line of the table. `work` is what CPU time is told per, a name in WORK."""

    def __init__(self, name, unit, work="GiB", less=False, base="native"):
        self.name, self.unit, self.work = name, unit, work
        self.less = less  # less is better
        self.base = base  # what the native column holds
        self.load = ""
        # By contender's key:
        self.values = {}    # {round: value}
        self.cpu = {}       # [seconds, work]
        self.resident = {}  # KiB, the most
        self.failed = {}    # why


class Row:
    """`sample(place, meter)` measures every line once."""

    def __init__(self, lines, sample):
        self.lines = lines if isinstance(lines, list) else [lines]
        self.sample = sample


class Group:
    """Rows that share mounts and files."""

    name = None
    columns = None  # keys of the contenders that take part, if not all do
    fresh = False   # every sample has a new mount and an empty cache
    writes = False  # what others have written is on the disk before a sample begins
    memory = 0      # bytes that a sample fills
    weight = 1      # how much longer than others its rows take

    def __init__(self, bench):
        self.bench = bench

    def start(self, contender, name):
        """Mounts the contender; a group with a slow PFS puts that below."""
        return contender.start(self.bench, self.bench.pfs, name)

    def make_files(self):
        """In bench.pfs, before anything is mounted."""

    def prepare(self, place):
        """After mounting: fills caches, and looks whether the bytes are right."""

    def rows(self):
        raise NotImplementedError


class Meter:
    """What a sample hands its measurements to."""

    def __init__(self, place, turn):
        self.place, self.turn = place, turn

    def run(self, line, measure):
        """`measure` returns a value and how much work it was: bytes, or operations."""
        before = self.place.cpu_seconds()
        value, work = measure()
        self.cost(line, work, self.place.cpu_seconds() - before)
        self.note(line, value)

    def note(self, line, value):
        """Of a measurement that another line has told the cost of."""
        line.values.setdefault(self.place.contender.key, {})[self.turn] = value

    def cost(self, line, work, seconds):
        key = self.place.contender.key
        cpu = line.cpu.setdefault(key, [0.0, 0.0])
        cpu[0] += seconds
        cpu[1] += work / WORK[line.work]
        line.resident[key] = max(line.resident.get(key, 0), self.place.status("VmRSS"))


def order(items, turn):
    first = turn % len(items)
    turned = items[first:] + items[:first]
    return turned[::-1] if turn % 2 else turned


class Rounds:
    """Runs one group. `seconds` is what it may take; fewer rounds than asked for are told in the table."""

    def __init__(self, bench, group, rows, seconds):
        self.bench, self.group, self.rows = bench, group, rows
        self.end = time.monotonic() + seconds

    def run(self):
        with ExitStack() as stack:
            contenders = [c for c in self.bench.contenders if not c.missing and self.takes_part(c)]
            if not self.group.fresh:
                contenders = [p for p in (self.mounted(c, stack) for c in contenders) if p]
            for n, row in enumerate(self.rows):
                left = self.end - time.monotonic()
                self.run_row(row, contenders, time.monotonic() + left / (len(self.rows) - n))

    def takes_part(self, contender):
        return not self.group.columns or contender.key in self.group.columns

    def mounted(self, contender, stack, turn=None):
        """The contender's place, or None: then its cells say why."""
        name = f"{self.group.name}-{contender.key}" + ("" if turn is None else f"-{turn}")
        try:
            place = self.group.start(contender, name)
            stack.callback(place.remove_caches)
            stack.callback(place.stop)
            os.makedirs(place.own(), exist_ok=True)
            self.group.prepare(place)
            return place
        except (Failed, OSError) as e:
            for row in self.rows:
                self.fail(row, contender, e)

    def run_row(self, row, contenders, end):
        for line in row.lines:
            line.load = load()
        least = MIN_ROUNDS if any(has_target(line) for line in row.lines) else 1
        for turn in range(self.bench.rounds):
            now = time.monotonic()
            if turn >= least and now > end or turn and now > self.bench.end:
                break
            for contender in order(contenders, turn):
                self.sample(row, contender, turn)
        self.bench.progress(row)

    def sample(self, row, contender, turn):
        """A contender that fails once is not measured again in this row; nor one that has had all its rounds."""
        who = contender if self.group.fresh else contender.contender
        if who.key in row.lines[0].failed or who.rounds and turn >= who.rounds:
            return
        if self.group.writes:
            run(["sync", "-f", self.bench.work.dir])
        if self.group.memory:
            touch_memory(self.group.memory)
        with ExitStack() as stack:
            place = self.mounted(who, stack, turn) if self.group.fresh else contender
            try:
                if place:
                    row.sample(place, Meter(place, turn))
            except (Failed, OSError) as e:
                self.fail(row, who, e)

    def fail(self, row, contender, error):
        for line in row.lines:
            line.failed[contender.key] = f"{contender.title}: {line.name}: {error}"
            line.values.pop(contender.key, None)
