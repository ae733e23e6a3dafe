#!/usr/bin/env bash
# Two mounts that read 20 MB each at 20 MB/s take 2 s together, as a PFS's clients do.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
start_faultfs a --bandwidth 20000000
start_faultfs b --bandwidth 20000000
head -c 20000000 /dev/urandom >"$PFS/file"

start=${EPOCHREALTIME/[.,]/}
cat "$W/pfs-a/file" >/dev/null &
first=$!
cat "$W/pfs-b/file" >/dev/null
wait "$first"
took=$(((${EPOCHREALTIME/[.,]/} - start) / 1000))
[ "$took" -ge 1900 ] || fail "it took only $took ms"
