#!/usr/bin/env bash
# Epochs of a training, each in another order, over twice what the cache holds: what was used longest ago is what is needed
# next, so a cache in order of use has a seventh of it. Here a part stays, and it has more than a third; every byte is right.
# An application that goes on to other files then finds them, and not the old ones, in the cache.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
HERE=$(dirname "$SCRIPT")
FILES=500
start_faultfs a
mkdir "$PFS/tree" "$PFS/next"
for n in $(seq "$FILES"); do head -c 65536 /dev/urandom >"$PFS/tree/$n"; done
for n in $(seq 150); do head -c 65536 /dev/urandom >"$PFS/next/$n"; done
for dir in tree next; do (cd "$PFS/$dir" && sha256sum -- *) >"$W/sums-$dir"; done
start_node a "$W/pfs-a" --cache-size 16M --chunk-size 64K --attr-timeout 60

# epoch DIR N: $MISSED is what of 1000 bytes came from the PFS.
epoch() {
    local before size
    before=$(stat_of a read_bytes)
    size=$(($(wc -l <"$W/sums-$1") * 65536))
    python3 "$HERE/epoch.py" "$W/mnt-a/$1" "$W/sums-$1" "$2" >"$W/epoch.out" || fail "epoch $2 of $1"
    MISSED=$((($(stat_of a read_bytes) - before) * 1000 / size))
    echo "$1, epoch $2: $MISSED of 1000 from the PFS"
}
late=0
for n in $(seq 12); do
    epoch tree "$n"
    [ "$n" -le 4 ] || late=$((late + MISSED))
done
[ $((late / 8)) -le 640 ] || fail "$((late / 8)) of 1000 bytes came from the PFS in epochs 5 to 12"
[ "$(status_of a .cache.used)" -le $((16 << 20)) ] || fail "the cache is larger than it may be"

for n in $(seq 8); do epoch next "$n"; done
[ "$MISSED" -le 50 ] || fail "$MISSED of 1000 bytes of files that fit come from the PFS at the eighth time"
stop_node a
