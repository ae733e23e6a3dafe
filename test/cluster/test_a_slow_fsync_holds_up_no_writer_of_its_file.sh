#!/usr/bin/env bash
# While the cache's disk takes its time for an fsync, which another node has asked for, writers go on in the
# same file, as many as the mount has workers, and other files answer. The file is what they wrote.
# timeout: 120
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
SLOW=$W/slow
start_faultfs a
start_faultfs b
LD_PRELOAD=$EDDY_BUILD/test/slowsync.so SLOW_SYNC=$SLOW start_node a "$W/pfs-a" --no-passthrough --flush end
start_node b "$W/pfs-b" --flush end
head -c 1M /dev/urandom >"$W/want"
cp "$W/want" "$W/mnt-a/file"
echo x >"$W/mnt-a/other"

: >"$SLOW"
in_background python3 -c 'import os, sys; os.fsync(os.open(sys.argv[1], os.O_RDWR))' "$W/mnt-b/file"
syncer=$!
wait_for 30 test -e "$SLOW.waits" || fail "the fsync does not get to the disk"

head -c 64K /dev/urandom >"$W/news"
writers=()
for n in {0..15}; do
    in_background dd if="$W/news" of="$W/mnt-a/file" bs=4k skip="$n" seek=$((n * 16)) count=1 conv=notrunc status=none
    writers+=($!)
    dd if="$W/news" of="$W/want" bs=4k skip="$n" seek=$((n * 16)) count=1 conv=notrunc status=none
done
ended() {
    ! kill -0 "$1" 2>/dev/null
}
for writer in "${writers[@]}"; do
    wait_for 20 ended "$writer" || fail "a writer waits for the fsync"
    wait "$writer" || fail "a write failed"
done
timeout 10 stat "$W/mnt-a/other" >"$W/stat" || fail "another file does not answer"
kill -0 "$syncer" 2>/dev/null || fail "the fsync did not wait for the disk"
check_same "$W/want" "$W/mnt-a/file"

rm "$SLOW"
wait "$syncer" || fail "the fsync failed"
stop_node b
stop_node a
check_same "$W/want" "$PFS/file"
