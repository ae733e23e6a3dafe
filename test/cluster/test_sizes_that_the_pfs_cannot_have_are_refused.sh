#!/usr/bin/env bash
# A PFS whose files cannot be larger than 4 TiB (ext4 with blocks of 1 KiB), and a cache's disk that takes larger ones: a
# truncation, an allocation and a write beyond the limit fail with EFBIG at once, by the claimant and by another
# node, and the file stays as it was. The largest size itself can be had, and all is flushed.
# timeout: 120
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse cmd jq cmd python3 cmd mkfs.ext4
truncate -s 200M "$W/image"
mkfs.ext4 -q -b 1024 "$W/image"
record_mount "$W" "$PFS"
mount -o loop "$W/image" "$PFS" 2>"$W/mount.out" || skip "no loop mount here: $(cat "$W/mount.out")"
start_node a "$PFS" --flush end
start_node b "$PFS" --flush end --wait-nodes 2
if [ -z "${EDDY_TEST_OPTIONS-}" ]; then
    case $(status_of a .passthrough_why) in
        *"larger files than the PFS"*) ;;
        *) fail "passthrough, or none for another reason: $(status_of a .passthrough_why)" ;;
    esac
fi

cat >"$W/sizes.py" <<'PY'
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def allocate(fd, off, n): # os.posix_fallocate would write where the file system cannot allocate
    if libc.fallocate(fd, 0, ctypes.c_int64(off), ctypes.c_int64(n)):
        raise OSError(ctypes.get_errno(), "fallocate")
def largest(path): # by asking the file system itself
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    low, high = 0, 1 << 62
    while high - low > 1:
        mid = (low + high) // 2
        try:
            os.ftruncate(fd, mid)
            low = mid
        except OSError as e:
            assert e.errno == errno.EFBIG, e
            high = mid
    os.close(fd)
    os.unlink(path)
    return low
pfs, mounts = sys.argv[1], sys.argv[2:]
limit = largest(pfs + "/largest")
assert limit < 1 << 43, limit
for n, mount in enumerate(mounts):
    path = mounts[0] + "/file%d" % n
    with open(path, "wb") as f: # a's claim: the second mount's changes are carried
        f.write(b"precious")
        f.flush()
        fd = os.open(mount + "/file%d" % n, os.O_RDWR)
        app = os.open(mount + "/file%d" % n, os.O_WRONLY | os.O_APPEND)
        for change in (lambda: os.ftruncate(fd, limit + 1), lambda: os.truncate(path, limit + 1),
                       lambda: allocate(fd, limit, 1), lambda: allocate(fd, 0, 1 << 60),
                       lambda: os.pwrite(fd, b"xy", limit), lambda: os.pwrite(fd, b"x", 1 << 50)):
            try:
                change()
                sys.exit("%s: a size beyond the PFS's was taken" % mount)
            except OSError as e:
                assert e.errno == errno.EFBIG, e
        assert os.fstat(fd).st_size == 8 and os.pread(fd, 100, 0) == b"precious"
        os.ftruncate(fd, limit)
        os.pwrite(fd, b"end", limit - 3)
        try:
            os.write(app, b"x")
            sys.exit("%s: an append beyond the PFS's largest size was taken" % mount)
        except OSError as e:
            assert e.errno == errno.EFBIG, e
        assert os.fstat(fd).st_size == limit
        os.close(fd)
        os.close(app)
PY
python3 "$W/sizes.py" "$PFS" "$W/mnt-a" "$W/mnt-b" || fail "sizes"
stop_node a
stop_node b
for n in 0 1; do
    check_equal "the beginning of file$n" "$(head -c 8 "$PFS/file$n")" precious
    check_equal "the end of file$n" "$(tail -c 3 "$PFS/file$n")" end
done
