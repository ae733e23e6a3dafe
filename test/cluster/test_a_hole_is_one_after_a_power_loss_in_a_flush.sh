#!/usr/bin/env bash
# A power loss in the middle of a flush that had put bytes on the PFS which no fsync covered, where
# the file as fsynced has a hole: the mount and the PFS after the next flush have the same there.
# timeout: 120
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
start_faultfs a
start() { start_node a "$W/pfs-a" --no-passthrough --flush end --session-dir "$W/session"; }
start
head -c 4096 /dev/urandom >"$W/mnt-a/file"
truncate -s 200000 "$W/mnt-a/file"
sync "$W/mnt-a/file"
head -c 5000 /dev/urandom |
    dd of="$W/mnt-a/file" bs=5000 iflag=fullblock oflag=seek_bytes seek=89043 conv=notrunc status=none
number=$(tell_faultfs a hang fsync)
in_background eddy flush "$W/mnt-a" 2>/dev/null
wait_for 30 fault_waits a "$number" || fail "the flush does not come to its fsync"
kill -KILL "${NODE_PID[a]}"
kill -KILL "${FAULTFS_PID[a]}" # what hangs is never done
wait "${JOB[node-a]}" 2>/dev/null || true
unset "NODE_PID[a]"
for slab in "$W"/cache-a/slabs/*; do
    printf 'another-boot' | dd of="$slab" bs=1 seek=40 conv=notrunc status=none
done
fusermount3 -uz "$W/pfs-a"
rm -f "$W/pfs-a.control"
start_faultfs a
start
cp "$W/mnt-a/file" "$W/read"
stop_node a
check_same "$W/read" "$PFS/file"
