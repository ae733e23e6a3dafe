#!/usr/bin/env bash
# kill -9 of a daemon at random instants, under writers that record what was acknowledged: after
# the restart every acknowledged byte and name is there, nothing else is, and all gets to the PFS.
# timeout: 300
# both
# busy
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
start_faultfs a --bandwidth 100000000
# shellcheck disable=SC2086 # words
python3 "$(dirname "$SCRIPT")/crash/run.py" --work "$W" --pfs "$W/pfs-a" --below "$PFS" \
    --eddyfs "$EDDY_BUILD/eddyfs" --eddy "$EDDY_BUILD/eddy" --rounds "${ROUNDS:-50}" \
    ${SEED:+--seed "$SEED"} -- ${EDDY_TEST_OPTIONS-}
