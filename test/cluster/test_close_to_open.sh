#!/usr/bin/env bash
# Close-to-open: what one node wrote and closed is what another one opens, stats and reads, flushed or not.
# timeout: 400
# both-long
# sanitize
. "$(dirname "$0")/lib.sh"
requires fuse
ROUNDS=${ROUNDS:-$(many 300 200)}
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a"
start_node b "$W/pfs-b" --wait-nodes 2
"$EDDY_BUILD/test/closetoopen" "$ROUNDS" "$W/mnt-a" "$W/mnt-b" \
    "$EDDY_BUILD/eddy flush $W/mnt-a && $EDDY_BUILD/eddy flush $W/mnt-b"
# and while answers of different ages about the attributes are on their way to the kernel
"$EDDY_BUILD/test/closetoopen" -w 4 "$((ROUNDS / 2))" "$W/mnt-a" "$W/mnt-b"
stop_node a
stop_node b
