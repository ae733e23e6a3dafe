#!/usr/bin/env bash
# Many threads open, map, read, write and close the same files in every way, while they are flushed and evicted: no error that a
# plain disk would not give, nothing but what was written; on one node, and on two. In the end the PFS has what the mounts show.
# timeout: 200
# both
# sanitize-long
# busy
. "$(dirname "$0")/lib.sh"
requires fuse
FILES_MIB=18
start_node a "$PFS" --flush-wait 0 --cache-size 400M
start_node b "$PFS" --flush-wait 0 --cache-size 300M --wait-nodes 2
mkdir "$PFS/one" "$PFS/two"
sleep 1.1 # names made past the mounts are seen after the attribute time-out
echo "--- one node"
"$EDDY_BUILD/test/openstress" "${OPERATIONS:-$(many 1500 200)}" 8 "$W/mnt-a/one" || fail "one node"
echo "--- two nodes"
"$EDDY_BUILD/test/openstress" "${OPERATIONS:-$(many 400 60)}" 8 "$W/mnt-a/two" "$W/mnt-b/two" || fail "two nodes"
sums() { (cd "$1" && sha256sum one/* two/*); }
sums "$W/mnt-a" >"$W/sums-a"
sums "$W/mnt-b" >"$W/sums-b"
diff "$W/sums-a" "$W/sums-b" || fail "the nodes do not see the same bytes"
stop_node a
stop_node b
sums "$PFS" >"$W/sums-pfs"
diff "$W/sums-a" "$W/sums-pfs" || fail "the PFS has other bytes"
[ "$(du -sm "$PFS/one" | cut -f 1)" -ge $((FILES_MIB - 1)) ] || fail "there is too little for this test to show anything"
