#!/usr/bin/env bash
# A file that one node has not flushed yet gets a second name by another node, and loses its first, or a directory above it
# gets another one: the first node's next daemon finds it there when this one is killed.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires fuse
start() { start_node "$1" "$PFS" --flush end; }

mkdir -p "$PFS/d" "$PFS/other" "$PFS/run/sub" "$PFS/in/job/sub" "$PFS/linked"
head -c 300000 /dev/urandom >"$W/one"
head -c 300000 /dev/urandom >"$W/two"
start a
start b
cp "$W/one" "$W/mnt-a/d/removed"
cp "$W/two" "$W/mnt-a/d/replaced"
cp "$W/one" "$W/mnt-a/run/sub/f"
cp "$W/two" "$W/mnt-a/in/job/sub/f"
cp "$W/two" "$W/mnt-a/linked/f"
cd "$W/mnt-b"
mv run run.old
mv linked elsewhere
ln -s elsewhere linked
mv in/job in/job.old
mkdir -p in/job/sub
echo new >in/job/sub/f
echo new >new
ln d/removed other/one
rm d/removed
ln d/replaced other/two
mv new d/replaced
cd "$W"
stop_node b # it has told all that it had to
crash_node a
start a
stop_node a
check_same "$W/one" "$PFS/other/one"
check_same "$W/two" "$PFS/other/two"
check_same "$W/one" "$PFS/run.old/sub/f"
check_same "$W/two" "$PFS/in/job.old/sub/f"
check_same "$W/two" "$PFS/elsewhere/f"
check_equal "what is there in place of a moved one" "$(cat "$PFS/in/job/sub/f")" new
check_equal "what took the other's place" "$(cat "$PFS/d/replaced")" new
check_equal "names" "$(ls "$PFS/d")" replaced
