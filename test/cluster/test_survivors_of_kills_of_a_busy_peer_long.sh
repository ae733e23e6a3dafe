#!/usr/bin/env bash
# The same, 200 times: 200 of 200 alive.
# timeout: 3600
# long
export ROUNDS=200
exec bash "$(dirname "$0")/test_survivors_of_kills_of_a_busy_peer.sh"
