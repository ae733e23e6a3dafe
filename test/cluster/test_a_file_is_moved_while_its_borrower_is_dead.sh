#!/usr/bin/env bash
# A borrower is killed. Meanwhile another node moves the file into another directory. When the borrower is back, what it had
# borrowed is flushed into the file where it is now, though nobody opens it there. The same when its claimant was killed, too.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
start_abc
mkdir -p "$PFS"/{one,far/away,other/place}

start_ranks one/shared "a=$W/mnt-a" "b=$W/mnt-b" "pfs=$PFS"
borrow() { # SEED
    rank open a
    rank open b
    rank write a 0 4 "$1"
    rank write b 4 100 "$1"
    [ "$(status_of b .counters.borrowed_bytes)" -gt 1000000 ] || fail "b has not written into what it has borrowed"
    crash_node b
    fusermount3 -uz "$W/mnt-b"
}
is_there() { # FILE SEED
    for node in a b; do
        timeout 60 "$EDDY_BUILD/eddy" flush "$W/mnt-$node" || fail "$1: eddy flush of $node"
    done
    check_equal "files of which b has borrowed parts" "$(status_of b .loans.borrowed_files)" 0
    mv "$W/mnt-a/$1" "$W/mnt-a/one/shared"
    rank open pfs
    rank check pfs 0 104 "$2"
    rank close pfs
}

borrow 1
mv "$W/mnt-c/one/shared" "$W/mnt-c/other/place/moved"
start_one b
is_there other/place/moved 1

borrow 2
mv "$W/mnt-c/one/shared" "$W/mnt-c/far/away/renamed"
crash_node a
fusermount3 -uz "$W/mnt-a"
start_one a
start_one b
is_there far/away/renamed 2
for node in c b a; do
    stop_node $node
done
