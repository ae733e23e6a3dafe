#!/usr/bin/env bash
# While files are staged, somebody else fills the cache's disk: the stage ends, says which files have no room and on which node, and keeps what
# has come. When there is room again, the same command brings the rest.
# timeout: 120
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse cmd jq cmd mkfs.ext4 cmd fallocate free 1500
DISK=$W/disk
truncate -s 1G "$W/image"
mkfs.ext4 -q "$W/image"
mkdir "$DISK" "$PFS/staged"
record_mount "$W" "$DISK"
mount -o loop "$W/image" "$DISK" 2>"$W/mount.out" || skip "no loop mount here: $(cat "$W/mount.out")"
free_mib() { df --output=avail -m "$DISK" | tail -n 1; }
for i in $(seq 30); do head -c 5M /dev/urandom >"$PFS/staged/$i"; done
start_faultfs a
start_node a "$W/pfs-a" --cache-dir "$DISK/cache" --cache-size 400M

hang=$(tell_faultfs a hang read path='staged/*')
timeout 100 "$EDDY_BUILD/eddy" stage --wait "$W/mnt-a/staged" >"$W/said" 2>&1 &
stage=$!
wait_for 30 fault_waits a "$hang" || fail "nothing is staged"
fallocate -l "$(($(free_mib) - 12))M" "$DISK/foreign"
tell_faultfs a clear
code=0
wait $stage || code=$?
check_equal "code of a stage that has no room any more ($(tail -n 3 "$W/said"))" "$code" 5
grep -q "staged/2.*node a: it has no room" "$W/said" || fail "it is not said of which file, and why: $(head -n 5 "$W/said")"
diff -r "$W/mnt-a/staged" "$PFS/staged" || fail "wrong bytes"

rm "$DISK/foreign"
"$EDDY_BUILD/eddy" stage --wait "$W/mnt-a/staged" >"$W/said" 2>&1 || fail "the rest is not brought: $(cat "$W/said")"
check_equal "bytes that are here" "$("$EDDY_BUILD/eddy" stage --check --json "$W/mnt-a/staged" | jq .here)" $((30 * 5242880))
stop_node a
