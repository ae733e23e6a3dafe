#!/usr/bin/env bash
# A thousand power cuts, with the kernel's passthrough and without.
# timeout: 3000
# long
# both
export ROUNDS=1000
exec bash "$(dirname "$0")/test_a_power_cut_keeps_what_was_fsynced.sh"
