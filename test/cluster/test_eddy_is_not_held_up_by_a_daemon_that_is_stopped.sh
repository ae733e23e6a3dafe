#!/usr/bin/env bash
# A daemon that answers nobody (stopped): eddy flush says what it waits for, eddy umount --timeout and
# eddy wait --timeout end, and say that nothing is known.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse

start_node a "$PFS" --no-supervise
echo data >"$W/mnt-a/file"
pause "${NODE_PID[a]}"
eddy flush "$W/mnt-a" >"$W/flush" 2>&1 &
flush=$!
record_process "$W" "$flush"
says() { grep -q "does not answer" "$W/flush"; }
wait_for 20 says || fail "eddy flush says nothing of a daemon that does not answer"

# ends COMMAND...: with 1 (not known), long before the test's own end
ends() {
    local code=0
    timeout 20 "$EDDY_BUILD/eddy" "$@" >"$W/said" 2>&1 || code=$?
    check_equal "code of eddy $1" "$code" 1
    grep -q "does not tell what is not on the PFS" "$W/said" || fail "eddy $1 says $(cat "$W/said")"
}
ends wait --timeout 1 "$W/mnt-a"
ends umount --timeout 1 "$W/mnt-a"
kill -CONT "${NODE_PID[a]}"
code=0
wait "$flush" || code=$?
wait "${JOB[node-a]}" || fail "the daemon ended with $?"
unset "NODE_PID[a]"
check_equal "what was written" "$(cat "$PFS/file")" data
eddy wait "$W/mnt-a" || fail "eddy wait ended with $?"
