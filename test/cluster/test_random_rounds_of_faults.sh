#!/usr/bin/env bash
# Five nodes with writers, readers and lock users, in random rounds one or two of which are killed, cut off, paused, started
# again, leave or join: no wrong byte, no stale close-to-open, no lock held twice, no hang; what only a dead node has is named,
# and all that was closed is on the PFS in the end. The clocks are 5 s apart.
# SEED and ROUNDS: others, and more (2: one joins, is killed, cut off, leaves).
# timeout: 420
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
in_namespaces
requires fuse cmd jq cmd python3
: "${SEED:=860}" "${ROUNDS:=2}"
RANDOM=$SEED
DIR=$(dirname "$SCRIPT")/rounds
EVENTS=$W/events
: >"$EVENTS"

PYTHONPATH=$DIR python3 - "$PFS" <<'PY'
import os, sys, pages
for node in range(5):
    for k in range(4):
        with open(os.path.join(sys.argv[1], f"f{node}-{k}"), "wb") as f:
            f.write(b"".join(pages.make(f"f{node}-{k}", n, 0) for n in range(pages.PAGES)))
for k in range(3):
    open(os.path.join(sys.argv[1], f"lock-{k}"), "w").close()
PY

[ -n "$(host_clock 5)" ] || echo "no time namespaces here: all clocks are the same"
ahead=0
ip link add br1 type bridge forward_delay 0
ip link set br1 up
declare -A JOINED WORKS KILLED_AT CUT COUNT
for i in 0 1 2 3 4; do
    add_host "n$i" "$ahead"
    ahead=$((ahead + 5))
done

# Its applications stay when it leaves.
begin() {
    start_node "n$1" "$PFS"
    JOINED[$1]=1
    [ -z "${WORKS[$1]-}" ] || return 0
    start_daemon "n$1" "$W/worker-$1.out" env PYTHONPATH="$DIR" python3 "$DIR/worker.py" "$W/mnt-n$1" "$1" 5 "$SEED" \
        "$W/worker-$1.json" "$W/stop"
    WORKS[$1]=$STARTED_JOB
}

# one_view: all that joined are in the newest view of all of them
one_view() {
    local i
    for i in "${!JOINED[@]}"; do
        [ "$(status_of "n$i" '[.view.joined, .view.lease, (.members | length), (.absent | length)] | join(" ")' 2>/dev/null)" \
            = "true true ${#JOINED[@]} 0" ] || return 1
    done
}

ended() {
    ! kill -0 "$1" 2>/dev/null
}

counted() {
    COUNT[$1]=$((${COUNT[$1]-0} + 1))
    echo "   $2 $1"
}

crash() {
    crash_node "n$1"
    KILLED_AT[$1]=$EPOCHREALTIME
    echo "kill $1 $EPOCHREALTIME" >>"$EVENTS"
}

fences() {
    grep -c "it is fenced" "$W/n$1.log"
}

# In the middle of what is done there; what was locked there is free from then on.
leave() {
    echo "kill $1 $EPOCHREALTIME" >>"$EVENTS"
    kill -TERM "${NODE_PID[n$1]}"
    unset "JOINED[$1]"
}

# With everything on the PFS: then it joins as a new one, some time. Or (3) somebody had a file open: then it is to be
# started again for what was stored there.
has_left() {
    local code=0
    wait_for 150 ended "${JOB[node-n$1]}" || fail "$1 does not leave"
    wait "${JOB[node-n$1]}" || code=$?
    case $code in
        0) rm -rf "$W/cache-n$1" ;;
        3)
            counted "is started again, for what it could not flush" "$1"
            begin "$1"
            ;;
        *) fail "$1 left with $code" ;;
    esac
}

# fault NODE: begins one, and says how it ends, in UNDO
fault() {
    local n=$1 kind=$((RANDOM % 6))
    if [ -z "${JOINED[$n]-}" ]; then
        counted joins "$n"
        begin "$n"
        return
    fi
    [ "$kind" != 5 ] || [ "${#JOINED[@]}" -ge 4 ] || kind=4
    case $kind in
        0 | 1)
            counted "is killed" "$n"
            crash "$n"
            UNDO+=("begin $n")
            ;;
        2)
            counted "is cut off" "$n"
            CUT[$n]=$(fences "$n") || true
            ip link set "n$n" master br1
            UNDO+=("ip link set n$n master br0")
            ;;
        3)
            counted "is paused" "$n"
            pause "${NODE_PID[n$n]}"
            # nsenter stops itself when its child is stopped
            UNDO+=("kill -CONT ${NODE_PID[n$n]} ${JOB[node-n$n]}")
            ;;
        4)
            counted "is killed and started again" "$n"
            crash "$n"
            unset "KILLED_AT[$n]"
            begin "$n"
            ;;
        5)
            counted leaves "$n"
            leave "$n"
            LEFT+=("$n")
            ;;
    esac
}

