#!/usr/bin/env bash
# Node b has borrowed most of a file. Its claimant a, and c, write into these parts: that is carried to b. Node b dies, and an
# operator forgets it: the next fsync at a and at c says EIO, once, as for what was carried to a claimant.
# timeout: 300
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/descriptors.sh"
requires fuse cmd python3 cmd jq

start_three
for n in a b c; do says 0 open $n "$W/mnt-$n/file"; done
says 65536 write a 0 1 A
says 6553600 write b 4 100 B
says 100 small c 50 C
says 100 small a 60 A
says C read a 50
[ "$(status_of c .counters.carried_bytes)" -gt 0 ] || fail "c's bytes were not carried"
crash_node b
wait_for 60 is_absent b c || fail "b is not absent"
eddy forget --node b "$W/mnt-c" || fail "eddy forget ended with $?"
for n in a c; do
    says EIO sync $n
    says 0 sync $n
    says 0 close $n
done
for node in c a; do stop_node $node; done
