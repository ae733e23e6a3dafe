"""Descriptors of one file on several nodes, for a script that tells what each does.

    ranks.py NAME NODE=MOUNT...      a command per line on stdin, an answer per line on stdout

  open NODE            O_RDWR|O_CREAT; the one before is closed, and may be of a mount that is gone
  write NODE N COUNT SEED    pieces N, N + 1, ... of 64 KiB, with bytes that SEED and the number tell
  patch NODE N SEED    the same, but only five bytes of piece N
  check NODE N COUNT SEED    reads them: "ok", or what is wrong
  cut NODE N           truncates to N pieces
  size NODE            "ok N": in bytes
  sync NODE, close NODE

Answers: "ok", "ok VALUE", the name of an errno, or "wrong: ...".
"""
import errno
import hashlib
import os
import sys

PIECE = 64 << 10


def bytes_of(seed, n):
    return hashlib.shake_128(b"%d %d" % (seed, n)).digest(PIECE)


class Ranks:
    def __init__(self, name, mounts):
        self.name, self.mounts, self.fds = name, mounts, {}

    def open(self, node):
        try:
            self.close(node)
        except OSError as e:
            if e.errno != errno.ENOTCONN:
                raise
        self.fds[node] = os.open(os.path.join(self.mounts[node], self.name), os.O_RDWR | os.O_CREAT, 0o644)
        return "ok"

    def close(self, node):
        fd = self.fds.pop(node, None)
        if fd is not None:
            os.close(fd)
        return "ok"

    def write(self, node, first, count, seed):
        for n in range(int(first), int(first) + int(count)):
            if os.pwrite(self.fds[node], bytes_of(int(seed), n), n * PIECE) != PIECE:
                return "wrong: a short write"
        return "ok"

    def patch(self, node, n, seed):
        some = bytes_of(int(seed), int(n))[1000:1005]
        return "ok" if os.pwrite(self.fds[node], some, int(n) * PIECE + 1000) == 5 else "wrong: a short write"

    def check(self, node, first, count, seed):
        for n in range(int(first), int(first) + int(count)):
            want = bytes_of(int(seed), n) if int(seed) else bytes(PIECE)
            got = os.pread(self.fds[node], PIECE, n * PIECE)
            if got != want:
                at = next((i for i in range(min(len(got), PIECE)) if got[i] != want[i]), len(got))
                return f"wrong: piece {n}, byte {at} of {len(got)}"
        return "ok"

    def cut(self, node, n):
        os.ftruncate(self.fds[node], int(n) * PIECE)
        return "ok"

    def size(self, node):
        return f"ok {os.fstat(self.fds[node]).st_size}"

    def sync(self, node):
        os.fsync(self.fds[node])
        return "ok"


def main():
    ranks = Ranks(sys.argv[1], dict(m.split("=", 1) for m in sys.argv[2:]))
    for line in sys.stdin:
        words = line.split()
        try:
            answer = getattr(ranks, words[0])(*words[1:])
        except OSError as e:
            answer = errno.errorcode.get(e.errno, str(e.errno))
        print(answer, flush=True)


if __name__ == "__main__":
    main()
