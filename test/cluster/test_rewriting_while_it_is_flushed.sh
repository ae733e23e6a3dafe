#!/usr/bin/env bash
# Files that are rewritten while they are being flushed: the PFS has the last contents of every one.
# timeout: 240
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse
FILES=${FILES:-$(many 150 30)}
start_faultfs a --delay-us 500
start_node a "$W/pfs-a" --flush-wait 0
mkdir "$W/model"
for round in $(seq 1 20); do
    for i in $(seq 1 "$FILES"); do
        printf 'file %d round %d %0*d\n' "$i" "$round" $(((i * 37 + round * 211) % 9000 + 1)) "$round" >"$W/mnt-a/f$i"
    done
done
for i in $(seq 1 "$FILES"); do
    printf 'file %d round %d %0*d\n' "$i" 20 $(((i * 37 + 20 * 211) % 9000 + 1)) 20 >"$W/model/f$i"
done
stop_node a
for i in $(seq 1 "$FILES"); do check_same "$PFS/f$i" "$W/model/f$i"; done
