#!/usr/bin/env bash
# What the kernel's writers did is known by a data file's time stamps: where the cache's disk keeps whole seconds of them
# there is no passthrough, status says why, and all is written through the daemon.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
[[ ${EDDY_TEST_OPTIONS-} != *--no-passthrough* ]] || skip "switched off"
mkdir "$W/disk"
PFS=$W/disk start_faultfs disk
tell_faultfs disk whole-seconds
start_node a "$PFS" --cache-dir "$W/pfs-disk/cache"
check_equal "passthrough" "$(status_of a .passthrough)" false
why=$(status_of a .passthrough_why)
[[ $why != *"kernel's FUSE has none"* ]] || skip "$why"
[[ $why == *"whole seconds"* ]] || fail "why there is none: $why"
head -c 300000 /dev/urandom >"$W/data"
cp "$W/data" "$W/mnt-a/f"
check_same "$W/data" "$W/mnt-a/f"
stop_node a
check_same "$W/data" "$PFS/f"
