#!/usr/bin/env bash
# eddy stage of 10 GiB, more than one cache holds, on four nodes: spread over them, each byte from the PFS once, though it is
# interrupted and goes on; its progress never goes back; --check is right to the byte; a node that dies costs its share only.
# timeout: 1800
# long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
MIB=1048576
A=$W/mnt-a
NODES=(a b c d)
[ "$(df --output=avail -B1G "$W" | tail -n 1)" -ge 35 ] || skip "35 GiB of room are needed in $W"

mkdir -p "$PFS/tree/small" "$PFS/tree/middle"
for i in $(seq 8); do head -c $((1000 * MIB + i)) /dev/urandom >"$PFS/tree/large$i"; done
for i in $(seq 200); do head -c $((11 * MIB - i * 1111)) /dev/urandom >"$PFS/tree/middle/$i"; done
for i in $(seq 2000); do head -c $((i * 32 + 1)) /dev/urandom >"$PFS/tree/small/$i"; done
bytes=$(find "$PFS/tree" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%.0f", sum }')
[ "$bytes" -gt $((10000 * MIB)) ] || fail "the tree is too small: $bytes"

for node in "${NODES[@]}"; do
    start_faultfs "$node"
    start_node "$node" "$W/pfs-$node" --cache-size 5G
done

check() { # FILTER: of what --check says of the tree
    "$EDDY_BUILD/eddy" stage --check --spread --json "$A/tree" | jq -c "$1"
}
has() { # NODE: bytes of the tree, as --check says
    check "[.has[].nodes[] | select(.node == \"$1\").bytes] | add // 0"
}
stages() { # FIELD
    "$EDDY_BUILD/eddy" stage --status --json "$id" | jq -r ".[0].$1"
}
is_beyond() { # BYTES; and the progress goes on, not back
    local now
    now=$(stages done_bytes)
    [ "$now" -ge "$DONE" ] || fail "the progress went from $DONE back to $now"
    DONE=$now
    [ "$DONE" -ge "$1" ]
}
has_ended() {
    is_beyond 0
    [ "$(stages state)" = ended ]
}

# --- Interrupted ---

check_equal "what --check says before" "$(check '[.bytes, .here, .fits]')" "[$bytes,0,true]"
in_background env --default-signal=INT "$EDDY_BUILD/eddy" stage --spread --wait "$A/tree" >"$W/said" 2>&1
job=$!
id_of_stage() {
    id=$("$EDDY_BUILD/eddy" stage --status --json "$A" | jq -r '.[0].id // empty')
    [ -n "$id" ]
}
wait_for 60 id_of_stage || fail "no stage begins"
DONE=0
wait_for 300 is_beyond $((bytes / 3)) || fail "it does not go on: $(stages .)"
kill -INT "$job"
code=0
wait "$job" || code=$?
[ "$code" != 0 ] || fail "it has ended before it was interrupted: $(cat "$W/said")"
here=$(check .here)
{ [ "$here" -ge $((bytes / 3)) ] && [ "$here" -lt "$bytes" ]; } || fail "$here of $bytes bytes are here after a third"

# --- And gone on with ---

id=$("$EDDY_BUILD/eddy" stage --spread "$A/tree")
DONE=0
wait_for 600 has_ended || fail "it does not end: $(stages .)"
check_equal "files that failed" "$(stages failed)" 0
check_equal "bytes that were read" "$(pfs_read tree "${NODES[@]}")" "$bytes"
check_equal "what --check says after" "$(check '[.bytes, .here, .fits]')" "[$bytes,$bytes,true]"
sum=0
for node in "${NODES[@]}"; do
    owned=$(has "$node")
    check_equal "bytes at $node, and bytes that it has read" "$owned" "$(pfs_read tree "$node")"
    [ "$owned" -gt $((bytes / 8)) ] || fail "$node has $owned of $bytes bytes only"
    sum=$((sum + owned))
done
check_equal "bytes at all nodes" "$sum" "$bytes"
for node in b d; do # and what they read comes from the caches
    check_same "$W/mnt-$node/tree/large1" "$PFS/tree/large1"
    diff -r "$W/mnt-$node/tree/small" "$PFS/tree/small" || fail "$node has wrong bytes"
done
check_equal "bytes that were read, with two readers" "$(pfs_read tree "${NODES[@]}")" "$bytes"
for node in "${NODES[@]}"; do stop_node "$node"; done

# --- A node dies: its share only is brought by the others ---

for node in e f g h; do # other mounts of the PFS: none has pages of it
    start_faultfs "$node"
    start_node "$node" "$W/pfs-$node" --cache-size 6G # three have room for all, though one owns more than a third
done
A=$W/mnt-e
id=$("$EDDY_BUILD/eddy" stage --spread "$A/tree")
DONE=0
wait_for 300 is_beyond $((bytes / 2)) || fail "it does not go on: $(stages .)"
kill_node h
wait_for 900 has_ended || fail "it does not end without h: $(stages .)"
check_equal "files that failed without h" "$(stages failed)" 0
check_equal "bytes that the others have read, once each" "$(pfs_read tree e f g)" "$bytes"
check_equal "what --check says without h" "$(check '[.bytes, .here]')" "[$bytes,$bytes]"
diff -r "$A/tree/middle" "$PFS/tree/middle" || fail "e has wrong bytes"
check_equal "bytes that the others have read, with a reader" "$(pfs_read tree e f g)" "$bytes"
for node in e f g; do stop_node "$node"; done
