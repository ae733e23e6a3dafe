#!/usr/bin/env bash
# A directory is staged and pinned, spread over two nodes, and read through a queue on one: what that node owns stays, though its
# reader has told that it has read it; what it has brought from the other node for this reader may leave.
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
MIB=1048576
A=$W/mnt-a

mkdir "$PFS/tree"
for i in 1 2 3 4; do head -c $((8 * MIB)) /dev/urandom >"$PFS/tree/$i"; done
for i in $(seq 24); do head -c $((8 * MIB)) /dev/urandom >"$PFS/other$i"; done
for node in a b; do start_node "$node" "$PFS" --cache-size 96M; done
has_both() { [ "$(status_of a '.members | length')" = 2 ]; }
wait_for 20 has_both || fail "the nodes do not find each other"

here() { # HOW: bytes of the tree, as --check says
    "$EDDY_BUILD/eddy" stage --check "$1" --json "$A/tree" | jq .here
}
read_hinted() { # FILE...: on a, when all of them are ahead of their reader
    local n=$# hint
    in_background "$EDDY_BUILD/eddy" hint "$@"
    hint=$!
    are_hinted() { [ "$(status_of a .hints.ready)" = "$n" ]; }
    wait_for 30 are_hinted || fail "what is hinted does not come: $(status_of a .hints)"
    cat "$@" >/dev/null
    wait "$hint" || fail "eddy hint ended with $?"
}

"$EDDY_BUILD/eddy" stage --wait --spread --pin "$A/tree" || fail "the stage ended with $?"
read_hinted "$A"/tree/{1,2,3,4}
check_equal "bytes at a, when its reader has read all" "$(here --here)" $((32 * MIB))
for i in $(seq 2 2 24); do read_hinted "$A/other$((i - 1))" "$A/other$i"; done
check_equal "bytes at their owners, after others were read" "$(here --spread)" $((32 * MIB))
[ "$(here --here)" -lt $((32 * MIB)) ] || fail "what a has brought from b stays for ever"
stop_node a
stop_node b
