#!/usr/bin/env bash
# After a crash a file is flushed by the policy that its directory gave it, and one that had the
# mount's by that of the new mount.
# timeout: 120
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd setfattr
start_node a "$PFS" --flush idle --flush-wait 3600
mkdir "$W/mnt-a/idle" "$W/mnt-a/end" "$W/mnt-a/own"
setfattr -n user.eddy.flush -v idle "$W/mnt-a/idle" || skip "no user attributes here"
setfattr -n user.eddy.flush -v end "$W/mnt-a/end"
head -c 300000 /dev/urandom >"$W/data"
on_pfs() { cmp -s "$W/data" "$PFS/$1/file"; }
for dir in idle end own; do
    cp "$W/data" "$W/mnt-a/$dir/file"
done
crash_node a

start_node a "$PFS" --flush end --flush-wait 0.1
wait_for 30 on_pfs idle || fail "what its directory wants flushed in lulls is not"
! on_pfs own || fail "the new mount's policy is end, and its file was flushed"
! on_pfs end || fail "a file of a directory that wants it at the end was flushed"
crash_node a

start_node a "$PFS" --flush immediate
wait_for 30 on_pfs own || fail "the mount's policy is immediate, and its file is not flushed"
! on_pfs end || fail "a file of a directory that wants it at the end was flushed after a second crash"
stop_node a
check_same "$W/data" "$PFS/end/file"
