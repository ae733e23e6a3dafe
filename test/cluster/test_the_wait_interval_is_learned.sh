#!/usr/bin/env bash
# --flush-wait auto: an application that writes with short gaps and pauses for seconds; the
# interval comes to lie between them, and the pauses hold the flush.  One that reads through
# the kernel is no lull.
# timeout: 180
# alone
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
start_faultfs a
start_node a "$W/pfs-a" --flush-wait auto --session-dir "$W/session"
check_equal "to begin with" "$(status_of a '[.flush.wait_ms, .flush.wait_auto] | @csv')" 1000,true

# twelve phases: twenty writes with 30 ms between them, then 3 s of computing
cat >"$W/phases.py" <<'PY'
import os, sys, time
data = os.urandom(400000)
for phase in range(12):
    for n in range(20):
        with open(f"{sys.argv[1]}/p{phase}-{n}", "wb") as f:
            f.write(data)
        time.sleep(0.03)
    time.sleep(3)
PY
python3 -B "$W/phases.py" "$W/mnt-a" || fail "see above"
wait_ms=$(status_of a .flush.wait_ms)
echo "learned: $wait_ms ms"
[ "$wait_ms" -gt 30 ] || fail "shorter than the gaps in a phase: $wait_ms ms"
[ "$wait_ms" -lt 900 ] || fail "not learned: $wait_ms ms"
eddy status "$W/mnt-a" | grep -q "(learned)" || fail "status does not say that it is learned"
clean() { [ "$(status_of a .flush.pending_files)" = 0 ]; }
wait_for 20 clean || fail "something stays dirty"
flushed=$(status_of a .flush.flushed_bytes)
lulls=$(status_of a .counters.flushed_lull_bytes)
echo "$lulls of $flushed bytes in lulls"
check_equal "bytes flushed in lulls" "$lulls" "$flushed"

# reads through the kernel, of more than the page cache keeps for us: dropped after each round
if [ "$(status_of a .passthrough)" = true ] && [ -e "/sys/dev/block/$(stat -c %Hd:%Ld "$W")/stat" ]; then
    head -c 40000000 /dev/urandom >"$W/mnt-a/large"
    eddy flush "$W/mnt-a"
    sync "$W/cache-a"
    cat >"$W/read.py" <<'PY'
import glob, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
below = [os.open(p, os.O_RDONLY) for p in glob.glob(sys.argv[2] + "/data/**", recursive=True)
         if os.path.isfile(p) and os.path.getsize(p) == 40000000]
assert below, "no data file"
while not os.path.exists(sys.argv[3]):
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    for b in below:
        os.fdatasync(b)
        os.posix_fadvise(b, 0, 0, os.POSIX_FADV_DONTNEED)
    for n in range(20):
        os.pread(fd, 2000000, n * 2000000)
        time.sleep(0.02)
PY
    python3 -B "$W/read.py" "$W/mnt-a/large" "$W/cache-a" "$W/enough" &
    record_process "$W" $!
    reader=$!
    sleep 1
    head -c 300000 /dev/urandom >"$W/content"
    cp "$W/content" "$W/mnt-a/beside"
    sleep $((wait_ms * 4 / 1000 + 2)) # several intervals
    check_equal "size on the PFS while the kernel reads" "$(stat -c %s "$PFS/beside")" 0
    : >"$W/enough"
    wait "$reader" || fail "the reader failed"
    wait_for 60 cmp -s "$W/content" "$PFS/beside" || fail "not flushed after the reading"
fi
stop_node a
