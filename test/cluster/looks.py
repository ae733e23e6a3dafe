#!/usr/bin/env python3
"""What one node does to a file, another one sees at once: sizes, bytes, attributes, by descriptors old and new.

  looks.py MOUNT-A MOUNT-B EDDY     EDDY flush MOUNT brings a node's files to the PFS

Each check does a change on one node, which is acknowledged, and then looks on the other; a look that is older than the change
is wrong.  Prints what was wrong; exit code 1 if anything was."""
import fcntl
import mmap
import os
import subprocess
import sys
import time

A, B, EDDY = sys.argv[1:4]
wrong = []


def short(value):
    text = repr(value)
    if len(text) <= 80:
        return text
    return f"{text[:80]}... ({len(value)} bytes, hash {hash(bytes(value)) & 0xffff:x})"


def check(what, got, expected):
    if got != expected:
        wrong.append(f"{what}: {short(got)}, not {short(expected)}")


def flush(mount):
    subprocess.run([EDDY, "flush", mount], check=True, stdout=subprocess.DEVNULL)


def opened(mount, name, flags=os.O_RDWR | os.O_CREAT):
    return os.open(f"{mount}/{name}", flags, 0o644)


def put(mount, name, data):
    fd = opened(mount, name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(fd, data)
    os.close(fd)


def seen(what, fd, path, size, at, data):
    """By this descriptor and this name, the file has this size and these bytes."""
    check(f"{what}: lseek(SEEK_END)", os.lseek(fd, 0, os.SEEK_END), size)
    check(f"{what}: fstat", os.fstat(fd).st_size, size)
    check(f"{what}: stat", os.stat(path).st_size, size)
    check(f"{what}: pread", os.pread(fd, len(data), at), data)
    check(f"{what}: pread at the end", os.pread(fd, 10, size), b"")


def sizes(rounds):
    """Both nodes have it open; each writes beyond the end in turn, and cuts."""
    name = "sizes"
    a, b = opened(A, name), opened(B, name)
    size = 0
    for k in range(rounds):
        (w, m), (r, n) = ((a, A), (b, B)) if k % 2 else ((b, B), (a, A))
        data = bytes([65 + k % 26]) * 1000
        os.pwrite(w, data, size)
        size += 1000
        seen(f"sizes, round {k}, the other node", r, f"{n}/{name}", size, size - 1000, data)
        seen(f"sizes, round {k}, the writer", w, f"{m}/{name}", size, size - 1000, data)
        if k % 7 == 6:
            size -= 2500
            os.ftruncate(w, size)
            check(f"sizes, round {k}, fstat after a cut", os.fstat(r).st_size, size)
            check(f"sizes, round {k}, stat after a cut", os.stat(f"{n}/{name}").st_size, size)
            check(f"sizes, round {k}, pread after a cut", os.pread(r, 10, size), b"")
    os.close(a)
    os.close(b)


def readers_before_writers(flags, rounds):
    """A reader has the file open, and has read it, before another node's writer opens it."""
    for k in range(rounds):
        name = f"reader{flags}.{k}"
        put(B, name, b"a" * 10000)
        flush(B)
        r = opened(A, name, flags)
        check("the reader's first look", os.pread(r, 20000, 0), b"a" * 10000)
        w = opened(B, name, os.O_RDWR)
        os.pwrite(w, b"B" * 10000, 10000)
        seen("a reader from before", r, f"{A}/{name}", 20000, 10000, b"B" * 10000)
        os.pwrite(w, b"C" * 100, 0)
        check("a reader from before, overwritten", os.pread(r, 101, 0), b"C" * 100 + b"a")
        new = opened(A, name, os.O_RDONLY)
        seen("a reader that comes later", new, f"{A}/{name}", 20000, 0, b"C" * 100)
        os.close(w)
        os.pread(r, 100, 0)
        if k % 2:
            flush(B)
        w = opened(B, name, os.O_RDWR)
        os.pwrite(w, b"D" * 100, 50)
        check("a reader from before, the next writer", os.pread(r, 151, 0), b"C" * 50 + b"D" * 100 + b"a")
        os.close(w)
        w = opened(A, name, os.O_RDWR)
        os.pwrite(w, b"E" * 10, 20000)
        seen("a writer of the reader's node", r, f"{A}/{name}", 20010, 20000, b"E" * 10)
        for fd in (r, new, w):
            os.close(fd)


def claimants(rounds):
    """A has it open for writing; what B writes is carried there."""
    name = "claimant"
    a = opened(A, name)
    os.pwrite(a, b"0" * 4096, 0)
    b = opened(B, name)
    for k in range(rounds):
        os.pread(a, 4096, 0)
        data = bytes([33 + k % 90]) * 4096
        os.pwrite(b, data, 0)
        check("the claimant's bytes", os.pread(a, 4096, 0), data)
        os.pwrite(b, b"x", 4096 + k)
        check("the claimant's fstat", os.fstat(a).st_size, 4096 + k + 1)
        check("the claimant's SEEK_END", os.lseek(a, 0, os.SEEK_END), 4096 + k + 1)
        data = bytes([32 + k % 90]) * 4096
        os.pwrite(a, data, 0)
        check("the other node's bytes", os.pread(b, 4096, 0), data)
    os.close(a)
    os.close(b)


def rewritten(rounds):
    """stat by path right after another node has rewritten the file and closed it."""
    name = "rewritten"
    put(A, name, b"1")
    old = 0
    for k in range(rounds):
        w, r = (A, B) if k % 2 else (B, A)
        os.stat(f"{r}/{name}")
        put(w, name, b"r" * (k % 500 + 2))
        old += os.stat(f"{r}/{name}").st_size != k % 500 + 2
        if k % 50 == 49:
            flush(w)
            os.stat(f"{r}/{name}")
    check("old answers of stat", old, 0)


def listed(rounds):
    """ls -l remembers; a write elsewhere is seen at once."""
    for k in range(rounds):
        name = f"listed{k % 3}"
        w, r = (A, B) if k % 2 else (B, A)
        for e in os.scandir(r):
            e.stat()
        put(w, name, b"l" * (k + 1))
        check("stat after a listing", os.stat(f"{r}/{name}").st_size, k + 1)


def followed():
    """tail -f on another node: each byte once, no zeros."""
    name = "followed"
    put(A, name, b"i" * 100000)
    flush(A)
    r = opened(B, name, os.O_RDONLY)
    check("a follower's first bytes", len(os.pread(r, 200000, 0)), 100000)
    at = 100000
    w = opened(A, name, os.O_WRONLY | os.O_APPEND)
    for k in range(40):
        data = (b"%06d " % k) * (1 + k * k % 5000)
        os.write(w, data)
        got = b""
        while len(got) < len(data):
            more = os.pread(r, len(data), at + len(got))
            if not more:
                break
            got += more
        check(f"a follower's bytes, round {k}", got == data, True)
        at += len(data)
    os.close(w)
    os.close(r)


def mapped():
    """What a mapping shows of a file that another node changes, when it is made anew."""
    name = "mapped"
    put(A, name, b"m" * 8192)
    flush(A)
    r = opened(B, name, os.O_RDONLY)
    for k in range(10):
        with mmap.mmap(r, 0, prot=mmap.PROT_READ) as m:
            check("a mapping's length", len(m), 8192 + k * 4096)
            check("a mapping's last bytes", m[-10:], (b"m" if not k else bytes([97 + k])) * 10)
        w = opened(A, name, os.O_WRONLY | os.O_APPEND)
        os.write(w, bytes([98 + k]) * 4096)
        os.close(w)
    os.close(r)


def locked(kind, rounds):
    """A counter and a log under a lock, from descriptors that stay open on both nodes."""
    name = f"locked{kind}"
    put(A, name, b"0" * 8)
    flush(A)
    fds = [opened(A, name, os.O_RDWR), opened(B, name, os.O_RDWR)]
    for k in range(rounds):
        fd = fds[k % 2 if k % 5 else (k // 5) % 2]
        if kind == "flock":
            fcntl.flock(fd, fcntl.LOCK_EX)
        else:
            fcntl.lockf(fd, fcntl.LOCK_EX)
        check(f"the counter under {kind}", os.pread(fd, 8, 0), b"%08d" % k)
        os.pwrite(fd, b"%08d" % (k + 1), 0)
        end = os.lseek(fd, 0, os.SEEK_END)
        check(f"the end under {kind}", end, 8 + 16 * k)
        os.write(fd, b"record %08d\n" % k)
        if kind == "flock":
            fcntl.flock(fd, fcntl.LOCK_UN)
        else:
            fcntl.lockf(fd, fcntl.LOCK_UN)
    for fd in fds:
        os.close(fd)


def wait_for(what, look, expected):
    end = time.monotonic() + (0 if wrong else 60)  # one is enough
    while look() != expected and time.monotonic() < end:
        time.sleep(0.01)
    check(what, look(), expected)


def store(path, at, data, flags=0):
    """Through a mapping, which is synced."""
    fd = os.open(path, os.O_RDWR | flags)
    m = mmap.mmap(fd, 8192)
    m[at:at + len(data)] = data
    m.flush()
    m.close()
    os.close(fd)


def stored():
    """What is stored through a mapping goes beside descriptors of its node that are older than the other node's write."""
    for flags in 0, os.O_DSYNC, os.O_DIRECT:
        name = f"stored{flags}"
        put(B, name, b"a" * 8192)  # B has all of it: its descriptors are passthrough
        flush(B)
        fds = [opened(B, name, os.O_RDONLY)]
        check("before", os.pread(fds[0], 8192, 0), b"a" * 8192)
        w = opened(A, name)
        os.pwrite(w, b"b" * 100, 0)  # A has the claim
        store(f"{B}/{name}", 4096, b"by B", flags)
        now = b"b" * 100 + b"a" * 3996 + b"by B" + b"a" * 4092
        wait_for("stored at the other node", lambda: os.pread(w, 8192, 0), now)
        fds.append(opened(B, name, os.O_RDONLY))
        for fd in fds:
            wait_for("stored, the same node", lambda: os.pread(fd, 8192, 0), now)
        fds.append(opened(A, name, os.O_RDONLY))
        os.close(w)
        w = opened(B, name, os.O_RDONLY)  # it is told of each change from now on
        check("the reader", os.pread(w, 8192, 0), now)
        store(f"{A}/{name}", 8000, b"by A", flags)
        now = now[:8000] + b"by A" + now[8004:]
        for fd in (*fds, w):
            wait_for("stored at the claimant", lambda: os.pread(fd, 8192, 0), now)
        for fd in (*fds, w):
            os.close(fd)
        flush(A)
        flush(B)
        check("stored, in the end", open(f"{B}/{name}", "rb").read(), now)


def stored_by_descriptor(claim, named):
    """A descriptor that is older than the other node's write is opened again (/proc/self/fd), and what is stored through a mapping
    of that, and msynced, reaches the file: with fsync, without it, and after the close.  The other node sees it as what is stored in any mapping,
    soon; at the claimant it has come when fsync and close are done."""
    name = f"by-descriptor-{claim}-{named}"
    put(B, name, b"a" * 20000)
    flush(B)
    old, a = opened(B, name, os.O_RDONLY), opened(A, name)
    check("before", os.pread(old, 20000, 0), b"a" * 20000)
    os.pwrite(a, b"b" * 100, 0)
    if claim != "elsewhere":
        os.close(a)
        flush(A)
        a = opened(A, name, os.O_RDONLY)
    again = os.open(f"/proc/self/fd/{old}", os.O_RDWR)
    if claim == "here":
        os.pwrite(again, b"c" * 100, 0)
    if not named:
        os.unlink(f"{A}/{name}")
    now = bytearray(os.pread(a, 20000, 0))
    m = mmap.mmap(again, 20000)

    def put_in(at, data):
        m[at:at + len(data)] = data
        m.flush()
        now[at:at + len(data)] = data

    def at_a():
        return os.pread(a, 30000, 0)

    def there(what):
        if claim == "elsewhere":
            check(what, at_a(), now)
        else:
            wait_for(what, at_a, now)

    before = time.time()
    put_in(4096, b"synced")
    os.fsync(again)
    there("stored and synced")
    wait_for("its mtime", lambda: os.fstat(a).st_mtime > before - 0.02, True)
    put_in(4100, b"once more")
    check("stored, the same node", os.pread(again, 30000, 0), now)
    put_in(19000, b"x" * 1000)
    wait_for("stored and not synced", at_a, now)
    if claim == "elsewhere":
        put_in(12288, b"mine")
        os.pwrite(a, b"yours", 8300)
        now[8300:8305] = b"yours"
        wait_for("stored beside a write", at_a, now)
        wait_for("... in the mapping", lambda: m[:], now)
    os.ftruncate(again, 19500)
    del now[19500:]
    there("cut")
    put_in(8192, b"closed")
    os.close(again)
    there("stored and closed")
    put_in(8200, b"after the close")
    wait_for("stored after the close", at_a, now)
    check("an old descriptor", os.pread(old, 30000, 0), now)
    put_in(0, b"at last")
    m.close()
    wait_for("stored before the unmap", at_a, now)
    os.close(old)
    if named:
        for mount in A, B:
            check("in the end", open(f"{mount}/{name}", "rb").read(), now)
    os.close(a)


def old_descriptor(k):
    """A file of which B has a descriptor from before A's write, and another open for reading and writing: the kernel may know
    it by two node ids."""
    name = f"twice{k}"
    by = A if k % 4 == 3 else B
    put(by, name, b"a" * 8192)
    flush(by)
    old, a = opened(B, name, os.O_RDONLY), opened(A, name)
    os.pread(old, 8192, 0)
    os.pwrite(a, b"b", 0)
    if k % 2:
        os.close(a)
        flush(A)
        a = opened(A, name, os.O_RDONLY)
    return name, old, opened(B, name), a


def both_ids(rounds):
    """What is changed by one descriptor of a node is seen by all of them, and by names, at once."""
    for k in range(rounds):
        name, old, new, a = old_descriptor(k)
        now = bytearray(b"b" + b"a" * 8191)
        link = f"{B}/{name}.link"

        def see(what):
            for who, fd in ("old", old), ("new", new), ("elsewhere", a):
                check(f"{what}: pread, {who}", os.pread(fd, 20000, 0), now)
                check(f"{what}: size, {who}", os.fstat(fd).st_size, len(now))
                check(f"{what}: SEEK_END, {who}", os.lseek(fd, 0, os.SEEK_END), len(now))
            for path in f"{B}/{name}", f"{A}/{name}":
                check(f"{what}: stat", os.stat(path).st_size, len(now))
                with open(path, "rb") as f:
                    check(f"{what}: read", f.read(), now)

        see("before")
        by_old = os.open(f"/proc/self/fd/{old}", os.O_WRONLY)
        os.pwrite(by_old, b"old", 100)
        now[100:103] = b"old"
        see("by an old descriptor")
        os.pwrite(new, b"new", 200)
        now[200:203] = b"new"
        see("by a new one")
        os.ftruncate(by_old, 5000)
        del now[5000:]
        see("cut by an old one")
        os.posix_fallocate(by_old, 0, 6000)
        now.extend(bytes(1000))
        see("made longer by an old one")
        os.copy_file_range(new, by_old, 10, 100, 300)
        now[300:310] = now[100:110]
        see("copied by an old one")
        os.close(os.open(f"/proc/self/fd/{old}", os.O_WRONLY | os.O_TRUNC))
        now.clear()
        see("emptied by an old one")
        for mode, fd in (0o600, old), (0o640, new):
            os.fchmod(fd, mode)
            for what, got in ("old", os.fstat(old)), ("new", os.fstat(new)), ("name", os.stat(f"{B}/{name}")):
                check(f"mode, {what}", got.st_mode & 0o777, mode)
        flush(A)  # an attribute that is set while the file is flushed may be told a moment late (oracle/known_wrong.py)
        flush(B)
        os.setxattr(old, "user.k", b"%d" % k)
        times = [os.fstat(old), os.fstat(new), os.stat(f"{B}/{name}")]
        check("ctime", [t.st_ctime_ns for t in times], [times[0].st_ctime_ns] * 3)
        os.link(f"{B}/{name}", link)
        check("names", [os.fstat(old).st_nlink, os.fstat(new).st_nlink], [2, 2])
        os.pwrite(by_old, b"link", 0)
        now[:] = b"link"
        see("through a link")
        os.unlink(link)
        os.unlink(f"{B}/{name}")
        again = os.open(f"/proc/self/fd/{old}", os.O_RDWR)
        os.pwrite(again, b"gone", 0)
        check("without a name", [os.pread(fd, 10, 0) for fd in (old, new, again)], [b"gone"] * 3)
        check("without a name: names", [os.fstat(old).st_nlink, os.fstat(new).st_nlink], [0, 0])
        for fd in old, by_old, new, a, again:
            os.close(fd)


def appends(fd, size, where):
    """One append, whose position the kernel counts.  Returns the size after it."""
    os.write(fd, b"append\n")
    check(f"{where}: the position after an append", os.lseek(fd, 0, os.SEEK_CUR), size + 7)
    return size + 7


def appended(rounds):
    """O_APPEND, by descriptors that stay open, in turn with whatever else makes the file longer."""
    name = "appended"
    put(A, name, b"a" * 4096)
    flush(A)
    watches, flags = opened(B, name, os.O_RDONLY), os.O_WRONLY | os.O_APPEND
    fds = [opened(A, name, flags), opened(B, name, flags)]
    size = 4096
    for k in range(rounds):
        size = appends(fds[k % 2], size, f"round {k}")
        if k % 3 == 2:
            size += 1000
            os.truncate(f"{(A, B)[k % 2]}/{name}", size)
        if k % 5 == 4:
            w = opened((A, B)[k // 5 % 2], name)
            os.pwrite(w, b"w" * 5000, size)
            os.close(w)
            size += 5000
        if k % 7 == 6:
            flush((A, B)[k // 7 % 2])
    for _ in range(10):
        size = raced(name, fds, size, 50)
    for fd in [watches, *fds]:
        os.close(fd)
    check("the size after all appends", os.stat(f"{A}/{name}").st_size, size)


def raced(name, fds, size, rounds):
    """Processes on both nodes append at once: afterwards each kernel has the size."""
    pids = []
    for fd in fds:
        pids.append(os.fork())
        if not pids[-1]:
            for _ in range(rounds):
                os.write(fd, b"race\n")
            os._exit(0)
    check("the processes that append", [os.waitpid(pid, 0)[1] for pid in pids], [0, 0])
    size += len(fds) * rounds * 5
    for k in range(4):
        size = appends(fds[k % 2], size, f"after a race, {k}")
    return size


def main():
    appended(100)
    sizes(60)
    readers_before_writers(os.O_RDONLY, 6)
    readers_before_writers(os.O_RDWR, 6)
    claimants(200)
    rewritten(400)
    listed(40)
    followed()
    mapped()
    stored()
    for claim in "elsewhere", "here", "nobody":
        stored_by_descriptor(claim, True)
        stored_by_descriptor(claim, False)
    both_ids(20)
    locked("fcntl", 200)
    locked("flock", 200)
    for line in wrong[:20]:
        print(line)
    if len(wrong) > 20:
        print(f"... and {len(wrong) - 20} more")
    return bool(wrong)


sys.exit(main())
