"""Several nodes write one file at the same time, each its own parts, as MPI programs do; every byte is looked at.

    shared_file.py PFS MOUNT... [--piece BYTES] [--pieces N] [--how strided|segmented] [--rounds N] [--seed N]

Each mount has a writer.  In each round all open the file, write their pieces with the round's bytes, meet, read the whole
file, meet, and close it.  Between open and close the size and the bytes must be exact for all of them, at once.
"""
import argparse
import hashlib
import os
import sys
import threading
import traceback


def piece_of(seed, n, length):
    return hashlib.shake_128(b"%d %d" % (seed, n)).digest(length)


class Writer:
    def __init__(self, args, number):
        self.args, self.number = args, number
        self.path = os.path.join(args.mounts[number], args.name)
        self.error = None

    def offset(self, n):
        return n * self.args.piece

    def mine(self):
        count, nodes = self.args.pieces, len(self.args.mounts)
        if self.args.how == "strided":
            return range(self.number, count * nodes, nodes)
        return range(self.number * count, (self.number + 1) * count)

    def write(self, fd, seed):
        for n in self.mine():
            data = piece_of(seed, n, self.args.piece)
            assert os.pwrite(fd, data, self.offset(n)) == len(data)

    def check(self, fd, seed):
        total = self.args.pieces * len(self.args.mounts)
        size = total * self.args.piece
        told = os.fstat(fd).st_size
        if told != size:
            raise AssertionError(f"{self.path}: the size is {told}, not {size}")
        for n in range(total):
            got = os.pread(fd, self.args.piece, self.offset(n))
            want = piece_of(seed, n, self.args.piece)
            if got != want:
                at = next((i for i in range(min(len(got), len(want))) if got[i] != want[i]), len(got))
                raise AssertionError(f"{self.path}: piece {n}, byte {at} of {len(got)}: wrong")
        if os.pread(fd, 1, size):
            raise AssertionError(f"{self.path}: bytes behind the end")


def meet(barrier, writer, what, *args):
    try:
        what(*args)
    except BaseException as e:  # the others must not wait for ever
        writer.error = e
        barrier.abort()
        raise
    barrier.wait(120)


def run(writer, barrier):
    try:
        for r in range(writer.args.rounds):
            seed = writer.args.seed + r
            if writer.number == 0:
                os.close(os.open(writer.path, os.O_RDWR | os.O_CREAT, 0o644))
            barrier.wait(120)
            fd = os.open(writer.path, os.O_RDWR)
            meet(barrier, writer, writer.write, fd, seed)
            meet(barrier, writer, writer.check, fd, seed)
            os.close(fd)
            barrier.wait(120)
    except threading.BrokenBarrierError:
        pass
    except BaseException as e:
        writer.error = writer.error or e


def main():
    p = argparse.ArgumentParser()
    p.add_argument("mounts", nargs="+")
    p.add_argument("--name", default="shared")
    p.add_argument("--piece", type=int, default=1 << 20)
    p.add_argument("--pieces", type=int, default=16, help="of each writer")
    p.add_argument("--how", choices=("strided", "segmented"), default="strided")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--pfs", help="a path at which the file must have the last round's bytes, and nothing else is done")
    args = p.parse_args()
    writers = [Writer(args, n) for n in range(len(args.mounts))]
    if args.pfs:
        writers[0].path = args.pfs
        with open(args.pfs, "rb") as f:
            writers[0].check(f.fileno(), args.seed + args.rounds - 1)
        return 0
    barrier = threading.Barrier(len(writers))
    threads = [threading.Thread(target=run, args=(w, barrier)) for w in writers]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    errors = [w.error for w in writers if w.error]
    for e in errors:
        traceback.print_exception(e)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
