#!/usr/bin/env bash
# All nodes write one file at the same time, each its own parts: size and bytes are exact for all of them at once, most
# bytes stay on the node that wrote them, and the PFS has all of it after a flush.
# timeout: 300
# both
# sanitize
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3 cmd jq
start_faultfs a
start_faultfs b
start_faultfs c
start_node a "$W/pfs-a" --flush-wait 3600
start_node b "$W/pfs-b" --wait-nodes 2 --flush-wait 3600
start_node c "$W/pfs-c" --wait-nodes 3 --flush-wait 3600
HERE=$(dirname "$0")

# all_write NAME OPTIONS...: and what the PFS has then
all_write() {
    local name=$1
    shift
    python3 "$HERE/shared_file.py" --name "$name" "$@" "$W/mnt-a" "$W/mnt-b" "$W/mnt-c" || fail "$name: $*"
    for node in a b c; do
        eddy flush "$W/mnt-$node" || fail "$name: the flush of $node"
    done
    python3 "$HERE/shared_file.py" --name "$name" "$@" --pfs "$PFS/$name" x x x || fail "$name: $*: on the PFS"
}
carried() {
    local node sum=0
    for node in a b c; do
        sum=$((sum + $(status_of $node .counters.carried_bytes)))
    done
    echo $sum
}

# All open it at the same moment, so that none knows yet who has the claim, or what the kernels of the others keep.
before=$(carried)
for round in 1 2 3 4 5; do
    "$EDDY_BUILD/test/ranks" --how segmented --pieces 16 --name "at-once-$round" "$W/mnt-a" "$W/mnt-b" "$W/mnt-c" >/dev/null ||
        fail "at once, round $round"
done
echo "carried of 240 MiB: $(($(carried) - before)) bytes"
[ $(($(carried) - before)) -lt $((40 << 20)) ] || fail "of 5 files of 48 MiB that all nodes wrote $(($(carried) - before)) were carried"

before=$(carried)
all_write large-strided --piece 1048576 --pieces 12
[ $(($(carried) - before)) -lt $((6 << 20)) ] || fail "of 36 MiB that all nodes wrote $(($(carried) - before)) were carried"
all_write small-strided --piece 65536 --pieces 64
all_write segmented --piece 1048576 --pieces 12 --how segmented
all_write uneven --piece 47008 --pieces 100
all_write uneven-segmented --piece 47008 --pieces 100 --how segmented
all_write again --piece 262144 --pieces 16 --rounds 3
stop_node a
stop_node b
stop_node c
