"""Makes a failing list of operations short: leaves out what it can, in large parts first (delta debugging), then what
single looks look at, then makes numbers smaller."""

import time

SMALLER = {"at": (0, 4096), "len": (1, 100, 4096), "size": (0, 1, 4096), "from_at": (0,), "seconds": ()}


class Shrink:
    """fails(ops) tells whether that list fails in the same way; if so, it gives what there is up to the failure."""

    def __init__(self, fails, seconds):
        self.fails, self.end = fails, time.monotonic() + seconds
        self.tries = 0

    def is_over(self):
        return time.monotonic() > self.end

    def still_fails(self, ops):
        self.tries += 1
        return self.fails(ops)

    def run(self, ops):
        ops = self.leave_out(ops)
        ops = self.look_at_less(ops)
        ops = self.leave_out(ops)
        return self.smaller_numbers(ops)

    def leave_out(self, ops):
        part = max(1, len(ops) // 2)
        while not self.is_over():
            at, before = 0, len(ops)
            while at < len(ops) and not self.is_over():
                shorter = self.still_fails(ops[:at] + ops[at + part:])
                if shorter is not None:
                    ops = shorter
                else:
                    at += part
            if part == 1 and len(ops) == before:
                break
            part = max(1, part // 2)
        return ops

    def look_at_less(self, ops):
        for i in range(len(ops) - 1, -1, -1):
            if i < len(ops) and ops[i]["op"] == "look":
                ops = self.less_of_one(ops, i)
        return ops

    def less_of_one(self, ops, i):
        for what in ("paths", "slots"):
            for name in list(ops[i][what]):
                less = {**ops[i], what: {k: v for k, v in ops[i][what].items() if k != name}}
                ops = self.with_op(ops, i, less)
            for name in list(ops[i][what]):
                for aspect in list(ops[i][what][name]):
                    rest = [a for a in ops[i][what].get(name, []) if a != aspect]
                    if rest:
                        ops = self.with_op(ops, i, {**ops[i], what: {**ops[i][what], name: rest}})
        return ops

    def with_op(self, ops, i, op):
        """With another operation there, if it fails so, too."""
        if self.is_over():
            return ops
        other = self.still_fails(ops[:i] + [op] + ops[i + 1:])
        return other if other is not None and len(other) == len(ops) else ops

    def smaller_numbers(self, ops):
        for i in range(len(ops)):
            for key in SMALLER.keys() & ops[i].keys():
                for value in SMALLER[key]:
                    if value < ops[i][key]:
                        ops = self.with_op(ops, i, {**ops[i], key: value})
        return ops
