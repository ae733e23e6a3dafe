#!/usr/bin/env bash
# eddyfs in the background waits to join (another node has its name): it says at once why, and Ctrl-C
# ends it, with the daemon that it has started.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires fuse

start_node a "$PFS"
check_equal "what ps calls it" "$(cat "/proc/${NODE_PID[a]}/comm")" eddyfs
mkdir "$W/other"
"$EDDY_BUILD/eddyfs" --node a --listen 127.0.0.1 --cache-dir "$W/cache-other" --session test \
    "$PFS" "$W/other" 2>"$W/said" &
waits=$!
record_process "$W" "$waits"
says() { grep -q 'another node named a is' "$W/said"; }
wait_for 20 says || fail "it does not say what it waits for: $(cat "$W/said")"
kill -0 "$waits" || fail "it did not wait"
daemons() { pgrep -f -- "--cache-dir $W/cache-other" | grep -qvx "$waits"; }
daemons || fail "no daemon was started"
kill -INT "$waits"
code=0
wait "$waits" || code=$?
[ "$code" != 0 ] || fail "it ended with 0"
none() { ! daemons; }
wait_for 20 none || fail "its daemon still runs"
! is_mounted "$W/other" || fail "it was mounted"
stop_node a
