#!/usr/bin/env bash
# While a node has unflushed data of a file, others set its mode, owner, attributes, times and links: on another
# node, or (but for the times) on the PFS. A daemon that writes on, dies and starts again flushes into the file.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires root fuse cmd setfattr

set_what() { # WHAT FILE
    case $1 in
        mode) chmod 640 "$2" ;;
        owner) chown 0:5 "$2" ;;
        link) ln "$2" "$2.link" ;;
        xattr) setfattr -n user.x -v y "$2" ;;
        now) touch -c "$2" ;;
        time) touch -d '2001-02-03 04:05:06.789' "$2" ;;
    esac
}
ATTRS="mode owner link xattr"
TIMES="now time"
for what in $ATTRS; do
    echo old >"$PFS/$what-outside"
done
for what in $ATTRS $TIMES; do
    echo old >"$PFS/$what-then-touch"
    echo old >"$PFS/$what-elsewhere"
done
(cd "$PFS" && echo *) >"$W/names"

start_node a "$PFS" --flush end --session-dir "$W/session"
start_node b "$PFS" --flush end --session-dir "$W/session"
A=$W/mnt-a B=$W/mnt-b
# shellcheck disable=SC2013 # one word a line
for name in $(cat "$W/names"); do
    echo first >>"$A/$name"
done
sleep 0.02 # later time stamps
for what in $ATTRS; do
    set_what "$what" "$PFS/$what-outside"
done
for what in $ATTRS $TIMES; do
    set_what "$what" "$B/$what-elsewhere"
    set_what "$what" "$B/$what-then-touch"
    touch -d '2020-01-01' "$A/$what-then-touch"
done
# shellcheck disable=SC2013 # one word a line
for name in $(cat "$W/names"); do
    echo second >>"$A/$name"
done
kill_node a
start_node a "$PFS" --flush end --session-dir "$W/session"
! grep conflict: "$W/a.log" || fail "a conflict"
stop_node a
stop_node b
printf 'old\nfirst\nsecond\n' >"$W/expected"
# shellcheck disable=SC2013 # one word a line
for name in $(cat "$W/names"); do
    check_same "$W/expected" "$PFS/$name"
done
for name in outside elsewhere then-touch; do
    check_equal "mode" "$(stat -c %a "$PFS/mode-$name")" 640
    check_equal "group" "$(stat -c %g "$PFS/owner-$name")" 5
done
! find "$PFS" -maxdepth 1 -name "*eddy-conflict*" | grep . || fail "something was put beside a file"
