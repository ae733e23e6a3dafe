#!/usr/bin/env bash
# The PFS of the other tests becomes read-only and back while it runs: names, data and attributes
# can be read, and not changed, also through a descriptor that was open before.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
export LC_ALL=C
start_faultfs a
M=$W/pfs-a
mkdir "$M/dir"
echo data >"$M/file"
exec 5>>"$M/file"
tell_faultfs a read-only

refused() {
    ! "$@" 2>"$W/err" || fail "read-only, but it worked: $*"
    grep -q "Read-only file system" "$W/err" || fail "$*: $(cat "$W/err")"
}
refused bash -c "echo more >&5"
refused bash -c "echo more >>'$M/file'"
refused bash -c "echo more >'$M/new'"
refused mkdir "$M/new"
refused rmdir "$M/dir"
refused rm -f "$M/file"
refused mv "$M/file" "$M/moved"
refused ln "$M/file" "$M/linked"
refused ln -s file "$M/symlink"
refused mkfifo "$M/fifo"
refused chmod 600 "$M/file"
refused touch -d @1 "$M/file"
refused truncate -s 1 "$M/file"
check_equal "what is read" "$(cat "$M/file")" data
check_equal "what is listed" "$(ls "$M")" "dir
file"
tell_faultfs a clear
echo more >&5
exec 5>&-
check_equal "after clear" "$(cat "$PFS/file")" "data
more"
