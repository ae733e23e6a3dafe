#!/usr/bin/env bash
# A node renames a directory to a name that another node has just given up by a move: what it knew by this name is whole
# where it is now, files can be made in it, and what was not flushed below it is flushed there.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

cat >"$W/take.py" <<'PY'
import os, sys

a, b = sys.argv[1:]


def put(path, text):
    with open(path, "w") as f:
        f.write(text)


def text(path):
    with open(path) as f:
        return f.read()


for n, empty in enumerate((False, True)):
    os.makedirs(f"{a}/d{n}/sub")
    put(f"{a}/d{n}/sub/f", "old")
    os.mkdir(f"{a}/x{n}")
    put(f"{a}/x{n}/g", "new")
    os.chdir(f"{a}/d{n}")
    os.rename(f"{b}/d{n}", f"{b}/e{n}")
    if empty:
        os.mkdir(f"{b}/d{n}")  # then that one is replaced
    os.rename(f"{a}/x{n}", f"{a}/d{n}")
    put("first", "made")
    assert text("sub/f") == "old", "in the working directory"
    for top in a, b:
        assert os.listdir(f"{top}/d{n}") == ["g"] and text(f"{top}/d{n}/g") == "new", n
        assert text(f"{top}/e{n}/sub/f") == "old", n
        put(f"{top}/e{n}/made-{top[-1]}", "made")
        put(f"{top}/e{n}/sub/made-{top[-1]}", "made")
    assert text("sub/f") == "old", "in the working directory"
    put("sub/made", "made")
    os.chdir("/")
PY
start_node a "$PFS" --flush end
start_node b "$PFS" --flush end --wait-nodes 2
python3 -B "$W/take.py" "$W/mnt-a" "$W/mnt-b" || fail "see above"
stop_node a
stop_node b
for n in 0 1; do
    check_equal "names" "$(cd "$PFS" && echo d$n/* e$n/* e$n/sub/*)" \
        "d$n/g e$n/first e$n/made-a e$n/made-b e$n/sub e$n/sub/f e$n/sub/made e$n/sub/made-a e$n/sub/made-b"
    check_equal "bytes" "$(cat "$PFS/d$n/g" "$PFS/e$n/sub/f" "$PFS/e$n/sub/made")" newoldmade
done
