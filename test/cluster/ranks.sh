# shellcheck shell=bash
#
# Descriptors of one file on several nodes (ranks.py), for the tests that source this after lib.sh.

# start_ranks NAME NODE=MOUNT...
start_ranks() {
    coproc RANKS { exec python3 "$(dirname "$SCRIPT")/ranks.py" "$@"; }
}

# rank COMMAND...: and its answer, which must be "ok"
rank() {
    local answer
    echo "$*" >&"${RANKS[1]}"
    read -r answer <&"${RANKS[0]}"
    [ "$answer" = ok ] || fail "$*: $answer"
}
