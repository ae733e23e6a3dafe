#!/usr/bin/env bash
# Sixteen nodes that all talk to each other are killed one after another, a few milliseconds apart:
# each lives until it is its turn, and the last one goes on alone.
# timeout: 180
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=protonodes.sh
. "$(dirname "$0")/protonodes.sh"
NODES=$(many 16 6)
names=()
for i in $(seq "$NODES"); do
    names+=("n$i")
done
up "${names[@]}"
all=$(IFS=,; sorted "${names[*]}")
wait_for_view "$all" - "${names[@]}"
for i in $(seq $((NODES - 1))); do
    kill -KILL "${P_PID[n$i]}" || fail "n$i was gone before it was killed: $(tail -n 3 "$W/n$i.log")"
    gone "n$i"
    sleep 0.02 # the others are busy with it when the next one goes
done
last=n$NODES
becomes 60 "* $last absent *" "$last" view
quit "$last"
if aborted=$(grep -h -E "Assertion|corrupt" "$W"/n*.log); then
    fail "a node ended by itself: $aborted"
fi
