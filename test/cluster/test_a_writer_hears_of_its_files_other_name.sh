#!/usr/bin/env bash
# A file that one node has not flushed yet gets a second name by another node, and loses its first: the first node's next
# daemon finds it there when this one is killed.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires fuse
start() { start_node "$1" "$PFS" --flush end; }

mkdir "$PFS/d" "$PFS/other"
head -c 300000 /dev/urandom >"$W/one"
head -c 300000 /dev/urandom >"$W/two"
start a
start b
cp "$W/one" "$W/mnt-a/d/removed"
cp "$W/two" "$W/mnt-a/d/replaced"
cd "$W/mnt-b"
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
check_equal "what took the other's place" "$(cat "$PFS/d/replaced")" new
check_equal "names" "$(ls "$PFS/d")" replaced
