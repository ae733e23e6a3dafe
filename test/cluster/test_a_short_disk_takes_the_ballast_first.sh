#!/usr/bin/env bash
# While applications write through the kernel (passthrough), room is set aside on the cache's disk. When somebody else fills the
# disk it is given back at once: who writes goes on beyond what was free. It is set aside again when there is room, a start on what
# a killed daemon left goes well, and nothing of it stays in the end.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires root fuse cmd mkfs.ext4 free 1500
DISK=$W/disk
BALLAST=$DISK/cache/ballast
truncate -s 1G "$W/image"
mkfs.ext4 -q "$W/image"
mkdir "$DISK"
record_mount "$W" "$DISK"
mount -o loop "$W/image" "$DISK" 2>"$W/mount.out" || skip "no loop mount here: $(cat "$W/mount.out")"

start_node a "$PFS" --cache-dir "$DISK/cache"
[ "$(status_of a .passthrough)" = true ] || skip "no passthrough here: $(status_of a .passthrough_why)"
ballast() { status_of a .cache.ballast; }
is_there() { [ "$(ballast)" -gt 0 ]; }
is_gone() { [ "$(ballast)" = 0 ]; }
free_mib() { df --output=avail -m "$DISK" | tail -n 1; }

[ ! -e "$BALLAST" ] || fail "room is set aside before anybody writes"
head -c 100M /dev/urandom >"$W/bytes"
exec 5>"$W/mnt-a/file"
head -c 20M "$W/bytes" >&5
wait_for 20 is_there || fail "no room is set aside"
size=$(ballast)
[ $(($(stat -c %b "$BALLAST") * 512)) -ge "$size" ] || fail "the ballast has no blocks"
[ "$size" -ge $((40 << 20)) ] || fail "the ballast has only $size bytes"

echo "--- somebody else fills the disk"
fallocate -l "$(($(free_mib) - 20))M" "$DISK/foreign"
wait_for 20 is_gone || fail "the disk is short and nothing is given back: $(free_mib) MiB free"
[ ! -e "$BALLAST" ] || fail "the ballast is still there"
head -c 60M "$W/bytes" | tail -c 40M >&5 || fail "more than what was free does not fit"
[ "$(ballast)" = 0 ] || fail "room is set aside on a full disk"
head -c 60M "$W/bytes" | cmp - "$W/mnt-a/file" || fail "other bytes on a full disk"

echo "--- there is room again"
rm "$DISK/foreign"
wait_for 30 is_there || fail "there is room again, and none is set aside"
check_equal "its size" "$(ballast)" "$size"

echo "--- the daemon is killed"
crash_node a
exec 5>&-
[ -e "$BALLAST" ] || fail "a killed daemon removed its ballast"
start_node a "$PFS" --cache-dir "$DISK/cache"
head -c 60M "$W/bytes" | cmp - "$W/mnt-a/file" || fail "other bytes after a crash"
stop_node a
[ ! -e "$BALLAST" ] || fail "the ballast stays when the daemon ends"
head -c 60M "$W/bytes" | cmp - "$PFS/file" || fail "the PFS has other bytes"
