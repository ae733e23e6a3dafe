#!/usr/bin/env bash
# A file loses its last name while a node has it open that did not write it: removed or replaced there or at the
# writer's node, flushed before or not, wholly in a cache or by one page only.  It is read and changed until it
# is closed, its times too, also by an open of the descriptor; then nothing of it is left.
# timeout: 150
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

cat >"$W/use.py" <<'PY'
import itertools, os, subprocess, sys

a, b, pfs, eddy = sys.argv[1:]
OLD = b"P" * 3000000


def removed(path):
    os.unlink(path)


def replaced(path):
    with open(path + ".new", "w") as f:
        f.write("other")
    os.rename(path + ".new", path)


def same(what, fd, data):
    for off in range(0, len(data), 1000000):
        got = os.pread(fd, 4000, off)
        assert got == data[off:off + 4000], f"{what}: at {off}: {len(got)} bytes"
    assert os.fstat(fd).st_size == len(data), f"{what}: {os.fstat(fd)}"
    assert not os.pread(fd, 10, len(data)), what


def use(n, flags, flushed, remover, take_away, partly):
    what = f"{n}: flags {flags}, flushed {flushed}, {take_away.__name__} by {remover[-1]}, partly {partly}"
    if partly:
        with open(f"{pfs}/f{n}", "wb") as f:
            f.write(OLD)
    data = bytearray(OLD)
    data[:4096] = b"A" * 4096
    with open(f"{a}/f{n}", "r+b" if partly else "wb") as f:
        f.write(data[:4096] if partly else data)
    fd = os.open(f"{b}/f{n}", flags)
    if flushed:
        subprocess.run([eddy, "flush", a], check=True, stdout=subprocess.DEVNULL)
    take_away(f"{remover}/f{n}")
    os.utime(fd, ns=(10**18 + n, 10**18 + n))
    same(what, fd, data)
    assert os.fstat(fd).st_mtime_ns == 10**18 + n, f"{what}: {os.fstat(fd)}"
    for again in os.O_RDONLY, os.O_RDWR:
        g = os.open(f"/proc/self/fd/{fd}", again)
        same(f"{what}, opened again with {again}", g, data)
        if again == os.O_RDWR:
            os.pwrite(g, b"zz", 1999999)
            data[1999999:2000001] = b"zz"
        os.close(g)
    same(what + ", after a write", fd, data)
    if flags == os.O_RDWR:
        os.ftruncate(fd, 2500000)
        del data[2500000:]
        same(what + ", cut", fd, data)
    os.close(fd)


for n, case in enumerate(itertools.product((os.O_RDONLY, os.O_RDWR), (False, True), (a, b), (removed, replaced),
                                           (False, True))):
    use(n, *case)
PY
start_node a "$PFS" --flush end
start_node b "$PFS" --flush end --wait-nodes 2
python3 -B "$W/use.py" "$W/mnt-a" "$W/mnt-b" "$PFS" "$EDDY_BUILD/eddy" || fail "see above"
no_claims() { [ "$(status_of a .claims)" = 0 ]; }
eddy flush "$W/mnt-a"
wait_for 20 no_claims || fail "claims of removed files stay: $(status_of a .claims)"
stop_node a
stop_node b
check_equal "what is left" "$(cat "$PFS"/f*)" "$(printf 'other%.0s' {1..16})"
