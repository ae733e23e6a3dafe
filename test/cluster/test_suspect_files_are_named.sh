#!/usr/bin/env bash
# After a power loss (the records are of another boot): what fsync covered is flushed; what it did
# not is suspect: named by eddy recover --list, eddy recover, the restart's log, eddy status and
# eddy umount, and never flushed. eddy recover --to copies it.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

head -c 300000 /dev/urandom >"$W/data"
lose_power() {
    local slab
    crash_node a
    for slab in "$W"/cache-a/slabs/*; do
        printf 'another-boot' | dd of="$slab" bs=1 seek=40 conv=notrunc status=none
    done
}
start_node a "$PFS" --flush-wait 3600
dd if="$W/data" of="$W/mnt-a/covered" bs=100000 conv=fsync status=none
cp "$W/data" "$W/mnt-a/in doubt"
lose_power

names() { sed 's/: .*//' "$1" | sort | tr '\n' ','; }
code=0
eddy recover --list "$W/cache-a" >"$W/list.txt" || code=$?
check_equal "code of eddy recover --list" "$code" 3
check_equal "what it lists" "$(names "$W/list.txt")" "covered,in doubt,"
grep '^in doubt: ' "$W/list.txt" | grep -q 'suspect after a power loss' || fail "not said to be suspect"
grep '^covered: ' "$W/list.txt" | grep -q suspect && fail "what fsync covered is said to be suspect"

code=0
eddy recover "$W/cache-a" >"$W/recover.txt" || code=$?
check_equal "code of eddy recover" "$code" 3
check_equal "what it lists" "$(names "$W/recover.txt")" "in doubt,"
check_same "$W/data" "$PFS/covered"
[ ! -s "$PFS/in doubt" ] || fail "a suspect file was flushed"

fusermount3 -uz "$W/mnt-a"
start_node a "$PFS"
check_equal "suspect in eddy status" "$(status_of a '.flush.failed_files[] | select(.suspect) | .path')" "in doubt"
grep -q 'suspect' "$W/a.log" || fail "the log does not say it"
code=0
eddy umount "$W/mnt-a" >"$W/umount.txt" || code=$?
check_equal "code of eddy umount" "$code" 3
check_equal "what it lists" "$(names "$W/umount.txt")" "in doubt,"

mkdir "$W/to"
code=0
eddy recover --to "$W/to" "$W/cache-a" >"$W/copied.txt" || code=$?
check_equal "code of eddy recover --to" "$code" 3
check_same "$W/data" "$W/to/in doubt.eddy-incomplete-a"
grep -q "^in doubt: 2..\.. KiB: suspect after a power loss" "$W/copied.txt" || fail "it says $(cat "$W/copied.txt")"
code=0
eddy recover --list "$W/cache-a" >"$W/list.txt" || code=$?
check_equal "code of eddy recover --list after it" "$code" 3
