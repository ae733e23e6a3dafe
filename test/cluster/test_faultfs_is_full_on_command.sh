#!/usr/bin/env bash
# The PFS of the other tests has a set room: as much as fits is written, then ENOSPC, or EDQUOT
# for the files of a directory; overwriting goes on; what is removed makes room; a late quota is
# told by fsync only.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
export LC_ALL=C
start_faultfs a
M=$W/pfs-a
mkdir "$M/dir"
head -c 1048576 /dev/zero >"$PFS/before"

# runs_out TEXT FILE [DD_OPTION...]: 3 MiB do not go into it
runs_out() {
    local text=$1 file=$2
    shift 2
    ! dd if=/dev/urandom of="$file" bs=256k count=12 "$@" 2>"$W/err" ||
        fail "3 MiB went into $file"
    grep -q "$text" "$W/err" || fail "$file: $(cat "$W/err"), not $text"
}

tell_faultfs a full 3000000
runs_out "No space left on device" "$M/large"
taken=$(du -B1 --apparent-size "$PFS/large" | cut -f1)
if [ "$taken" -lt 1900000 ] || [ "$taken" -gt 1951424 ]; then
    fail "$taken bytes fit, not those that are left"
fi
dd if=/dev/urandom of="$M/before" bs=256k count=4 conv=notrunc status=none || fail "overwriting"
rm "$M/large"
head -c 1500000 /dev/urandom >"$M/again" || fail "what was removed made no room"
tell_faultfs a clear
head -c 3000000 /dev/urandom >"$M/again" || fail "after clear"

tell_faultfs a quota 1000000 path='dir/*'
head -c 3000000 /dev/urandom >"$M/elsewhere" || fail "a file that the quota does not meet"
runs_out "Disk quota exceeded" "$M/dir/file"
tell_faultfs a clear

tell_faultfs a quota 1000000 path='dir/*' late
rm "$M/dir/file"
runs_out "fsync failed.*Disk quota exceeded" "$M/dir/file" conv=fsync
tell_faultfs a clear
head -c 3000000 /dev/urandom >"$M/dir/file" || fail "after clear"
