#!/usr/bin/env bash
# SIGTERM and SIGINT: the daemon flushes, unmounts and ends with 0. While the PFS hangs, a second
# one makes it leave at once: exit code 3, the file is named, the mount is gone; nothing is lost.
# One during the start ends it. Processes that wait in a mount whose daemon leaves get an error,
# also with a PFS that hangs.
# timeout: 150
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

head -c 2000000 /dev/urandom >"$W/data"
truncate -s 1G "$PFS/unread" # more than is read ahead
ended_with() { # CODE
    local code=0
    wait "${JOB[node-a]}" || code=$?
    check_equal "code of the daemon" "$code" "$1"
    is_mounted "$W/mnt-a" && fail "it is still mounted"
    return 0
}
start_faultfs a
for signal in TERM INT; do
    start_node a "$W/pfs-a" --flush-wait 3600
    cp "$W/data" "$W/mnt-a/$signal"
    kill -"$signal" "${NODE_PID[a]}"
    ended_with 0
    check_same "$W/data" "$PFS/$signal"
done

start_node a "$W/pfs-a" --flush-wait 3600
cp "$W/data" "$W/mnt-a/stays"
exec 5<"$W/mnt-a/stays"
: >"$W/a.log"
stop_faultfs a
kill -TERM "${NODE_PID[a]}"
asked() { grep -q 'a second one leaves at once' "$W/a.log"; }
wait_for 10 asked || fail "the first signal is not in the log"
kill -TERM "${NODE_PID[a]}"
said() { grep -q 'stays: .* not on the PFS' "$W/a.log"; }
wait_for 10 said || fail "what stays is not named"
# The kernel closes the process's files on the PFS before the process is gone, and waits for that
# PFS; but nobody waits for this process any more.
gone() { ! is_mounted "$W/mnt-a"; }
wait_for 10 gone || fail "it is still mounted"
code=0
timeout 10 cat <&5 >/dev/null 2>&1 || code=$?
[ "$code" != 124 ] || fail "who reads is stuck"
exec 5<&-
continue_faultfs a
ended_with 3
stop_faultfs a

# A start that waits for the PFS.
: >"$W/a.log"
start_daemon a "$W/a.out" "$EDDY_BUILD/eddyfs" -f --node a --listen 127.0.0.1 --cache-dir "$W/cache-a" \
    --session test --log "$W/a.log" "$W/pfs-a" "$W/mnt-a"
JOB[node-a]=$STARTED_JOB
blocks_signals() { grep -q '^SigBlk:.*[4-7c-f][0-9a-f]\{3\}$' "/proc/$STARTED_PID/status"; }
wait_for 10 blocks_signals || true # it may hang before: then the signal ends it, too
kill -TERM "$STARTED_PID"
code=0
wait "$STARTED_JOB" || code=$?
[ "$code" != 0 ] || fail "a start that was interrupted ended with 0"
continue_faultfs a

# Nothing is dirty, but somebody waits for bytes of the PFS in a mount that goes.
start_node a "$W/pfs-a" --flush-wait 3600
eddy flush "$W/mnt-a"
check_same "$W/data" "$PFS/stays"
ls -l "$W/mnt-a" >/dev/null
exec 5<"$W/mnt-a/unread"
stop_faultfs a
in_background bash -c "cat <&5 >/dev/null 2>'$W/read.txt'"
reader=$!
exec 5<&-
kill -TERM "${NODE_PID[a]}"
reader_ended() { ! kill -0 "$reader" 2>/dev/null; }
wait_for 20 reader_ended || fail "who reads is stuck"
wait "$reader" && fail "who read got no error"
wait_for 10 gone || fail "it is still mounted"
continue_faultfs a
ended_with 0
