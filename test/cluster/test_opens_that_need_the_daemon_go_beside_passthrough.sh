#!/usr/bin/env bash
# While others have a file open in passthrough, it is opened with O_DSYNC, with O_DIRECT, and for writing where it has a set-id bit:
# the daemon does these reads and writes, so they do what they do elsewhere (on the PFS at once, the bit gone), and all
# descriptors and mappings of this node see one file, at once: bytes, size, mode; also when it has no name any more.
# timeout: 120
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires root fuse cmd python3
start_node a "$PFS" --flush end --fsync pfs -o allow_other
[ "$(status_of a .passthrough)" = true ] || skip "no passthrough here: $(status_of a .passthrough_why)"
cat >"$W/beside.py" <<'PY'
import mmap, os, stat, sys, threading
mount, pfs, expected = sys.argv[1:4]
PAGE, NOBODY = 4096, 65534
made = {}

def page(n): return bytes([n]) * PAGE

def buffer(data):  # O_DIRECT wants it at a page's beginning
    b = mmap.mmap(-1, len(data))
    b.write(data)
    return b

class Seen:
    """A file, its bytes as they must be, and a reader in passthrough with a mapping."""
    def __init__(self, name):
        self.path, self.below, self.data = f"{mount}/{name}", f"{pfs}/{name}", bytearray(page(1) + page(2) + page(3))
        fd = os.open(self.path, os.O_CREAT | os.O_RDWR)
        os.write(fd, self.data)
        os.fchmod(fd, 0o666)
        os.close(fd)
        self.fd = os.open(self.path, os.O_RDONLY)
        self.map = mmap.mmap(self.fd, 3 * PAGE, prot=mmap.PROT_READ)
        made[name] = self

    def put(self, at, data):
        self.data[at:at + len(data)] = data

    def check(self, what, *fds):
        for fd in (self.fd, *fds):
            got = os.pread(fd, len(self.data) + PAGE, 0)
            assert got == self.data, f"{what}: {len(got)} bytes of {len(self.data)}, first other at {first(got, self.data)}"
            assert os.fstat(fd).st_size == os.lseek(fd, 0, os.SEEK_END) == len(self.data), f"{what}: size"
        assert self.map[:] == self.data[:3 * PAGE], f"{what}: mapped"

def first(a, b):
    return next((n for n, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))

def synced():
    f = Seen("synced")
    for flag in os.O_DSYNC, os.O_SYNC:
        fd = os.open(f.path, os.O_RDWR | flag)
        for at, data in ((10, b"in the middle"), (len(f.data), page(4) + b"and an odd end")):
            assert os.pwrite(fd, data, at) == len(data)
            f.put(at, data)
            assert open(f.below, "rb").read() == f.data, "it was not on the PFS when the write ended"
            f.check("synced", fd)
        os.close(fd)

def direct():
    f = Seen("direct")
    for flags in os.O_RDWR, os.O_WRONLY:
        fd = os.open(f.path, flags | os.O_DIRECT)
        for at in PAGE, len(f.data):
            data = page(7 + flags + at // PAGE)
            assert os.pwritev(fd, [buffer(data)], at) == PAGE
            f.put(at, data)
            f.check("O_DIRECT")
        if flags == os.O_RDWR:
            got = buffer(bytes(len(f.data)))
            assert os.preadv(fd, [got], 0) == len(f.data) and got[:] == f.data, "read with O_DIRECT"
        os.close(fd)

def mapped():
    f = Seen("mapped")
    fd = os.open(f.path, os.O_RDWR | os.O_DSYNC)
    m = mmap.mmap(fd, 3 * PAGE)
    m[5:9] = b"maps"
    f.put(5, b"maps")
    f.check("stored through a mapping", fd)
    os.pwrite(fd, b"write", 2 * PAGE)
    f.put(2 * PAGE, b"write")
    assert m[:] == f.data, "the mapping of what was opened beside"
    f.check("beside a mapping", fd)
    os.ftruncate(fd, len(f.data) - 100)
    del f.data[-100:]
    f.data += bytes(100)
    os.ftruncate(fd, len(f.data))
    f.check("cut and grown", fd)
    m.close()
    os.close(fd)

def as_nobody(what, *args):
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0, "nobody could not"
        return
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    what(*args)
    os._exit(0)

def append(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    assert os.write(fd, data) == len(data)
    os.close(fd)

def set_id():
    f = Seen("set-id")
    for name_is_there in True, False:
        os.fchmod(f.fd, 0o4777)
        if not name_is_there:
            os.unlink(f.path)
        as_nobody(append, f.path if name_is_there else f"/proc/self/fd/{f.fd}", b"by nobody")
        f.put(len(f.data), b"by nobody")
        f.check("a writer of a set-id file")
        assert not os.fstat(f.fd).st_mode & stat.S_ISUID, "the set-id bit is still there"
    del made["set-id"]

def appended():
    f = Seen("appended")
    flags = os.O_DSYNC, 0, os.O_SYNC, 0
    lines = [[b"%d %d " % (k, n) + b"x" * (n * 7 % 300) + b"\n" for n in range(100)] for k in range(len(flags))]
    def work(k):
        fd = os.open(f.path, os.O_WRONLY | os.O_APPEND | flags[k])
        for line in lines[k]:
            assert os.write(fd, line) == len(line)
        os.close(fd)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(flags))]
    for t in threads: t.start()
    for t in threads: t.join()
    got = os.pread(f.fd, 1 << 20, 3 * PAGE)
    for k in range(len(flags)):
        assert [l + b"\n" for l in got.split(b"\n")[:-1] if l.startswith(b"%d " % k)] == lines[k], "lines are lost or torn"
    f.put(3 * PAGE, got)
    f.check("appended")

for part in synced, direct, mapped, set_id, appended:
    part()
for f in made.values():
    f.map.close()
    os.close(f.fd)
    with open(f"{expected}/{os.path.basename(f.path)}", "wb") as e:
        e.write(f.data)
PY
mkdir "$W/expected"
python3 -B "$W/beside.py" "$W/mnt-a" "$PFS" "$W/expected" || fail "see above"
stop_node a
for f in "$W"/expected/*; do
    check_same "$f" "$PFS/${f##*/}"
done
