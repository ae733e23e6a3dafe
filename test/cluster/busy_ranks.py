"""Ranks that write one file all the time, each its own pieces (strided), while a script kills their nodes.

    busy_ranks.py NAME SEED NODE=MOUNT...

Each rank writes pieces of its places in random order, and may overwrite them; it remembers which version of each piece was
acknowledged, and which was under way when an error came. Commands on stdin:

  go               all ranks write
  halt             all ranks stop; answers how many writes were acknowledged since `go`, and the longest one in seconds of
                   each node: "NODE=WRITES/SECONDS ..."
  down NODE        its rank writes no more and closes its descriptor
  up NODE          its rank opens the file again
  check            every rank reads every piece: "ok", or what is wrong
  on PATH          the same of this file
"""
import hashlib
import os
import random
import sys
import threading
import time

PIECES = 60  # of each rank
SIZES = (4096, 65536, 262144)
PLACE = 262144
BLOCK = 4096


def bytes_of(place, version):
    size = SIZES[version % 3]
    return hashlib.shake_128(b"%d %d" % (place, version)).digest(size)


class Rank(threading.Thread):
    def __init__(self, number, count, path, seed):
        super().__init__(daemon=True)
        self.path, self.random = path, random.Random(seed * 1000 + number)
        self.places = [number + n * count for n in range(PIECES)]
        self.versions = {p: [] for p in self.places}  # what the place may show: acknowledged ones, from the last whole one on
        self.fd, self.running, self.writes, self.longest, self.next = None, threading.Event(), 0, 0.0, 1
        self.idle, self.lock = threading.Event(), threading.Lock()
        self.idle.set()

    def run(self):
        while True:
            self.running.wait()
            self.idle.clear()
            while self.running.is_set():
                self.write_one()
            self.idle.set()

    def write_one(self):
        place = self.random.choice(self.places)
        version = self.next
        self.next += 1
        data = bytes_of(place, version)
        begun = time.monotonic()
        with self.lock:
            fd = self.fd
        try:
            if fd is None:
                time.sleep(0.01)
                return
            if os.pwrite(fd, data, place * PLACE) == len(data):
                if len(data) == PLACE:  # what was there before does not matter any more
                    self.versions[place].clear()
                self.versions[place].append((version, True))
                self.writes += 1
        except OSError:  # it may have been made, or not
            self.versions[place].append((version, False))
            time.sleep(0.01)
        self.longest = max(self.longest, time.monotonic() - begun)

    def wrong_at(self, place, got):
        """The first block that is none of those that it may be: the last acknowledged write, or one since that failed, and
        may have been made, or a part of it. None: all are right."""
        data = {version: bytes_of(place, version) for version, _ in self.versions[place]}
        for at in range(0, PLACE, BLOCK):
            block, may = got[at:at + BLOCK], []
            for version, sure in reversed(self.versions[place]):
                if at < len(data[version]):
                    may.append(data[version][at:at + BLOCK])
                    if sure:
                        break
            else:
                may.append(bytes(len(block)))  # nobody has written here for certain
            if block not in may:
                return at
        return None


class Ranks:
    def __init__(self, name, seed, mounts):
        self.name, self.mounts = name, mounts
        self.ranks = {node: Rank(n, len(mounts), f"{mount}/{name}", seed) for n, (node, mount) in enumerate(mounts.items())}
        for node, rank in self.ranks.items():
            self.up(node)
            rank.start()

    def go(self):
        for rank in self.ranks.values():
            rank.writes, rank.longest = 0, 0.0
            rank.running.set()
        return "ok"

    def halt(self):
        for rank in self.ranks.values():
            rank.running.clear()
        for rank in self.ranks.values():
            rank.idle.wait()
        return " ".join(f"{node}={r.writes}/{r.longest:.1f}" for node, r in self.ranks.items())

    def down(self, node):
        rank = self.ranks[node]
        with rank.lock:
            fd, rank.fd = rank.fd, None
        if fd is not None:
            try:
                os.close(fd)
            except OSError:
                pass
        return "ok"

    def up(self, node):
        rank = self.ranks[node]
        fd = os.open(rank.path, os.O_RDWR | os.O_CREAT, 0o644)
        with rank.lock:
            rank.fd = fd
        return "ok"

    def look(self, fd, who):
        for node, rank in self.ranks.items():
            for place in rank.places:
                got = os.pread(fd, PLACE, place * PLACE)
                at = rank.wrong_at(place, got)
                if at is not None:
                    last = [v for v in rank.versions[place] if at < SIZES[v[0] % 3]][-3:]
                    return f"wrong: {who} reads {len(got)} bytes of {node}'s place {place}; byte {at} is none of {last}"
        return "ok"

    def check(self):
        for node, rank in self.ranks.items():
            said = self.look(rank.fd, node)
            if said != "ok":
                return said
        return "ok"

    def on(self, path):
        fd = os.open(path, os.O_RDONLY)
        try:
            return self.look(fd, path)
        finally:
            os.close(fd)


def main():
    ranks = Ranks(sys.argv[1], int(sys.argv[2]), dict(m.split("=", 1) for m in sys.argv[3:]))
    print("ok", flush=True)
    for line in sys.stdin:
        words = line.split()
        try:
            answer = getattr(ranks, words[0])(*words[1:])
        except OSError as e:
            answer = f"error: {e}"
        print(answer, flush=True)


if __name__ == "__main__":
    main()
