"""A list of operations in a file: the first line is the modes and how it failed, each other one an operation."""

import json


class Replay:
    """Gives the operations of a list."""

    def __init__(self, ops):
        self.ops = iter(ops)

    def next(self, _run):
        return next(self.ops, None)


def write(path, config, failure, text):
    with open(path, "w") as f:
        head = {"config": config, "key": failure.key, "wrong": [str(d) for d in failure.deviations[:6]]}
        f.write(json.dumps(head) + "\n")
        f.writelines(json.dumps(op) + "\n" for op in failure.ops[:failure.index + 1])
        f.writelines(f"# {line}\n" for line in text.splitlines())


def read(path):
    """(config, key, operations)"""
    with open(path) as f:
        lines = [json.loads(line) for line in f if not line.startswith("#")]
    return lines[0]["config"], lines[0]["key"], lines[1:]
