#!/usr/bin/env bash
# Files whose latest bytes are on a node that left: eddy status names them with node and time, opens
# give EIO, other files of the directory do not care. eddy forget FILE releases one: the others read
# and write what the PFS has; when the node is back, what it had is beside the file, and the file
# that was not forgotten is complete. eddy forget --node releases all of a node, and its locks.
# timeout: 400
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

W_PLUS_T_PIECE=35

for n in a b; do start_node "$n" "$PFS" --flush-wait 3600; done
mkdir "$W/mnt-a/d"
for name in kept gone flushed; do echo "old $name" >"$W/mnt-a/d/$name"; done
eddy flush "$W/mnt-a"
for name in kept gone; do echo "new $name" >"$W/mnt-a/d/$name"; done
listed() { eddy check "$PFS" >"$W/check.out" 2>&1 || true; grep -q 'd/gone: only on node a' "$W/check.out"; }
wait_for 10 listed || fail "eddy check does not name what is unflushed: $(cat "$W/check.out")"

says_eio() { # COMMAND...
    ! LC_ALL=C timeout 60 "$@" 2>"$W/said" >/dev/null && grep -q 'Input/output error' "$W/said"
}
lost_files() { status_of b '[.lost_files[] | .node + ":" + .path] | sort | join(" ")'; }
names() { [ "$(lost_files)" = "$1" ]; }
check_equal "lost files while all live" "$(lost_files)" ""
code=0
eddy forget "$W/mnt-b/d/gone" >"$W/forget.out" 2>&1 || code=$?
check_equal "forgetting what is not lost" "$code" 1
grep -q 'in the session: it is not lost' "$W/forget.out" || fail "it says $(cat "$W/forget.out")"
crash_node a
wait_for 60 says_eio cat "$W/mnt-b/d/gone" || fail "a lost file: $(cat "$W/said")"
wait_for 10 names "a:d/gone a:d/kept" || fail "status names $(lost_files)"
since=$(status_of b '.lost_files[0].since')
now=$(date +%s)
[ $((now - since)) -ge 0 ] && [ $((now - since)) -lt 120 ] || fail "since $since, now $now"
eddy status "$W/mnt-b" | grep -q 'd/gone: node a, since 20' || fail "eddy status: $(eddy status "$W/mnt-b")"
check_equal "its neighbour" "$(cat "$W/mnt-b/d/flushed")" "old flushed"

start=$SECONDS
eddy forget "$W/mnt-b/d/gone" || fail "eddy forget ended with $?"
[ $((SECONDS - start)) -ge $((W_PLUS_T_PIECE - 1)) ] || fail "it did not wait for a node that may be writing"
check_equal "forgotten: as on the PFS" "$(cat "$W/mnt-b/d/gone")" "old gone"
says_eio cat "$W/mnt-b/d/kept" || fail "what was not forgotten is readable"
wait_for 10 names "a:d/kept" || fail "after forget status names $(lost_files)"
echo "newer gone" >"$W/mnt-b/d/gone"
eddy flush "$W/mnt-b"

start_node a "$PFS" --flush-wait 3600
back() { [ "$(cat "$W/mnt-b/d/kept" 2>/dev/null)" = "new kept" ]; }
wait_for 60 back || fail "the file that was not forgotten is not back"
check_equal "lost files after the return" "$(lost_files)" ""
check_equal "forgotten, on its return, on a" "$(cat "$W/mnt-a/d/gone")" "newer gone"
check_equal "beside it" "$(cat "$PFS/d/gone.eddy-conflict-a")" "new gone"
eddy flush "$W/mnt-a"
check_equal "on the PFS" "$(cat "$PFS/d/gone" "$PFS/d/kept")" "newer gone
new kept"
check_equal "marks that are left" "$(find "$PFS"/.eddyfs-*/test/forgotten -type f)" ""

# All of a node, with a lock of its own. Its next death.
echo "third kept" >"$W/mnt-a/d/kept"
exec 5>>"$W/mnt-a/d/flushed"
flock 5
crash_node a
exec 5>&-
wait_for 60 says_eio cat "$W/mnt-b/d/kept" || fail "lost again: $(cat "$W/said")"
says_eio flock "$W/mnt-b/d/flushed" true || fail "a dead node's lock is free"
eddy forget --node a "$W/mnt-b" || fail "eddy forget --node ended with $?"
check_equal "absent nodes" "$(status_of b '.absent | length')" 0
check_equal "all forgotten" "$(timeout 40 cat "$W/mnt-b/d/kept")" "new kept"
timeout 40 flock "$W/mnt-b/d/flushed" true || fail "the lock of a node that was forgotten holds"
code=0
eddy forget --node a "$W/mnt-b" 2>/dev/null || code=$?
check_equal "forgetting it again" "$code" 1
start_node a "$PFS" --flush-wait 3600
check_equal "after its return" "$(cat "$W/mnt-a/d/kept")" "new kept"
check_equal "beside it" "$(cat "$PFS/d/kept.eddy-conflict-a")" "third kept"
stop_node a
stop_node b
check_equal "at the end" "$(cat "$PFS/d/kept")" "new kept"
