#!/usr/bin/env bash
# A claimant takes its parts back, and is killed and forgotten while the borrower still writes them to the PFS: what is
# left is put beside the file, and the borrower goes on. What it writes while that is done goes to the file's next claimant,
# and is not lost.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
for node in a b c; do
    start_faultfs $node
done
start_node a "$W/pfs-a" --flush-wait 3600
start_node b "$W/pfs-b" --flush-wait 3600 --wait-nodes 2
start_node c "$W/pfs-c" --flush-wait 3600 --wait-nodes 3
mkdir "$PFS/dir"

start_ranks dir/shared "a=$W/mnt-a" "b=$W/mnt-b" "c=$W/mnt-c" "beside=$W/beside"
rank open a
rank open b
rank write a 0 4 1
rank write b 4 400 1
check_equal "files of which b has borrowed parts" "$(status_of b .loans.borrowed_files)" 1
held=$(tell_faultfs b hang write path='dir/shared')
truncate -s 65536 "$W/mnt-a/dir/shared" 2>"$W/truncate.out" &
record_process "$W" $!
wait_for 20 fault_waits b "$held" || fail "the recall does not begin"
kill_node a
wait_for 30 eval '[ "$(status_of c ".absent | length")" = 1 ]' || fail "a is not absent"
eddy forget "$W/mnt-c/dir/shared" || fail "eddy forget"
beside=$(tell_faultfs b hang fsync path='dir/*.eddy-part-*')
tell_faultfs b clear "$held"
wait_for 30 fault_waits b "$beside" || fail "what b has is not put beside the file"
timeout 20 dd if=/dev/zero of="$W/mnt-b/dir/shared" bs=64k seek=10 count=1 conv=notrunc status=none ||
    fail "b cannot write while what it had is put beside the file"
tell_faultfs b clear "$beside"
wait_for 30 test -e "$PFS/dir/shared.eddy-conflict-b" || fail "b's data is not put beside the file"
wait_for 10 eval '[ "$(status_of b .loans.borrowed_files)" = 0 ]' || fail "the loan does not end"
cmp -n 65536 -i "$((10 * 65536)):0" "$W/mnt-b/dir/shared" /dev/zero || fail "what b wrote meanwhile is lost"
cmp -n 65536 -i "$((10 * 65536)):0" "$W/mnt-c/dir/shared" /dev/zero || fail "what b wrote meanwhile is not seen by c"
mkdir -p "$W/beside/dir"
ln -s "$PFS/dir/shared.eddy-conflict-b" "$W/beside/dir/shared"
rank open beside
rank check beside 4 400 1
rank close b
for node in c b; do
    timeout 60 "$EDDY_BUILD/eddy" flush "$W/mnt-$node" || fail "eddy flush of $node"
done
stop_node c
stop_node b
