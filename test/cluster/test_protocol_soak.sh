#!/usr/bin/env bash
# Random claims and locks on nodes that are killed, paused, started again and that leave: never two with one claim or
# with locks against each other, and in the end all can be had.
# timeout: 300
# long
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# soak SEED NODES SECONDS
soak() {
    mkdir -p "$W/$1" "$PFS/$1"
    echo "seed $1, $2 nodes"
    in_background "$EDDY_BUILD/test/protosoak" --protonode "$EDDY_BUILD/test/protonode" --work "$W/$1" --pfs "$PFS/$1" \
        --seed "$1" --nodes "$2" --seconds "$3"
    wait "$!" || {
        cat "$W/$1"/*.log >"$W/soak-$1.log"
        fail "seed $1, $2 nodes"
    }
    # Sanitizers' reports are looked for there.
    cat "$W/$1"/*.log >"$W/soak-$1.log"
}

if [ -n "${SOAK_SECONDS-}" ]; then # the long one
    for i in $(seq "${SOAK_ROUNDS:-5}"); do
        soak "$((RANDOM + 1))" "$((2 + i % 4))" "$SOAK_SECONDS"
    done
else
    soak 1 4 25
    soak 2 2 15
fi
