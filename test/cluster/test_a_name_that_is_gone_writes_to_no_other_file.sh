#!/usr/bin/env bash
# Another node has just removed or moved the name of a file, which this node knows, has written, and may know by another
# name, too: `> name` and `>> name` make a new file, and the file keeps its bytes under its other name.
# timeout: 60
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

cat >"$W/gone.py" <<'PY'
import itertools, os, sys

a, b, pfs = sys.argv[1:]


def linked(n):
    os.link(f"{a}/f{n}", f"{a}/g{n}")
    os.stat(f"{a}/g{n}"), os.stat(f"{a}/f{n}")
    os.unlink(f"{b}/f{n}")


def unknown(n):
    os.link(f"{b}/f{n}", f"{b}/g{n}")
    os.stat(f"{a}/f{n}")
    os.unlink(f"{b}/f{n}")


def moved(n):
    os.stat(f"{a}/f{n}")
    os.rename(f"{b}/f{n}", f"{b}/g{n}")


def replaced(n):
    os.link(f"{a}/f{n}", f"{a}/g{n}")
    with open(f"{b}/new{n}", "w") as f:
        f.write("newer ")
    os.stat(f"{a}/g{n}"), os.stat(f"{a}/f{n}")
    os.rename(f"{b}/new{n}", f"{b}/f{n}")


def removed(n):
    os.stat(f"{a}/f{n}")
    os.unlink(f"{b}/f{n}")


for n, (take_away, mode, is_open) in enumerate(itertools.product((linked, unknown, moved, replaced, removed), "wa", (0, 1))):
    with open(f"{a}/f{n}", "w") as f:
        f.write("written")
    fd = os.open(f"{a}/f{n}", os.O_RDWR) if is_open else None
    take_away(n)
    with open(f"{a}/f{n}", mode) as f:
        f.write("other")
    what = f"{n}: {take_away.__name__}, {mode}, open {is_open}"
    if is_open:
        assert os.pread(fd, 100, 0) == b"written", what + ", by its descriptor"
        os.close(fd)
    for top in a, b:
        got = open(f"{top}/f{n}").read()
        assert got == ("newer other" if mode == "a" and take_away == replaced else "other"), f"{what}: {got}"
        if take_away != removed:
            got = open(f"{top}/g{n}").read()
            assert got == "written", f"{what}, its other name: {got}"
PY
start_node a "$PFS" --flush end
start_node b "$PFS" --flush end --wait-nodes 2
python3 -B "$W/gone.py" "$W/mnt-a" "$W/mnt-b" "$PFS" || fail "see above"
stop_node a
stop_node b
check_equal "what the files have" "$(cat "$PFS"/g* | sed 's/written/&\n/g' | sort | uniq -c | tr -s ' ')" " 16 written"
