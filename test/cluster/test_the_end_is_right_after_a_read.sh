#!/usr/bin/env bash
# Two nodes write one file. After one of them has made it shorter, the other one reads behind the new end, and then asks where the
# end is (SEEK_END): it is the new one, each time. The kernel answers by the size that it has, which only an answer with
# attributes makes less; it drops that if it is told to drop pages meanwhile.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3 cmd setfattr
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a" --flush-wait 3600
start_node b "$W/pfs-b" --flush-wait 3600 --wait-nodes 2
setfattr -n user.eddy.shared -v always "$W/mnt-a"
cat >"$W/ends.py" <<'PY'
import os, sys
a, b = (os.open(path, os.O_RDWR | os.O_CREAT, 0o644) for path in sys.argv[1:])
for n in range(600):
    size = (n % 7 + 1) * 65536
    os.pwrite(b, b"b" * 65536, 7 * 65536)
    os.fstat(b)
    os.ftruncate(a, size)
    got = os.pread(b, 131072, size // 131072 * 131072)
    if len(got) != size % 131072:
        sys.exit(f"round {n}: the file has {size} bytes, and a read ends at {size // 131072 * 131072 + len(got)}")
    end = os.lseek(b, 0, os.SEEK_END)
    if end != size:
        sys.exit(f"round {n}: the file has {size} bytes, and its end is said to be {end}")
PY
python3 "$W/ends.py" "$W/mnt-a/file" "$W/mnt-b/file" || fail "see above"
stop_node a
stop_node b
