#!/usr/bin/env bash
# The PFS of the other tests lets requests wait as it is told, while others are answered, and
# goes on with them when it is told so.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
start_faultfs a
M=$W/pfs-a
echo old >"$PFS/file"

hang=$(tell_faultfs a hang write path=file)
in_background bash -c "echo new >>'$M/file'"
writer=$!
wait_for 20 fault_waits a "$hang" || fail "the write does not hang"
check_equal "read beside a write that hangs" "$(cat "$M/file")" old
echo other >"$M/other" || fail "a write to another file"
kill -0 "$writer" || fail "the write did not wait"

# What comes while it hangs counts when it goes on.
tell_faultfs a error ENOSPC write path=file times=1
tell_faultfs a clear "$hang"
code=0
wait "$writer" || code=$?
check_equal "code of the writer that then ran into an error" "$code" 1

hang=$(tell_faultfs a hang all path='*file')
in_background bash -c "echo new >>'$M/file'"
writer=$!
wait_for 20 fault_waits a "$hang" || fail "nothing hangs"
tell_faultfs a clear
wait "$writer" || fail "the writer failed when it went on"
check_equal "what was written" "$(cat "$PFS/file")" "old
new"
