#!/usr/bin/env bash
# Random operations on two to four nodes, as oracle_random_operations, on files of which parts are lent for every write
# (user.eddy.shared=always), and which several nodes have open for writing nearly all the time.
# SEEDS, FIRST, OPS, SECONDS_AT_MOST, ORACLE_OPTIONS: as there.
# timeout: 500
# busy
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
# shellcheck disable=SC2086 # words
python3 "$(dirname "$SCRIPT")/oracle/oracle.py" --build "$EDDY_BUILD" --work "$W" --shared --first "${FIRST:-0}" \
    --seeds "${SEEDS:-12}" --ops "${OPS:-80}" --seconds "${SECONDS_AT_MOST:-120}" --shrink 60 ${ORACLE_OPTIONS-} \
    ${EDDY_TEST_OPTIONS:+-- $EDDY_TEST_OPTIONS} || fail "see above"
