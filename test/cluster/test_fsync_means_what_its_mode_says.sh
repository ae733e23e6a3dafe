#!/usr/bin/env bash
# fsync brings data to the node's disk; with --fsync pfs to the PFS, also on the node that does
# not have the claim, and for O_SYNC. --flush-limit bounds what the flush writes per second.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
start_faultfs a
start_faultfs b
cat >"$W/sync.py" <<'PY'
import os, sys
path, below, mode = sys.argv[1:4]
def on_pfs(data, what):
    there = open(below, "rb").read()
    if mode == "pfs":
        assert there == data, f"{what}: {len(there)} bytes on the PFS of {len(data)}"
    else:
        assert there == b"", f"{what}: {len(there)} bytes on the PFS"
data = os.urandom(5000000)
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(fd, data)
assert os.stat(below).st_size == 0
os.fsync(fd)
on_pfs(data, "fsync")
os.pwrite(fd, b"more", 100)
data = data[:100] + b"more" + data[104:]
os.fdatasync(fd)
on_pfs(data, "fdatasync")
os.close(fd)
fd = os.open(path, os.O_WRONLY | os.O_SYNC)
os.pwrite(fd, b"sync", 4000000)
data = data[:4000000] + b"sync" + data[4000004:]
on_pfs(data, "O_SYNC")
os.close(fd)
PY
for mode in local pfs; do
    start_node a "$W/pfs-a" --flush end --fsync $mode
    start_node b "$W/pfs-b" --flush end --fsync $mode
    python3 -B "$W/sync.py" "$W/mnt-a/$mode" "$PFS/$mode" $mode || fail "see above"
    # open for writing on a, so that b's writes are carried there
    exec 5>>"$W/mnt-a/carried-$mode"
    python3 -B "$W/sync.py" "$W/mnt-b/carried-$mode" "$PFS/carried-$mode" $mode || fail "carried: see above"
    exec 5>&-
    stop_node a
    stop_node b
done

start_node a "$W/pfs-a" --flush end --flush-limit 8M --flush-writers 2
for n in 1 2 3; do
    head -c 8388608 /dev/urandom >"$W/content-$n"
    cp "$W/content-$n" "$W/mnt-a/limited-$n"
done
began=${EPOCHREALTIME/[.,]/}
eddy flush "$W/mnt-a"
took=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
echo "24 MiB at 8 MiB/s in $took ms"
# pieces of 4 MiB: the last one's turn comes after 20 MiB
[ "$took" -ge 2400 ] || fail "the limit is not kept: $took ms"
[ "$took" -le 15000 ] || fail "slower than the limit: $took ms"
for n in 1 2 3; do
    check_same "$W/content-$n" "$PFS/limited-$n"
done
stop_node a
