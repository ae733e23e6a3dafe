#!/usr/bin/env bash
# One node serves files as a plain directory does: read, write, truncate, mmap, append,
# O_DIRECT, holes, unlink-while-open; and a random reader/writer against a plain file.
# timeout: 600
# both
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

mkdir "$W/plain"
head -c 3000000 /dev/urandom >"$PFS/old"
cp "$PFS/old" "$W/plain/old"
printf 0123456789 >"$PFS/short"
start_node a "$PFS"
M=$W/mnt-a

# --- what is on the PFS is read, through the cache and from it ---
check_same "$M/old" "$W/plain/old"
check_same "$M/old" "$W/plain/old"

# --- one byte into a file that is not cached ---
printf X | dd of="$M/short" bs=1 seek=4 conv=notrunc status=none
check_equal "the changed file" "$(cat "$M/short")" 0123X56789

# --- append, truncate, sizes ---
printf one >"$M/log"
printf two >>"$M/log"
check_equal "the appended file" "$(cat "$M/log")" onetwo
truncate -s 5 "$M/log"
check_equal "the truncated file" "$(cat "$M/log")" onetw
: >"$M/log"
check_equal "size after > file" "$(stat -c %s "$M/log")" 0

# --- holes ---
truncate -s 2M "$M/holes"
printf end | dd of="$M/holes" bs=1 seek=2097152 conv=notrunc status=none
truncate -s 2M "$W/plain/holes"
printf end >>"$W/plain/holes"
check_same "$M/holes" "$W/plain/holes"

# --- O_DIRECT ---
dd if="$W/plain/old" of="$M/direct" bs=64K count=40 oflag=direct status=none
cmp -n $((40 * 65536)) "$M/direct" "$W/plain/old" || fail "written with O_DIRECT, read otherwise"
dd if="$M/direct" of="$W/plain/direct" bs=64K iflag=direct status=none
cmp -n $((40 * 65536)) "$W/plain/direct" "$W/plain/old" || fail "read with O_DIRECT"

# --- mmap, a read-only open that truncates, a file that is used after its name is gone ---
python3 - "$M" <<'PY' || fail "mmap, O_TRUNC or unlink-while-open"
import mmap, os, sys
m = sys.argv[1]
with open(m + "/map", "w+b") as f:
    f.write(b"a" * 10000)
    f.flush()
    with mmap.mmap(f.fileno(), 0) as p:
        p[5000:5003] = b"xyz"
        p.flush()
    f.seek(4999)
    assert f.read(5) == b"axyza", "a shared mapping's store is not read back"
os.close(os.open(m + "/map", os.O_RDONLY | os.O_TRUNC))
assert os.stat(m + "/map").st_size == 0, "O_RDONLY | O_TRUNC"
f = open(m + "/gone", "w+b")
f.write(b"still here")
f.flush()
os.unlink(m + "/gone")
f.seek(0)
assert f.read() == b"still here", "unlinked while open"
assert os.fstat(f.fileno()).st_nlink == 0
f.close()
assert not os.path.exists(m + "/gone")
PY

# --- random operations ---
"$EDDY_BUILD/test/fsrand" --ops "${FSRAND_OPS:-$(many 25000 4000)}" "$M/random" "$W/plain/random"

# --- all of it reaches the PFS; the file that was unlinked keeps nothing back ---
stop_node a
check_equal "the changed file on the PFS" "$(cat "$PFS/short")" 0123X56789
check_same "$PFS/holes" "$W/plain/holes"
check_same "$PFS/random" "$W/plain/random"
cmp -n $((40 * 65536)) "$PFS/direct" "$W/plain/old" || fail "the file written with O_DIRECT on the PFS"
[ ! -e "$PFS/gone" ] || fail "an unlinked file came back"
