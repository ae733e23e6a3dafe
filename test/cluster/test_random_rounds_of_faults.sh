#!/usr/bin/env bash
# Five nodes with writers, readers and lock users, in random rounds one or two of which are killed, cut off, paused or
# join: no wrong byte, no stale close-to-open, no lock held twice, no hang, and all that was closed is on the PFS in the end.
# SEED and ROUNDS: others, and more (2).
# timeout: 420
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
in_namespaces
requires fuse cmd jq cmd python3
: "${SEED:=1}" "${ROUNDS:=2}"
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

ahead=0
ip link add br1 type bridge forward_delay 0
ip link set br1 up
declare -A JOINED
for i in 0 1 2 3 4; do
    add_host "n$i" "$ahead"
    ahead=$((ahead + 5))
done

begin() {
    start_node "n$1" "$PFS"
    JOINED[$1]=1
}

works() {
    start_daemon "n$1" "$W/worker-$1.out" env PYTHONPATH="$DIR" python3 "$DIR/worker.py" "$W/mnt-n$1" "$1" 5 "$SEED" \
        "$W/worker-$1.json" "$W/stop"
    WORKERS+=("$STARTED_JOB")
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

# fault NODE: begins one, and says how it ends, in UNDO
fault() {
    local n=$1 kind=$((RANDOM % 4))
    if [ -z "${JOINED[$n]-}" ]; then
        echo "   $n joins"
        begin "$n"
        works "$n"
        return
    fi
    case $kind in
        0 | 1)
            echo "   $n is killed"
            crash_node "n$n"
            echo "kill $n $EPOCHREALTIME" >>"$EVENTS"
            UNDO+=("begin $n")
            ;;
        2)
            echo "   $n is cut off"
            ip link set "n$n" master br1
            UNDO+=("ip link set n$n master br0")
            ;;
        3)
            echo "   $n is paused"
            kill -STOP "${NODE_PID[n$n]}"
            # nsenter stops itself when its child is stopped
            UNDO+=("kill -CONT ${NODE_PID[n$n]} ${JOB[node-n$n]}")
            ;;
    esac
}

WORKERS=()
for i in 0 1 2 3; do
    begin "$i"
done
wait_for 60 one_view || fail "the nodes do not meet"
for i in 0 1 2 3; do
    works "$i"
done

for round in $(seq "$ROUNDS"); do
    first=$((RANDOM % 5)) second=$((RANDOM % 5)) long=$((2 + RANDOM % 24))
    [ "$round" != 1 ] || first=4 # it joins
    echo "seed $SEED, round $round: for $long s:"
    UNDO=()
    fault "$first"
    [ "$second" = "$first" ] || fault "$second"
    sleep "$long" # of work with that fault
    for undo in ${UNDO[@]+"${UNDO[@]}"}; do
        $undo
    done
    wait_for 120 one_view || fail "round $round: the nodes are not in one view again"
done

sleep 3 # of work without faults
: >"$W/stop"
for job in "${WORKERS[@]}"; do
    wait_for 90 ended "$job" || fail "an application hangs"
    wait "$job" || fail "an application ended with $?"
done
for i in "${!JOINED[@]}"; do
    stop_node "n$i"
done
python3 "$DIR/check.py" "$PFS" "$EVENTS" "$W"/worker-*.json || fail "seed $SEED: see above"
