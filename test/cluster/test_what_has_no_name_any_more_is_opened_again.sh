#!/usr/bin/env bash
# A file that was removed or replaced while it is open has its bytes for whoever opens it
# again by the descriptor (/dev/stdin, /proc/self/fd), flushed or not: a shell's here
# document is such a file.
# timeout: 60
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

cat >"$W/again.py" <<'PY'
import fcntl, os, subprocess, sys

top, source, eddy = sys.argv[1:]
DATA = bytes(range(256)) * 1000

def written(path):
    with open(path, "wb") as f:
        f.write(DATA)

def flushed(path):
    written(path)
    subprocess.run([eddy, "flush", top], check=True, stdout=subprocess.DEVNULL)

def old(path):
    with open(os.path.join(source, os.path.basename(path)), "wb") as f:
        f.write(DATA)

def removed(path):
    os.unlink(path)

def replaced(path):
    with open(path + ".new", "wb") as f:
        f.write(b"other")
    os.rename(path + ".new", path)

def same(what, fd):
    got = os.pread(fd, len(DATA) + 1, 0)
    assert got == DATA and os.fstat(fd).st_size == len(DATA), f"{what}: {len(got)} bytes, {os.fstat(fd)}"

def again(make, take_away, read_before, time, first=os.O_RDONLY):
    what = f"{make.__name__}, {take_away.__name__}, {read_before}, {time}, {first}"
    path = f"{top}/{make.__name__}-{take_away.__name__}-{read_before}-{time}"
    make(path)
    fd = os.open(path, first)
    if read_before:
        same(what, fd)
    take_away(path)
    fcntl.flock(fd, fcntl.LOCK_SH)
    same(what + ", locked", fd)
    for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY):
        g = os.open(f"/proc/self/fd/{fd}", flags)
        if flags != os.O_WRONLY:
            same(f"{what}, opened again with {flags}", g)
        same(f"{what}, beside {flags}", fd)
        os.close(g)
    g = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
    os.pwrite(g, b"changed", 100)
    assert os.pread(fd, 9, 99) == DATA[99:100] + b"changed" + DATA[107:108], what
    os.close(g)
    os.close(fd)

# A file that was just made on the PFS may change again without a trace: its bytes are fetched again at the next open, or
# not, as the clock ticks.
for make, times in (written, 1), (flushed, 1), (old, 8):
    for take_away in (removed, replaced):
        for read_before in (False, True):
            for time in range(times):
                again(make, take_away, read_before, time)
# Writers that do not look as if other nodes will write the file, too, and then others.
for first in os.O_RDWR | os.O_APPEND, os.O_RDWR, os.O_RDWR | os.O_EXCL:
    for make in written, flushed:
        again(make, removed, True, 0, first)
PY
mkdir "$W/plain"
printf '#!/bin/sh\ntrue\n' >"$W/no-flush"
chmod +x "$W/no-flush"
python3 "$W/again.py" "$W/plain" "$W/plain" "$W/no-flush" || fail "the test itself, on a plain directory"
start_node a "$PFS"
start_node b "$PFS" --wait-nodes 2
python3 "$W/again.py" "$W/mnt-a" "$PFS" "$EDDY_BUILD/eddy" || fail "see above"
check_equal "here document" "$(TMPDIR=$W/mnt-a bash -c 'cat /dev/stdin <<<"some words"')" "some words"
stop_node b
stop_node a
check_equal "files that are left" "$(cd "$PFS" && cat -- *-replaced-* | sort | uniq -c | tr -s ' ')" " 1 $(printf 'other%.0s' {1..20})"
