"""Reads chunks of a file while looks at its attributes on the PFS hang (two seconds, and longer): early.py FILE OLD NEW BELOW FAULTFS CONTROL EDDY.

FILE is OLD in the mount, and chunk 0 of it is in the cache; BELOW is the file below the PFS, and becomes NEW. FAULTFS
--tell CONTROL makes the looks hang. Ends with 1 if a reader has wrong bytes, or has them before it may.
"""
import json
import mmap
import os
import queue
import subprocess
import sys
import threading
import time

CHUNK = 1 << 20
MOUNTED, OLD, NEW, BELOW, FAULTFS, CONTROL, EDDY = sys.argv[1:8]


def tell(*words):
    return subprocess.run([FAULTFS, "--tell", CONTROL, *words], check=True, capture_output=True, text=True).stdout


def content(path, chunk):
    with open(path, "rb") as f:
        f.seek(chunk * CHUNK)
        return f.read(CHUNK)


class Reader:
    """A read of one chunk, past the kernel's memory, in a thread."""

    def __init__(self, chunk):
        self.chunk = chunk
        self.said = queue.Queue()
        self.fd = FDS.pop()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        buf = mmap.mmap(-1, CHUNK)
        n = os.preadv(self.fd, [buf], self.chunk * CHUNK)
        self.said.put(buf[:n])

    def gets(self, path, why):
        try:
            got = self.said.get(timeout=30)
        except queue.Empty:
            sys.exit(f"{why}: chunk {self.chunk} does not come")
        if got != content(path, self.chunk):
            sys.exit(f"{why}: chunk {self.chunk} is wrong")

    def waits(self, why):
        time.sleep(0.3)
        if not self.said.empty():
            sys.exit(f"{why}: chunk {self.chunk} comes before it is proved")


def hang():
    return tell("hang", "getattr", "path=file").strip()


def wait_for_look(fault):
    end = time.monotonic() + 30
    while not any(line.startswith(fault + " ") and "waiting=0" not in line and "waiting=" in line
                  for line in tell("list").splitlines()):
        if time.monotonic() > end:
            sys.exit("no look hangs")
        time.sleep(0.02)


def wait_for_requests(n):
    end = time.monotonic() + 30
    status = [EDDY, "status", "--json", os.path.dirname(MOUNTED)]
    while json.loads(subprocess.run(status, check=True, capture_output=True).stdout)["requests_waiting"] < n:
        if time.monotonic() > end:
            sys.exit(f"{n} requests do not come")
        time.sleep(0.02)


FDS = [os.open(MOUNTED, os.O_RDONLY | os.O_DIRECT) for _ in range(96)]
for chunk in (0, 5):
    Reader(chunk).gets(OLD, "at first")

fault = hang()
Reader(10).gets(OLD, "unproved")
wait_for_look(fault)
late, cached = Reader(10), Reader(0)
late.waits("the same chunk, later")
cached.waits("what the cache has")
cached.gets(OLD, "what the cache has, while the PFS hangs")
tell("clear", fault)
late.gets(OLD, "the same chunk, proved")

# Who waits for a proof does not wait behind those who wait for the PFS.
fault = hang()
Reader(12).gets(OLD, "unproved, and then the PFS hangs")
wait_for_look(fault)
reads = tell("hang", "read", "path=file").strip()
many = [Reader(18) for _ in range(80)]
wait_for_requests(80)
Reader(0).gets(OLD, "what the cache has, while many wait for the PFS")
tell("clear", reads)
tell("clear", fault)
for one in many:
    one.gets(OLD, "after the PFS hung")

begun = time.monotonic()
fault = hang()
Reader(15).gets(OLD, "before the file changed")
wait_for_look(fault)
with open(NEW, "rb") as new, open(BELOW, "r+b") as f:
    f.write(new.read())
cached = Reader(0)
if time.monotonic() - begun < 1:
    cached.waits("what the cache has, of the old file")
tell("clear", fault)
if time.monotonic() - begun < 1.8:  # else it may have taken the PFS for one that hangs
    cached.gets(NEW, "after the file changed")
