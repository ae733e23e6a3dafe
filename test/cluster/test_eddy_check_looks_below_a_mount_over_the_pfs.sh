#!/usr/bin/env bash
# Where eddyfs is mounted over the PFS directory itself, eddy check asks its daemon for what
# lies below; and it says when a directory has no session.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse

mkdir "$W/plain"
eddy check "$W/plain" 2>"$W/plain.err" || fail "a directory without a session: code $?"
grep -q 'has no session' "$W/plain.err" || fail "it does not say that there is no session"

record_mount "$W" "$PFS"
start_daemon over "$W/over.out" "$EDDY_BUILD/eddyfs" -f --node over --listen 127.0.0.1 \
    --cache-dir "$W/cache-over" --session test --log "$W/over.log" --flush-wait 3600 "$PFS" "$PFS"
wait_for_mount "$STARTED_JOB" over "$PFS" fuse.eddyfs
eddy check "$PFS" || fail "nothing is dirty yet: code $?"
echo data >"$PFS/file"
is_listed() {
    eddy check "$PFS" >"$W/check.txt" 2>/dev/null && return 1
    [ $? = 3 ]
}
wait_for 15 is_listed || fail "the dirty file is not listed"
check_equal "what eddy check says" "$(cat "$W/check.txt")" "file: only on node over (session test)"
eddy umount "$PFS"
check_equal "the file below" "$(cat "$PFS/file")" data
eddy check "$PFS" || fail "eddy check still names files"
