#!/usr/bin/env bash
# A PFS that is full: eddy flush and eddy umount end with 3 and name the file with the
# reason, eddy wait and eddy check name it afterwards; the data is kept, and is on the PFS
# when there is room and the daemon was started again.
# timeout: 180
. "$(dirname "$0")/lib.sh"
requires fuse root cmd jq

small=$W/small
mkdir "$small"
record_mount "$W" "$small"
mount -t tmpfs -o size=2m,mode=755 tmpfs "$small"
start_node a "$small" --session-dir "$W/sessions" --flush-wait 0.1
head -c 8000000 /dev/urandom >"$W/large"
echo little >"$W/mnt-a/little"
eddy flush "$W/mnt-a" # while there is room
cp "$W/large" "$W/mnt-a/large file"

code=0; eddy flush "$W/mnt-a" >"$W/flush.txt" || code=$?
check_equal "code of eddy flush" "$code" 3
grep -q '^large file: 7.6 MiB: No space left on device, [0-9]* tr' "$W/flush.txt" ||
    fail "eddy flush says: $(cat "$W/flush.txt")"
check_equal "failed files in status" "$(status_of a '.flush.failed_files[].path')" "large file"
check_equal "the error in status" "$(status_of a '.flush.failed_files[].error')" \
    "No space left on device"

code=0; eddy umount "$W/mnt-a" >"$W/umount.txt" || code=$?
check_equal "code of eddy umount" "$code" 3
check_equal "files that eddy umount names" "$(sed 's/: .*//' "$W/umount.txt")" "large file"
grep -q 'No space left on device' "$W/umount.txt" ||
    fail "eddy umount gives no reason: $(cat "$W/umount.txt")"
is_mounted "$W/mnt-a" && fail "it is still mounted"
check_equal "what did fit" "$(cat "$small/little")" little

code=0; eddy wait "$W/mnt-a" >"$W/wait.txt" || code=$?
check_equal "code of eddy wait" "$code" 3
check_equal "files that eddy wait names" "$(sed 's/: .*//' "$W/wait.txt")" "large file"
code=0; eddy check --session-dir "$W/sessions" "$small" >"$W/check.txt" || code=$?
check_equal "code of eddy check" "$code" 3
check_equal "what eddy check says" "$(cat "$W/check.txt")" \
    "large file: only on node a (session test)"

mount -o remount,size=32m "$small"
start_node a "$small" --session-dir "$W/sessions"
cmp "$W/large" "$W/mnt-a/large file" || fail "the data was not kept"
stop_node a
cmp "$W/large" "$small/large file" || fail "the PFS has something else"
eddy check --session-dir "$W/sessions" "$small" || fail "eddy check still names files"
eddy wait "$W/mnt-a" || fail "eddy wait after the end is not 0"
