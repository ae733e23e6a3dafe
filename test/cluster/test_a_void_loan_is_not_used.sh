#!/usr/bin/env bash
# Node b has borrowed most of a file. Either b is stopped, and an operator forgets it; or the claimant a dies, and an operator
# forgets the file. Node c writes since. Then b, a member of the session, reads what c has written, its writes go where all see
# them, and the descriptor whose bytes were given up is told, once.
# timeout: 400
# both
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/descriptors.sh"
requires fuse cmd python3 cmd jq

start_three
for f in stopped untouched; do
    for n in a b c; do says 0 open $n-$f "$W/mnt-$n/$f"; done
    says 65536 write a-$f 0 1 A
    says 6553600 write b-$f 4 100 B
done
[ "$(status_of b .counters.borrowed_bytes)" -gt 6553600 ] || fail "b has borrowed nothing"

pause "${NODE_PID[b]}"
wait_for 60 is_absent b c || fail "b is not absent"
eddy forget --node b "$W/mnt-c" || fail "eddy forget --node ended with $?"
says 6553600 write c-stopped 4 100 C
kill -CONT "${NODE_PID[b]}"
all_three
says C read b-stopped 50
says 100 small b-stopped 60 D
says EIO sync b-stopped
says 0 sync b-stopped
says D read a-stopped 60
says D read c-stopped 60
says 0 close b-untouched # nobody has written there since: the claimant has taken nothing back
for n in b c a; do eddy flush "$W/mnt-$n" || fail "eddy flush of $n ended with $?"; done
check_equal "the bytes of the file" "$(dd if="$PFS/stopped" bs=64K skip=50 count=1 status=none | head -c 1)" C
check_equal "the bytes that nobody has overwritten" "$(dd if="$PFS/untouched" bs=64K skip=50 count=1 status=none | head -c 1)" B
check_equal "the bytes beside it" "$(dd if="$PFS/stopped.eddy-conflict-b" bs=64K skip=50 count=1 status=none | head -c 1)" B

for n in a b c; do says 0 open $n-died "$W/mnt-$n/died"; done
says 65536 write a-died 0 1 A
says 6553600 write b-died 4 100 B
crash_node a
wait_for 60 is_absent a c || fail "a is not absent"
eddy forget "$W/mnt-c/died" || fail "eddy forget ended with $?"
says 0 open again "$W/mnt-c/died"
says 100 small again 50 C
says 0 open new "$W/mnt-b/died"
says C read new 50
says 100 small new 70 E
says E read again 70
says EIO sync b-died
says 0 sync b-died
for n in b c; do eddy flush "$W/mnt-$n" || fail "eddy flush of $n ended with $?"; done
check_equal "the bytes of the file" "$(dd if="$PFS/died" bs=64K skip=70 count=1 status=none | head -c 1)" E
end_descriptors
for node in c b; do stop_node $node; done
