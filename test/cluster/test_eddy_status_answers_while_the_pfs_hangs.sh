#!/usr/bin/env bash
# With a PFS that does not answer, and requests waiting for it, eddy status answers within
# 2 s; so it does beside many other connections.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

echo old >"$PFS/file"
start_faultfs a
start_node a "$W/pfs-a" --flush-wait 0.2
stop_faultfs a
in_background timeout 250 cat "$W/mnt-a/file" >"$W/cat.out" 2>&1
reader=$!
in_background timeout 250 "$EDDY_BUILD/eddy" flush "$W/mnt-a" >"$W/flush.out" 2>&1

is_silent() {
    timeout 20 "$EDDY_BUILD/eddy" status --json "$W/mnt-a" >"$W/status.json" ||
        fail "eddy status does not answer"
    jq -e '.pfs_silent_ms > 500' "$W/status.json" >/dev/null
}
wait_for 30 is_silent || fail "status does not tell that the PFS is silent"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    timeout 20 "$EDDY_BUILD/eddy" status "$W/mnt-a" >/dev/null || fail "eddy status does not answer"
done
continue_faultfs a
wait "$reader" || fail "the reader failed"
check_equal "what was read in the end" "$(cat "$W/cat.out")" old
stop_node a
