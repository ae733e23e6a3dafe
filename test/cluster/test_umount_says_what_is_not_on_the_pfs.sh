#!/usr/bin/env bash
# When the PFS refuses writes (immutable files), eddy umount says 3 and lists the files; eddy check names them; the data is kept, and
# flushed when the PFS takes it and the daemon is started again.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires root fuse cmd chattr
mkdir "$PFS/dir"
start_node a "$PFS" --flush-wait 60
head -c 2500000 /dev/urandom >"$W/content"
cp "$W/content" "$W/mnt-a/dir/first"
cp "$W/content" "$W/mnt-a/second file"
listed() { { eddy check "$PFS" 2>/dev/null || true; } | grep -q "dir/first"; }
wait_for 10 listed || fail "eddy check does not name a dirty file"
chattr +i "$PFS/dir/first" "$PFS/second file" 2>/dev/null || skip "the file system of $PFS has no immutable files"
code=0
eddy umount "$W/mnt-a" >"$W/listed" || code=$?
cat "$W/listed"
check_equal "code of eddy umount" "$code" 3
for f in "dir/first" "second file"; do
    grep -q "$f" "$W/listed" || fail "$f is not listed"
done
code=0
eddy check "$PFS" >"$W/checked" || code=$?
check_equal "code of eddy check" "$code" 3
grep -q "second file" "$W/checked" || fail "eddy check does not name a file"
code=0
eddy wait "$W/mnt-a" >/dev/null || code=$?
check_equal "code of eddy wait" "$code" 3
[ ! -s "$PFS/dir/first" ] || fail "flushed to a file that refuses writes?"

chattr -i "$PFS/dir/first" "$PFS/second file"
start_node a "$PFS"
check_same "$W/mnt-a/dir/first" "$W/content"
stop_node a
check_same "$PFS/dir/first" "$W/content"
check_same "$PFS/second file" "$W/content"
eddy check "$PFS" || fail "eddy check still names files"
