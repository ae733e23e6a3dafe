#!/usr/bin/env bash
# An eddyfs that is started over the mount of a daemon that is stopped says that something is mounted there, and ends, also if
# the stopped daemon holds its question already.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse

start_node a "$PFS" --no-supervise
pause "${NODE_PID[a]}"
code=0
timeout 60 "$EDDY_BUILD/eddyfs" -f --node b --listen 127.0.0.1 --cache-dir "$W/cache-b" --session test \
    "$PFS" "$W/mnt-a" >"$W/second.out" 2>&1 || code=$?
said=$(cat "$W/second.out")
kill -CONT "${NODE_PID[a]}"
check_equal "code of the second daemon ($said)" "$code" 1
grep -q "an eddyfs is mounted at" <<<"$said" || fail "the second daemon says: $said"
stop_node a
