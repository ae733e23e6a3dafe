#!/usr/bin/env bash
# Three nodes read one tree, at the same time and again: the PFS is read once for all, the counts add up to what was
# read, and a cache far smaller than the tree still gives right bytes.
# timeout: 300
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq free 4000
MIB=${TREE_MIB:-64}

make_tree() {
    local i
    mkdir -p "$PFS/tree/small" "$PFS/tree/large"
    for i in $(seq 1 400); do
        head -c $((i * 613 % 70000 + 1)) /dev/urandom >"$PFS/tree/small/$i"
    done
    for i in 1 2 3 4; do
        head -c $((MIB * 1048576 / 4 + i * 1000 + 1)) /dev/urandom >"$PFS/tree/large/$i"
    done
    (cd "$PFS/tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum >"$W/sums")
}

read_through() {
    (cd "$W/mnt-$1/tree" && sha256sum --quiet -c "$W/sums") || fail "node $1 reads other bytes"
}

total() { # total of a faultfs counter over the nodes
    local n sum=0
    for n in a b c; do sum=$((sum + $(stat_of "$n" "$1"))); done
    echo "$sum"
}

make_tree
size=$(find "$PFS/tree" -type f -printf '%s\n' | awk '{s += $1} END {print s}')
for n in a b c; do start_faultfs "$n"; done
start_node a "$W/pfs-a" --cache-size 8G
for n in b c; do start_node "$n" "$W/pfs-$n" --cache-size 8G --wait-nodes 2; done
three_nodes() { [ "$(status_of a '.members | length')" = 3 ]; }
wait_for 30 three_nodes || fail "three nodes are not in one session"

before=$(total read_bytes)
pids=()
for n in a b c; do
    read_through "$n" &
    pids+=($!)
done
for p in "${pids[@]}"; do wait "$p" || fail "a reader failed"; done
for n in a b c; do read_through "$n"; done
after=$(total read_bytes)
echo "tree $size bytes, read from the PFS $((after - before))"
[ $((after - before)) -ge "$size" ] || fail "the PFS gave less than the tree has"
[ $((after - before)) -le $((size + size / 100)) ] || fail "the PFS was read more than once: $((after - before)) for $size"

read_sum=0
for n in a b c; do
    one=$(status_of "$n" '.reads | .local_bytes + .peer_bytes + .pfs_bytes')
    status_of "$n" '"\(.node): local \(.reads.local_bytes) peer \(.reads.peer_bytes) pfs \(.reads.pfs_bytes)"'
    read_sum=$((read_sum + one))
done
# the kernel may keep pages from the first reading: each node read once or twice
peer_sum=$(($(status_of a .reads.peer_bytes) + $(status_of b .reads.peer_bytes) + $(status_of c .reads.peer_bytes)))
received=0
for n in a b c; do received=$((received + $(status_of "$n" .counters.received_bytes))); done
[ "$peer_sum" -le "$received" ] || fail "$peer_sum bytes count as read from peers, which sent $received"
[ "$read_sum" -ge $((3 * size)) ] || fail "local + peer + pfs is $read_sum, three nodes read $size bytes"
# ... and it may have let go of some of them meanwhile, and asked again
[ "$read_sum" -le $((6 * size + size / 100)) ] ||
    fail "local + peer + pfs is $read_sum, three nodes read $size bytes once or twice"
for n in a b c; do stop_node "$n"; done

# A cache of a sixteenth of the tree.
for n in a b c; do rm -rf "$W/cache-$n"; done
small=$((size / 16))
start_node a "$W/pfs-a" --cache-size $small
for n in b c; do start_node "$n" "$W/pfs-$n" --cache-size $small --wait-nodes 2; done
for n in a b c; do
    read_through "$n"
    used=$(status_of "$n" .cache.used)
    [ "$used" -le $((small + 16777216)) ] || fail "node $n keeps $used bytes in a cache of $small"
done
for n in a b c; do stop_node "$n"; done
