#!/usr/bin/env bash
# Five nodes fall apart so that no side has more than half: of two that are cut off from one, with two that nobody reaches,
# the two go on and the one is fenced, be it the keeper or not; and so do two of 2|2|1. Healed, all are in one view.
# timeout: 300
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=protonodes.sh
. "$(dirname "$0")/protonodes.sh"
in_namespaces

NODES=(n1 n2 n3 n4 n5)
for n in "${NODES[@]}"; do add_host "$n"; done
for side in br1 br2; do
    ip link add "$side" type bridge forward_delay 0
    ip link set "$side" up
done
for n in "${NODES[@]}"; do
    PROTO_ENTER=(nsenter -t "${HOST_PID[$n]}" -n --)
    PROTO_OPTIONS=(--listen "$(host_address "$n")")
    up "$n"
done
wait_for_view n1,n2,n3,n4,n5 - "${NODES[@]}"

# side BRIDGE NODE...
side() {
    local bridge=$1 n
    shift
    for n in "$@"; do ip link set "$n" master "$bridge"; done
}
heal() {
    side br0 "${NODES[@]}"
    for n in "${NODES[@]}"; do link_up "$n"; done
    for n in "${NODES[@]}"; do
        wait_for 90 sees "$n" n1,n2,n3,n4,n5 - || fail "healed, $n sees $(ask "$n" view)"
    done
}
view=$(ask n1 view)
view=${view#* }
keeper=${view%%,*}
others=()
for n in "${NODES[@]}"; do [ "$n" = "$keeper" ] || others+=("$n"); done
IFS=, read -r second _ <<<"${view#*,}"

for alone in "$keeper" "$second"; do
    rest=()
    for n in "${NODES[@]}"; do [ "$n" = "$alone" ] || rest+=("$n"); done
    for n in "${rest[@]:2}"; do link_down "$n"; done
    side br1 "$alone"
    wait_for_view "${rest[0]},${rest[1]}" "$(sorted "$alone,${rest[2]},${rest[3]}")" "${rest[@]:0:2}"
    becomes 20 none "$alone" view
    heal
done

side br1 "${others[@]:0:2}"
side br2 "${others[@]:2:2}"
becomes 40 none "$keeper" view
ahead() { # is either of the two in a view of the two?
    [ "$(members_seen_by "${others[0]}")" = "${others[0]},${others[1]}" ] ||
        [ "$(members_seen_by "${others[2]}")" = "${others[2]},${others[3]}" ]
}
wait_for 20 ahead || fail "they see $(ask "${others[0]}" view) and $(ask "${others[2]}" view)"
heal
for n in "${NODES[@]}"; do quit "$n"; done
