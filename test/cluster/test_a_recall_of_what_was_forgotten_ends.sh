#!/usr/bin/env bash
# A claimant takes its parts back, and is killed and forgotten while the borrower still writes them to the PFS: what is
# left is put beside the file, and the borrower goes on. What it writes while that is done goes to the file's next claimant,
# and is not lost, also by a descriptor that it had open all the time. The close of the descriptor says EIO for what was put beside.
# timeout: 180
# both-long
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
start_abc
ones=$W/ones
head -c 65536 /dev/zero | tr '\0' '\1' >"$ones"
# Writes pieces of descriptor 7, of node b's file "kept".
pieces() { # FIRST COUNT BYTE
    timeout 60 python3 -c "import os
for n in range($1, $1 + $2):
    os.pwrite(7, bytes([$3]) * 65536, n * 65536)" || fail "b cannot write pieces from $1 on"
}
tenth_is_new() { # NODE FILE
    cmp -n 65536 -i "$((10 * 65536)):0" "$W/mnt-$1/$2" "$ones" || fail "$1: $2 has not what b wrote while its loan was put beside it"
}

start_ranks recalled "a=$W/mnt-a" "b=$W/mnt-b" "c=$W/mnt-c" "beside=$W/beside"
rank open a
rank open b
rank write a 0 4 1
rank write b 4 400 1
exec 8<>"$W/mnt-a/kept"
cat "$ones" >&8
exec 7<>"$W/mnt-b/kept"
pieces 4 40 2
check_equal "files of which b has borrowed parts" "$(status_of b .loans.borrowed_files)" 2

held=$(tell_faultfs b hang write path=recalled)
truncate -s 65536 "$W/mnt-a/recalled" 2>"$W/truncate.out" &
record_process "$W" $!
wait_for 20 fault_waits b "$held" || fail "the recall does not begin"
exec 8<&-
kill_node a
wait_for 30 eval '[ "$(status_of c ".absent | length")" = 1 ]' || fail "a is not absent"
eddy forget --node a "$W/mnt-c" || fail "eddy forget"
beside=$(tell_faultfs b hang fsync path='*.eddy-part-*')
tell_faultfs b clear "$held"
wait_for 30 fault_waits b "$beside" || fail "what b has is not put beside the file"
timeout 20 dd if="$ones" of="$W/mnt-b/recalled" bs=64k seek=10 count=1 conv=notrunc status=none ||
    fail "b cannot write while what it had is put beside the file"
tell_faultfs b clear "$beside"
wait_for 30 test -e "$PFS/recalled.eddy-conflict-b" || fail "b's data is not put beside the file"
wait_for 10 eval '[ "$(status_of b .loans.borrowed_files)" = 1 ]' || fail "the loan that was recalled does not end"
tenth_is_new b recalled
tenth_is_new c recalled
mkdir -p "$W/beside"
ln -s "$PFS/recalled.eddy-conflict-b" "$W/beside/recalled"
rank open beside
rank check beside 4 400 1

beside=$(tell_faultfs b hang fsync path='kept.eddy-part-*')
eddy flush "$W/mnt-b" >"$W/flush.out" 2>&1 &
flush=$!
record_process "$W" $flush
wait_for 30 fault_waits b "$beside" || fail "what b has of the file that it has open is not put beside it"
pieces 10 1 1
tell_faultfs b clear "$beside"
wait $flush || fail "eddy flush of b"
wait_for 10 eval '[ "$(status_of b .loans.borrowed_files)" = 0 ]' || fail "the other loan does not end"
tenth_is_new b kept
tenth_is_new c kept
[ "$(od -An -tu1 -j $((10 * 65536)) -N 1 "$PFS/kept.eddy-conflict-b")" -eq 2 ] || fail "what was put beside is not what b had"
exec 7<&-
rank_says EIO close b
eddy flush "$W/mnt-c" || fail "eddy flush of c"
stop_node c
stop_node b
