#!/usr/bin/env bash
# Node b writes into files whose latest bytes node a has: that is carried there. Node a is stopped, an operator forgets the
# files, and node a goes on with the same daemon: the next fsync or close of a descriptor that had written says EIO, once.
# timeout: 300
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/descriptors.sh"
requires fuse cmd python3 cmd jq

start_three
for f in file closed; do
    printf 'of a' >"$W/mnt-a/$f"
    says 0 open $f "$W/mnt-b/$f"
    says 100 small $f 0 B
done
pause "${NODE_PID[a]}"
wait_for 60 is_absent a c || fail "a is not absent"
eddy forget "$W/mnt-c/closed" &
eddy forget "$W/mnt-c/file" || fail "eddy forget ended with $?"
wait $! || fail "eddy forget ended with $?"
kill -CONT "${NODE_PID[a]}"
all_three
says EIO sync file
says 0 sync file
says EIO close closed
says 0 close file
for node in c b a; do stop_node $node; done
