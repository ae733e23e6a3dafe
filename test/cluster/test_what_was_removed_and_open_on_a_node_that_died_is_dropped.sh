#!/usr/bin/env bash
# A claimant is dead. Another node removes its file, has it open still, and dies too, after the claimant came back or before.
# What the claimant has of it is for nobody any more: a new file of the name gets nothing put beside it, and no flush names it.
# While the node that has it open runs, it reads it.
# timeout: 150
. "$(dirname "$0")/lib.sh"
requires fuse

start_one() { start_node "$1" "$PFS" --flush-wait 3600 "${@:2}"; }
a_is_flushed() { # all that a has is on the PFS, or was dropped
    eddy flush "$W/mnt-a" >"$W/flush.out" 2>&1
}
makes_file() { # NAME
    echo old >"$W/mnt-a/$1"
    exec 9<"$W/mnt-b/$1"
    check_equal "what b reads of $1" "$(cat <&9)" old
    crash_node a
    is_away() { ! timeout 60 cat "$W/mnt-b/$1" >"$W/said" 2>&1; }
    wait_for 60 is_away "$1" || fail "the claimant is dead, and its file can be read"
    unlink "$W/mnt-b/$1"
}
no_conflict() { # NAME
    check_equal "names on the PFS" "$(cd "$PFS" && echo "$1"*)" "$1"
    check_equal "bytes of $1" "$(cat "$PFS/$1")" new
}

start_one b
start_one a --wait-nodes 2
makes_file first
start_one a 9<&-
! a_is_flushed || fail "a file that b has open was dropped"
check_equal "what b reads of a removed file" "$(timeout 60 cat /proc/self/fd/9 9<&9)" old
crash_node b
exec 9<&-
crash_node a
echo new >"$PFS/first"
start_one a
start_one b
wait_for 60 a_is_flushed || fail "not flushed: $(cat "$W/flush.out")"
no_conflict first

makes_file second
crash_node b
exec 9<&-
start_one b
start_one a
echo new >"$W/mnt-b/second"
eddy flush "$W/mnt-b"
wait_for 60 a_is_flushed || fail "not flushed: $(cat "$W/flush.out")"
no_conflict second
