#!/usr/bin/env bash
# Two nodes hint the same files in two orders: each byte is read from the PFS once, for both. What one of them then writes is what
# the other one reads, though it was ahead there.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
FILES=12
MIB=1048576

all_ahead() { # NODE
    [ "$(status_of "$1" .hints.ahead)" = $FILES ]
}

hint() { # NODE NAME...
    local node=$1
    shift
    "$EDDY_BUILD/eddy" hint "${@/#/$W/mnt-$node/}" &
    record_process "$W" $!
    HINTS+=($!)
}

HINTS=()
for i in $(seq $FILES); do head -c 3M /dev/urandom >"$PFS/file$i"; done
start_faultfs a --bandwidth 100000000
start_faultfs b --bandwidth 100000000
start_node a "$W/pfs-a" --cache-size 1G
start_node b "$W/pfs-b" --cache-size 1G --wait-nodes 2

mapfile -t names < <(seq -f 'file%.0f' $FILES)
mapfile -t back < <(seq -f 'file%.0f' $FILES -1 1)
hint a "${names[@]}"
hint b "${back[@]}"
for node in a b; do
    wait_for 60 all_ahead $node || fail "not all is ahead on $node: $(status_of $node .hints)"
done
read=$(($(status_of a .counters.pfs_read_bytes) + $(status_of b .counters.pfs_read_bytes)))
check_equal "bytes read from the PFS" "$read" $((FILES * 3 * MIB))

# Written on a, while it is ahead on b.
head -c 2M /dev/urandom >"$W/new"
cp "$W/new" "$W/mnt-a/file3"
cmp "$W/mnt-b/file3" "$W/new" || fail "b reads what file3 had before"
for name in "${names[@]}"; do
    [ "$name" != file3 ] || continue
    for node in a b; do
        cmp "$W/mnt-$node/$name" "$PFS/$name" || fail "$name on $node has wrong bytes"
    done
done
for node in a b; do
    check_equal "bytes that the reader on $node waited for from the PFS" "$(status_of $node .reads.pfs_bytes)" 0
done
cat "$W/mnt-a/file3" >/dev/null
for hint in "${HINTS[@]}"; do
    wait "$hint" || fail "eddy hint ended with $?"
done
stop_node a
stop_node b
