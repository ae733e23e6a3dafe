#!/usr/bin/env bash
# What is brought before anybody reads it is no activity, neither where it goes nor at the owners: both nodes flush in a lull
# while a stage goes on.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

for node in a b; do
    start_faultfs $node
    start_node $node "$W/pfs-$node" --flush-wait 1 --cache-size 128M
done
head -c 24M /dev/urandom >"$PFS/staged"
hang_a=$(tell_faultfs a hang read path=staged) hang_b=$(tell_faultfs b hang read path=staged)
"$EDDY_BUILD/eddy" stage --here "$W/mnt-a/staged" >"$W/id"
wait_for 30 fault_waits a "$hang_a" || fail "a reads nothing"
wait_for 30 fault_waits b "$hang_b" || fail "b is not asked"
is_flushed() {
    cmp -s "$W/written" "$PFS/of-$1"
}
echo "not read by anybody" >"$W/written"
for node in a b; do
    cp "$W/written" "$W/mnt-$node/of-$node"
    wait_for 30 is_flushed $node || fail "$node does not flush while a stage goes on: $(status_of $node .flush)"
done
grep -q "going on" <("$EDDY_BUILD/eddy" stage --status "$(cat "$W/id")") || fail "the stage has ended too early"
tell_faultfs a clear
tell_faultfs b clear
"$EDDY_BUILD/eddy" stage --wait "$W/mnt-a/staged" || fail "it cannot be staged"
check_same "$W/mnt-a/staged" "$PFS/staged"
stop_node a
stop_node b
