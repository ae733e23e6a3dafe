#!/usr/bin/env bash
# A node has borrowed parts of a file, and its claimant is away for good: an operator forgets the claim. The borrower's
# data is not written into the file any more, which another node may have by then, but put beside it.
# timeout: 120
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
start_abc

start_ranks shared "a=$W/mnt-a" "b=$W/mnt-b" "c=$W/mnt-c" "beside=$W"
rank open a
rank open b
rank write a 0 4 1
rank write b 4 4 1
check_equal "files of which b has borrowed parts" "$(status_of b .loans.borrowed_files)" 1
kill_node a
wait_for 30 eval '[ "$(status_of c ".absent | length")" = 1 ]' || fail "a is not absent"
eddy forget "$W/mnt-c/shared" || fail "eddy forget"
rank open c
rank write c 4 4 2
eddy flush "$W/mnt-c"
eddy flush "$W/mnt-b"
wait_for 30 test -e "$PFS/shared.eddy-conflict-b" || fail "b's data is not put beside the file"
ln -s "$PFS/shared.eddy-conflict-b" "$W/shared"
rank open beside
rank check beside 4 4 1
rank check c 4 4 2
cmp <(dd if="$PFS/shared" bs=64k skip=4 count=4 status=none) <(dd if="$W/mnt-c/shared" bs=64k skip=4 count=4 status=none) ||
    fail "the file on the PFS has other bytes"
check_equal "files of which b has borrowed parts" "$(status_of b .loans.borrowed_files)" 0
rank_says EIO close b # what was put beside is not in the file
rank close c
stop_node c
stop_node b
