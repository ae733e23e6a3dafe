#!/usr/bin/env bash
# eddy flush returns 0 when everything that was written before is on the PFS, byte for byte,
# although no lull comes; on a terminal it shows its progress.
# timeout: 120
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

start_node a "$PFS" --flush-wait 3600
mkdir "$W/source" "$W/mnt-a/dir"
head -c 20000001 /dev/urandom >"$W/source/large"
seq 1 1000 >"$W/source/small"
: >"$W/source/empty"
head -c 4096 /dev/urandom >"$W/source/name with
newline and \\"
cp "$W"/source/* "$W/mnt-a/dir/"
[ "$(status_of a .cache.dirty)" -gt 20000000 ] ||
    fail "nothing is dirty: it was flushed without being told"
check_equal "failed files" "$(status_of a '.flush.failed_files | length')" 0

eddy flush "$W/mnt-a"
diff -r "$W/source" "$PFS/dir" || fail "the PFS has something else"
check_equal "dirty bytes after the flush" "$(status_of a .cache.dirty)" 0
[ "$(status_of a .flush.flushed_bytes)" -ge 20000000 ] || fail "the flushed bytes are not counted"
eddy flush "$W/mnt-a" # nothing to do

if command -v script >/dev/null; then
    head -c 50000000 /dev/urandom >"$W/mnt-a/dir/more"
    script -qec "$EDDY_BUILD/eddy flush $W/mnt-a" /dev/null >"$W/terminal" </dev/null
    grep -q 'flushing: .* of .*MiB' "$W/terminal" ||
        fail "no progress line: $(cat -v "$W/terminal")"
    cmp "$W/mnt-a/dir/more" "$PFS/dir/more"
fi
stop_node a
