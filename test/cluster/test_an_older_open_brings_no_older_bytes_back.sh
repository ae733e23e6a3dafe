#!/usr/bin/env bash
# Without passthrough all descriptors of a node share the kernel's pages. One that was opened before another node wrote the file,
# and reads first when a second one has been opened since, brings no older bytes into the pages, which the second one would read.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
start_node a "$PFS" --no-passthrough --flush end
start_node b "$PFS" --no-passthrough --flush end --wait-nodes 2
cat >"$W/opens.py" <<'PY'
import os, sys
a, b = sys.argv[1:3]
SIZE = 100000

def write(path, byte):
    fd = os.open(path, os.O_WRONLY)
    assert os.pwrite(fd, byte * SIZE, 0) == SIZE
    os.close(fd)

def must_be(fd, byte, what):
    got = os.pread(fd, SIZE, 0)
    assert got == byte * SIZE, f"{what}: {got[:1]} and not {byte}"

for n in range(20):
    name = f"f{n}"
    older = os.open(f"{a}/{name}", os.O_RDONLY)
    write(f"{b}/{name}", b"2")
    newer = os.open(f"{a}/{name}", os.O_RDONLY)
    os.pread(older, SIZE, 0)  # may be of either
    must_be(newer, b"2", "what was closed on b before the open")
    write(f"{b}/{name}", b"3")
    newest = os.open(f"{a}/{name}", os.O_RDONLY)
    os.pread(newer, SIZE, 0)
    os.pread(older, SIZE, 0)
    must_be(newest, b"3", "the same, with two older ones")
    for fd in older, newer, newest:
        os.close(fd)
PY
for n in $(seq 0 19); do
    head -c 100000 /dev/zero | tr '\0' 1 >"$PFS/f$n"
done
sleep 1.1 # names made past the mounts are seen after the attribute time-out
python3 -B "$W/opens.py" "$W/mnt-a" "$W/mnt-b" || fail "see above"
stop_node a
stop_node b
