#!/usr/bin/env bash
# A daemon was killed and started again.  Then somebody moves, far away and on the PFS itself, the directories of files that
# are not flushed, and the files themselves, before anybody has looked at them: they are served and flushed where they are.
# timeout: 60
# both
. "$(dirname "$0")/lib.sh"
requires fuse
start() { start_node a "$PFS" --flush end; }

mkdir -p "$PFS"/{d/e,x/y}
start
head -c 300000 /dev/urandom >"$W/one"
cp "$W/one" "$W/mnt-a/d/e/f"
echo two >"$W/mnt-a/d/g"
kill_node a
start
mv "$PFS/d/g" "$PFS/x/y/renamed"
echo new >"$PFS/d/g"
mv "$PFS/d/e" "$PFS/x/y/z"
check_same "$W/mnt-a/x/y/z/f" "$W/one"
eddy flush "$W/mnt-a" || fail "a file is not found"
stop_node a
check_same "$PFS/x/y/z/f" "$W/one"
check_equal "the renamed file" "$(cat "$PFS/x/y/renamed")" two
check_equal "what has its name" "$(cat "$PFS/d/g")" new
check_equal "names" "$(cd "$PFS" && echo d/*)" d/g
