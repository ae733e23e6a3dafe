#!/usr/bin/env bash
# A node that joins a running session takes the chunks that are its now from the nodes that had them
# before: nothing is read from the PFS again, and nothing is copied before somebody asks.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

mkdir "$PFS/tree"
for i in $(seq 1 24); do head -c $((900000 + i * 10007)) /dev/urandom >"$PFS/tree/$i"; done
(cd "$PFS/tree" && sha256sum -- *) >"$W/sums"
TREE=$(find "$PFS/tree" -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')
reads_right() {
    (cd "$W/mnt-$1/tree" && sha256sum --quiet -c "$W/sums") || fail "node $1 reads other bytes"
}
for n in a b c; do start_faultfs "$n"; done
start_node a "$W/pfs-a" --chunk-size 256K
start_node b "$W/pfs-b" --chunk-size 256K --wait-nodes 2
reads_right a
reads_right b
before=$(($(stat_of a read_bytes) + $(stat_of b read_bytes)))
start_node c "$W/pfs-c" --chunk-size 256K --wait-nodes 3
check_equal "what was taken before anybody asked" "$(status_of c .counters.received_bytes)" 0
reads_right c
after=$(($(stat_of a read_bytes) + $(stat_of b read_bytes)))
# views and nodes are read there, too
[ $((after - before)) -le 65536 ] || fail "those who had it read $((after - before)) bytes from the PFS again"
own=$(stat_of c read_bytes)
[ "$own" -le $((TREE / 100)) ] || fail "the new node read $own bytes of $TREE from the PFS"
former=$(status_of c .counters.former_bytes)
[ "$former" -ge $((TREE / 5)) ] && [ "$former" -le $((TREE / 2)) ] ||
    fail "of $TREE bytes it took $former from their former owners, expected about a third"
sum=$(status_of c '.reads | .local_bytes + .peer_bytes')
[ "$sum" -ge "$TREE" ] || fail "its reads count as $sum bytes that did not come from the PFS, of $TREE"
for n in a b c; do stop_node "$n"; done
