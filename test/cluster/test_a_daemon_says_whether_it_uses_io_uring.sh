#!/usr/bin/env bash
# eddyfs --uring where the kernel's FUSE has io_uring off, or has none: requests come by /dev/fuse, and eddy status and the log say why;
# without --uring nothing is said. (test_fuse_goes_over_io_uring_long.sh switches it on.)
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
[ "$(cat /sys/module/fuse/parameters/enable_uring 2>/dev/null)" != Y ] || skip "io_uring is on in this kernel's FUSE"
echo text >"$PFS/file"
start_node a "$PFS" --uring
check_equal "is it on" "$(status_of a .uring)" false
status_of a .uring_why | grep -Eq 'enable_uring|6\.14|not built|liburing' || fail "eddy status does not say why: $(status_of a .uring_why)"
grep -q "warn.*--uring: .*requests come by /dev/fuse" "$W/a.log" || fail "the log does not say why"
check_equal "what is read" "$(cat "$W/mnt-a/file")" text
stop_node a
start_node b "$PFS"
check_equal "is it on" "$(status_of b .uring)" false
! grep -q "uring" "$W/b.log" || fail "what nobody asked for is warned of"
stop_node b
