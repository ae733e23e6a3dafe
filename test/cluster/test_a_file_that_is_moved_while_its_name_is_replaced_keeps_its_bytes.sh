#!/usr/bin/env bash
# Node a has unflushed bytes of file "old", more such files than it may keep descriptors of, and none of this one. It renames another file over it. While
# the PFS takes its time for that, somebody renames "old" away, so that nothing is replaced. Its bytes are not given up: they
# are flushed to the name that it has now. And what is replaced is not flushed, nor is a conflict.
# both
. "$(dirname "$0")/lib.sh"
requires fuse
start_faultfs a
ulimit -n 400
start_node a "$W/pfs-a" --flush-wait 3600
A=$W/mnt-a
fill() { # new files, so that the descriptors of the oldest go
    for n in $(seq 300); do
        echo fill >"$A/$1$n"
    done
}
replace() { # FILE BY, and what happens meanwhile
    local held file=$1 by=$2
    held=$(tell_faultfs a hang rename)
    mv "$A/$by" "$A/$file" &
    local job=$!
    record_process "$W" "$job"
    wait_for 20 fault_waits a "$held" || fail "the rename does not get to the PFS"
    "${@:3}"
    tell_faultfs a clear "$held"
    wait "$job" || fail "mv $by $file"
}
seq 20000 >"$W/old"
cp "$W/old" "$A/old"
cp "$W/old" "$A/gone"
fill f
echo new >"$A/new"
echo newer >"$A/newer"
replace old new mv "$PFS/old" "$PFS/moved"
replace gone newer true
eddy flush "$A" || fail "eddy flush"
cmp "$PFS/moved" "$W/old" || fail "the bytes of the file that was moved away are lost"
check_equal "old" "$(cat "$PFS/old")" new
check_equal "gone" "$(cat "$PFS/gone")" newer
check_equal "files" "$(find "$PFS" -maxdepth 1 -type f ! -name 'f[0-9]*' -printf '%f\n' | sort | tr '\n' ' ')" "gone moved old "
cmp "$A/moved" "$W/old" || fail "node a has other bytes"
