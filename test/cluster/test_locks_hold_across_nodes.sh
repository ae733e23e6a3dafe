#!/usr/bin/env bash
# Two nodes add one to a counter in one file a thousand times each, under flock and under fcntl: nothing is lost; a blocked
# lock can be interrupted; a killed holder's process gives its lock back.
# timeout: 240
. "$(dirname "$0")/lib.sh"
requires fuse cmd flock cmd python3
TIMES=${TIMES:-1000}
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a"
start_node b "$W/pfs-b" --wait-nodes 2
for kind in flock fcntl; do
    "$EDDY_BUILD/test/lockcount" $kind "$W/mnt-a/$kind" "$TIMES" &
    first=$!
    "$EDDY_BUILD/test/lockcount" $kind "$W/mnt-b/$kind" "$TIMES" || fail "$kind on b"
    wait $first || fail "$kind on a"
    check_equal "the counter under $kind" "$(cat "$W/mnt-a/$kind")" "$(printf %08d $((2 * TIMES)))"
done

: >"$W/mnt-a/held"
in_background flock "$W/mnt-a/held" sleep 1000
holder=$!
taken() { ! flock -n "$W/mnt-b/held" true; }
wait_for 10 taken || fail "a lock of node a does not hold on node b"
code=0
timeout -s INT 1 flock "$W/mnt-b/held" true || code=$?
check_equal "code of an interrupted wait" "$code" 124
pkill -P $holder || true
kill $holder 2>/dev/null || true
free_again() { flock -n "$W/mnt-b/held" true; }
wait_for 10 free_again || fail "the lock of a killed process is still held"

# an OFD lock goes with its open file, though the kernel sends no unlock for it
cat >"$W/ofd.py" <<'PY'
import fcntl, os, struct, sys
F_OFD_SETLK = 37
f = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(f, F_OFD_SETLK, struct.pack("hhqqixxxx", fcntl.F_WRLCK, 0, 0, 0, 0))
PY
python3 "$W/ofd.py" "$W/mnt-a/held"
free_of_ofd() { python3 "$W/ofd.py" "$W/mnt-b/held" 2>/dev/null; }
wait_for 10 free_of_ofd || fail "an OFD lock outlives its open file"
stop_node a
stop_node b
check_equal "on the PFS" "$(cat "$PFS/flock")" "$(printf %08d $((2 * TIMES)))"
