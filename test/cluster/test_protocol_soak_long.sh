#!/usr/bin/env bash
# The random test of claims and locks with other seeds, on 2 to 5 nodes, for longer.
# timeout: 1800
# long
export SOAK_SECONDS=120 SOAK_ROUNDS=6
exec bash "$(dirname "$0")/test_protocol_soak.sh"
