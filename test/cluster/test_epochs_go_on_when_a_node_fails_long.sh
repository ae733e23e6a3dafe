#!/usr/bin/env bash
# The same with a tree of 1 GiB, and with all that takes long.
# timeout: 1800
# long
export EPOCH_MIB=${EPOCH_MIB:-1024} EPOCH_ALL=1
exec bash "$(dirname "$0")/test_epochs_go_on_when_a_node_fails.sh"
