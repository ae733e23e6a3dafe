"""What the figures are to be, and whether they are."""
import fnmatch

from lib.stats import Ratio

SLACK = 0.03  # how far an interval may reach beyond the target
MIN_PAIRS = 3

WITH, WITHOUT = "eddyfs", "eddyfs-cached"
BOTH = (WITH, WITHOUT)


class Finding:
    """A line of the table of targets. `held`: True, False, or None where there is nothing to hold."""

    def __init__(self, name, column, target, figure, held):
        self.name, self.column, self.target, self.figure = name, column, target, figure
        self.verdict = {True: "held", False: "not held", None: ""}[held]


class Target:
    """`line` at least (or at most) `limit` times what `against` has, for each of `columns`."""

    def __init__(self, line, against, limit, columns):
        self.line, self.against, self.limit, self.columns = line, against, limit, columns

    def findings(self, lines, contenders):
        """A column that is not available is told of only where no other can tell."""
        by_key = {c.key: c for c in contenders}
        columns = [by_key[key] for key in self.columns]
        columns = [c for c in columns if not c.missing] or columns
        return [self.finding(line, column, by_key[self.against]) for line in lines
                if fnmatch.fnmatchcase(line.name, self.line) for column in columns]

    def finding(self, line, column, against):
        base = line.base if against.key == "native" else against.title
        target = f"{'<=' if line.less else '>='} {self.limit:.2f} x {base}"
        values, of = line.values.get(column.key), line.values.get(against.key)
        if not values or not of:
            why = column.missing or against.missing or "failed"
            return Finding(line.name, column.title, target, f"not measured: {why}", None)
        ratio = Ratio(values, of)
        if ratio.pairs < MIN_PAIRS:
            return Finding(line.name, column.title, target, f"{ratio}, too few pairs to tell", None)
        return Finding(line.name, column.title, target, str(ratio), self.holds(line, ratio))

    def holds(self, line, ratio):
        if line.less:
            return ratio.median <= self.limit and ratio.high <= self.limit + SLACK
        return ratio.median >= self.limit and ratio.low >= self.limit - SLACK


def small(call, limit, columns=BOTH):
    """Beside passthrough_hp, and faster than rclone."""
    files = ": * files of *"
    names = ("", ", names known", ", names asked again")
    return [*(Target(call + known + files, "hp", limit, columns) for known in names),
            Target(call + files, "rclone", 1.0, columns)]


TARGETS = [
    Target("read 1 MiB sequential, 1 reader, warm", "native", 0.95, (WITH,)),
    Target("read random 4 KiB, 1 reader, warm", "native", 0.95, (WITH,)),
    Target("write new file 1 MiB, 1 writer", "native", 0.90, (WITH,)),
    Target("write new file 64 KiB, 1 writer", "native", 0.90, (WITH,)),
    *small("stat", 0.95),
    *small("open, read, close", 0.95),
    *small("unlink", 0.95),
    *small("create, write, close", 0.50),
    Target("read 1 MiB sequential, 1 reader, warm", "native", 0.55, (WITHOUT,)),
    Target("read 1 MiB sequential, 1 reader, first", "native", 0.30, (WITHOUT,)),
    Target("write new file 1 MiB, 1 writer", "native", 0.25, (WITHOUT,)),
    Target("first read of an uncached large file, slow PFS", "native", 0.95, BOTH),
    Target("working set twice the cache, *p50*", "native", 1.10, BOTH),
    Target("working set twice the cache, *p99*", "native", 1.50, BOTH),
]


def has_target(line):
    return any(fnmatch.fnmatchcase(line.name, target.line) for target in TARGETS)


def findings(bench):
    return [f for t in TARGETS for f in t.findings(bench.measured, bench.contenders)] + bench.findings
