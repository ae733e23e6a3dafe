#!/usr/bin/env bash
# Node b has borrowed parts of a file and dies. "eddy flush" and "eddy umount" of its claimant, node a, do not say that all is on the
# PFS: they name the file, and end with 3. When both caches have been recovered, all is there, and a new session reads it.
# timeout: 240
# both-long
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3
start() {
    start_node "$1" "$PFS" --flush-wait 3600 "${@:2}"
}
start a
start b --wait-nodes 2
start_ranks shared "a=$W/mnt-a" "b=$W/mnt-b" "c=$W/mnt-c" "pfs=$PFS"
rank open a
rank open b
rank write a 0 4 1
rank write b 4 100 1
kill_node b
rank close a
for what in "" --json; do
    code=0
    "$EDDY_BUILD/eddy" flush $what "$W/mnt-a" >"$W/said" 2>&1 || code=$?
    check_equal "code of eddy flush $what" "$code" 3
    tr -d '\n' <"$W/said" | grep -q "shared.*node b has borrowed parts of it" || fail "eddy flush $what does not name the file: $(cat "$W/said")"
done
stop_node a 3 >"$W/said"
grep -q "^shared: .*another node has borrowed parts of it" "$W/said" || fail "it does not name the file: $(cat "$W/said")"
code=0
"$EDDY_BUILD/eddy" recover --list "$W/cache-a" >"$W/said" 2>&1 || code=$?
check_equal "code of eddy recover --list" "$code" 3
grep -q "^shared: .*another node has borrowed parts of it" "$W/said" || fail "--list does not name the file: $(cat "$W/said")"
"$EDDY_BUILD/eddy" recover "$W/cache-b" || fail "eddy recover of b"
"$EDDY_BUILD/eddy" recover "$W/cache-a" || fail "eddy recover of a"
rank open pfs
rank check pfs 0 104 1
start c
rank open c
rank check c 0 104 1
rank close c
stop_node c
