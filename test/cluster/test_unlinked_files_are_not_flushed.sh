#!/usr/bin/env bash
# A file that is removed, or replaced, before it was flushed costs the PFS nothing;
# while it is open it is read and written.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

start_faultfs a
start_node a "$W/pfs-a" --session-dir "$W/session" --flush-wait 3600

cat >"$W/open.py" <<'PY'
import os, sys
os.chdir(sys.argv[1])
data = os.urandom(3000000)
for how in "unlink", "rename":
    fd = os.open("f", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.write(fd, data)
    if how == "unlink":
        os.unlink("f")
    else:
        open("g", "w").close()
        os.rename("g", "f")
    assert os.pread(fd, 4000000, 0) == data, "the bytes went with the name"
    os.pwrite(fd, b"later", 1000000)
    os.ftruncate(fd, 2000000)
    expected = bytearray(data[:2000000])
    expected[1000000:1000005] = b"later"
    assert os.pread(fd, 4000000, 0) == expected, "a change was lost"
    st = os.fstat(fd)
    assert (st.st_size, st.st_nlink) == (2000000, 0), st
    os.fsync(fd)
    os.close(fd)
PY
python3 -B "$W/open.py" "$W/mnt-a" || fail "see above"
for n in $(seq 20); do
    head -c 100000 /dev/zero >"$W/mnt-a/closed$n"
done
rm "$W"/mnt-a/closed*
nothing_is_dirty() { [ "$(status_of a .cache.dirty)" = 0 ]; }
wait_for 10 nothing_is_dirty || fail "removed files are still dirty"
eddy flush "$W/mnt-a"
check_equal "bytes written to the PFS" "$(stat_of a write_bytes)" 0
check_equal "names on the PFS" "$(ls "$PFS")" f
stop_node a
