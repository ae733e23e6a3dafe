#!/usr/bin/env bash
# Node a has a descriptor of a file that is on the PFS, and node b writes it. By node a's descriptor SEEK_DATA and SEEK_HOLE tell what the file has
# now, and fsync brings to the PFS (--fsync pfs) what node b wrote.
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
start_node a "$PFS" --fsync pfs --flush-wait 3600
start_node b "$PFS" --fsync pfs --flush-wait 3600 --wait-nodes 2
cat >"$W/old.py" <<'EOF'
import os
import subprocess
import sys

a, b, pfs, eddy = sys.argv[1:]
names = ["sparse", "read", "written"]
for name in names:
    with open(os.path.join(a, name), "wb") as f:
        f.write(b"init")
        f.truncate(4 << 20)
subprocess.run([eddy, "flush", a], check=True)


def old_and_written(name, flags):
    fd = os.open(os.path.join(a, name), flags)
    os.pread(fd, 4, 0)
    with open(os.path.join(b, name), "r+b") as f:
        f.seek(2 << 20)
        f.write(b"new" * 20000)
        f.seek(5 << 20)
        f.write(b"end")
    return fd


def seen(fd, at, how):
    try:
        return os.lseek(fd, at, how)
    except OSError as e:
        return e.strerror


fd = old_and_written("sparse", os.O_RDONLY)
assert seen(fd, 1 << 20, os.SEEK_DATA) <= 2 << 20, seen(fd, 1 << 20, os.SEEK_DATA)
assert seen(fd, 2 << 20, os.SEEK_HOLE) >= (2 << 20) + 60000
assert seen(fd, 5 << 20, os.SEEK_DATA) == 5 << 20, seen(fd, 5 << 20, os.SEEK_DATA)
for name, flags in ("read", os.O_RDONLY), ("written", os.O_RDWR):
    fd = old_and_written(name, flags)
    os.fsync(fd)
    with open(os.path.join(pfs, name), "rb") as f:
        data = f.read()
    assert data[2 << 20:][:60000] == b"new" * 20000 and data[5 << 20:] == b"end", name
EOF
python3 "$W/old.py" "$W/mnt-a" "$W/mnt-b" "$PFS" "$EDDY_BUILD/eddy" || fail "an old descriptor is behind"
