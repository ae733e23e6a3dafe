#!/usr/bin/env bash
# Shuffled epochs over twice the cache, with the order told and a reader so slow that the prefetcher has all the time it wants:
# hardly more is read from the PFS than by a cache that knows the future (Belady). What is fetched far ahead would take the room of
# what is here and read later. A hint that somebody waits for is fetched, however far ahead it is, if it fits: though nothing is
# read meanwhile, and though the room has files that are read later.
# timeout: 180
# both-long
. "$(dirname "$0")/lib.sh"
HERE=$(dirname "$0")
requires fuse cmd jq
M=$W/mnt-a
FILES=32 ROOM=16 EPOCHS=4
MIB=1048576

for i in $(seq 0 $((FILES - 1))); do head -c 2M /dev/urandom >"$PFS/file$i"; done
start_node a "$PFS" --cache-size $((2 * ROOM))M

PYTHONDONTWRITEBYTECODE=1 python3 - "$HERE/../bench/lib" $FILES $ROOM $EPOCHS >"$W/order" <<'EOF' || fail "no order"
import random
import sys
sys.path.insert(0, sys.argv[1])
from belady import misses
files, room, epochs = map(int, sys.argv[2:])
order = [n for epoch in range(epochs) for n in random.Random(epoch).sample(range(files), files)]
print(misses(order, room), *order)
EOF
read -r bound order <"$W/order"
read -ra order <<<"$order"

# After each file the prefetcher ends what it does: all that is admitted is ahead.
hints_are_ahead() {
    status_of a '.hints' | jq -e '.admitted > 0 and .admitted == .ahead' >/dev/null
}

hints_left() {
    [ $(($(status_of a .counters.hints) - $(status_of a .counters.hints_consumed))) = "$1" ]
}

in_background "$EDDY_BUILD/eddy" hint "${order[@]/#/$M/file}"
hint=$!
left=${#order[@]}
wait_for 20 hints_left "$left" || fail "nothing is hinted"
for n in "${order[@]}"; do
    wait_for 20 hints_are_ahead || fail "file$n does not come: $(status_of a .hints)"
    cmp "$M/file$n" "$PFS/file$n" || fail "file$n has wrong bytes"
    left=$((left - 1))
    wait_for 20 hints_left "$left" || fail "file$n is not consumed: $(status_of a .hints)"
done
wait "$hint" || fail "eddy hint ended with $?"

read=$(($(status_of a .counters.pfs_read_bytes) / (2 * MIB)))
check_equal "bytes that the reader waited for" "$(status_of a .reads.pfs_bytes)" 0
[ $((100 * read)) -le $((115 * bound)) ] || fail "$read files were read from the PFS, the bound is $bound"

for i in $(seq 0 $((FILES - 1))); do head -c 2M /dev/urandom >"$PFS/next$i"; done
for i in $(seq $ROOM $((FILES - 1))); do cat "$M/next$i" >/dev/null; done # they are here, and read later
PYTHONPATH=$HERE/../../tools/lib EDDY_LIBRARY=$EDDY_BUILD/tools/lib/libeddy.so PYTHONDONTWRITEBYTECODE=1 \
    python3 - "$M" $FILES <<'EOF' || fail "what somebody waits for does not come: $(status_of a .hints)"
import eddy
import sys
with eddy.open(sys.argv[1], start=True, required=True) as queue:
    queue.extend(f"{sys.argv[1]}/next{n}" for n in range(int(sys.argv[2])))
    sys.exit(0 if queue.wait(11, timeout=30) else 1)
EOF
stop_node a
