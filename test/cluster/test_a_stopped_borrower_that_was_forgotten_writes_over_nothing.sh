#!/usr/bin/env bash
# A node that has borrowed parts of a file is stopped, as a virtual machine may be, and forgotten by an operator. Another node
# writes these parts. When the first one goes on, with the same daemon, what it had is put beside the file: at once, before
# it has heard that it was outside of the session, and also when it is a member again.
# timeout: 180
# both-long
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
start_node a "$PFS" --flush-wait 3600 --no-supervise
start_node b "$PFS" --flush-wait 3600 --no-supervise --wait-nodes 2
start_node c "$PFS" --flush-wait 3600 --no-supervise --wait-nodes 3
mkdir "$W/beside"

# goes_on_and NAME COMMAND...: the file's bytes are those of c then, and b's are beside it
goes_on_and() {
    local name=$1
    shift
    start_ranks "$name" "a=$W/mnt-a" "b=$W/mnt-b" "c=$W/mnt-c" "pfs=$PFS" "beside=$W/beside"
    rank open a
    rank open b
    rank write a 0 4 1
    rank write b 4 100 1
    pause "${NODE_PID[b]}"
    wait_for 40 eval '[ "$(status_of c ".absent | length")" = 1 ]' || fail "b is not absent"
    eddy forget --node b "$W/mnt-c" || fail "eddy forget --node"
    rank open c
    rank check c 0 4 1
    rank write c 4 100 2
    for node in c a; do
        eddy flush "$W/mnt-$node" || fail "eddy flush of $node"
    done
    kill -CONT "${NODE_PID[b]}"
    "$@"
    timeout 60 "$EDDY_BUILD/eddy" flush "$W/mnt-b" || fail "eddy flush of b"
    wait_for 30 test -e "$PFS/$name.eddy-conflict-b" || fail "b's data is not put beside the file"
    rank open pfs
    rank check pfs 0 4 1
    rank check pfs 4 100 2
    ln -s "$PFS/$name.eddy-conflict-b" "$W/beside/$name"
    rank open beside
    rank check beside 4 100 1
    stop_ranks
}
goes_on_and at-once true
goes_on_and a-member wait_for 40 eval '[ "$(status_of a ".members | length")" = 3 ]'
for node in c b a; do
    stop_node $node
done
