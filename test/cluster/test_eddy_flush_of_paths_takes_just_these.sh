#!/usr/bin/env bash
# eddy flush PATH...: just these files, and those below these directories, are on the PFS afterwards, on whichever node
# their latest bytes were; all others stay dirty. What cannot be done is named with its reason: 5, or 1 if it is all of it;
# a time-out is 124, an interrupt 130, and both leave everything as it was.
# timeout: 300
# both-long
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3 cmd ss
HERE=$(dirname "$SCRIPT")

for node in a b c; do
    start_faultfs "$node"
    start_node "$node" "$W/pfs-$node" --flush-wait 3600 --attr-timeout 0
done
A=$W/mnt-a B=$W/mnt-b

# flush CODE ARGUMENT...: on node a; what it says is in $W/said (standard output) and $W/complained.
flush() {
    local expected=$1 code=0
    shift
    timeout 100 "$EDDY_BUILD/eddy" flush "$@" >"$W/said" 2>"$W/complained" || code=$?
    check_equal "code of eddy flush $* ($(cat "$W/said" "$W/complained"))" "$code" "$expected"
}
says() {
    grep -qF -- "$1" "$W/said" || fail "$1 is not said: $(cat "$W/said" "$W/complained")"
}
same() { # PATH: the PFS has what node c reads
    cmp -s "$W/mnt-c/$1" "$PFS/$1"
}
is_flushed() {
    for path in "$@"; do
        same "$path" || fail "$path is not on the PFS: $(ls -l "$PFS/$path")"
    done
}
is_dirty() {
    for path in "$@"; do
        check_equal "size of $path on the PFS" "$(stat -c %s "$PFS/$path")" 0
    done
}
make() { # FILE...
    for file in "$@"; do
        head -c 300001 /dev/urandom >"$file"
    done
}

# --- Files and directories of this node ---

mkdir -p "$A/dir/sub/deep" "$A/other"
make "$A/one" "$A/two" "$A/dir/one" "$A/dir/sub/two" "$A/dir/sub/deep/three" "$A/other/one"
strange=$'a\nname with \\ and \xff'
make "$A/$strange"
cd "$A/other" || exit
flush 0 --wait ../one ../dir
cd "$W" || exit
is_flushed one dir/one dir/sub/two dir/sub/deep/three
is_dirty two other/one "$strange"
flush 0 --wait "$A/one" "$A/dir" # nothing to do
flush 0 --wait "$A/$strange"
is_flushed "$strange"
is_dirty two other/one

# --- Files of another node ---

mkdir "$A/shared"
make "$B/shared/of_b" "$B/shared/of_b_too" "$A/shared/of_a" "$B/theirs"
flush 0 --wait "$A/shared/of_b"
is_flushed shared/of_b
is_dirty shared/of_b_too shared/of_a theirs
flush 0 --wait "$A/shared"
is_flushed shared/of_b_too shared/of_a
is_dirty theirs two

# A file of which all nodes have parts: its claimant asks the others.
python3 "$HERE/shared_file.py" --name all --piece 1048576 --pieces 6 "$A" "$B" "$W/mnt-c" || fail "all nodes write one file"
flush 0 --wait "$A/all"
python3 "$HERE/shared_file.py" --name all --piece 1048576 --pieces 6 --pfs "$PFS/all" x x x || fail "not all of it is on the PFS"

# Without --wait it returns while the PFS hangs, and all is there when the PFS goes on.
make "$B/later" "$A/later_too"
hang_b=$(tell_faultfs b hang write) hang_a=$(tell_faultfs a hang write)
flush 0 "$A/later" "$A/later_too"
says "2 files"
wait_for 30 fault_waits b "$hang_b" || fail "the other node was not asked"
wait_for 30 fault_waits a "$hang_a" || fail "this node has not begun"
is_dirty later later_too
tell_faultfs b clear
tell_faultfs a clear
wait_for 30 same later || fail "the other node has not flushed it"
wait_for 30 same later_too || fail "this node has not flushed it"

# --- Links ---

mkdir "$A/links" "$A/aside" "$W/outside"
make "$A/aside/one" "$A/links/own"
ln -s ../aside "$A/links/in"
ln -s "$A/links/own" "$A/links/self"
ln -s "$W/outside" "$A/links/out"
ln -s nothing "$A/links/broken"
ln -s . "$A/links/loop"
flush 0 --wait "$A/links"
is_flushed aside/one links/own
says "$A/links/out: skipped: is a link that leads out of the mount"
says "$A/links/broken: skipped: No such file or directory"
check_equal "lines of what is skipped" "$(wc -l <"$W/said")" 2

# --- What cannot be done ---

make "$A/good"
flush 5 --wait "$A/good" "$A/missing" "$W/outside" "$B/theirs"
is_flushed good
is_dirty theirs
says "$A/missing: No such file or directory"
says "$W/outside: is in no eddyfs of yours"
says "$B/theirs: is in another mount ($B)"
flush 1 --wait "$A/missing"
flush 1 --wait "$W/outside"
flush 1 --wait "$W/nowhere/missing"
says "$W/nowhere/missing: No such file or directory"
flush 2
flush 2 --timeout soon "$A/good"
flush 2 --retry "$A/good" "$A/two"

