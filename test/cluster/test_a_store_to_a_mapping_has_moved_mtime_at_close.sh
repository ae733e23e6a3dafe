#!/usr/bin/env bash
# A process stores into a file through a mapping, and closes the file before or after it unmaps it: then stat
# tells a later mtime, at once, here and on another node. The flush leaves it.
# timeout: 60
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

start_node a "$PFS" --flush-wait 3600 --session-dir "$W/session"
start_node b "$PFS" --attr-timeout 0 --session-dir "$W/session"
cat >"$W/store.py" <<'PY'
import mmap, os, sys, time
for unmap in False, True:
    for pages in 1, 3:
        path = f"{sys.argv[1]}/{unmap}-{pages}"
        with open(path, "wb") as f:
            f.write(b"x" * 4096 * pages)
        time.sleep(0.02)  # a later time stamp
        fd = os.open(path, os.O_RDWR)
        m = mmap.mmap(fd, 4096 * pages)
        before = os.stat(path)
        time.sleep(0.02)
        for page in range(pages):
            m[4096 * page : 4096 * page + 5] = b"store"
        if unmap:
            m.close()
        os.close(fd)
        after = os.stat(path)
        assert after.st_mtime_ns > before.st_mtime_ns, f"{path}: mtime has not moved"
        assert after.st_ctime_ns > before.st_ctime_ns, f"{path}: ctime has not moved"
        if not unmap:
            m.close()
PY
python3 "$W/store.py" "$W/mnt-a" || fail "see above"
times() {
    (cd "$1" && stat -c '%n %y %z' -- *-*)
}
told=$(times "$W/mnt-a")
check_equal "times on the other node" "$(times "$W/mnt-b")" "$told"
eddy flush "$W/mnt-a"
sleep 1.1 # the kernel asks again
check_equal "times after the flush" "$(times "$W/mnt-a")" "$told"
check_equal "times on the other node" "$(times "$W/mnt-b")" "$told"
stop_node a
stop_node b
