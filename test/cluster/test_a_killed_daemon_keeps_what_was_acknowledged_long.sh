#!/usr/bin/env bash
# A thousand deaths of a daemon, with the kernel's passthrough and without.
# timeout: 3000
# long
# both
export ROUNDS=1000
exec bash "$(dirname "$0")/test_a_killed_daemon_keeps_what_was_acknowledged.sh"
