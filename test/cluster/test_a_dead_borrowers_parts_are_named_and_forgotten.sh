#!/usr/bin/env bash
# A node that has borrowed parts of a file is dead. Tools name the file, the node and where the parts are; `eddy recover` on that
# node's cache completes the file. Or an operator forgets the node: then all of the file can be read and written again, and what
# the node had is put beside the file when it is back.
# timeout: 180
# both-long
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
start() {
    start_node "$1" "$PFS" --flush-wait 3600 "${@:2}"
}
start a
start b --wait-nodes 2
start c --wait-nodes 3
start_ranks shared "a=$W/mnt-a" "b=$W/mnt-b" "c=$W/mnt-c" "pfs=$PFS" "beside=$W/beside"
b_dies() { # SEED
    rank open a
    rank open b
    rank write a 0 4 "$1"
    rank write b 4 100 "$1"
    [ "$(status_of b .counters.borrowed_bytes)" -gt 1000000 ] || fail "b has not written into what it has borrowed"
    wait_for 10 names b || fail "eddy check names no parts that are on node b alone"
    kill_node b
    wait_for 30 eval '[ "$(status_of c ".absent | length")" = 1 ]' || fail "b is not absent"
}
names() {
    { "$EDDY_BUILD/eddy" check "$PFS" 2>/dev/null || true; } | grep -q "^shared: only on node $1 "
}

b_dies 1
names b || fail "eddy check names the file no more"
parts=$(eddy status --json "$W/mnt-a" | jq -c '.loans.list[] | [.path, .node, .lent, .begin >= 262144, .end > 1000000]')
check_equal "what is lent" "$parts" '["shared","b",true,true,true]'
rank check a 0 4 1
[ "$(stat -c %s "$W/mnt-c/shared" 2>&1 | grep -c 'Input/output error')" = 1 ] || fail "c is told a size that only b knows"
wait_for 10 grep -q "shared: node b has borrowed parts of it ([0-9]* bytes between [0-9]* and [0-9]*)" "$W/a.log" ||
    fail "the log does not name the parts"
eddy recover "$W/cache-b" || fail "eddy recover"
rank open c
rank check c 0 104 1
rank close a
eddy flush "$W/mnt-a" || fail "eddy flush of a"
rank open pfs
rank check pfs 0 104 1
! names b || fail "eddy check names a file that is complete"

start b
rank close c
rm "$W/mnt-a/shared"
b_dies 2
code=0
"$EDDY_BUILD/eddy" forget "$W/mnt-c/shared" 2>"$W/forget.out" || code=$?
check_equal "code of eddy forget of a file whose claimant runs" "$code" 1
grep -q -- --node "$W/forget.out" || fail "it does not say how: $(cat "$W/forget.out")"
eddy forget --node b "$W/mnt-c" || fail "eddy forget --node"
rank open c
rank check c 0 4 2
check_equal "the size without what was forgotten" "$(stat -c %s "$W/mnt-c/shared")" 262144
check_equal "what is lent" "$(status_of a .loans.lent_files)" 0
rank write c 4 100 3
start b
timeout 60 "$EDDY_BUILD/eddy" flush "$W/mnt-b" || fail "eddy flush of b"
wait_for 30 test -e "$PFS/shared.eddy-conflict-b" || fail "b's data is not put beside the file"
rank check a 4 100 3
mkdir "$W/beside"
ln -s "$PFS/shared.eddy-conflict-b" "$W/beside/shared"
rank open beside
rank check beside 4 100 2
rank close a
rank close c
for node in c a; do
    eddy flush "$W/mnt-$node" || fail "eddy flush of $node"
done
rank open pfs
rank check pfs 0 4 2
rank check pfs 4 100 3
for node in c b a; do
    stop_node $node
done
