#!/usr/bin/env bash
# What a node sets of a file's times while another one writes it: nobody takes older
# bytes for those of the new version, all see the time that was set, and a daemon
# that dies meanwhile flushes what it has into the file when it is back.
# timeout: 90
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd cmp

T=1000000000
for name in 1 2; do
    head -c 100000 /dev/urandom >"$W/$name"
done
for name in overwritten opened dirty; do
    cp "$W/1" "$PFS/$name"
done
sleep 1.1 # files that were just changed are read again, whoever asks

start_faultfs b
start_node a "$PFS" --flush-wait 3600 --session-dir "$W/session"
start_node b "$W/pfs-b" --session-dir "$W/session"
A=$W/mnt-a B=$W/mnt-b

# touch_in_part FILE: node b's touch, until it is about to change the PFS.
touch_in_part() {
    hang=$(tell_faultfs b hang setattr "path=$1")
    in_background touch -c -m -d "@$T" "$B/$1"
    touch=$!
    wait_for 20 fault_waits b "$hang" || fail "touch does not get to the PFS"
}
touch_ends() {
    tell_faultfs b clear "$hang"
    wait "$touch" || fail "touch"
}

# Another node's write and flush, all of it between b's look at the file and its change.
check_same "$W/1" "$B/overwritten"
touch_in_part overwritten
dd if="$W/2" of="$A/overwritten" bs=1M conv=notrunc status=none
eddy flush "$A" >/dev/null
touch_ends
check_equal "its time" "$(stat -c %Y "$B/overwritten")" "$T"
sleep 1.1
check_same "$W/2" "$B/overwritten"
check_same "$W/2" "$A/overwritten"

# An open for writing that saw the older time.
touch_in_part opened
exec 7<>"$A/opened"
touch_ends
check_equal "its time on the node that set it" "$(stat -c %Y "$B/opened")" "$T"
check_equal "its time on the node that has it open" "$(stat -c %Y "$A/opened")" "$T"
exec 7>&-

# Unflushed data of a daemon that dies.
dd if="$W/2" of="$A/dirty" bs=1M conv=notrunc status=none
touch -c -m "$B/dirty"
kill_node a
start_node a "$PFS" --session-dir "$W/session"
eddy flush "$A" >/dev/null
check_same "$W/2" "$PFS/dirty"
check_equal "names" "$(cd "$PFS" && echo *)" "dirty opened overwritten"

stop_node a
stop_node b
