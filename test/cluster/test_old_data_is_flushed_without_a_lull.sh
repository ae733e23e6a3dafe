#!/usr/bin/env bash
# Where I/O leaves no lull, data is on the PFS once it is as old as --dirty-age, and not before.
# timeout: 90
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
start_faultfs a
start_node a "$W/pfs-a" --flush-wait 30 --dirty-age 4
head -c 3000000 /dev/urandom >"$W/content"
(while :; do
    echo x >>"$W/mnt-a/noise"
    sleep 0.1
done) &
record_process "$W" $!
noise=$!
now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
began=$(now_ms)
cp "$W/content" "$W/mnt-a/file"
copied=$(now_ms)
wait_for 30 cmp -s "$W/content" "$PFS/file" || fail "not flushed by age"
after=$(now_ms)
echo "on the PFS $((after - began)) ms after it was begun, $((after - copied)) ms after it was written"
[ $((after - began)) -ge 3900 ] || fail "flushed before its time"
[ $((after - began)) -le 15000 ] || fail "flushed late"
# the file that is written all the time as well, again and again
grown() { [ "$(stat -c %s "$PFS/noise")" -gt "$1" ]; }
for _ in 1 2; do
    size=$(stat -c %s "$PFS/noise")
    wait_for 20 grown "$size" || fail "a file that is written all the time stays behind"
done
check_equal "bytes flushed in lulls" "$(status_of a .counters.flushed_lull_bytes)" 0
kill "$noise"
wait "$noise" 2>/dev/null || true
stop_node a
check_same "$W/content" "$PFS/file"
