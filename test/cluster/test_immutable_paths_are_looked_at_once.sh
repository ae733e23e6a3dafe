#!/usr/bin/env bash
# Below --immutable what was looked at once is not looked at again: not when it changes nevertheless, not while the PFS
# hangs; elsewhere it is. A daemon that is started again looks once more. Who only read them closes them without it.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse
start_faultfs a
mkdir -p "$PFS"/{fixed/sub,also/deep,other,fixed2}
all() { printf '%s\n' fixed/sub also/deep other fixed2; }
for dir in $(all); do
    echo old >"$PFS/$dir/file"
done
sleep 0.1 # their versions are not racy any more
start_a() {
    start_node a "$W/pfs-a" --session-dir "$W/session" --attr-timeout 0.2 \
        --immutable "$W/pfs-a/fixed/" -o immutable=./also//deep
}
start_a
M=$W/mnt-a
look() {
    local dir
    for dir in $(all); do
        cat "$M/$dir/file" >/dev/null
        ls "$M/$dir" >/dev/null
        [ ! -e "$M/$dir/absent" ] || fail "$dir/absent is there"
    done
}
# check WHERE FILE NAMES: what is in the file, and in the directory
check() {
    check_equal "$1/file" "$(cat "$M/$1/file")" "$2"
    check_equal "its size" "$(stat -c %s "$M/$1/file")" "$((${#2} + 1))"
    check_equal "the names in $1" "$(ls -m "$M/$1")" "$3"
}
look
for dir in $(all); do
    echo "newer" >"$PFS/$dir/file"
    echo "here now" >"$PFS/$dir/absent"
done
sleep 0.5 # more than the attribute time-out
check other newer "absent, file"
check fixed2 newer "absent, file"
check fixed/sub old file
check also/deep old file
stop_faultfs a
for dir in fixed/sub also/deep; do
    check $dir old file
    [ ! -e "$M/$dir/absent" ] || fail "$dir/absent was looked for"
done
continue_faultfs a
stop_node a
start_a
for dir in $(all); do
    check "$dir" newer "absent, file"
done
# Closes what it read while the daemon can not answer.
reader() {
    exec 9<"$1"
    cat <&9 >/dev/null
    touch "$W/opened"
    wait_for 60 [ -e "$W/stopped" ] || return
    exec 9<&-
    touch "$W/closed"
}
for dir in fixed/sub other; do
    rm -f "$W"/{opened,stopped,closed}
    in_background reader "$M/$dir/file"
    READER=$!
    wait_for 60 [ -e "$W/opened" ] || fail "$dir/file can not be read"
    pause "${NODE_PID[a]}"
    touch "$W/stopped"
    if [ $dir = other ]; then
        ! wait_for 1 [ -e "$W/closed" ] || fail "the close of $dir/file was not told to the daemon"
    else
        wait_for 60 [ -e "$W/closed" ] || fail "a close below --immutable waits for the daemon"
    fi
    kill -CONT "${NODE_PID[a]}"
    wait $READER
done
stop_node a
