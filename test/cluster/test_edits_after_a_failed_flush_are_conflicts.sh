#!/usr/bin/env bash
# A flush failed, or its daemon died in the middle of it, and then somebody else changed the file on the PFS: at
# the next try, at a start and in eddy recover the file stays as it is, and what was written here is put
# beside it. What the flush itself left, a mode and a time that the session set are no such change.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3

NAMES="retried open restarted alone recovered"
head -c 200000 /dev/urandom >"$W/old"
head -c 200000 /dev/urandom >"$W/new"
head -c 4096 /dev/urandom >"$W/page"
cp "$W/new" "$W/edited"
dd if="$W/page" of="$W/edited" bs=4096 seek=20 conv=notrunc status=none
for name in $NAMES cut cut-alone unbegun; do
    cp "$W/old" "$PFS/$name"
done

edit() { # in place, and no other size
    sleep 0.02 # a later time stamp
    dd if="$W/page" of="$PFS/$1" bs=4096 seek=20 conv=notrunc status=none
}
flush_fails() { # FILE...: node a's new bytes of them get to the PFS, which then says EIO
    local name fault code=0
    for name; do
        dd if="$W/new" of="$A/$name" bs=1M conv=notrunc status=none
    done
    fault=$(tell_faultfs a error EIO fsync)
    eddy flush "$A" >/dev/null || code=$?
    check_equal "code of eddy flush" "$code" 3
    tell_faultfs a clear "$fault"
}
is_conflict() {
    check_same "$W/edited" "$PFS/$1"
    check_same "$W/new" "$PFS/$1.eddy-conflict-a"
    rm "$PFS/$1.eddy-conflict-a"
}

start_faultfs a
A=$W/mnt-a
start_node a "$W/pfs-a" --flush end --session-dir "$W/session"

# The next try: of a file that is closed, and of one that is open here.
flush_fails retried alone
edit retried
chmod 600 "$PFS/alone"
eddy flush --retry "$A" || fail "eddy flush --retry ends with $?"
is_conflict retried
grep -q 'conflict: retried: was changed on the PFS while its flush had failed' "$W/a.log" ||
    fail "the log does not say it"
check_equal "conflicts in eddy status" "$(status_of a .counters.conflicts)" 1
check_same "$W/edited" "$A/retried"
check_same "$W/new" "$PFS/alone"

exec 7>>"$A/open"
flush_fails open
edit open
code=0
eddy flush --retry "$A" >"$W/listed" || code=$?
check_equal "code while it is open" "$code" 3
grep -q '^open: ' "$W/listed" || fail "the open file is not listed: $(cat "$W/listed")"
check_same "$W/new" "$A/open"
check_same "$W/edited" "$PFS/open"
exec 7>&-
eddy flush --retry "$A" || fail "eddy flush --retry ends with $? when it is closed"
is_conflict open

# The flush fails before it has changed anything, and the application writes once more after the edit.
dd if="$W/new" of="$A/unbegun" bs=1M conv=notrunc status=none
fault=$(tell_faultfs a error EIO getattr path=unbegun)
code=0
eddy flush "$A" >/dev/null || code=$?
check_equal "code of eddy flush" "$code" 3
tell_faultfs a clear "$fault"
edit unbegun
head -c 1 "$W/new" | dd of="$A/unbegun" conv=notrunc status=none
eddy flush --retry "$A" || fail "eddy flush --retry ends with $?"
dd if="$W/page" of="$W/old" bs=4096 seek=20 conv=notrunc status=none
check_same "$W/old" "$PFS/unbegun"
check_same "$W/new" "$PFS/unbegun.eddy-conflict-a"
rm "$PFS/unbegun" "$PFS/unbegun.eddy-conflict-a"

# A start.
flush_fails restarted alone
chmod 640 "$A/alone"
touch -d '2001-02-03 04:05:06.789' "$A/alone"
printf x | dd of="$A/alone" conv=notrunc status=none # the time does not stay, but the PFS has it
kill_node a
edit restarted
start_node a "$W/pfs-a" --flush end --session-dir "$W/session"
is_conflict restarted
{
    printf x
    tail -c +2 "$W/new"
} >"$W/new-x"
check_same "$W/new-x" "$A/alone"
eddy flush "$A"
check_same "$W/new-x" "$PFS/alone"

# The daemon dies in a write of the flush: which gets to the PFS after all, or did before the edit.
for name in cut-alone cut; do
    dd if="$W/new" of="$A/$name" bs=1M conv=notrunc status=none
    hang=$(tell_faultfs a hang write "path=$name")
    in_background eddy flush "$A"
    wait_for 20 fault_waits a "$hang" || fail "the flush does not write $name"
    kill -KILL "${NODE_PID[a]}"
    sleep 0.02 # a later time stamp
    tell_faultfs a clear "$hang"
    wait "${JOB[node-a]}" || true
    fusermount3 -uz "$A"
    [ $name = cut-alone ] || edit $name
    [ $name = cut-alone ] || head -c 4096 "$W/page" >>"$PFS/$name" # longer than the flush would make it
    start_node a "$W/pfs-a" --flush end --session-dir "$W/session"
    eddy flush "$A"
done
check_same "$W/new" "$PFS/cut-alone"
check_same "$W/new" "$PFS/cut.eddy-conflict-a"
rm "$PFS/cut.eddy-conflict-a" "$PFS/cut"

# eddy recover.
flush_fails recovered
kill_node a
edit recovered
code=0
eddy recover --json "$W/cache-a" >"$W/recover.txt" || code=$?
check_equal "code of eddy recover" "$code" 4
check_equal "written beside" "$(jq -r '.written[].written' "$W/recover.txt")" recovered.eddy-conflict-a
is_conflict recovered
check_equal "names" "$(cd "$PFS" && echo *)" "alone cut-alone open recovered restarted retried"
