#!/usr/bin/env bash
# A node that has little room for what it owns, as its cache is full of unflushed data, lets others keep it: after a while the
# session reads nothing from the PFS any more, though that node's cache cannot hold its part. All bytes are right.
# timeout: 300
# both-long
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq free 4000
names=(a b c d)
MIB=1048576
SIZE=112
head -c $((SIZE * MIB)) /dev/urandom >"$PFS/input"
for n in "${names[@]}"; do start_faultfs "$n"; done
for n in "${names[@]}"; do
    start_node "$n" "$W/pfs-$n" --cache-size 64M --flush end --dirty-high 90% --dirty-low 85% --wait-nodes 1 "$@"
done
all_are_members() {
    local n
    for n in "${names[@]}"; do
        [ "$(status_of "$n" '.members | length')" = 4 ] || return 1
    done
}
wait_for 60 all_are_members || fail "not all are members"
pfs_bytes() {
    local n total=0
    for n in "${names[@]}"; do total=$((total + $(stat_of "$n" read_bytes input))); done
    echo "$total"
}
sum_of() { # COUNTER
    local n total=0
    for n in "${names[@]}"; do total=$((total + $(status_of "$n" ".counters.$1 // 0"))); done
    echo "$total"
}
# Past the kernel's page cache, so that the caches of the nodes are what counts.
read_on() {
    dd if="$W/mnt-$1/input" bs=1M iflag=direct status=none | cmp - "$PFS/input" || fail "node $1 reads other bytes"
}

head -c $((48 * MIB)) /dev/zero >"$W/mnt-a/output"
for round in 1 2 3 4; do
    before=$(pfs_bytes)
    for n in b c d; do read_on "$n"; done
    read_bytes=$(($(pfs_bytes) - before))
    echo "round $round: $((read_bytes >> 20)) MiB of the PFS; let go $(sum_of let_go), kept for owners $(sum_of singlets)," \
        "redirects $(sum_of redirects), in vain $(sum_of redirects_in_vain)"
done
status_of a '"a: \(.cache)"'
[ "$read_bytes" -le $((2 * MIB)) ] || fail "the session still reads what it could keep: $read_bytes bytes"
read_on a # the owner itself asks who keeps it
[ $(($(pfs_bytes) - before)) -le $((read_bytes + 2 * MIB)) ] || fail "the owner reads what another node keeps"
# Who keeps it leaves: the owner, which had let it go, serves it again.
stop_node b
for n in c d a; do read_on "$n"; done
for n in a c d; do stop_node "$n"; done
check_same "$PFS/output" <(head -c $((48 * MIB)) /dev/zero)
