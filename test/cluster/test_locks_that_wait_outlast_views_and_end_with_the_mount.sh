#!/usr/bin/env bash
# A lock that has been waited for longer than --open-wait is waited for on when a node
# joins. Of one that is waited for when the mount goes, the daemon ends, too: also if
# the holder is a process of this node, which keeps it.
# timeout: 150
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

TIMES=(--suspect-after 2 --dead-after 4 --lease 3 --open-wait 13)
echo text >"$PFS/f"
start_node a "$PFS" "${TIMES[@]}"
start_node b "$PFS" "${TIMES[@]}" --wait-nodes 2

# lock KIND FILE SAYS: takes it, writes a line to SAYS, and keeps it until it is killed.
cat >"$W/lock.py" <<'PY'
import fcntl, sys, time
kind, path, says = sys.argv[1:]
f = open(path, "r+")
try:
    print("asks", file=open(says, "w", buffering=1))
    (fcntl.flock if kind == "flock" else fcntl.lockf)(f, fcntl.LOCK_EX)
    print("has it", file=open(says, "w", buffering=1))
    time.sleep(1000)
except OSError as e:
    print(e, file=open(says, "w"))
PY
lock() {
    python3 "$W/lock.py" "$@" &
    LOCKER=$!
    record_process "$W" "$LOCKER"
}
says() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }
end_locker() {
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

lock fcntl "$W/mnt-a/f" "$W/first"
first=$LOCKER
wait_for 10 says "$W/first" "has it"
lock fcntl "$W/mnt-b/f" "$W/second"
second=$LOCKER
sleep 14.5 # longer than --open-wait: that is what is tested
check_equal "who waits, after a while" "$(cat "$W/second")" asks
start_node c "$PFS" "${TIMES[@]}" --wait-nodes 3
sleep 1 # an error would come at once
check_equal "who waits, when a node has joined" "$(cat "$W/second")" asks
end_locker "$first"
wait_for 10 says "$W/second" "has it"

# on_end WHAT: node c's daemon ends by itself after SIGTERM, though somebody waits.
on_end() {
    kill -TERM "${NODE_PID[c]}"
    ended() { ! kill -0 "${NODE_PID[c]}" 2>/dev/null; }
    wait_for 20 ended || fail "$1: the daemon does not end"
    wait "${JOB[node-c]}" || true
    unset "NODE_PID[c]"
}

lock fcntl "$W/mnt-c/f" "$W/third" # b's process has it
third=$LOCKER
wait_for 10 says "$W/third" asks
on_end "the holder is on another node"
end_locker "$third"
start_node c "$PFS" "${TIMES[@]}"
echo text >"$W/mnt-c/g"
lock flock "$W/mnt-c/g" "$W/third"
third=$LOCKER
wait_for 10 says "$W/third" "has it"
lock flock "$W/mnt-c/g" "$W/fourth"
fourth=$LOCKER
wait_for 10 says "$W/fourth" asks
on_end "the holder is on this node"
check_equal "what was written" "$(cat "$PFS/g")" text
for p in "$second" "$third" "$fourth"; do
    end_locker "$p"
done
stop_node a
stop_node b
