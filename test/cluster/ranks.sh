# shellcheck shell=bash
#
# Descriptors of one file on several nodes (ranks.py), for the tests that source this after lib.sh.

# start_abc: nodes a, b and c, each over a faultfs of its own, that flush only what they are told to.  start_one NODE [OPTION...]: one of them,
# for example after its death.
start_abc() {
    local node
    for node in a b c; do
        start_faultfs $node
    done
    start_one a
    start_one b --wait-nodes 2
    start_one c --wait-nodes 3
}

start_one() {
    start_node "$1" "$W/pfs-$1" --flush-wait 3600 "${@:2}"
}

# start_ranks NAME NODE=MOUNT...
start_ranks() {
    coproc RANKS { exec python3 "$(dirname "$SCRIPT")/ranks.py" "$@"; }
}

# rank COMMAND...: and its answer, which must be "ok"
rank() {
    rank_says ok "$@"
}

# rank_says ANSWER COMMAND...
rank_says() {
    local answer
    echo "${*:2}" >&"${RANKS[1]}"
    read -r answer <&"${RANKS[0]}"
    [ "$answer" = "$1" ] || fail "${*:2}: $answer"
}

# Their descriptors are closed; others may be started.
stop_ranks() {
    local pid=$RANKS_PID to=${RANKS[1]}
    eval "exec $to>&-"
    wait "$pid" || fail "ranks.py ends with $?"
}