mkdir "$A/part"
make "$A/part/good" "$A/part/full" "$B/part/theirs" "$B/part/denied"
tell_faultfs a error ENOSPC write path=part/full >/dev/null
tell_faultfs b error EDQUOT write path=part/denied >/dev/null
flush 5 --wait "$A/part"
is_flushed part/good part/theirs
says "$A/part/full: No space left on device"
says "$A/part/denied: node b: Disk quota exceeded"
check_equal "paths with a reason" "$(wc -l <"$W/said")" 2
flush 5 --wait --json "$A/part" "$A/missing"
check_equal "failed, as JSON" "$(jq -r '.failed | map(.path + ": " + .reason) | sort | join("; ")' "$W/said")" \
    "$A/missing: No such file or directory; $A/part/denied: node b: Disk quota exceeded; $A/part/full: No space left on device"
check_equal "the rest, as JSON" "$(jq -c '[.code, .waited, .files, .mountpoint]' "$W/said")" "[5,true,2,\"$A\"]"
flush 1 --wait "$A/part/full"
tell_faultfs a clear
tell_faultfs b clear
flush 0 --wait --json "$A/part"
check_equal "nothing failed, as JSON" "$(jq -c '[.code, .failed, .skipped]' "$W/said")" '[0,[],[]]'
is_flushed part/full part/denied

# --- A PFS that hangs ---

mkdir "$A/slow"
for name in 1 2 3 4 5 6 7 8 9 10 11 12; do
    make "$A/slow/$name"
done
hang=$(tell_faultfs a hang write path='slow/*')
flush 124 --timeout 1 "$A/slow"
grep -q "the time is over" "$W/complained" || fail "the time-out is not told: $(cat "$W/complained")"
wait_for 30 fault_waits a "$hang" || fail "nothing is written"
if command -v script >/dev/null; then
    code=0
    script -qec "$EDDY_BUILD/eddy flush --timeout 2 $A/slow" /dev/null >"$W/terminal" </dev/null || code=$?
    check_equal "code on a terminal" "$code" 124
    grep -q 'flushing: .* of .* MiB' "$W/terminal" || fail "no progress line: $(cat -v "$W/terminal")"
fi
env --default-signal=INT "$EDDY_BUILD/eddy" flush --wait "$A/slow" >"$W/said" 2>"$W/complained" &
job=$!
record_process "$W" "$job"
listens() { # the daemon has it
    grep -q 'SigCgt:.*[2367abef]$' "/proc/$job/status" && [ "$(find "/proc/$job/fd" -lname "socket:*" 2>/dev/null | wc -l)" -gt 0 ]
}
wait_for 30 listens || fail "eddy flush does not ask"
kill -INT "$job"
code=0
wait "$job" || code=$?
check_equal "code of an interrupted flush" "$code" 130
grep -q "interrupted" "$W/complained" || fail "the interrupt is not told: $(cat "$W/complained")"
nobody_asks() { # the daemon has noticed; it closes what has ended at the next request, which is this one
    status_of a .flush.state >/dev/null
    [ "$(ss -xpH state connected | grep "/control " | grep -c "pid=${NODE_PID[a]},")" -le 1 ]
}
wait_for 30 nobody_asks || fail "the daemon waits for an eddy that has ended"
# Nobody waits any more: of the twelve files those that were begun, eight at once, are flushed, and no other one is begun.
make "$A/last"
"$EDDY_BUILD/eddy" flush --wait "$A/last" >"$W/said" 2>&1 &
job=$!
record_process "$W" "$job"
tell_faultfs a clear
wait "$job" || fail "a flush after an interrupted one: $(cat "$W/said")"
eight_are_flushed() {
    same last && [ "$(find "$PFS/slow" -type f -size +0 | wc -l)" = 8 ]
}
wait_for 30 eight_are_flushed || fail "after an interrupt: $(ls -l "$PFS/slow")"
is_dirty two other/one
flush 0 --wait "$A/slow"
for name in 1 2 3 4 5 6 7 8 9 10 11 12; do
    is_flushed "slow/$name"
done
is_dirty two other/one theirs

# --- A node that left ---

crash_node b
says_who() {
    local code=0
    timeout 100 "$EDDY_BUILD/eddy" flush --wait "$A/good" "$A/theirs" >"$W/said" 2>&1 || code=$?
    [ "$code" = 5 ] && grep -qF "$A/theirs: its latest bytes are on node b, which has left" "$W/said"
}
wait_for 90 says_who || fail "the node that left is not named: $(cat "$W/said")"
fusermount3 -uz "$B"
start_node b "$W/pfs-b" --flush-wait 3600 --attr-timeout 0
flush 0 --wait "$A/theirs" # the node that is back has flushed it, or does now
is_flushed theirs

flush 0 --json "$A"
check_equal "a mount, as JSON" "$(jq -c '[.code, .failed, .waited]' "$W/said")" '[0,[],true]'
is_flushed two other/one

for node in a b c; do
    stop_node "$node"
done
[ "$(stat -c %s "$PFS/two")" = 300001 ] || fail "the rest is not on the PFS at the end"
