#!/usr/bin/env bash
# Of a node that is away, an operator forgets one file. When the node comes back, the PFS has no room to put beside it what was
# written there: the node starts all the same, its other files are served and flushed, the log names the file and the reason, and
# when there is room it is put beside.
# timeout: 240
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
for n in a b; do start_faultfs $n; done
start_node a "$W/pfs-a" --flush-wait 3600
start_node b "$W/pfs-b" --flush-wait 3600 --wait-nodes 2
echo forgotten >"$W/mnt-a/f"
echo other >"$W/mnt-a/g"
kill_node a
absent() { [ "$(status_of b '.absent | length')" = 1 ]; }
wait_for 60 absent || fail "a is not absent"
eddy forget "$W/mnt-b/f" || fail "eddy forget ended with $?"
full=$(tell_faultfs a error EDQUOT create,open "path=*part*")
start_node a "$W/pfs-a" --flush-wait 3600
grep -q "f: was forgotten by an operator.*cannot be put beside it: Disk quota exceeded" "$W/a.log" || fail "the log does not say so"
check_equal "another file" "$(cat "$W/mnt-a/g")" other
! cat "$W/mnt-a/f" 2>/dev/null || fail "what was forgotten is served"
code=0
eddy flush "$W/mnt-a" >"$W/said" 2>&1 || code=$?
check_equal "code of eddy flush" "$code" 3
grep -q "^f: " "$W/said" || fail "eddy flush does not name it: $(cat "$W/said")"
check_equal "another file on the PFS" "$(cat "$PFS/g")" other
tell_faultfs a clear "$full"
eddy flush --retry "$W/mnt-a" || true # it counts as one that is not in its file
beside() { [ "$(cat "$PFS/f.eddy-conflict-a" 2>/dev/null)" = forgotten ]; }
wait_for 60 beside || fail "it is not put beside: $(ls "$PFS")"
check_equal "the file itself" "$(cat "$W/mnt-a/f")" ""
stop_node a
stop_node b
