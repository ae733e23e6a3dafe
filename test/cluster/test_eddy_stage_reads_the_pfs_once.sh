#!/usr/bin/env bash
# eddy stage: each byte comes from the PFS once, and not again, neither for a second stage nor for who reads the files: on one
# node, and spread over three, where each node has what it owns.
# timeout: 180
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
MIB=1048576

stage() { # CODE ARGUMENT...
    local expected=$1 code=0
    shift
    timeout 100 "$EDDY_BUILD/eddy" stage "$@" >"$W/said" 2>"$W/complained" || code=$?
    check_equal "code of eddy stage $* ($(cat "$W/said" "$W/complained"))" "$code" "$expected"
}
read_all() { # NODE DIRECTORY
    diff -r "$W/mnt-$1/$2" "$PFS/$2" || fail "$1 has wrong bytes of $2"
}

make_tree() { # NAME
    mkdir -p "$PFS/$1/sub/deep"
    head -c $((21 * MIB + 5)) /dev/urandom >"$PFS/$1/large"
    for i in $(seq 40); do
        head -c $((i * 1111)) /dev/urandom >"$PFS/$1/sub/$i"
    done
    : >"$PFS/$1/sub/empty"
    head -c $((3 * MIB)) /dev/urandom >"$PFS/$1/sub/deep/three"
    find "$PFS/$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }'
}

# --- On one node ---

bytes=$(make_tree one)
start_faultfs a
start_node a "$W/pfs-a" --cache-size 256M
stage 0 --here --wait "$W/mnt-a/one"
check_equal "bytes that were read for the stage" "$(pfs_read one a)" "$bytes"
stage 0 --wait "$W/mnt-a/one"
check_equal "bytes that were read for two stages" "$(pfs_read one a)" "$bytes"
read_all a one
check_equal "bytes that were read for two stages and a reader" "$(pfs_read one a)" "$bytes"
check_equal "bytes that the reader waited for" "$(status_of a .reads.pfs_bytes)" 0
check_equal "hints that are left" "$(status_of a '.hints | [.queues, .hints, .admitted, .memory_bytes] | tostring')" "[0,0,0,0]"

# --- Spread over three ---

for node in b c; do
    start_faultfs $node
    start_node $node "$W/pfs-$node" --cache-size 256M
done
bytes=$(make_tree three)
stage 0 --spread --wait "$W/mnt-a/three"
check_equal "bytes that were read for the stage" "$(pfs_read three a b c)" "$bytes"
for node in a b c; do
    [ "$(pfs_read three $node)" -gt $((2 * MIB)) ] || fail "$node has brought nothing"
done
stage 0 --spread --wait "$W/mnt-b/three"
for node in a b c; do
    read_all $node three
done
check_equal "bytes that were read for two stages and three readers" "$(pfs_read three a b c)" "$bytes"
for node in a b c; do
    stop_node $node
done
