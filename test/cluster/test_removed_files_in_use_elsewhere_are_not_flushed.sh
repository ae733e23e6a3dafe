#!/usr/bin/env bash
# A node removes, or replaces, a file that another node has written and that itself has open: it reads
# and changes it until it closes it, flushed before or not, open at the other node or not; then nothing
# of it is left to flush, and `eddy umount` says so. One of two names takes no byte. Also when the
# remover dies before it closes the file.
# timeout: 150
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

start_node a "$PFS" --flush end
start_node b "$PFS" --flush end --wait-nodes 2

cat >"$W/remove.py" <<'PY'
import ctypes, os, subprocess, sys

a, b, eddy = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
DATA = os.urandom(200000)


def write(fd, data):
    os.pwrite(fd, b"later" * 20000, 150000)
    data[150000:250000] = b"later" * 20000


def grow(fd, data):
    os.ftruncate(fd, 1839104)
    data.extend(bytes(1839104 - len(data)))


def shrink(fd, data):
    os.ftruncate(fd, 10)
    del data[10:]


def punch(fd, data):
    assert not libc.fallocate(fd, 3, ctypes.c_long(8192), ctypes.c_long(4096))
    data[8192:12288] = bytes(4096)


def unlink(path):
    os.unlink(path)


def replace(path):
    open(path + ".new", "w").close()
    os.rename(path + ".new", path)


def flush(what):
    r = subprocess.run([eddy, "flush", a], capture_output=True, text=True)
    assert not r.returncode, f"{what}: {r.stdout}"


def expect(what, fd, data):
    got = os.pread(fd, 4000000, 0)
    assert got == data, f"{what}: {len(got)} other bytes"


def turn(n, flushed, remove, change, also, reads):
    what = f"flushed {flushed}, {remove.__name__}, {change.__name__}, also {also}, reads {reads}"
    data = bytearray(DATA)
    with open(f"{a}/f{n}", "wb") as f:
        f.write(data)
    here = os.open(f"{a}/f{n}", os.O_RDWR) if also else None
    fd = os.open(f"{b}/f{n}", os.O_RDWR)
    reader = os.open(f"{b}/f{n}", os.O_RDONLY) if reads else None
    if flushed:
        flush(what)
    remove(f"{b}/f{n}")
    expect(what, fd, data)
    change(fd, data)
    flush(what + ", still open")
    expect(what, fd, data)
    os.fsync(fd)
    if also:
        os.pwrite(here, b"both", 3)
        data[3:7] = b"both"
        expect(what + " at a", here, data)
    os.close(fd)
    if reads:
        expect(what + ", by who reads", reader, data)
        os.close(reader)
    if also:
        os.close(here)
    flush(what + ", closed")


n = 0
for flushed in True, False:
    for change in write, grow, shrink, punch:
        for remove, also, reads in (unlink, 0, 0), (unlink, 0, 1), (replace, 0, 0), (unlink, 1, 0):
            turn(n, flushed, remove, change, also, reads)
            n += 1

# Only read there: not flushed, and still there, also where a flush comes just when the name goes.
for n in range(20):
    with open(f"{a}/read", "wb") as f:
        f.write(DATA)
    fd = os.open(f"{b}/read", os.O_RDONLY)
    (os.unlink, replace)[n % 2](f"{b}/read")
    flush("removed by who only reads")
    expect("removed by who only reads", fd, DATA)
    os.close(fd)

# What has another name is flushed there.
data = bytearray(DATA)
with open(f"{a}/one", "wb") as f:
    f.write(data)
os.link(f"{a}/one", f"{a}/two")
fd = os.open(f"{b}/two", os.O_RDWR)
flush("linked")
os.unlink(f"{b}/two")
write(fd, data)
os.close(fd)
with open(f"{a}/moved", "wb") as f:
    f.write(DATA)
fd = os.open(f"{b}/moved", os.O_RDWR)
flush("to be moved")
os.rename(f"{b}/moved", f"{b}/over")
os.pwrite(fd, data, 0)
os.close(fd)
flush("names that stay")
open("expected", "wb").write(data)
PY
cd "$W" || exit
python3 -B "$W/remove.py" "$W/mnt-a" "$W/mnt-b" "$EDDY_BUILD/eddy" || fail "see above"
check_same "$W/expected" "$PFS/one"
check_same "$W/expected" "$PFS/over"
[ "$(stat -c %s "$PFS"/f* | sort -u)" = 0 ] || fail "removed files are on the PFS"

# It dies, with the file open.
head -c 200000 /dev/urandom >"$W/mnt-a/last"
exec 5<>"$W/mnt-b/last"
eddy flush "$W/mnt-a"
rm "$W/mnt-b/last"
head -c 5000 /dev/urandom >&5
crash_node b
exec 5>&- || true
cd / || exit
eddy flush "$W/mnt-a" || fail "after the remover's death there is something to flush"
no_claims() { [ "$(status_of a .claims)" = 0 ]; }
wait_for 40 no_claims || fail "the claim of a removed file stays: $(status_of a .claims)"
stop_node a
