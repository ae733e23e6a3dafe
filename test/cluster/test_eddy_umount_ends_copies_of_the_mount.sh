#!/usr/bin/env bash
# A mount namespace that was made while eddyfs was mounted (a container's, say) keeps the mount for as long as it lives, and
# the kernel tells the daemon of no end. eddy umount ends it all the same: nobody here uses it any more.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires fuse namespaces
start_node a "$PFS" --flush-wait 3600
echo data >"$W/mnt-a/file"
unshare --mount --propagation private sleep 600 &
other=$!
record_process "$W" "$other"
has_copy() { grep -q " $W/mnt-a fuse.eddyfs" "/proc/$other/mounts"; }
wait_for 20 grep -qx sleep "/proc/$other/comm" || fail "no other namespace is made"
wait_for 10 has_copy || fail "the other namespace has no copy of the mount"

stop_node a # its daemon has ended, too
check_equal "the flushed file" "$(cat "$PFS/file")" data
has_copy || fail "the copy was gone before: nothing was tested"
