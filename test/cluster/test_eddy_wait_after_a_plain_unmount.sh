#!/usr/bin/env bash
# fusermount3 -u returns at once; eddy wait returns 0 when the daemon has written everything
# and ended; a second one returns 0 at once.
# timeout: 120
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse

start_node a "$PFS" --flush-wait 3600
mkdir "$W/source"
for i in $(seq 50); do
    head -c $((i * 20000)) /dev/urandom >"$W/source/$i"
done
cp -r "$W/source" "$W/mnt-a/copy"
fusermount3 -u "$W/mnt-a"
eddy wait "$W/mnt-a"
diff -r "$W/source" "$PFS/copy" || fail "eddy wait came back too early"
eddy wait "$W/mnt-a"
code=0; wait "${JOB[node-a]}" || code=$?
check_equal "code of the daemon" "$code" 0
