#!/usr/bin/env bash
# A member that knows the secret answers with wrong bytes, other chunks, wrong lengths and garbage:
# every byte that is read is right, what it sent is counted, and the log names it once a minute.
# timeout: 180
# sanitize-long
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=protonodes.sh
. "$(dirname "$0")/protonodes.sh"
requires fuse cmd jq
mkdir "$PFS/tree"
for i in $(seq 1 40); do
    head -c $((i * 50021 + 1)) /dev/urandom >"$PFS/tree/$i"
done
PROTO_SESSIONS=$PFS/.eddyfs-$(id -u)

start_node a "$PFS" --cache-size 100M
start_node b "$PFS" --cache-size 100M
PROTO_OPTIONS=(--lie)
up liar
has_three() {
    [ "$(status_of "$1" '.members | length')" = 3 ]
}
for n in a b; do
    wait_for 60 has_three "$n" || fail "$n does not see three members"
done
for n in a b; do
    for i in $(seq 1 40); do
        check_same "$W/mnt-$n/tree/$i" "$PFS/tree/$i"
    done
    # Once more, from what was kept of it.
    for i in $(seq 1 40); do
        check_same "$W/mnt-$n/tree/$i" "$PFS/tree/$i"
    done
done
counter() {
    status_of "$1" ".counters.$2"
}
for n in a b; do
    for c in bad_checksums bad_answers bad_messages; do
        [ "$(counter "$n" $c)" -gt 0 ] || fail "$n counts no $c"
    done
    lines=$(grep -c "node liar: .*: refused" "$W/$n.log")
    minutes=$((SECONDS / 60 + 1))
    [ "$lines" -ge 1 ] && [ "$lines" -le "$minutes" ] ||
        fail "$lines lines about the liar in the log of $n in $minutes minutes"
done
leave liar
for n in a b; do
    stop_node "$n"
done
