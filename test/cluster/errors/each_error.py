#!/usr/bin/env python3
"""Each error that the PFS can give to a flush, one after the other: usage below.

A row is a fault and what it is to look like.  For each there are two files, one that is new and one
that the PFS has and of which the middle was written: that one needs no room.  Checked are what
fsync and close say, to each descriptor once; `eddy status`; the exit codes; and, when the fault is
over, every byte.
"""
import errno
import json
import os
import random
import re
import subprocess
import sys
import time

USAGE = "each_error.py EDDY FAULTFS CONTROL MOUNT PFS [HANG_SECONDS]"
SIZE = 3 << 20
PART = (1 << 20) + 77, 900_001  # where the old file is written, and how much

# What it is, the fault (path=... is added), what the application sees.
ROWS = [
    ("EIO at write", "error EIO write", "EIO"),
    ("EIO at write, told by the next fsync", "error EIO write late", "EIO"),
    ("EIO at fsync", "error EIO fsync", "EIO"),
    ("EIO at close", "error EIO flush", "EIO"),
    ("a full PFS", "full 1", "ENOSPC"),
    ("a full PFS that says so at fsync", "full 1 late", "ENOSPC"),
    ("a quota", "quota 1", "EDQUOT"),
    ("a quota that is told by fsync", "quota 1 late", "EDQUOT"),
    ("a quota at fsync", "error EDQUOT fsync", "EDQUOT"),
    ("a quota at close", "error EDQUOT flush", "EDQUOT"),
    ("a stale handle at write", "error ESTALE write", "ESTALE"),
    ("a stale handle at fsync", "error ESTALE fsync", "ESTALE"),
    ("no right to write any more", "error EACCES write", "EACCES"),
    ("a PFS that became read-only", "read-only", "EROFS"),
]


NEED_ROOM = ("full", "quota")  # these do not strike who writes over what is there


class Wrong(Exception):
    pass


def expect(what, got, wanted):
    if got != wanted:
        raise Wrong(f"{what}: {got}, expected {wanted}")


def told(call, *args):
    """What the application sees: the error's name, or None."""
    try:
        call(*args)
        return None
    except OSError as e:
        return errno.errorcode[e.errno]


class Shell:
    """Runs commands.  A process of its own from before the opens: a child would close its copies of
    the descriptors, and be told."""

    def __init__(self):
        self.process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, *words):
        quoted = " ".join("'" + w.replace("'", "'\\''") + "'" for w in words)
        line = f"{quoted} 2>/dev/null </dev/null; code=$?; echo; echo END $code"
        print(line, file=self.process.stdin, flush=True)

    def end(self):
        """Its output and exit code."""
        lines = []
        while not (line := self.process.stdout.readline()).startswith("END "):
            if not line:
                raise Wrong("the shell has ended")
            lines.append(line)
        return "".join(lines), int(line.split()[1])

    def run(self, *words):
        self.begin(*words)
        return self.end()


