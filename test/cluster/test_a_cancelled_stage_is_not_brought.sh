#!/usr/bin/env bash
# A stage is cancelled while it runs: nothing more of it is read from the PFS, what came stays, and who waits for it is told: code 5.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
for i in 1 2 3 4 5 6; do head -c 3000000 /dev/urandom >"$PFS/f$i"; done
start_faultfs a --bandwidth 1000000
A=$W/mnt-a
start_node a "$W/pfs-a"
here() { "$EDDY_BUILD/eddy" stage --check --json "$A"/f? | jq '[.has[].nodes[].bytes] | add // 0'; }
some_are_here() { [ "$(here)" -gt 0 ]; }
hints() { status_of a .hints.hints; }
in_background "$EDDY_BUILD/eddy" stage --wait "$A"/f? >"$W/said" 2>&1
waits=$!
wait_for 60 some_are_here || fail "nothing comes: $(cat "$W/said")"
check_equal "hints while it runs" "$(hints)" 6
"$EDDY_BUILD/eddy" stage --cancel "$A" || fail "eddy stage --cancel ended with $?"
code=0
wait "$waits" || code=$?
check_equal "code of eddy stage --wait" "$code" 5
grep -q "cancelled" "$W/said" || fail "it says $(cat "$W/said")"
no_hints() { [ "$(hints)" = 0 ]; }
wait_for 10 no_hints || fail "there are $(hints) hints"
[ "$(here)" -lt 12000000 ] || fail "$(here) of 18000000 bytes are here: it went on"
check_same "$PFS/f6" "$A/f6"
stop_node a
