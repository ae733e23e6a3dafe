"""Random work on files of its own, with a record of what was acknowledged.

The record is a file outside of the mount: a line before each operation, with a checksum of what
is written, and one after it returned. The lines of a dead writer can be read by who watches it.
"""
import errno
import json
import os
import random
import time
import zlib

from model import Record, Wrong, content

FILES_MAX = 6
SIZE_MAX = 400 << 10
KINDS = {"write": 40, "append": 16, "fsync": 7, "fdatasync": 4, "close": 8, "create": 7, "rename": 5,
         "unlink": 4, "truncate": 5, "read": 6}


class Failed(Exception):
    pass


class Writer:
    """`files` is a copy of its own, where it runs; who watches replays the record."""

    def __init__(self, directory, prefix, label, files, record_path):
        self.directory, self.prefix, self.label, self.files = directory, prefix, label, files
        self.random = random.Random(label)
        self.record = os.open(record_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.descriptors = {}  # by name
        self.count = 0

    def path(self, name):
        return os.path.join(self.directory, name)

    def say(self, **entry):
        os.write(self.record, (json.dumps(entry) + "\n").encode())

    def descriptor(self, name):
        if name not in self.descriptors:
            flags = os.O_RDWR | (os.O_APPEND if self.random.random() < 0.2 else 0)
            self.descriptors[name] = (os.open(self.path(name), flags), flags)
        return self.descriptors[name][0]

    # ---- choosing ----

    def choose(self):
        """What to do next, as an entry of the record."""
        files = self.files.by_name
        op = self.random.choices(list(KINDS), KINDS.values())[0]
        if not files or op == "create" and len(files) < FILES_MAX:
            return {"op": "create", "name": f"{self.prefix}.{self.label}.{self.count}"}
        name = self.random.choice(sorted(files))
        entry = {"op": op if op != "create" else "write", "name": name}
        size = len(files[name].data)
        if entry["op"] in ("write", "append"):
            self.choose_range(entry, size)
        elif op == "truncate":
            entry["off"] = self.random.randrange(SIZE_MAX)
            entry["len"] = 0
        elif op == "rename":
            others = sorted(set(files) - {name})
            over = others and self.random.random() < 0.4
            entry["to"] = self.random.choice(others) if over else f"{self.prefix}.{self.label}.{self.count}"
        return entry

    def choose_range(self, entry, size):
        rnd = self.random
        length = 1 + rnd.randrange(rnd.choice((100, 6000, 6000, 70000)))
        if self.descriptors.get(entry["name"], (0, 0))[1] & os.O_APPEND:
            entry["op"] = "append"
        at = size if entry["op"] == "append" else rnd.randrange(min(size + 5000, SIZE_MAX))
        if at > SIZE_MAX:
            entry["op"], entry["off"], entry["len"] = "truncate", rnd.randrange(SIZE_MAX), 0
            return
        label = f"{self.label}.{self.count}"
        entry.update(off=at, len=length, sum=zlib.crc32(content(label, length)))

    # ---- doing ----

    def write(self, record):
        fd, data = self.descriptor(record.name), record.data()
        if self.descriptors[record.name][1] & os.O_APPEND:
            if record.op != "append" or record.off != len(self.files.by_name[record.name].data):
                self.close(record)
                flags = os.O_RDWR
                self.descriptors[record.name] = (os.open(self.path(record.name), flags), flags)
                fd = self.descriptors[record.name][0]
                done = os.pwrite(fd, data, record.off)
            else:
                done = os.write(fd, data)
        else:
            done = os.pwrite(fd, data, record.off)
        if done != len(data):
            raise Failed(f"{record}: only {done} bytes were written")

    append = write

    def create(self, record):
        flags = os.O_RDWR
        fd = os.open(self.path(record.name), flags | os.O_CREAT | os.O_EXCL, 0o600)
        self.descriptors[record.name] = (fd, flags)

    def fsync(self, record):
        os.fsync(self.descriptor(record.name))

    def fdatasync(self, record):
        os.fdatasync(self.descriptor(record.name))

    def close(self, record):
        if record.name in self.descriptors:
            os.close(self.descriptors.pop(record.name)[0])

    def truncate(self, record):
        os.ftruncate(self.descriptor(record.name), record.off)

    def rename(self, record):
        os.rename(self.path(record.name), self.path(record.to))
        if record.to in self.descriptors:
            os.close(self.descriptors.pop(record.to)[0])
        if record.name in self.descriptors:
            self.descriptors[record.to] = self.descriptors.pop(record.name)

    def unlink(self, record):
        os.unlink(self.path(record.name))
        self.close(record)

    def read(self, record):
        fd, size = self.descriptor(record.name), SIZE_MAX * 2
        got = os.pread(fd, size, 0)
        if got != self.files.by_name[record.name].data:
            raise Wrong(f"{record.name}: read while it was written: differs")

    def one(self):
        entry = self.choose()
        entry["label"] = f"{self.label}.{self.count}"
        self.count += 1
        record = Record(entry)
        self.say(**entry)
        try:
            getattr(self, record.op)(record)
        except OSError as e:
            self.say(label=record.label, at=time.monotonic(), error=errno.errorcode[e.errno])
            return False
        self.say(label=record.label, at=time.monotonic())
        self.files.apply(record)
        return True

    def run(self, stop):
        """Until it is told to stop, or an operation fails."""
        try:
            while not stop.is_set() and self.one():
                pass
        except (Failed, Wrong) as e:
            self.say(wrong=str(e), at=time.monotonic())


def replay(record_path, files, crashed_at):
    """Brings `files` to what was acknowledged. Returns how many operations that were."""
    pending, count = None, 0
    with open(record_path) as lines:
        for line in lines:
            entry = json.loads(line)
            if "op" in entry:
                pending = Record(entry)
            elif "wrong" in entry:
                if entry["at"] < crashed_at:
                    raise Wrong(entry["wrong"])
            elif "error" in entry:
                if entry["at"] < crashed_at:
                    raise Wrong(f"{pending}: {entry['error']}, before the crash")
            else:
                pending.done = entry["at"]
                files.apply(pending)
                pending, count = None, count + 1
    files.doubt = pending
    return count
