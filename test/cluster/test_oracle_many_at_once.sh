#!/usr/bin/env bash
# Many processes on three nodes, and on one, at once: of records that are added under locks none is lost; lines that are appended without
# locks are whole; a file that is published by rename is one whole version at each open; who follows a file that grows sees each
# byte once; what one node has written into a file that all have open, all others see when the write has returned. What is known to be wrong is not run (oracle/known_wrong.py; ORACLE_ALL=1 runs it).
# RECORDS, LINES_EACH, SECONDS_EACH, ROUNDS: more, longer.
# timeout: 400
# both-long
# busy
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
ORACLE=$(dirname "$SCRIPT")/oracle
NODES=("$W/mnt-a" "$W/mnt-b" "$W/mnt-c")
WRONG=()

# run PROGRAM [OPTION...]: on all nodes, and on one
run() {
    local program=$1
    shift
    run_on "$program" "all nodes" "$@" "${NODES[@]}"
    run_on "$program" "one node" "$@" "${NODES[0]}"
}

run_on() {
    local program=$1 nodes=$2
    shift 2
    # shellcheck disable=SC2086 # two words
    python3 "$ORACLE/known_wrong.py" "$program" $nodes || python3 "$ORACLE/$program.py" "$@" ||
        WRONG+=("$program on $nodes: $*")
}

# Until there is a file "flushed": claims come and go, and the kernel is given larger sizes while older answers are on their way.
keep_flushing() {
    until [ -e "$W/flushed" ]; do
        for name in a b c; do
            "$EDDY_BUILD/eddy" flush "$W/mnt-$name" >>"$W/flushes"
        done
    done
}

for name in a b c; do
    start_node $name "$PFS"
done
for lock in fcntl flock; do
    for how in seek counter append; do
        run records --lock $lock --how $how --records "${RECORDS:-100}" --stagger 0.05
    done
done
keep_flushing &
FLUSHING=$!
for _ in 1 2 3; do
    run records --records "${RECORDS:-100}"
done
touch "$W/flushed"
wait $FLUSHING
run lines --lines "${LINES_EACH:-300}"
run lines --lines "$((${LINES_EACH:-300} / 10))" --longest 1000000
run_on handed "all nodes" --rounds "${ROUNDS:-300}" "${NODES[@]}"
run_on handed "all nodes" --rounds "${ROUNDS:-300}" --longest 500 --space 30000 "${NODES[@]}"
run publish --seconds "${SECONDS_EACH:-5}"
for how in read stat seek; do
    run follow --seconds "${SECONDS_EACH:-5}" --how $how
done
run follow --seconds "${SECONDS_EACH:-5}" --how read --every 0.5
for name in a b c; do
    stop_node $name
done
[ ${#WRONG[@]} = 0 ] || fail "$(printf '%s; ' "${WRONG[@]}")"
