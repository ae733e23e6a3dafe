#!/usr/bin/env bash
# Two threads of a process, one that sets a lock and one that gives it up: whichever was
# first, all nodes say the same, also when the home of the file has changed since.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

start_node a "$PFS"
start_node b "$PFS" --wait-nodes 2
FILES=24
for ((n = 0; n < FILES; n++)); do
    echo text >"$PFS/f$n"
done
cat >"$W/free.py" <<'PY'
import fcntl, sys
for n in range(int(sys.argv[2])):
    with open(f"{sys.argv[1]}/f{n}", "r+") as f:
        try:
            fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            print(n)
        except BlockingIOError:
            pass
PY
"$EDDY_BUILD/test/lockrace" 40 "$W/raced" "$W"/mnt-a/f* &
racer=$!
record_process "$W" "$racer"
wait_for 60 test -e "$W/raced"
free() { python3 "$W/free.py" "$W/mnt-b" "$FILES"; }
free >"$W/before"
start_node c "$PFS" --wait-nodes 3
free >"$W/after"
check_same "$W/before" "$W/after"
kill "$racer"
wait "$racer" || true
all_free() { [ "$(free | wc -l)" = "$FILES" ]; }
wait_for 10 all_free || fail "locks outlive their process"
for node in a b c; do
    stop_node "$node"
done
