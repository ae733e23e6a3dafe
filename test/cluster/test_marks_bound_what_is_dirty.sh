#!/usr/bin/env bash
# With a slow PFS and I/O that leaves no lull: the flush begins at the high mark and rests
# only below the low one, dirty data stays below 95 % of the cache, writers are slowed to
# what the PFS takes and none is refused; every byte arrives.
# timeout: 240
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3 free 800
MIB=1048576
start_faultfs a --bandwidth $((30 * MIB))
start_node a "$W/pfs-a" --cache-size 128M --flush end --dirty-age 0 --session-dir "$W/session"

sample() {
    while :; do
        eddy status --json "$W/mnt-a" | jq -c '[.flush.pending_bytes, .flush.full_bytes, .cache.size]' || return 0
        sleep 0.1
    done
}
sample >"$W/samples" 2>/dev/null &
record_process "$W" $!
sampler=$!

# four writers, 320 MiB in all: two and a half caches.  Through the daemon: a descriptor that
# the kernel serves could not be slowed, so each file is small.
cat >"$W/write.py" <<'PY'
import os, sys, time
who, mnt = sys.argv[1:3]
slowest = 0
for n in range(40):
    data = (who + str(n)).encode() * (1048576 // len(who + str(n)))
    fd = os.open(f"{mnt}/{who}-{n}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    for piece in range(2):
        began = time.monotonic()
        os.write(fd, data)
        slowest = max(slowest, time.monotonic() - began)
    os.close(fd)
print(f"{who}: slowest write {slowest:.2f} s")
PY
writers=()
began=${EPOCHREALTIME/[.,]/}
for w in w1 w2 w3 w4; do
    python3 -B "$W/write.py" $w "$W/mnt-a" &
    record_process "$W" $!
    writers+=($!)
done
for p in "${writers[@]}"; do
    wait "$p" || fail "a writer was refused"
done
echo "written in $(((${EPOCHREALTIME/[.,]/} - began) / 1000)) ms, slowed for $(status_of a .counters.slowed_ms) ms in all"

drained() { [ "$(status_of a .flush.draining)" = false ]; }
wait_for 60 drained || fail "not down to the low mark"
kill "$sampler"
wait "$sampler" 2>/dev/null || true
jq -s -r '(map(.[0] / .[2]) | max * 1000 | floor | . / 10) as $most
          | "\(length) samples, at most \($most) % of the cache dirty"' "$W/samples"
# beyond the full mark: a piece per writer
jq -s -e --argjson piece $MIB 'length > 10 and all(.[]; .[0] <= .[1] + 4 * $piece)' "$W/samples" >/dev/null ||
    fail "more was dirty than the full mark allows: $(jq -s -c 'max_by(.[0])' "$W/samples")"
[ "$(status_of a .counters.slowed_ms)" -gt 0 ] || fail "nobody was slowed"
check_equal "bytes flushed in lulls" "$(status_of a .counters.flushed_lull_bytes)" 0
rests() { [ "$(status_of a .flush.state)" = "waiting for the end" ]; }
wait_for 30 rests || fail "it goes on below the low mark: $(status_of a .flush.state)"
pending=$(status_of a .flush.pending_bytes)
[ "$pending" -gt 0 ] || fail "it went on below the low mark"
[ "$pending" -le "$(status_of a .flush.low_bytes)" ] || fail "not down to the low mark: $pending"
written=$(stat_of a write_bytes)
sleep 1
check_equal "bytes written while it rests" "$(stat_of a write_bytes)" "$written"
stop_node a
python3 -B - "$PFS" <<'PY' || fail "a file is wrong"
import sys
wrong = []
for who in ("w1", "w2", "w3", "w4"):
    for n in range(40):
        word = (who + str(n)).encode()
        with open(f"{sys.argv[1]}/{who}-{n}", "rb") as f:
            if f.read() != word * (1048576 // len(word)) * 2:
                wrong.append(f"{who}-{n}")
sys.exit(f"wrong: {wrong}" if wrong else 0)
PY
