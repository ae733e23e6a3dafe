#!/usr/bin/env bash
# A file that no node has claimed is open on a node that needed no descriptor of it on the PFS; then another node removes its name,
# replaces it, renames it, exchanges it with another one, or does so with a directory above it.  The open file is used like any other: its attributes are set, its
# link count is right, it is opened again by its descriptor, emptied and written.
# timeout: 150
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

cat >"$W/use.py" <<'PY'
import ctypes, itertools, os, sys, time

a, b, pfs, daemon = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)


def removed(path):
    os.unlink(path)


def replaced(path):
    with open(path + ".new", "w") as f:
        f.write("other")
    os.rename(path + ".new", path)


def renamed(path):
    os.rename(path, path + ".to")


def exchange(path, other):
    if libc.renameat2(-100, other.encode(), -100, path.encode(), 2):
        raise OSError(ctypes.get_errno(), "renameat2")


def exchanged(path):
    with open(path + ".new", "w") as f:
        f.write("other")
    exchange(path, path + ".new")


def moved_above(path):
    above = os.path.dirname(path)
    os.rename(above, above + ".to")


def moved_twice(path):
    top = os.path.dirname(os.path.dirname(path))
    moved_above(path)
    os.rename(top, top + ".to")


def moved_and_removed(path):
    moved_above(path)
    os.unlink(f"{os.path.dirname(path)}.to/f")


def exchanged_above(path):
    above = os.path.dirname(path)
    os.mkdir(above + ".new")
    with open(f"{above}.new/f", "w") as f:
        f.write("other")
    exchange(above, above + ".new")


def times(fd):
    os.utime(fd, ns=(10**18 + 5, 10**18 + 5))
    assert os.fstat(fd).st_mtime_ns == 10**18 + 5, os.fstat(fd)


def mode(fd):
    os.fchmod(fd, 0o640)
    assert os.fstat(fd).st_mode & 0o777 == 0o640, os.fstat(fd)


def xattr(fd):
    os.setxattr(fd, "user.a", b"x")
    assert os.getxattr(fd, "user.a") == b"x"


def links(fd):
    pass


def again(fd):
    g = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_TRUNC)
    os.pwrite(g, b"again", 0)
    assert os.pread(fd, 100, 0) == b"again", os.pread(fd, 100, 0)
    assert os.fstat(fd).st_size == 5
    os.close(g)


def has_descriptor(path):
    real = os.path.realpath(path)
    for n in os.listdir(f"/proc/{daemon}/fd"):
        try:
            if os.readlink(f"/proc/{daemon}/fd/{n}").startswith(real):
                return True
        except FileNotFoundError:
            pass
    return False


def is_known(name):
    with open(f"{a}/{name}", "rb") as f:
        f.read()


def name_of(take_away, what):
    return f"{take_away.__name__}-{what.__name__}/above/f"


def use(take_away, what):
    name = name_of(take_away, what)
    fd = os.open(f"{a}/{name}", os.O_RDONLY)
    assert not has_descriptor(f"{pfs}/{name}"), f"{name}: there is a descriptor"
    take_away(f"{b}/{name}")
    if what is not links:
        what(fd)
        if what is not again:
            assert os.pread(fd, 10000, 0) == b"P" * 5000
    return fd


def close(take_away, what, fd):
    gone = take_away in (removed, replaced, moved_and_removed)
    assert os.fstat(fd).st_nlink == (not gone), os.fstat(fd)
    os.close(fd)


cases = list(itertools.product((removed, replaced, renamed, exchanged, moved_above, moved_twice, moved_and_removed,
                                exchanged_above), (times, mode, xattr, links, again)))
for take_away, what in cases:
    is_known(name_of(take_away, what))
is_known("late")
time.sleep(6)  # an owner keeps what it has read open for 5 s
bad = False


def each(step, cases):
    global bad
    for take_away, what, *fd in cases:
        try:
            yield take_away, what, step(take_away, what, *fd)
        except (AssertionError, OSError) as e:
            print(f"WRONG {take_away.__name__} {what.__name__} {step.__name__}: {e!r}", flush=True)
            bad = True


def late():
    """Opened by a name that this node knows still, when it is gone for longer than the home needs to hear of that."""
    os.unlink(f"{b}/late")
    time.sleep(2)
    try:
        fd = os.open(f"{a}/late", os.O_RDONLY)
    except FileNotFoundError:
        return
    os.fchmod(fd, 0o640)
    os.close(fd)


opened = list(each(use, cases))
late()
time.sleep(20)  # --attr-timeout
list(each(close, opened))
sys.exit(bad)
PY
for away in removed replaced renamed exchanged moved_above moved_twice moved_and_removed exchanged_above; do
    for what in times mode xattr links again; do
        mkdir -p "$PFS/$away-$what/above"
        head -c 5000 /dev/zero | tr '\0' P >"$PFS/$away-$what/above/f"
    done
done
echo late >"$PFS/late"
sleep 1.1 # their versions are not racy any more
start_node a "$PFS" --attr-timeout 20
start_node b "$PFS" --attr-timeout 20 --wait-nodes 2
python3 -B "$W/use.py" "$W/mnt-a" "$W/mnt-b" "$PFS" "$(status_of a .pid)" || fail "see above"
stop_node a
stop_node b
