#!/usr/bin/env bash
# The same, 30 rounds.
# timeout: 3600
# long
export ROUNDS=${ROUNDS:-30}
exec bash "$(dirname "$0")/test_random_rounds_of_faults.sh"
