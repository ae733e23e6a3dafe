#!/usr/bin/env bash
# After kill -9 of a daemon with dirty data: eddy status says so (1), eddy check names the
# file and its node (3), eddy umount clears the dead mount and names it too (3). Started
# again, the data is there, and all end with 0.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

start_node a "$PFS" --flush-wait 3600
start_node b "$PFS" --flush-wait 3600
mkdir "$W/mnt-a/dir"
head -c 1234567 /dev/urandom >"$W/source"
cp "$W/source" "$W/mnt-a/dir/file"
is_listed() {
    eddy check "$PFS" >"$W/check.txt" 2>/dev/null && return 1
    [ $? = 3 ]
}
wait_for 15 is_listed || fail "eddy check knows no dirty file"
crash_node a

check_equal "what eddy check says" "$(cat "$W/check.txt")" "dir/file: only on node a (session test)"
code=0; eddy check "$PFS" >"$W/check.txt" || code=$?
check_equal "code of eddy check" "$code" 3
code=0; timeout 20 "$EDDY_BUILD/eddy" status "$W/mnt-a" || code=$?
check_equal "code of eddy status" "$code" 1
code=0; timeout 20 "$EDDY_BUILD/eddy" umount "$W/mnt-a" >"$W/umount.txt" || code=$?
check_equal "code of eddy umount" "$code" 3
check_equal "files that eddy umount names" "$(sed 's/: .*//' "$W/umount.txt")" dir/file
check_equal "how much of it" "$(sed 's/^[^:]*: \([^:]*\): .*/\1/' "$W/umount.txt")" "1.2 MiB"
is_mounted "$W/mnt-a" && fail "the dead mount is still there"

start_node a "$PFS"
check_same "$W/source" "$W/mnt-a/dir/file"
stop_node a
check_same "$W/source" "$PFS/dir/file"
eddy check "$PFS" || fail "eddy check still names files"
eddy wait "$W/mnt-a" || fail "eddy wait ended with $?"
stop_node b
