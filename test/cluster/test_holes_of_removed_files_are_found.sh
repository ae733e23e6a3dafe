#!/usr/bin/env bash
# SEEK_DATA and SEEK_HOLE of a file that was removed while it is open, flushed or not, by any
# descriptor: no byte that a read returns is in a hole, and what was never flushed is found as a plain
# file system has it.
# timeout: 60
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

start_node a "$PFS" --flush end
start_node b "$PFS" --wait-nodes 2

cat >"$W/seek.py" <<'PY'
import errno, os, subprocess, sys

mount, other, eddy = sys.argv[1:]
MIB = 1 << 20
SIZE = 3 * MIB + 12345


def make(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    os.pwrite(fd, b"x" * 1000000, 0)
    os.pwrite(fd, b"y" * 5000, 2 * MIB)
    os.ftruncate(fd, SIZE)
    os.close(fd)


def seek(fd, off, whence):
    try:
        return os.lseek(fd, off, whence)
    except OSError as e:
        assert e.errno == errno.ENXIO, e
        return None


def runs(fd):
    """What is data, as [begin, end)."""
    found, at = [], 0
    while (at := seek(fd, at, os.SEEK_DATA)) is not None:
        end = seek(fd, at, os.SEEK_HOLE)
        found.append((at, end))
        at = end
    return found


def check(what, fd, expected):
    data, found = os.pread(fd, 2 * SIZE, 0), runs(fd)
    assert data == expected, f"{what}: other bytes"
    for n, byte in enumerate(data):
        if byte and not any(a <= n < b for a, b in found):
            sys.exit(f"{what}: byte {n} is in a hole: {found}")
    assert seek(fd, 3380, os.SEEK_DATA) == 3380, what
    assert seek(fd, SIZE, os.SEEK_DATA) is None and seek(fd, SIZE, os.SEEK_HOLE) is None, what
    return found


make("native")
with open("native", "rb") as f:
    expected = f.read()
    native = runs(f.fileno())
for flushed in False, True:
    for remover in mount, other:
        for flags in os.O_RDONLY, os.O_RDWR:
            what = f"flushed {flushed}, removed by {os.path.basename(remover)}, flags {flags}"
            make(f"{mount}/f")
            if flushed:
                subprocess.run([eddy, "flush", mount], check=True)
            fd = os.open(f"{mount}/f", flags)
            os.unlink(f"{remover}/f")
            found = check(what, fd, expected)
            assert flushed or found == native, f"{what}: {found}, a plain file has {native}"
            if flags == os.O_RDWR:
                os.pwrite(fd, b"later", 1500000)
                os.ftruncate(fd, SIZE)
                changed = expected[:1500000] + b"later" + expected[1500005:]
                check(f"{what}, written", fd, changed)
            os.close(fd)
PY
cd "$W" || exit
python3 -B "$W/seek.py" "$W/mnt-a" "$W/mnt-b" "$EDDY_BUILD/eddy" || fail "see above"
cd / || exit
stop_node b
stop_node a
