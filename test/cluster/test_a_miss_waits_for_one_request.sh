#!/usr/bin/env bash
# A chunk that is read from the PFS is proved to be of its version by a look afterwards. Its reader has it before that look, where
# this node is the file's home; another reader of the same chunk waits, and so does who reads what the cache has, as
# the bytes may be older than its call. A file that has changed on the PFS by then is read as it is.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
HERE=$(dirname "$SCRIPT")
start_faultfs a
head -c 24M /dev/urandom >"$W/old"
head -c 24M /dev/urandom >"$W/new"
cp "$W/old" "$PFS/file"
sleep 1.1 # its version is not racy any more
start_node a "$W/pfs-a" --attr-timeout 60
timeout 100 python3 "$HERE/early.py" "$W/mnt-a/file" "$W/old" "$W/new" "$PFS/file" "$EDDY_BUILD/test/faultfs" "$W/pfs-a.control" \
    "$EDDY_BUILD/eddy" ||
    fail "see above"
stop_node a
