#!/usr/bin/env bash
# Two nodes write one file, with the policy end. One `eddy flush` of each node, in any order, and the file is on the PFS with all
# its bytes, its size and its times: a program outside of the session that changes it then changes the newest version. What is still
# open for writing is written to as before.
# timeout: 120
# sanitize
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
for node in a b; do
    start_faultfs $node
done
start_node a "$W/pfs-a" --flush end
start_node b "$W/pfs-b" --flush end --wait-nodes 2

time_of() { stat -c %.Y "$1"; }
is_finished() {
    cmp -s "$W/mnt-b/$1" "$PFS/$1" || fail "$1: other bytes are on the PFS"
    check_equal "mtime of $1 on the PFS" "$(time_of "$PFS/$1")" "$(time_of "$W/mnt-a/$1")"
    check_equal "files that a has lent" "$(status_of a .loans.lent_files)" 0
}

for order in "a b" "b a"; do
    name=file-${order/ /-}
    start_ranks "$name" "a=$W/mnt-a" "b=$W/mnt-b"
    rank open a
    rank open b
    rank write a 0 4 1
    rank write b 8 4 1
    check_equal "files that a has lent before the flush" "$(status_of a .loans.lent_files)" 1
    rank close a
    rank close b
    for node in $order; do
        eddy flush "$W/mnt-$node"
    done
    is_finished "$name"
    touch -d 2001-01-01 "$PFS/$name"
    eddy flush "$W/mnt-a"
    check_equal "the time that was set outside" "$(stat -c %Y "$PFS/$name")" "$(date -d 2001-01-01 +%s)"
    stop_ranks
done

echo "open for writing"
start_ranks open "a=$W/mnt-a" "b=$W/mnt-b"
rank open a
rank open b
rank write b 8 4 1
eddy flush "$W/mnt-a"
is_finished open
rank write b 12 4 1
rank write a 0 4 1
check_equal "files that a has lent again" "$(status_of a .loans.lent_files)" 1
for node in a b; do
    rank check $node 0 4 1
    rank check $node 8 8 1
done
