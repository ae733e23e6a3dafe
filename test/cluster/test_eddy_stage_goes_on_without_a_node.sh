#!/usr/bin/env bash
# A node dies while files are staged: its share is asked of the next owners, what others have brought is not fetched again, and the
# progress never goes back. Files that change or go while they are staged: what is there in the end, or the reason.
# timeout: 300
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
MIB=1048576
A=$W/mnt-a

for node in a b c; do
    start_faultfs $node
    start_node $node "$W/pfs-$node" --cache-size 512M
done
mkdir -p "$PFS/tree/small"
for i in 1 2 3; do head -c $((33 * MIB + i)) /dev/urandom >"$PFS/tree/large$i"; done
for i in $(seq 300); do head -c $((i * 97)) /dev/urandom >"$PFS/tree/small/$i"; done
bytes=$(find "$PFS/tree" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')

is_more() { # the progress goes on, and not back
    local now
    now=$("$EDDY_BUILD/eddy" stage --status --json "$id" | jq '.[0].done_bytes')
    [ "$now" -ge "$DONE" ] || fail "the progress went from $DONE back to $now"
    DONE=$now
}
state_is() {
    is_more
    [ "$("$EDDY_BUILD/eddy" stage --status --json "$id" | jq -r '.[0].state')" = "$1" ]
}

# --- A node dies when it has brought a part of its share ---

DONE=0
hang=$(tell_faultfs b hang read path=tree/large3)
id=$("$EDDY_BUILD/eddy" stage --spread "$A/tree")
wait_for 60 fault_waits b "$hang" || fail "b is not asked for its share"
others_are_done() { # all but what b has to do with large3
    local before=$DONE
    is_more
    [ "$DONE" -gt $((bytes / 3)) ] && [ "$DONE" = "$before" ]
}
wait_for 60 others_are_done || fail "the others do not go on: $DONE of $bytes"
# Its daemon waits for the PFS that hangs, and cannot be killed before that goes on.
kill -KILL "${NODE_PID[b]}"
tell_faultfs b clear
wait "${JOB[node-b]}" 2>/dev/null || true
unset "NODE_PID[b]"
wait_for 120 state_is ended || fail "it does not end without b: $("$EDDY_BUILD/eddy" stage --status "$id")"
check_equal "files that failed" "$("$EDDY_BUILD/eddy" stage --status --json "$id" | jq '.[0].failed')" 0
check_equal "bytes that the others have read, once each" "$(pfs_read tree a c)" "$bytes"
diff -r "$A/tree" "$PFS/tree" || fail "a has wrong bytes"
diff -r "$W/mnt-c/tree" "$PFS/tree" || fail "c has wrong bytes"
check_equal "bytes that the others have read, with two readers" "$(pfs_read tree a c)" "$bytes"
fusermount3 -uz "$W/mnt-b"

# --- The node that asks is unmounted, and started again ---

mkdir "$PFS/again"
for i in $(seq 12); do head -c $((4 * MIB)) /dev/urandom >"$PFS/again/$i"; done
tell_faultfs a bandwidth $((8 * MIB))
id=$("$EDDY_BUILD/eddy" stage --spread "$A/again")
DONE=0
has_begun() {
    is_more
    [ "$DONE" -gt 0 ]
}
wait_for 60 has_begun || fail "nothing is brought"
stop_node a
tell_faultfs a bandwidth 0
start_node a "$W/pfs-a" --cache-size 512M
"$EDDY_BUILD/eddy" stage --spread --wait "$A/again" || fail "it does not go on: $?"
diff -r "$A/again" "$PFS/again" || fail "a has wrong bytes"
stop_node c

# --- Files change, and go, while they are staged ---

mkdir "$PFS/busy"
for i in 1 2 3 4 5; do head -c 100000 /dev/urandom >"$PFS/busy/$i"; done
first=$(tell_faultfs a hang read path=busy/1) second=$(tell_faultfs a hang read path=busy/2)
"$EDDY_BUILD/eddy" stage --wait "$A"/busy/{1,2,3,4,5} >"$W/said" 2>&1 &
job=$!
record_process "$W" "$job"
wait_for 30 fault_waits a "$first" || fail "the first is not read"
wait_for 30 fault_waits a "$second" || fail "the second is not read"
for i in 1 3; do
    head -c 200000 /dev/urandom >"$PFS/busy/new"
    mv "$PFS/busy/new" "$PFS/busy/$i"
done
head -c 50000 /dev/urandom >"$PFS/busy/2" # the file itself
rm "$PFS/busy/4"
check_same "$A/busy/5" "$PFS/busy/5" # who reads it before its turn does not end that
tell_faultfs a clear
code=0
wait "$job" || code=$?
check_equal "code ($(cat "$W/said"))" "$code" 5
grep -q "busy/4: node a: it was removed meanwhile" "$W/said" || fail "the removed one is not named: $(cat "$W/said")"
check_equal "lines" "$(grep -c busy/ "$W/said")" 1
check_equal "what is here of the others" "$("$EDDY_BUILD/eddy" stage --check --json "$A"/busy/{1,2,3,5} | jq -c '[.bytes, .here]')" \
    "[550000,550000]"
for i in 1 2 3 5; do
    check_same "$A/busy/$i" "$PFS/busy/$i"
done
stop_node a
