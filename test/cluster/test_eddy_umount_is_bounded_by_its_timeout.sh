#!/usr/bin/env bash
# --timeout, with a PFS that hangs and a process that keeps the mount busy: it returns soon
# after the time is over, the mount is gone, its user gets an error and is not stuck, and the
# file that is not on the PFS is named (3). When the PFS goes on, eddy wait ends with 0.
# timeout: 180
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

start_faultfs a
start_node a "$W/pfs-a" --flush-wait 3600
head -c 3000000 /dev/urandom >"$W/source"
cp "$W/source" "$W/mnt-a/file"
exec 5<"$W/mnt-a/file"
stop_faultfs a

start=$SECONDS code=0
timeout 60 "$EDDY_BUILD/eddy" umount --timeout 3 "$W/mnt-a" >"$W/umount.txt" || code=$?
[ $((SECONDS - start)) -lt 20 ] || fail "it took $((SECONDS - start)) s"
check_equal "code of eddy umount" "$code" 3
check_equal "files that are named" "$(sed 's/: .*//' "$W/umount.txt")" file
is_mounted "$W/mnt-a" && fail "it is still mounted"
timeout 5 cat <&5 >/dev/null 2>&1 && fail "the descriptor still reads"
exec 5<&-

start=$SECONDS code=0
timeout 60 "$EDDY_BUILD/eddy" wait --timeout 1 "$W/mnt-a" >"$W/wait.txt" || code=$?
[ $((SECONDS - start)) -lt 15 ] || fail "eddy wait took $((SECONDS - start)) s"
check_equal "code of eddy wait while the PFS hangs" "$code" 3

# Unmounted lazily before, with a process that waits for the PFS in it: it gets its error, too.
continue_faultfs a
eddy wait "$W/mnt-a" || fail "eddy wait ended with $?"
start_node a "$W/pfs-a" --flush-wait 3600
cp "$W/source" "$W/mnt-a/file"
truncate -s 1G "$PFS/unread" # more than is read ahead
exec 5<"$W/mnt-a/unread"
stop_faultfs a
in_background bash -c "cat <&5 >/dev/null 2>'$W/read.txt'"
reader=$!
exec 5<&-
fusermount3 -uz "$W/mnt-a"
code=0
timeout 60 "$EDDY_BUILD/eddy" umount --timeout 3 "$W/mnt-a" >"$W/umount.txt" || code=$?
check_equal "code of eddy umount" "$code" 3
reader_ended() { ! kill -0 "$reader" 2>/dev/null; }
wait_for 10 reader_ended || fail "who reads is stuck"
wait "$reader" && fail "who read got no error"

continue_faultfs a
eddy wait "$W/mnt-a" || fail "eddy wait ended with $?"
check_same "$W/source" "$PFS/file"
