#!/usr/bin/env bash
# The PFS of the other tests keeps time stamps in whole seconds when it is told so, but for birth
# times, which are a file's identity.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
start_faultfs a
M=$W/pfs-a
touch -d @1000000000.123456789 "$M/file"
born=$(stat -c %w "$M/file")
[[ $born == *.* ]] || skip "this kernel tells no birth times through FUSE"
check_equal "a time" "$(stat -c %.9Y "$M/file")" 1000000000.123456789
tell_faultfs a whole-seconds
check_equal "a time in whole seconds" "$(stat -c %.9Y "$M/file")" 1000000000.000000000
check_equal "the birth time" "$(stat -c %w "$M/file")" "$born"
touch -d @1000000001.9 "$M/file"
check_equal "a time that is set" "$(stat -c %.9Y "$M/file")" 1000000001.000000000
check_equal "parts of a second of all" \
    "$(find "$M" -printf '%A@ %C@ %T@\n' | grep -c '\.0000000000 .*\.0000000000 .*\.0000000000$')" 2
tell_faultfs a clear
check_equal "the time after clear" "$(stat -c %.9Y "$M/file")" 1000000001.900000000
tell_faultfs a behind 7 >/dev/null
check_equal "a time of a clock that is behind" "$(stat -c %.9Y "$M/file")" 999999994.900000000
touch -d @1000000001.9 "$M/file"
check_equal "a time that is set by it" "$(stat -c %.9Y "$M/file")" 1000000001.900000000
check_equal "what that is below" "$(stat -c %.9Y "$PFS/file")" 1000000008.900000000
check_equal "its birth time" "$(stat -c %w "$M/file")" "$born"
