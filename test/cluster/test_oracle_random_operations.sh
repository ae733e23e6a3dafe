#!/usr/bin/env bash
# Random operations on two to four nodes, compared after each with what a plain directory would have; nodes are killed, unmounted
# and started again; at last the PFS is compared. What is known to be wrong is not done, or not counted (oracle/known_wrong.py).
# SEEDS, FIRST, SECONDS_AT_MOST, ORACLE_OPTIONS: more, others, longer; README.md tells how to run a thousand.
# timeout: 500
# busy
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
ORACLE=$(dirname "$SCRIPT")/oracle
for list in "$ORACLE"/replays/*.ops; do # what failed once
    # shellcheck disable=SC2086 # words
    python3 "$ORACLE/oracle.py" --build "$EDDY_BUILD" --work "$W" --replay "$list" \
        ${EDDY_TEST_OPTIONS:+-- $EDDY_TEST_OPTIONS} || fail "$list: see above"
done
# shellcheck disable=SC2086 # words
python3 "$ORACLE/oracle.py" --build "$EDDY_BUILD" --work "$W" --first "${FIRST:-0}" \
    --seeds "${SEEDS:-16}" --ops "${OPS:-100}" --seconds "${SECONDS_AT_MOST:-120}" --shrink 60 ${ORACLE_OPTIONS-} \
    ${EDDY_TEST_OPTIONS:+-- $EDDY_TEST_OPTIONS} || fail "see above"
