#!/usr/bin/env bash
# kill -9 while the PFS removes a file that is not flushed, or puts another one in its place: the
# start drops what is gone, umount says 0, and nothing is left beside it. A removal that the
# PFS never did or refused, and one of two names, take no byte.
# timeout: 240
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
start_faultfs a
head -c 300000 /dev/urandom >"$W/one"
head -c 200000 /dev/urandom >"$W/two"

start() { start_node a "$W/pfs-a" --flush end --session-dir "$W/session"; }
files() { (cd "$PFS" && find . -type f | sort | tr '\n' ' '); }
# dies_in OP COMMAND...: the daemon is killed while that operation hangs on the PFS. It is dead
# when the PFS has answered, and does nothing more.
dies_in() {
    local number
    number=$(tell_faultfs a hang "$1")
    shift
    in_background "$@" 2>/dev/null
    wait_for 30 fault_waits a "$number" || fail "$* asks the PFS for nothing"
    kill -KILL "${NODE_PID[a]}"
}
bury() {
    wait "${JOB[node-a]}" 2>/dev/null || true
    unset "NODE_PID[a]"
}
# over NAME WANTED: the mount ends with 0, and the PFS has these files
over() {
    stop_node a
    check_equal "files on the PFS after $1" "$(files)" "$2"
    ! grep -q -e "conflict: " -e "not on the PFS any more" "$W/a.log" ||
        fail "$1: $(grep -e "conflict: " -e "not on the PFS any more" "$W/a.log")"
    rm -f "$PFS"/*
}
gone() { [ ! -e "$1" ]; }
replaced() { [ "$(stat -c %i "$PFS/two" 2>/dev/null)" = "$1" ]; }

start
cp "$W/one" "$W/mnt-a/one"
cp "$W/two" "$W/mnt-a/two"
dies_in unlink rm "$W/mnt-a/one"
tell_faultfs a clear
bury
gone "$PFS/one" || fail "the PFS did not go on with the removal"
start
check_same "$W/two" "$W/mnt-a/two"
over "an unlink" "./two "

start
cp "$W/one" "$W/mnt-a/one"
cp "$W/two" "$W/mnt-a/two"
inode=$(stat -c %i "$PFS/one")
dies_in rename mv "$W/mnt-a/one" "$W/mnt-a/two"
tell_faultfs a clear
bury
replaced "$inode" || fail "the PFS did not go on with the rename"
start
cp "$W/mnt-a/two" "$W/read"
check_same "$W/one" "$W/read"
over "a rename over a file" "./two "

# One of two names
start
cp "$W/one" "$W/mnt-a/one"
ln "$W/mnt-a/one" "$W/mnt-a/same"
dies_in unlink rm "$W/mnt-a/one"
tell_faultfs a clear
bury
gone "$PFS/one" || fail "the PFS did not go on with the removal"
start
stop_node a
check_same "$W/one" "$PFS/same"
rm "$PFS/same"

# Refused, then removed behind the cache's back: nobody wanted that, and the data is kept
start
cp "$W/one" "$W/mnt-a/one"
tell_faultfs a error EACCES unlink
! rm "$W/mnt-a/one" 2>/dev/null || fail "rm succeeds though the PFS refuses"
tell_faultfs a clear
crash_node a
mv "$PFS/one" "$W/away"
start
code=0
eddy umount "$W/mnt-a" >"$W/listed" || code=$?
check_equal "code of eddy umount" "$code" 3
check_equal "files that are kept" "$(sed 's/: .*//' "$W/listed")" one
mv "$W/away" "$PFS/one"
start
stop_node a
check_same "$W/one" "$PFS/one"

# Never done: the PFS's client died with it
start
cp "$W/two" "$W/mnt-a/two"
dies_in unlink rm "$W/mnt-a/two"
kill -KILL "${FAULTFS_PID[a]}"
bury
fusermount3 -uz "$W/pfs-a"
rm -f "$W/pfs-a.control"
start_faultfs a
start
stop_node a
check_same "$W/two" "$PFS/two"
