#!/usr/bin/env bash
# Files that changed on the PFS while the daemon that had unflushed data of them was dead: a
# restart, and eddy recover, write that data beside them as NAME.eddy-conflict-NODE and say so.
# What only had its mode or name changed is flushed. A file that the PFS removed stays in the
# cache, and is named.
# timeout: 150
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

change() { # what others do on the PFS meanwhile
    sleep 0.01 # a later time stamp
    echo "by others" >"$PFS/changed"
    touch -d '2020-01-01' "$PFS/same-size" # as rewritten in place with the same number of bytes
    mv "$PFS/replaced" "$PFS/gone"
    rm "$PFS/gone"
    echo "another file" >"$PFS/replaced"
    chmod 640 "$PFS/chmod"
    mv "$PFS/renamed" "$PFS/renamed-now"
    echo "in its old place" >"$PFS/renamed"
}

write() { # MNT: based on what is on the PFS
    local name
    for name in changed same-size replaced chmod renamed untouched; do
        dd if="$W/new" of="$1/$name" bs=4096 seek=1 conv=notrunc status=none
    done
}

check() {
    check_equal "what others wrote" "$(cat "$PFS/changed")" "by others"
    check_same "$W/expected" "$PFS/changed.eddy-conflict-a"
    check_same "$W/old" "$PFS/same-size"
    check_same "$W/expected" "$PFS/same-size.eddy-conflict-a"
    check_equal "what took its place" "$(cat "$PFS/replaced")" "another file"
    check_same "$W/expected" "$PFS/replaced.eddy-conflict-a"
    check_same "$W/expected" "$PFS/chmod"
    check_equal "mode" "$(stat -c %a "$PFS/chmod")" 640
    check_same "$W/expected" "$PFS/renamed-now"
    check_equal "a new file of the old name" "$(cat "$PFS/renamed")" "in its old place"
    check_same "$W/expected" "$PFS/untouched"
    check_equal "names" "$(cd "$PFS" && echo *)" "changed changed.eddy-conflict-a chmod renamed \
renamed-now replaced replaced.eddy-conflict-a same-size same-size.eddy-conflict-a untouched"
}

head -c 20000 /dev/urandom >"$W/old"
head -c 4096 /dev/urandom >"$W/new"
cp "$W/old" "$W/expected"
dd if="$W/new" of="$W/expected" bs=4096 seek=1 conv=notrunc status=none

prepare() {
    local name
    rm -f "$PFS"/*
    for name in changed same-size replaced chmod renamed untouched; do
        cp "$W/old" "$PFS/$name"
        touch -d '-1 hour' "$PFS/$name"
    done
    start_node a "$PFS" --flush-wait 3600
    cat "$W/mnt-a"/* >/dev/null # all of it is here: else a conflict has holes, and says so
    write "$W/mnt-a"
    crash_node a
    change
}

prepare
start_node a "$PFS" --flush-wait 3600
check_equal "conflicts in eddy status" "$(status_of a .counters.conflicts)" 3
grep -q 'conflict: changed: was changed' "$W/a.log" || fail "the log does not say it"
grep -q 'conflict: replaced: was replaced' "$W/a.log" || fail "the log does not say it"
check_equal "what the mount shows" "$(cat "$W/mnt-a/changed")" "by others"
check_same "$W/expected" "$W/mnt-a/changed.eddy-conflict-a"
stop_node a
check

prepare
fusermount3 -uz "$W/mnt-a"
code=0
eddy recover --json "$W/cache-a" >"$W/recover.txt" || code=$?
check_equal "code of eddy recover" "$code" 4
check_equal "written beside" "$(jq -r '.written[].written' "$W/recover.txt" | sort | tr '\n' ' ')" \
    "changed.eddy-conflict-a replaced.eddy-conflict-a same-size.eddy-conflict-a "
check
eddy recover "$W/cache-a" || fail "a second eddy recover ends with $?"

# Twice the same conflict; and a file of which the cache has only what was written.
prepare
rm "$PFS/untouched"
start_node a "$PFS" --flush-wait 3600
grep -q 'untouched: is not on the PFS any more' "$W/a.log" || fail "a removed file is not named"
dd if="$W/new" of="$W/mnt-a/changed" bs=4096 seek=1 conv=notrunc status=none
crash_node a
sleep 0.01
echo "once more" >"$PFS/changed"
start_node a "$PFS" --flush-wait 3600
grep -q 'changed.eddy-conflict-a.2: 10 bytes of it were only' "$W/a.log" ||
    fail "it is not said that bytes are missing: $(grep holes "$W/a.log")"
check_equal "the first" "$(cmp "$W/expected" "$PFS/changed.eddy-conflict-a" && echo same)" same
check_equal "the second" "$(tail -c 4096 "$PFS/changed.eddy-conflict-a.2" | cmp - "$W/new" && echo same)" same
stop_node a 3 # the removed one
