#!/usr/bin/env bash
# Nodes a and b write parts of one file and die.  "eddy recover --to" of each cache has all that this node wrote, holes for the
# rest, and says so.  When an operator has forgotten the file, and c has written it anew, a puts beside it all that it wrote, and
# so does b, which comes back last: nothing of b gets into the file, though a has settled its claim before.
# timeout: 400
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
start_abc
start_ranks shared "a=$W/mnt-a" "b=$W/mnt-b" "c=$W/mnt-c"
for n in a b; do rank open $n; done
rank write a 0 4 1
rank write b 4 12 1
check_equal "files of which b has borrowed parts" "$(status_of b .loans.borrowed_files)" 1
rank close a
rank close b
for n in a b; do kill_node $n; done

has() { # FILE FIRST COUNT: these pieces of 64 KiB are those that were written, and all others are zeros
    python3 - "$1" "$2" "$3" "$(dirname "$SCRIPT")" <<'P'
import sys
sys.path.insert(0, sys.argv[4])
from ranks import PIECE, bytes_of
first, count = int(sys.argv[2]), int(sys.argv[3])
data = open(sys.argv[1], "rb").read()
for n in range(len(data) // PIECE):
    want = bytes_of(1, n) if first <= n < first + count else bytes(PIECE)
    if data[n * PIECE:(n + 1) * PIECE] != want:
        sys.exit(f"{sys.argv[1]}: piece {n} of {len(data) // PIECE} is wrong")
if len(data) < (first + count) * PIECE:
    sys.exit(f"{sys.argv[1]}: has only {len(data)} bytes")
P
}

recover_to() { # NODE FIRST COUNT
    local code=0 made=$W/to-$1/shared.eddy-incomplete-$1
    mkdir "$W/to-$1"
    "$EDDY_BUILD/eddy" recover --to "$W/to-$1" "$W/cache-$1" >"$W/said" 2>&1 || code=$?
    check_equal "code of eddy recover --to of $1" "$code" 3
    grep -q "^shared: .*other nodes have parts of it" "$W/said" || fail "it does not say that parts are missing: $(cat "$W/said")"
    has "$made" "$2" "$3" || fail "eddy recover --to of $1"
}
recover_to a 0 4
recover_to b 4 12

absent() { [ "$(status_of c '.absent | length')" = 2 ]; }
wait_for 60 absent || fail "a and b are not absent"
eddy forget "$W/mnt-c/shared" || fail "eddy forget ended with $?"
rank open c
rank write c 6 4 7
eddy flush "$W/mnt-c"
cp "$PFS/shared" "$W/of-c"
start_one a
start_one b
eddy flush "$W/mnt-b" || true # 3, or not, as what it had is void
for n in a b; do
    beside() { [ -f "$PFS/shared.eddy-conflict-$n" ]; }
    wait_for 60 beside || fail "$n puts nothing beside"
done
has "$PFS/shared.eddy-conflict-a" 0 4 || fail "beside, of a"
has "$PFS/shared.eddy-conflict-b" 4 12 || fail "beside, of b"
grep -q "conflict: shared.eddy-conflict-a: .*only what is on this node" "$W/a.log" || fail "a does not say that parts are missing"
rank check c 6 4 7
cmp "$W/of-c" "$PFS/shared" || fail "b has written into the file that was forgotten"
rank close c
for n in a b c; do stop_node $n; done
cmp "$W/of-c" "$PFS/shared" || fail "at the end the file is not as c wrote it"
