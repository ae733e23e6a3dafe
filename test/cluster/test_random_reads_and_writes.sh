#!/usr/bin/env bash
# A random reader and writer against a plain file: on one node, with flushes and eviction in between, and from two nodes
# with close-to-open between turns; at the end the PFS has the same bytes.  (More operations on one node: test_one_node.sh.)
# timeout: 600
# both
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse
N=${OPERATIONS:-$(many 8000 3000)}
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a" --flush-wait 0 --cache-size 24M
"$EDDY_BUILD/test/fsrand" --ops "$N" "$W/mnt-a/one" "$W/shadow1"
start_node b "$W/pfs-b" --flush-wait 0.05 --wait-nodes 2
"$EDDY_BUILD/test/fsrand" --ops $((N / 4)) "$W/mnt-a/two" "$W/shadow2" "$W/mnt-b/two"
stop_node b
stop_node a
check_same "$PFS/one" "$W/shadow1"
check_same "$PFS/two" "$W/shadow2"
