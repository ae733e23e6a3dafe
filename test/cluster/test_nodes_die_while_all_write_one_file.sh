#!/usr/bin/env bash
# Four nodes write one file all the time; one of them after the other is killed and started again. The others go on meanwhile,
# but for what the dead node has, and nothing that was acknowledged is lost.
# ROUNDS: more of them (100 in the long run); SEED.
# timeout: 400
# both-long
# busy
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
ROUNDS=${ROUNDS:-6}
SEED=${SEED:-$RANDOM}
RANDOM=$SEED
NODES=(a b c d)
start() {
    start_node "$1" "$PFS" --flush-wait "${FLUSH_WAIT:-3600}" "${@:2}"
}
n=0
for node in "${NODES[@]}"; do
    start "$node" --wait-nodes $((++n))
done
coproc RANKS { exec python3 "$(dirname "$0")/busy_ranks.py" shared "$SEED" "a=$W/mnt-a" "b=$W/mnt-b" "c=$W/mnt-c" "d=$W/mnt-d"; }
answer() {
    read -r REPLY <&"${RANKS[0]}" || fail "seed $SEED: the ranks have ended"
}
ranks() {
    echo "$*" >&"${RANKS[1]}"
    answer
}
must() {
    ranks "$@"
    [ "$REPLY" = ok ] || fail "seed $SEED: $*: $REPLY"
}
answer
for round in $(seq "$ROUNDS"); do
    victim=${NODES[RANDOM % 4]}
    must go
    sleep 0.$((RANDOM % 6 + 2))
    crash_node "$victim"
    ranks down "$victim"
    sleep 0.$((RANDOM % 9 + 1))
    fusermount3 -uz "$W/mnt-$victim"
    start "$victim"
    must up "$victim"
    sleep 0.2
    ranks halt
    echo "round $round: $victim: $REPLY"
    for node in "${NODES[@]}"; do
        [ "$node" = "$victim" ] || [[ " $REPLY" == *" $node="[1-9]* ]] || fail "seed $SEED: $node has written nothing: $REPLY"
    done
    must check
done
for node in "${NODES[@]}"; do
    ranks down "$node"
done
for node in "${NODES[@]}"; do
    eddy flush "$W/mnt-$node" || fail "seed $SEED: eddy flush of $node"
done
for node in "${NODES[@]}"; do
    stop_node "$node"
done
must on "$PFS/shared"
