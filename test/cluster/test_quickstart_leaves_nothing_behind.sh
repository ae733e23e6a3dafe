#!/usr/bin/env bash
# tools/quickstart over a directory that is given: it ends with its table, the directory's
# files are as before, and no process, mount or file stays; also when it is interrupted.
# timeout: 300
. "$(dirname "$0")/lib.sh"
requires fuse
SHOW=$(dirname "$SCRIPT")/../../tools/quickstart

tree=$W/tree
mkdir -p "$tree/a/b" "$W/tmp"
for i in $(seq 200); do
    head -c $((i * 500)) /dev/urandom >"$tree/a/$i"
done
head -c 5000000 /dev/urandom >"$tree/a/b/large"
ln -s nowhere "$tree/a/b/link"
touch -d 2020-01-01 "$tree"/a/* "$tree/a/b" "$tree"
chmod 444 "$tree/a/7"
list() {
    find "$tree" -printf '%p %s %m %u %T@ %C@\n' | grep -v "^$tree " | sort
    find "$tree" -type f -exec cksum {} + | sort
}
list >"$W/before"

nothing_left() {
    local left
    left=$(find "$W/tmp" -mindepth 1) # its work directory
    [ -z "$left" ] || fail "files are left: $left"
    ! grep -F "$W/tmp" /proc/self/mountinfo || fail "mounts are left"
    ! pgrep -f -- "--cache-dir $W/tmp" || fail "processes are left"
    list >"$W/after"
    check_same "$W/before" "$W/after"
}

TMPDIR=$W/tmp bash "$SHOW" "$tree" >"$W/quickstart.out" 2>&1 ||
    fail "it ended with $?: $(tail -n 30 "$W/quickstart.out")"
tail -n 4 "$W/quickstart.out" | awk '/node[123] / { n++ } END { exit n != 3 }' ||
    fail "no table: $(tail -n 5 "$W/quickstart.out")"
nothing_left

# Once at the moment when the nodes are up, once while it writes.
for moment in 'node3 is mounted' 'Writing a tree'; do
    # shellcheck disable=SC2024
    TMPDIR=$W/tmp setsid bash "$SHOW" "$tree" >"$W/interrupted.out" 2>&1 &
    show=$!
    record_process "$W" "$show"
    has_come() {
        grep -q "$moment" "$W/interrupted.out"
    }
    wait_for 100 has_come || fail "it does not come to: $moment: $(tail "$W/interrupted.out")"
    kill -TERM "$show"
    code=0; wait "$show" || code=$?
    [ "$code" != 0 ] || fail "interrupted, it ended with 0"
    nothing_left
done

code=0; bash "$SHOW" "$W/nothing" 2>/dev/null || code=$?
check_equal "code for no directory" "$code" 1
code=0; bash "$SHOW" a b 2>/dev/null || code=$?
check_equal "code for two directories" "$code" 2
