#!/usr/bin/env bash
# Forward and backward, as with checkpoints: the files are hinted before they are written (under a temporary name, and renamed),
# in an order in which the age alone would keep the wrong ones, and over a PFS so slow that the first ones have to go before the last
# ones can: then the next ones are fetched, and the farthest ones given up. None of the writers waits for a hint; each file is fetched
# at most once, and comes from the store when it is read. Those that are removed, or never made, hold up nothing.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
M=$W/mnt-a
FILES=24
MIB=1048576

head -c 4M /dev/urandom >"$W/bytes"
start_faultfs a --bandwidth 30000000
start_node a "$W/pfs-a" --cache-size 64M --flush immediate

write_one() { # NAME
    { echo "$1"; cat "$W/bytes"; } >"$M/.$1.tmp"
    mv "$M/.$1.tmp" "$M/$1"
}

hints_left() {
    [ $(($(status_of a .counters.hints) - $(status_of a .counters.hints_consumed))) = "$1" ]
}

next_is_here() {
    [ "$(status_of a .hints.ready)" -ge 1 ]
}

all_are_told() {
    [ "$(status_of a .hints.hints)" = "$1" ]
}

names=()
for i in $(seq -w $FILES); do names+=("ckpt$i"); done
# ckpt00 is never made, and ckpt0x is removed before it is read.
"$EDDY_BUILD/eddy" hint "$M/ckpt00" "${names[@]/#/$M/}" "$M/removed" "$M/there" &
hint=$!
record_process "$W" "$hint"
wait_for 20 all_are_told $((FILES + 3)) || fail "hints are not told: $(status_of a .hints)"

for name in "${names[@]}" removed there; do write_one "$name"; done
rm "$M/removed"
eddy flush "$M"

left=$((FILES + 3))
for name in "${names[@]}"; do
    wait_for 20 next_is_here || fail "$name is not here: $(status_of a .hints)"
    { echo "$name"; cat "$W/bytes"; } | cmp "$M/$name" - || fail "$name has wrong bytes"
    left=$((left - 1))
    wait_for 20 hints_left "$left" || fail "$name is not consumed: $(status_of a .hints)"
done
check_equal "bytes read from the PFS by the reader" "$(status_of a .reads.pfs_bytes)" 0
# Of the cache's 64 MiB the half at least was kept from the beginning on: the nearest hints' files.
fetched=$(status_of a .counters.prefetched_bytes)
[ "$fetched" -gt 0 ] || fail "nothing had to be fetched: the test shows nothing"
[ "$fetched" -le $(((FILES + 1 - 8) * 4 * MIB)) ] || fail "$fetched bytes were fetched: what was read next had not been kept"
cat "$M/there" >/dev/null
kill -TERM "$hint"
wait "$hint" || true
stop_node a
