#!/usr/bin/env bash
# Without passthrough what was read once stays in the kernel's page cache over a close: the daemon is not asked for it
# again, until it was changed, here, by another node or behind the session's back on the PFS.
# timeout: 120
# sanitize
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a" --no-passthrough --flush-wait 3600
start_node b "$W/pfs-b" --no-passthrough --flush-wait 3600 --wait-nodes 2
SIZE=$((3 << 20))
A=$W/mnt-a/file
B=$W/mnt-b/file

asked_bytes() { status_of b '.counters | .read_local_bytes + .read_peer_bytes + .read_pfs_bytes'; }
# reads WHAT OF [kept]: node b reads the same as OF has; the daemon is asked for all of it, or, kept, for no more than what
# the kernel may have taken back for its memory meanwhile.
reads() {
    local before asked
    before=$(asked_bytes)
    cmp "$B" "$2" || fail "$1: other bytes"
    asked=$(($(asked_bytes) - before))
    if [ $# = 2 ]; then
        [ "$asked" -ge $SIZE ] || fail "$1: the daemon was asked for $asked bytes, not for all of $SIZE"
    else
        [ "$asked" -lt $((SIZE / 4)) ] || fail "$1: the daemon was asked for $asked bytes"
    fi
}
# The same, and the daemon was asked for little: is_kept OF
is_kept() {
    local before
    before=$(asked_bytes)
    cmp "$B" "$1" || fail "other bytes"
    [ $(($(asked_bytes) - before)) -lt $((SIZE / 4)) ]
}
change() { # change FILE...: one byte of each
    BYTE=$((BYTE % 250 + 1))
    local file
    for file; do
        # shellcheck disable=SC2059
        printf "\\x$(printf %x $BYTE)" | dd of="$file" bs=1 seek=100000 conv=notrunc status=none
    done
}
BYTE=0
head -c $SIZE /dev/urandom >"$W/right"
cp "$W/right" "$PFS/file"
sleep 1.1 # not racy, and what is known of its name is not either
for round in 1 2 3; do
    reads "first, round $round" "$W/right"
    reads "second, round $round" "$W/right" kept
    reads "third, round $round" "$W/right" kept
    change "$A" "$W/right"
    reads "changed by a node, round $round" "$W/right"
    # what is open for writing is not kept, and a close is told to the other node's daemon a moment later
    wait_for 10 is_kept "$W/right"
    reads "changed by a node and read before, round $round" "$W/right" kept
    eddy flush "$W/mnt-a"
    reads "flushed, round $round" "$W/right"
    sleep 1.1
    reads "flushed and read before, round $round" "$W/right" kept
    change "$PFS/file" "$W/right"
    sleep 1.1 # --attr-timeout
done
stop_node a
stop_node b
