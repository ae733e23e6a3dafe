"""One reader of test/bench/together: reads a file at offsets of a pattern, when it is told to, and prints how long it took.

together_read.py FILE READY GO PATTERN BLOCK [...]   BLOCK: bytes of a read

It makes the file READY when it could begin, and begins at the moment that GO has then, in seconds since 1970.

  order BLOCK                 from the beginning to the end
  chunk BLOCK AT              one block at this offset
  random BLOCK COUNT SEED     so many blocks at random multiples of BLOCK
  strided BLOCK PARTS WHICH   every PARTS-th block, from block WHICH on: the readers together read all of the file
"""
import os
import random
import sys
import time


def offsets(pattern, block, size, args):
    blocks = max(size // block, 1)
    if pattern == "order":
        return range(0, size, block)
    if pattern == "chunk":
        return [int(args[0])]
    if pattern == "random":
        draw = random.Random(int(args[1]))
        return [draw.randrange(blocks) * block for _ in range(int(args[0]))]
    if pattern == "strided":
        return range(int(args[1]) * block, size, int(args[0]) * block)
    sys.exit(f"no pattern {pattern}")


def wait_for_go(ready, go):
    open(ready, "w").close()
    while not os.path.exists(go):
        time.sleep(0.01)
    with open(go) as f:
        late = time.time() - float(f.read())
    if late > 0:
        sys.exit(f"began {late:.1f} s too late")
    time.sleep(-late)


def main():
    file, ready, go, pattern, block, args = *sys.argv[1:5], int(sys.argv[5]), sys.argv[6:]
    at = offsets(pattern, block, os.stat(file).st_size, args)
    fd = os.open(file, os.O_RDONLY)
    wait_for_go(ready, go)
    begun, got = time.monotonic(), 0
    for off in at:
        got += len(os.pread(fd, block, off))
    print(f"{time.monotonic() - begun:.3f} {got}")


main()
