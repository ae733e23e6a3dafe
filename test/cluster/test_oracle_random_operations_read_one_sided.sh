#!/usr/bin/env bash
# Random operations on two to four nodes, as oracle_random_operations, where nodes read each other's memory (--rdma-memory): versions
# change while others read the shelves.
# SEEDS, FIRST, OPS, SECONDS_AT_MOST, ORACLE_OPTIONS: as there.
# timeout: 400
# busy
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
room=$(df --output=avail -B1M /dev/shm | tail -1)
[ "$room" -ge 512 ] || skip "/dev/shm has $room MiB"
# shellcheck disable=SC2086 # words
python3 "$(dirname "$SCRIPT")/oracle/oracle.py" --build "$EDDY_BUILD" --work "$W" --first "${FIRST:-100}" \
    --seeds "${SEEDS:-6}" --ops "${OPS:-120}" --seconds "${SECONDS_AT_MOST:-60}" --shrink 60 ${ORACLE_OPTIONS-} \
    -- --rdma-memory 16M ${EDDY_TEST_OPTIONS-} || fail "see above"
