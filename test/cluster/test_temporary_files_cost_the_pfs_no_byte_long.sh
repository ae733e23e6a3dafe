#!/usr/bin/env bash
# The same with 10,000 files.
# timeout: 900
# long
# both
export TEMPORARY_FILES=10000
exec bash "$(dirname "$0")/test_temporary_files_cost_the_pfs_no_byte.sh"
