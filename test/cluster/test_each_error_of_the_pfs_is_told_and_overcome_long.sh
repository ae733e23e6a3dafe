#!/usr/bin/env bash
# The same with a PFS that hangs for minutes.
# timeout: 700
# long
# both
export HANG_SECONDS=130
exec bash "$(dirname "$0")/test_each_error_of_the_pfs_is_told_and_overcome.sh"
