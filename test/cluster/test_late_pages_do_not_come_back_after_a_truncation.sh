#!/usr/bin/env bash
# Pages that were stored into through a mapping are on their way to the daemon when somebody opens the file with O_TRUNC,
# which does not wait for them: what comes late makes the file no longer again, here and where another node has the claim.
# timeout: 120
# busy
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
cat >"$W/late.py" <<'PY'
import ctypes, mmap, os, sys
SIZE, WRITE = 4 << 20, 2 # SYNC_FILE_RANGE_WRITE: begins, and does not wait
libc = ctypes.CDLL(None, use_errno=True)
libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
path, bad = sys.argv[1], 0
for _ in range(int(sys.argv[2])):
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, SIZE)
    pages = mmap.mmap(fd, SIZE)
    for at in range(0, SIZE, 4096):
        pages[at] = 0x41
    if libc.sync_file_range(fd, 0, SIZE, WRITE):
        sys.exit("sync_file_range: " + os.strerror(ctypes.get_errno()))
    os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
    os.ftruncate(fd, SIZE)
    bad += os.pread(fd, SIZE, 0) != bytes(SIZE)
    pages.close()
    os.close(fd)
if bad:
    sys.exit("bytes from before the truncation came back, in %d rounds of %s" % (bad, sys.argv[2]))
PY
start_node a "$PFS" --no-passthrough
start_node b "$PFS" --no-passthrough --wait-nodes 2
python3 "$W/late.py" "$W/mnt-a/own" "$(many 200 100)" || fail "the claim is here"
exec {held}>"$W/mnt-a/other" # node a has the claim
echo held >&"$held"
python3 "$W/late.py" "$W/mnt-b/other" "$(many 100 50)" || fail "another node has the claim"
exec {held}>&-
stop_node b
stop_node a
