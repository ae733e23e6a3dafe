#!/usr/bin/env bash
# While the PFS, and the session directory on it, hang: who holds a lock can be killed, and who is
# granted one, but waits for the PFS to say what is under it, can be ended with Ctrl-C. Who catches that
# has his lock when the PFS goes on, and nobody else has.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

echo text >"$PFS/held"
echo text >"$PFS/asked"
echo text >"$PFS/caught"
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
import fcntl, os, signal, sys, time
path, opened, hangs, locked, catches = sys.argv[1:]
signal.signal(signal.SIGINT, (lambda *_: None) if int(catches) else signal.SIG_DFL)
f = open(path)
open(opened, "w")
while not os.path.exists(hangs):
    pass
fcntl.lockf(f, fcntl.LOCK_SH)
open(locked, "w")
time.sleep(1000)
PY
python3 "$W/hold.py" "$W/mnt-a/held" "$W/holds" &
holder=$!
record_process "$W" "$holder"
python3 "$W/ask.py" "$W/mnt-a/asked" "$W/opened" "$W/hangs" "$W/locked" 0 &
asker=$!
record_process "$W" "$asker"
python3 "$W/ask.py" "$W/mnt-a/caught" "$W/opened2" "$W/hangs" "$W/locked2" 1 &
catcher=$!
record_process "$W" "$catcher"
wait_for 10 test -e "$W/holds"
wait_for 10 test -e "$W/opened"
wait_for 10 test -e "$W/opened2"
sleep 1.5 # what was known at its open is too old: that is what is tested
stop_faultfs a
touch "$W/hangs"
waits() { grep -q 'State:.[SD]' "/proc/$asker/status" "/proc/$catcher/status"; }
wait_for 5 waits
sleep 6 # the lease is over, too
[ ! -e "$W/locked" ] && [ ! -e "$W/locked2" ] || fail "the PFS was not asked for"
kill -INT "$asker" "$catcher"
gone() { ! kill -0 "$1" 2>/dev/null || grep -q 'State:.Z' "/proc/$1/status"; }
wait_for 20 gone "$asker" || fail "who waits for what a lock shows can not be ended"
kill -KILL "$holder"
wait_for 20 gone "$holder" || fail "who holds a lock can not be killed"
! gone "$catcher" || fail "who catches the signal has ended"
wait "$holder" "$asker" 2>/dev/null || true
continue_faultfs a

wait_for 20 test -e "$W/locked2" || fail "who caught the signal does not get his lock"
is_free() {
    python3 -c 'import fcntl, sys; fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)' "$1" \
        2>/dev/null
}
wait_for 20 is_free "$W/mnt-a/held" || fail "the lock of the killed one stays"
wait_for 20 is_free "$W/mnt-a/asked" || fail "the lock of the interrupted one stays"
! is_free "$W/mnt-a/caught" || fail "the lock of who caught the signal is lost"
kill -KILL "$catcher"
wait "$catcher" 2>/dev/null || true
wait_for 20 is_free "$W/mnt-a/caught" || fail "the last lock stays"
stop_node a
