#!/usr/bin/env bash
# All of eight nodes read one chunk at the same time: the PFS is read once, no node sends it more than twice, none gets it more
# than once, and all bytes are right.
# timeout: 180
# alone
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
in_namespaces
requires fuse cmd jq
names=(n1 n2 n3 n4 n5 n6 n7 n8)
MIB=1048576
SLACK=$((MIB / 2)) # pings, looks, acknowledgements
head -c $MIB /dev/urandom >"$PFS/hot"
head -c $MIB /dev/urandom >"$PFS/warm"

for n in "${names[@]}"; do
    add_host "$n"
    start_faultfs "$n"
    start_node "$n" "$W/pfs-$n"
done
all_are_members() {
    local n
    for n in "${names[@]}"; do
        [ "$(status_of "$n" '.members | length')" = 8 ] || return 1
    done
}
wait_for 60 all_are_members || fail "not all are members"

link() { # NAME rx|tx: of this end: rx is what the node sends
    ip -s -j link show dev "$1" | jq ".[0].stats64.$2.bytes"
}
sum_of() { # COUNTER
    local n total=0
    for n in "${names[@]}"; do total=$((total + $(status_of "$n" ".counters.$1"))); done
    echo "$total"
}
pfs_bytes() { # FILE
    local n total=0
    for n in "${names[@]}"; do total=$((total + $(stat_of "$n" read_bytes "$1"))); done
    echo "$total"
}
# All read FILE at once, and compare it with the PFS's.
all_read() {
    local n readers=()
    rm -f "$W/go"
    for n in "${names[@]}"; do
        # shellcheck disable=SC2016 # the inner shell's
        on "$n" bash -c ': >"$4"; until [ -e "$3" ]; do sleep 0.01; done; cmp "$1" "$2"' all_read \
            "$W/mnt-$n/$1" "$PFS/$1" "$W/go" "$W/ready-$n" &
        readers+=($!)
    done
    for n in "${names[@]}"; do wait_for 30 test -e "$W/ready-$n" || fail "$n does not begin"; done
    rm "$W"/ready-*
    : >"$W/go"
    for n in "${readers[@]}"; do wait "$n" || fail "a node has other bytes than the PFS"; done
}

all_read warm # connections are made
declare -A sent got
for n in "${names[@]}"; do
    on "$n" stat -c %s "$W/mnt-$n/hot" >/dev/null
    sent[$n]=$(link "$n" rx) got[$n]=$(link "$n" tx)
done
redirects=$(sum_of redirects)
all_read hot
for n in "${names[@]}"; do
    sent[$n]=$(($(link "$n" rx) - sent[$n])) got[$n]=$(($(link "$n" tx) - got[$n]))
done
echo "sent: ${sent[*]}; got: ${got[*]}; redirects: $(($(sum_of redirects) - redirects))"
check_equal "bytes of the chunk read from the PFS" "$(pfs_bytes hot)" $MIB
for n in "${names[@]}"; do
    [ "${sent[$n]}" -le $((2 * MIB + SLACK)) ] || fail "$n sent the chunk more than twice: ${sent[$n]} bytes"
    [ "${got[$n]}" -le $((MIB + SLACK)) ] || fail "$n got the chunk more than once: ${got[$n]} bytes"
done
[ $(($(sum_of redirects) - redirects)) -ge 5 ] || fail "the owner sent too few to others"
check_equal "times that a node was sent somewhere in vain" "$(sum_of redirects_in_vain)" 0
for n in "${names[@]}"; do stop_node "$n"; done
