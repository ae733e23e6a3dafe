#!/usr/bin/env bash
# A file of 1 TiB with two pages: status counts two pages, the flush reads and writes about two pages, other writers
# go on, a reader gets zeros without asking the PFS, and the next writer's change is flushed as quickly. A hole that
# is made over bytes that the PFS has becomes one there.
# timeout: 120
# both
# sanitize
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd fallocate
start_faultfs a
# less than the file by far
start_node a "$W/pfs-a" --cache-size 512M --flush end
put_at() { # FILE OFFSET TEXT
    printf %s "$3" | dd of="$1" oflag=seek_bytes seek="$2" conv=notrunc status=none
}
get_at() { dd if="$1" iflag=skip_bytes,count_bytes skip="$2" count="$3" status=none; }
TIB=1099511627776
HUGE=$W/mnt-a/huge

echo "--- two pages"
truncate -s "$TIB" "$HUGE"
put_at "$HUGE" 0 first
put_at "$HUGE" $((TIB - 4)) last
check_equal "what is not on the PFS" "$(status_of a .cache.dirty)" 8192
eddy flush "$W/mnt-a" &
flush=$!
record_process "$W" "$flush"
echo other >"$W/mnt-a/other"
wait "$flush" || fail "eddy flush: $?"
eddy flush "$W/mnt-a" # `other` may have come too late for the first one
[ "$(stat_of a write_bytes huge)" -le 65536 ] || fail "$(stat_of a write_bytes huge) bytes were written"
check_equal "its size on the PFS" "$(stat -c %s "$PFS/huge")" "$TIB"
[ "$(stat -c %b "$PFS/huge")" -le 128 ] || fail "it is no sparse file on the PFS"
check_equal "its beginning" "$(get_at "$PFS/huge" 0 5)" first
check_equal "its end" "$(get_at "$PFS/huge" $((TIB - 4)) 4)" last
[ "$(stat -c %b "$HUGE")" -le 128 ] || fail "it is no sparse file in the mount"
[ "$(status_of a .cache.chunks)" -le 3 ] || fail "$(status_of a .cache.chunks) records of chunks"

echo "--- a reader, and the next writer"
cmp -n 1000000 /dev/zero <(get_at "$HUGE" 500000000000 1000000) || fail "a hole is not zeros"
put_at "$HUGE" 700000000001 more
check_equal "what is not on the PFS" "$(status_of a .cache.dirty)" 4096
eddy flush "$W/mnt-a"
check_equal "what was written into the hole" "$(get_at "$PFS/huge" 700000000001 4)" more
check_equal "what was read of the PFS" "$(stat_of a read_bytes huge)" 0

echo "--- holes over bytes that the PFS has"
head -c 4M /dev/urandom | tee "$W/punched" | tee "$W/cut" >"$W/mnt-a/punched"
cp "$W/cut" "$W/mnt-a/cut"
eddy flush "$W/mnt-a"
for file in "$W/punched" "$W/mnt-a/punched"; do
    fallocate -p -o 100000 -l 2000000 "$file"
done
for file in "$W/cut" "$W/mnt-a/cut"; do
    truncate -s 100000 "$file"
    truncate -s 8M "$file"
done
fallocate -p -o 600000000000 -l 300000000000 "$HUGE"
eddy flush "$W/mnt-a"
check_same "$W/punched" "$PFS/punched"
check_same "$W/cut" "$PFS/cut"
cmp -n 4 /dev/zero <(get_at "$PFS/huge" 700000000001 4) || fail "the PFS keeps what was punched"

echo "--- a removed file, and a restart"
put_at "$HUGE" 700000000001 again
truncate -s "$TIB" "$W/mnt-a/gone"
put_at "$W/mnt-a/gone" 900000000000 text
rm "$W/mnt-a/gone"
kill_node a
start_node a "$W/pfs-a" --cache-size 512M
stop_node a
check_equal "what was written before the daemon died" "$(get_at "$PFS/huge" 700000000001 5)" again
check_equal "its end" "$(get_at "$PFS/huge" $((TIB - 4)) 4)" last