# What a dead node has and the PFS has not is named by a live one.
names_what_is_lost() {
    on "n$2" "$EDDY_BUILD/eddy" status --json "$W/mnt-n$2" >"$W/status" &&
        PYTHONPATH=$DIR python3 "$DIR/named.py" "$PFS" "$W/worker-$1.json" "n$1" "${KILLED_AT[$1]}" <"$W/status" >"$W/named"
}

is_fenced() {
    [ "$(fences "$1")" -gt "${CUT[$1]}" ]
}

# Of a fault that was long enough for a view without the node.
check_fault() {
    local n i others=$((${#JOINED[@]} - ${#UNDO[@]})) # with nothing wrong
    # Else each side may be the first to go on without the other.
    [ $((2 * others)) -gt "${#JOINED[@]}" ] || CUT=()
    for n in "${!CUT[@]}"; do
        wait_for 60 is_fenced "$n" || fail "round $round: $n was not cut off"
    done
    for i in "${!JOINED[@]}"; do
        [ "$i" = "$first" ] || [ "$i" = "$second" ] || break
    done
    for n in "${!KILLED_AT[@]}"; do
        wait_for 60 names_what_is_lost "$n" "$i" || fail "round $round: $i does not name: $(cat "$W/named")"
        cat "$W/named"
    done
}

# All that joined can write, read and lock again.
work_goes_on() {
    local logs=() i
    for i in "${!JOINED[@]}"; do
        logs+=("$W/worker-$i.json")
    done
    python3 "$DIR/goes_on.py" "$1" "${logs[@]}" >"$W/stuck"
}

# all_files DIR SUMS [HOST]
all_files() {
    # shellcheck disable=SC2016 # the inner shell's
    ${3:+on "$3"} bash -c 'cd "$0" && sha256sum -- f[0-9]-[0-9]' "$1" >"$2"
}

for i in 0 1 2 3; do
    begin "$i"
done
wait_for 60 one_view || fail "the nodes do not meet"

for round in $(seq "$ROUNDS"); do
    first=$((RANDOM % 5)) second=$((RANDOM % 5)) long=$((2 + RANDOM % 24))
    [ "$round" != 1 ] || first=4 # it joins
    echo "seed $SEED, round $round: for $long s:"
    UNDO=() LEFT=() CUT=() KILLED_AT=()
    fault "$first"
    [ "$second" = "$first" ] || fault "$second"
    sleep "$long" # of work with that fault
    [ "$long" -lt 20 ] || check_fault
    for undo in ${UNDO[@]+"${UNDO[@]}"}; do
        $undo
    done
    for n in ${LEFT[@]+"${LEFT[@]}"}; do
        has_left "$n"
    done
    wait_for 120 one_view || fail "round $round: the nodes are not in one view again"
    wait_for 60 work_goes_on "$EPOCHREALTIME" || fail "round $round: $(cat "$W/stuck")"
done

for i in "${!JOINED[@]}"; do
    echo "whole $i $EPOCHREALTIME" >>"$EVENTS"
done
sleep 5 # of work without faults
: >"$W/stop"
for job in "${WORKS[@]}"; do
    wait_for 90 ended "$job" || fail "an application hangs"
    wait "$job" || fail "an application ended with $?"
done
for i in "${!JOINED[@]}"; do
    all_files "$W/mnt-n$i" "$W/sums-$i" "n$i" || fail "$i cannot read all in the end"
done
for i in "${!JOINED[@]}"; do
    stop_node "n$i"
done
all_files "$PFS" "$W/sums-pfs"
for i in "${!JOINED[@]}"; do
    check_same "$W/sums-$i" "$W/sums-pfs"
done
for kind in "${!COUNT[@]}"; do
    echo "${COUNT[$kind]} times one $kind"
done
python3 "$DIR/check.py" "$PFS" "$EVENTS" "$W"/worker-*.json || fail "seed $SEED: see above"
