#!/usr/bin/env bash
# Another node moves directories, far away and at any depth, above files that one node has not flushed: while that node
# is dead, or after its restart, once or several times, in exchange for others, with new files under the old names.  The
# first node serves the files and flushes them where they are now; nothing is written beside.
# timeout: 90
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
start() { start_node "$1" "$PFS" --flush end; }
exchange() { # ONE OTHER
    python3 - "$@" <<'PY'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other = (os.fsencode(path) for path in sys.argv[1:])
if libc.renameat2(-100, one, -100, other, 2):
    sys.exit(f"renameat2: {os.strerror(ctypes.get_errno())}")
PY
}
move_all() { # at $1
    local d=$W/mnt-b/$1
    cd "$d"
    mv far/a/b/c x/y/z # far away
    mv twice/d there
    mv there x/y/there # ... and again
    mkdir -p twice/d/e
    echo new >twice/d/e/f # another file is where it was
    exchange one two
    mv file x/y/renamed
    echo new >file
    mv deep x/deep # above a move
    mv x/deep/1/2 x/2
    cd "$W"
}
expect_all() { # TOP
    local top=$1
    check_same "$W/one" "$top/x/y/z/d/f"
    check_same "$W/two" "$top/x/y/there/e/f"
    check_equal "a new file" "$(cat "$top/twice/d/e/f")" new
    check_same "$W/one" "$top/two/f"
    check_same "$W/two" "$top/one/g/f"
    check_same "$W/two" "$top/x/y/renamed"
    check_equal "a new file" "$(cat "$top/file")" new
    check_same "$W/one" "$top/x/2/3/f"
}

head -c 300000 /dev/urandom >"$W/one"
head -c 300000 /dev/urandom >"$W/two"
for when in dead restarted; do
    mkdir -p "$PFS/$when"/{far/a/b/c/d,twice/d/e,one,two/g,x/y,deep/1/2/3}
done
start a
start b
for when in dead restarted; do
    A=$W/mnt-a/$when
    cp "$W/one" "$A/far/a/b/c/d/f"
    cp "$W/two" "$A/twice/d/e/f"
    cp "$W/one" "$A/one/f"
    cp "$W/two" "$A/two/g/f"
    cp "$W/two" "$A/file"
    cp "$W/one" "$A/deep/1/2/3/f"
done
kill_node a
is_away() { [ "$(status_of b '.absent | length')" = 1 ]; }
wait_for 40 is_away || fail "b does not see that a is away"
move_all dead
start a
move_all restarted
expect_all "$W/mnt-b/dead"
expect_all "$W/mnt-b/restarted"
eddy flush "$W/mnt-a" || fail "not all files are found"
stop_node a
stop_node b
expect_all "$PFS/dead"
expect_all "$PFS/restarted"
check_equal "what is written beside" "$(find "$PFS" -name '*eddy-conflict*')" ""
