#!/usr/bin/env bash
# A node that was killed and is back writes without a wait for leases, when nobody else can have one:
# its own earlier life is over, however often that happened. If another node was left out meanwhile, it waits
# for that one's lease, or until that one is back, too.
# timeout: 300
. "$(dirname "$0")/lib.sh"
requires fuse
slow=(--lease 60 --open-wait 150) # who waits, waits 75 s
start_faultfs a
start_node a "$W/pfs-a" "${slow[@]}"
for i in {1..18}; do # more than there are views in the session directory
    echo "$i" >"$W/mnt-a/file"
    crash_node a
    start_node a "$W/pfs-a" "${slow[@]}"
    # another file: of that one it has the claim
    timeout 45 bash -c "echo again $i >'$W/mnt-a/again$i'" || fail "the first write after a death waits"
done

start_faultfs b
start_node b "$W/pfs-b" "${slow[@]}"
timeout 45 bash -c "echo of b >'$W/mnt-b/b'" || fail "a node that comes to a settled view waits"
crash_node b
wait_for 60 grep -q "1 nodes, 1 absent" "$W/a.log" || fail "the view without b is not made"
crash_node a
start_node a "$W/pfs-a" "${slow[@]}"
code=0
timeout 20 bash -c "echo new >'$W/mnt-a/other'" || code=$?
check_equal "code of a write while the other node may still have a lease" "$code" 124
start_node b "$W/pfs-b" "${slow[@]}"
timeout 45 bash -c "echo new >'$W/mnt-a/other'" || fail "all are back, and it still waits"
stop_node a
stop_node b
check_equal "on the PFS" "$(cat "$PFS/file" "$PFS/again18" "$PFS/b" "$PFS/other")" "18
again 18
of b
new"
