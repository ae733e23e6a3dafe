#!/usr/bin/env bash
# A node that has borrowed parts of a file dies, and is started again. What it had flushed is on the PFS, and the claimant
# counts it so, though it did not know that before. If the file was removed meanwhile, what the node had not flushed is dropped.
# timeout: 200
# sanitize-long
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
for node in a b; do
    start_faultfs $node
done
start_node a "$W/pfs-a" --flush-wait 3600
start_node b "$W/pfs-b" --flush-wait 3600 --wait-nodes 2

start_ranks shared "a=$W/mnt-a" "b=$W/mnt-b"
restart_b() {
    fusermount3 -uz "$W/mnt-b"
    start_node b "$W/pfs-b" --flush-wait 3600
}
rank open a
rank open b
rank write b 0 4 1
eddy flush "$W/mnt-b"
check_equal "files of which b has borrowed parts" "$(status_of b .loans.borrowed_files)" 1
crash_node b
restart_b
rank open b
rank patch b 1 1
rank check b 0 4 1
rank check a 0 4 1

echo "the file is removed"
rank write b 10 4 2
rank close a
crash_node b
rm "$W/mnt-a/shared"
restart_b
grep -q "parts of 1 files of other nodes" "$W/b.log" || fail "b has found nothing of it"
eddy flush "$W/mnt-b"
wait_for 30 eval '[ "$(status_of b .loans.borrowed_files)" = 0 ]' || fail "b keeps what it has borrowed of a removed file"
wait_for 30 eval '[ "$(status_of a .loans.lent_files)" = 0 ]' || fail "a counts it as lent"
check_equal "files beside it" "$(find "$PFS" -name "shared*" | wc -l)" 0
rank open a
rank open b
rank write b 0 4 3
rank check a 0 4 3
rank close b
rank close a
stop_node b
stop_node a
