#!/usr/bin/env bash
# A program appends to a large file, and writes its head again each time, as many formats do. A flush that somebody waits for ends
# all the same: what came since it began is for the next one.
# timeout: 180
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
start_faultfs a --bandwidth 50000000 --delay-us 20000
start_node a "$W/pfs-a" --flush end --cache-size 256M --no-passthrough
cat >"$W/write.py" <<'P'
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
n = 5000
os.pwrite(fd, b"i" * 4096 * n, 4096)
open(sys.argv[2] + ".begun", "w").close()
end = time.monotonic() + 100
while not os.path.exists(sys.argv[2]) and time.monotonic() < end:
    n += 1
    os.pwrite(fd, b"%08d" % n * 512, 0)
    os.pwrite(fd, b"y" * 4096, 4096 * n)
    time.sleep(0.002)
P
in_background python3 "$W/write.py" "$W/mnt-a/log" "$W/stop"
wait_for 30 test -e "$W/stop.begun" || fail "the writer does not begin"
timeout 60 "$EDDY_BUILD/eddy" flush --wait "$W/mnt-a/log" || fail "eddy flush ended with $? while the file grows"
touch "$W/stop"
wait "$!" || fail "the writer ended with $?"
cp "$W/mnt-a/log" "$W/copy"
stop_node a
check_same "$W/copy" "$PFS/log"
