#!/usr/bin/env bash
# At the end the cache's disk is to have everything too: it is written while eddy umount waits for the PFS, not after that.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
cat >"$W/unwritten.py" <<'PY'
# Prints how many pages of the files below a directory only the page cache has: cachestat(2), Linux 6.5.
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pages = 0
for directory, _, names in os.walk(sys.argv[1]):
    for name in names:
        fd = os.open(os.path.join(directory, name), os.O_RDONLY)
        whole, found = (ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 5)()
        if libc.syscall(451, fd, whole, found, 0):
            sys.exit(f"cachestat: {os.strerror(ctypes.get_errno())}")
        pages += found[1] + found[2]
        os.close(fd)
print(pages)
PY
unwritten() { python3 "$W/unwritten.py" "$W/cache-a/data"; }
start_faultfs a
start_node a "$W/pfs-a" --flush-wait 60
head -c 32M /dev/urandom >"$W/content"
cp "$W/content" "$W/mnt-a/x"
[ "$(unwritten)" -gt 0 ] || skip "this kernel does not tell, or the cache is on no disk"
fault=$(tell_faultfs a hang write)
in_background "$EDDY_BUILD/eddy" umount "$W/mnt-a"
umount=$!
wait_for 20 fault_waits a "$fault" || fail "the flush does not come to the PFS"
all_written() { [ "$(unwritten)" = 0 ]; }
wait_for 20 all_written || fail "$(unwritten) pages are not on the cache's disk" # 30 s and more where nobody asks the kernel
kill -0 "$umount" || fail "eddy umount did not wait for the PFS"
tell_faultfs a clear
code=0
wait "$umount" || code=$?
check_equal "code of eddy umount" "$code" 0
check_same "$PFS/x" "$W/content"
