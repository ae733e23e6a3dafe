#!/usr/bin/env bash
# The flush waits for a lull of I/O: a stat loop does not keep it from flushing, a write loop does; an idle daemon uses no CPU.
# timeout: 120
# alone
. "$(dirname "$0")/lib.sh"
requires fuse
start_faultfs a
start_node a "$W/pfs-a"

# dirty data and a loop of metadata: flushed all the same
head -c 3000000 /dev/urandom >"$W/content"
(while :; do stat "$W/mnt-a/one" "$W/mnt-a" >/dev/null 2>&1 || true; done) &
record_process "$W" $!
loop=$!
cp "$W/content" "$W/mnt-a/one"
wait_for 20 cmp -s "$PFS/one" "$W/content" || fail "a stat loop keeps the file from being flushed"
kill "$loop"
wait "$loop" 2>/dev/null || true

# a loop of writes with gaps shorter than the wait interval: nothing is flushed meanwhile
cp "$W/content" "$W/mnt-a/two"
(while :; do
    echo x >>"$W/mnt-a/loop"
    sleep 0.1
done) &
record_process "$W" $!
loop=$!
end=$((SECONDS + 5))
while [ $SECONDS -lt $end ]; do
    cmp -s "$PFS/two" "$W/content" && fail "flushed while I/O went on"
    sleep 0.2
done
for f in two loop; do
    check_equal "bytes of $f written to the PFS during the write loop" "$(stat_of a write_bytes "$f")" 0
done
kill "$loop"
wait "$loop" 2>/dev/null || true
wait_for 20 cmp -s "$PFS/two" "$W/content" || fail "not flushed after the loop"

# nothing to do: less than 0.5 % of a core over 10 s
all_clean() { [ "$(status_of a .flush.pending_bytes)" = 0 ]; }
wait_for 20 all_clean || fail "something stays dirty"
ticks() { awk '{print $14 + $15}' "/proc/${NODE_PID[a]}/stat"; }
first=$(ticks)
sleep 10
used=$(($(ticks) - first))
echo "idle: $used clock ticks in 10 s"
[ "$used" -le $(($(getconf CLK_TCK) * 10 * 5 / 1000)) ] || fail "an idle daemon used $used ticks in 10 s"
stop_node a
