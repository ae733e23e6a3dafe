#!/usr/bin/env bash
# A writer needs the room of what is being staged: it gets it, and the stage ends all the same, with each file brought.
# timeout: 200
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
MIB=1048576
A=$W/mnt-a

mkdir "$PFS/staged"
for i in $(seq 12); do head -c $((4 * MIB)) /dev/urandom >"$PFS/staged/$i"; done
start_faultfs a --bandwidth $((60 * MIB))
start_node a "$W/pfs-a" --cache-size 64M --flush-wait 1
id=$("$EDDY_BUILD/eddy" stage --here "$A/staged")
for i in $(seq 40); do
    head -c $((4 * MIB)) /dev/zero >"$A/written-$i" || fail "the writer fails at $i"
done
has_ended() {
    "$EDDY_BUILD/eddy" stage --status "$id" | grep -q ": ended: 48.0 MiB of 48.0 MiB, 12 files, 0 failed"
}
wait_for 100 has_ended || fail "it does not end: $("$EDDY_BUILD/eddy" stage --status "$id") $(status_of a .hints)"
diff -r "$A/staged" "$PFS/staged" || fail "a has wrong bytes"
stop_node a
