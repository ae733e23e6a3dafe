#!/usr/bin/env bash
# Ten thousand rounds of close-to-open: what one node wrote and closed is what another one opens, stats and reads, flushed or not.
# timeout: 3000
# long
. "$(dirname "$0")/lib.sh"
requires fuse
ROUNDS=${ROUNDS:-10000}
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a"
start_node b "$W/pfs-b" --wait-nodes 2
"$EDDY_BUILD/test/closetoopen" "$ROUNDS" "$W/mnt-a" "$W/mnt-b" \
    "$EDDY_BUILD/eddy flush $W/mnt-a && $EDDY_BUILD/eddy flush $W/mnt-b"
stop_node a
stop_node b