class Test:
    def __init__(self, eddy, faultfs, control, mount, pfs):
        self.eddy, self.faultfs, self.control = eddy, faultfs, control
        self.mount, self.pfs = mount, pfs
        self.shell, self.random = Shell(), random.Random(4)

    def tell(self, *words):
        out, code = self.shell.run(self.faultfs, "--tell", self.control, *words)
        expect(f"faultfs {words}", code, 0)
        return out.strip()

    def flush(self, *options):
        """Exit code, and the files it lists with their reasons."""
        out, code = self.shell.run(self.eddy, "flush", *options, self.mount)
        return code, dict(re.findall(r"^(\S+): .*?([^,(]+?)(?:,|$)", out, re.M)), out

    def status(self):
        out, code = self.shell.run(self.eddy, "status", "--json", self.mount)
        expect("eddy status", code, 0)
        return json.loads(out)

    def failed(self):
        return {f["path"]: f for f in self.status()["flush"]["failed_files"]}

    # ---- a row ----

    def make(self, directory):
        """The two files' contents by name, as they are to be at the end, and what is dirty of them."""
        os.mkdir(f"{self.pfs}/{directory}")
        new, old = self.random.randbytes(SIZE), bytearray(self.random.randbytes(SIZE))
        with open(f"{self.pfs}/{directory}/old", "wb") as f:
            f.write(old)
        at, n = PART
        part = self.random.randbytes(n)
        old[at:at + n] = part
        self.contents = {f"{directory}/new": new, f"{directory}/old": bytes(old)}
        self.parts = {f"{directory}/new": (new, 0), f"{directory}/old": (part, at)}

    def open_and_write(self, name):
        """Three descriptors that may write, and one that reads."""
        path = f"{self.mount}/{name}"
        data, at = self.parts[name]
        fds = [os.open(path, os.O_RDWR | os.O_CREAT), os.open(path, os.O_WRONLY), os.open(path, os.O_WRONLY),
               os.open(path, os.O_RDONLY)]
        os.pwrite(fds[0], data, at)
        expect(f"{name}: fsync before the flush", told(os.fsync, fds[0]), None)
        return fds

    def check_status(self, name, wanted, tries):
        failed = self.failed().get(name)
        if not failed:
            raise Wrong(f"{name}: not among the failed files of eddy status")
        expect(f"{name}: error in eddy status", failed["error"], os.strerror(getattr(errno, wanted)))
        if not len(self.parts[name][0]) <= failed["bytes"] <= SIZE + 8192:
            raise Wrong(f"{name}: {failed['bytes']} bytes in eddy status")
        if not 0 <= failed["since"] <= time.monotonic() - self.began + 1:
            raise Wrong(f"{name}: dirty for {failed['since']} s in eddy status")
        if failed["tries"] < tries or failed["suspect"]:
            raise Wrong(f"{name}: in eddy status: {failed}")
        return failed["tries"]

    def check_failure(self, name, fds, wanted):
        first, second, _, reader = fds
        expect(f"{name}: fsync", told(os.fsync, first), wanted)
        expect(f"{name}: fsync again", told(os.fsync, first), None)
        expect(f"{name}: close of another descriptor", told(os.close, second), wanted)
        expect(f"{name}: fsync by a reader", told(os.fsync, reader), wanted)
        self.tries = self.check_status(name, wanted, 1)
        if open(f"{self.mount}/{name}", "rb").read() != self.contents[name]:
            raise Wrong(f"{name}: reads something else while it cannot be flushed")

    def check_second_failure(self, name, fds, wanted):
        first, _, third, _ = fds
        expect(f"{name}: fsync after the same error", told(os.fsync, first), None)
        expect(f"{name}: fsync by who was not told yet", told(os.fsync, third), wanted)
        expect(f"{name}: and again", told(os.fsync, third), None)
        self.check_status(name, wanted, 2)

    def check_overcome(self, name, fds):
        for fd in fds[0], fds[2], fds[3]:
            expect(f"{name}: fsync when all is over", told(os.fsync, fd), None)
            expect(f"{name}: close", told(os.close, fd), None)
        if os.stat(f"{self.mount}/{name}").st_size != SIZE:
            raise Wrong(f"{name}: has another size")
        with open(f"{self.pfs}/{name}", "rb") as f:
            if f.read() != self.contents[name]:
                raise Wrong(f"{name}: wrong bytes on the PFS")

    def check_listed(self, what, options, wanted):
        code, listed, out = self.flush(*options)
        expect(f"code of {what}", code, 3)
        expect(f"files that {what} lists", sorted(listed), sorted(self.struck))
        if out.count(os.strerror(getattr(errno, wanted))) != len(self.struck):
            raise Wrong(f"{what} does not say {wanted}: {out}")

    def row(self, directory, fault, wanted):
        self.began = time.monotonic()
        self.make(directory)
        fds = {name: self.open_and_write(name) for name in self.contents}
        words = fault.split()
        late = ["late"] if words[-1] == "late" else []
        self.struck = [f"{directory}/new"] if words[0] in NEED_ROOM else list(self.contents)
        number = self.tell(*words[:len(words) - len(late)], f"path={directory}/*", *late)
        self.check_listed("eddy flush", (), wanted)
        for name in self.struck:
            self.check_failure(name, fds[name], wanted)
        self.check_listed("eddy flush --retry", ("--retry",), wanted)
        for name in self.struck:
            self.check_second_failure(name, fds[name], wanted)
        self.tell("clear", number)
        expect("code of eddy flush --retry when the fault is over", self.flush("--retry")[0], 0)
        for name in self.contents:
            self.check_overcome(name, fds[name])
        expect("failed files", self.failed(), {})

    # ---- hangs ----

    def waits(self, number):
        return any(re.match(rf"{number} .* waiting=[1-9]", line) for line in self.tell("list").splitlines())

    def hang(self, directory, ops, seconds):
        """A flush waits; the application does not, and reads, and nothing is told as an error."""
        self.began = time.monotonic()
        self.make(directory)
        fds = {name: self.open_and_write(name) for name in self.contents}
        number = self.tell("hang", ops, f"path={directory}/*")
        flushing = Shell()
        flushing.begin(self.eddy, "flush", self.mount)
        while not self.waits(number):
            time.sleep(0.1)
        until = time.monotonic() + seconds
        while True:
            for name in self.contents:
                expect(f"{name}: fsync while the PFS hangs", told(os.fsync, fds[name][0]), None)
                data, at = self.parts[name]
                if os.pread(fds[name][3], len(data), at) != data:
                    raise Wrong(f"{name}: reads something else while the PFS hangs")
            status = self.status()["flush"]
            expect("failed files while the PFS hangs", status["failed_count"], 0)
            if status["pending_bytes"] < len(self.parts[f"{directory}/old"][0]):
                raise Wrong(f"eddy status while the PFS hangs: {status}")
            if time.monotonic() > until:
                break
            time.sleep(0.5)
        for name in self.contents:
            expect(f"{name}: close while the PFS hangs", told(os.close, fds[name][1]), None)
        self.tell("clear", number)
        expect("code of the eddy flush that waited", flushing.end()[1], 0)
        for name in self.contents:
            self.check_overcome(name, fds[name])


def main():
    if len(sys.argv) not in (6, 7):
        sys.exit(USAGE)
    test, bad = Test(*sys.argv[1:6]), 0
    seconds = float(sys.argv[6]) if len(sys.argv) == 7 else 3
    rows = [(what, test.row, fault, wanted) for what, fault, wanted in ROWS]
    rows += [(f"a PFS that hangs at {op} for {seconds:g} s", test.hang, op, seconds)
             for op in ("write", "fsync", "flush")]
    for number, (what, check, *args) in enumerate(rows):
        try:
            check(f"row{number}", *args)
            print(f"ok   {what}", flush=True)
        except Wrong as e:
            bad += 1
            print(f"WRONG {what}: {e}", flush=True)
            test.tell("clear")
    sys.exit(1 if bad else 0)


main()
