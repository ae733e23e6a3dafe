#!/usr/bin/env bash
# While the PFS, and the session directory on it, hang: who holds a lock can be killed, and who is
# granted one, but waits for the PFS to say what is under it, can be interrupted.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

echo text >"$PFS/held"
echo text >"$PFS/asked"
start_faultfs a
start_node a "$W/pfs-a"
cat >"$W/hold.py" <<'PY'
import fcntl, sys, time
f = open(sys.argv[1], "r+")
fcntl.lockf(f, fcntl.LOCK_EX)
open(sys.argv[2], "w")
time.sleep(1000)
PY
cat >"$W/ask.py" <<'PY'
import fcntl, os, signal, sys
def interrupted(*_):
    open(sys.argv[4], "w")
    os._exit(0)
signal.signal(signal.SIGINT, interrupted)
f = open(sys.argv[1])
open(sys.argv[2], "w")
while not os.path.exists(sys.argv[3]):
    pass
fcntl.lockf(f, fcntl.LOCK_SH)
PY
python3 "$W/hold.py" "$W/mnt-a/held" "$W/holds" &
holder=$!
record_process "$W" "$holder"
python3 "$W/ask.py" "$W/mnt-a/asked" "$W/opened" "$W/hangs" "$W/interrupted" &
asker=$!
record_process "$W" "$asker"
wait_for 10 test -e "$W/holds"
wait_for 10 test -e "$W/opened"
sleep 1.5 # what was known at its open is too old: that is what is tested
stop_faultfs a
touch "$W/hangs"
waits() { grep -q 'State:.[SD]' "/proc/$asker/status"; }
wait_for 5 waits
sleep 6 # the lease is over, too
[ ! -e "$W/interrupted" ] || fail "it was interrupted by nobody"
kill -INT "$asker"
wait_for 3 test -e "$W/interrupted" || fail "who waits for what a lock shows can not be interrupted"
kill -KILL "$holder"
gone() { ! kill -0 "$holder" 2>/dev/null || grep -q 'State:.Z' "/proc/$holder/status"; }
wait_for 3 gone || fail "who holds a lock can not be killed"
wait "$holder" "$asker" 2>/dev/null || true
continue_faultfs a
check_equal "the lock that the killed one had" "$(timeout 20 flock -n "$W/mnt-a/held" cat "$W/mnt-a/held")" text
stop_node a
