#!/usr/bin/env bash
# kill -9 of a daemon with dirty data, then the same command line again: the dead mount is cleared, the data is served and
# flushed. A daemon that is only stopped keeps its mount.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires fuse
start_faultfs a
start_node a "$W/pfs-a" --flush-wait 60
mkdir "$W/model"
for i in $(seq 1 40); do
    head -c $((i * 40961 % 3000000)) /dev/urandom >"$W/model/f$i"
    cp "$W/model/f$i" "$W/mnt-a/f$i"
done
: >"$W/mnt-a/empty"
[ ! -s "$PFS/f40" ] || fail "flushed too early for this test to show anything"
pause "${NODE_PID[a]}"
code=0
eddyfs -f --node b --listen 127.0.0.1 --cache-dir "$W/cache-b" "$W/pfs-a" "$W/mnt-a" 2>"$W/b.out" || code=$?
kill -CONT "${NODE_PID[a]}"
check_equal "code of a start over a daemon that is stopped, but lives" "$code" 1
grep -q "eddy umount" "$W/b.out" || fail "it does not say what to do"
crash_node a
start_node a "$W/pfs-a" --flush-wait 60
for i in $(seq 1 40); do check_same "$W/mnt-a/f$i" "$W/model/f$i"; done
stop_node a
for i in $(seq 1 40); do check_same "$PFS/f$i" "$W/model/f$i"; done
