#!/usr/bin/env bash
# A write whose begin and end lie in two chunks needs the bytes around both. Where these belong to another node, they are the first to
# make room in a full cache: the one must not do so for the other, for ever. Random writes into a file that is six times the cache, on one
# node and on two, all end, and the bytes are right.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
head -c 24M /dev/urandom >"$PFS/old"
cp "$PFS/old" "$W/expected"
start_node a "$PFS" --cache-size 4M
start_node b "$PFS" --cache-size 4M --wait-nodes 2
cat >"$W/write.py" <<'END'
import os, random, signal, sys
chance = random.Random(1)
signal.alarm(60)  # of all writes
files = [os.open(path, os.O_RDWR) for path in sys.argv[2:]]
with open(sys.argv[1], "r+b") as expected:
    for n in range(300):
        length = chance.randrange(1, 200000)
        off, data = chance.randrange((24 << 20) - length), chance.randbytes(length)
        assert os.pwrite(files[n % len(files)], data, off) == length
        expected.seek(off)
        expected.write(data)
END
python3 "$W/write.py" "$W/expected" "$W/mnt-a/old" || fail "writes of one node: $?"
check_same "$W/expected" "$W/mnt-b/old"
python3 "$W/write.py" "$W/expected" "$W/mnt-a/old" "$W/mnt-b/old" || fail "writes of two nodes: $?"
check_same "$W/expected" "$W/mnt-a/old"
stop_node a
stop_node b
check_same "$W/expected" "$PFS/old"
