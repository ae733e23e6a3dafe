"""What a node does wrong on purpose, to see that it is found, and made short."""

import os

from player import Player

NAMES = ("byte", "size", "old-size", "mtime")


class WrongByte(Player):
    """A byte behind a hole that was punched is another one."""

    def do_allocate(self, op):
        done = super().do_allocate(op)
        if op["how"] == "PUNCH" and "path" in op:
            with open(self.at(op["path"]), "r+b") as f:
                f.seek(op["at"] + op["len"])
                byte = f.read(1)
                if byte:
                    f.seek(-1, os.SEEK_CUR)
                    f.write(bytes([byte[0] ^ 1]))
        return done


class WrongSize(Player):
    """A truncation through a descriptor leaves a byte too much."""

    def do_truncate(self, op):
        if "slot" in op:
            op = {**op, "size": op["size"] + 1}
        return super().do_truncate(op)


class OldSize(Player):
    """A descriptor for reading shows the size that it was shown first."""

    def __init__(self, root):
        super().__init__(root)
        self.ends = {}

    def end_of(self, fd):
        end = Player.end_of(fd)
        kept = [k for k, slot in self.slots.items() if slot.fd == fd and slot.flags == "RDONLY"]
        return self.ends.setdefault((kept[0], os.fstat(fd).st_ino), end) if kept else end


class WrongTime(Player):
    """A flush (here: a sync) moves the time of the last change."""

    def do_sync(self, op):
        super().do_sync(op)
        if "path" in op:
            os.utime(self.at(op["path"]))


def player_of(name):
    return {"byte": WrongByte, "size": WrongSize, "old-size": OldSize, "mtime": WrongTime}.get(name, Player)
