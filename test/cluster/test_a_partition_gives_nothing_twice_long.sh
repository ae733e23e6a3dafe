#!/usr/bin/env bash
# The same, 50 times.
# timeout: 7200
# long
export PARTITIONS=${PARTITIONS:-50}
exec bash "$(dirname "$0")/test_a_partition_gives_nothing_twice.sh"
