#!/usr/bin/env bash
# The directory of a file that one node has written is moved, by this node or by another one.  The other node
# writes a few bytes where the first one has none, before or after a flush: both see them, and so does the PFS.
# timeout: 90
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

cat >"$W/write.py" <<'PY'
import itertools, os, subprocess, sys

a, b, pfs, eddy = sys.argv[1:]


def turn(n, old, flushed, mover):
    what = f"old file {old}, flushed {flushed}, moved by {mover[-1]}"
    data = bytearray((b"P" if old else b"\0") * 3000000)
    if old:
        os.mkdir(f"{pfs}/d{n}")
        with open(f"{pfs}/d{n}/f", "wb") as f:
            f.write(data)
    else:
        os.mkdir(f"{a}/d{n}")
    with open(f"{a}/d{n}/f", "r+b" if old else "wb") as f:
        f.write(b"A" * 4096)
        f.truncate(len(data))
    data[:4096] = b"A" * 4096
    os.listdir(f"{b}/d{n}")
    os.rename(f"{mover}/d{n}", f"{mover}/x/y/e{n}")
    fd = os.open(f"{b}/x/y/e{n}/f", os.O_RDWR)
    if flushed:
        subprocess.run([eddy, "flush", a], check=True, stdout=subprocess.DEVNULL)
    os.pwrite(fd, b"zz", 2000001)
    data[2000001:2000003] = b"zz"
    assert os.pread(fd, len(data), 0) == data, what
    os.close(fd)
    for top in a, b:
        with open(f"{top}/x/y/e{n}/f", "rb") as f:
            assert f.read() == data, f"{what}, read by {top[-1]}"
    return f"{pfs}/x/y/e{n}/f", data


todo = [turn(n, *case) for n, case in enumerate(itertools.product((False, True), (False, True), (a, b)))]
subprocess.run([eddy, "flush", a], check=True, stdout=subprocess.DEVNULL)
for path, data in todo:
    with open(path, "rb") as f:
        assert f.read() == data, path
PY
mkdir -p "$PFS/x/y"
start_node a "$PFS" --flush end
start_node b "$PFS" --flush end --wait-nodes 2
python3 -B "$W/write.py" "$W/mnt-a" "$W/mnt-b" "$PFS" "$EDDY_BUILD/eddy" || fail "see above"
stop_node a
stop_node b
