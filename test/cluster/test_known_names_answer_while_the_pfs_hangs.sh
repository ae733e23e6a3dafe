#!/usr/bin/env bash
# With a PFS that hangs, what is known is still answered: ls of a listed directory,
# stat, df; what is not known waits, can be interrupted, and is right afterwards.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse

mkdir "$PFS/dir"
for n in $(seq 30); do
    echo "$n" >"$PFS/dir/$n"
done
sleep 1.1 # a directory that was just changed is not kept
start_faultfs a
start_node a "$W/pfs-a"
A=$W/mnt-a
attributes() { find "$A/dir" -name 31 -o -type f -printf '%f %s %T@ %m %i\n' | sort; }
attributes >"$W/before"
ls "$A/dir" >/dev/null
df "$A" >/dev/null

stop_faultfs a
(timeout 30 cat "$A/dir/nothing" || true) >/dev/null 2>&1 &
unknown=$!
timeout 20 stat -c %s "$A/dir/7" >"$W/stat" || fail "stat of a known file"
timeout 20 ls "$A/dir" >"$W/names" || fail "ls of a listed directory"
timeout 20 df "$A" >/dev/null || fail "df"
check_equal "size" "$(cat "$W/stat")" 2
check_equal "listing" "$(sort -n "$W/names" | tr '\n' ' ')" "$(seq -s ' ' 30) "

# Ctrl-C ends it, though the PFS never answers.
began=$EPOCHREALTIME
code=0
timeout --signal=INT 3 stat "$A/unknown" >/dev/null 2>&1 || code=$?
check_equal "code of a stat that waits for the PFS until it is interrupted" "$code" 124
[ $((${EPOCHREALTIME/[.,]/} - ${began/[.,]/})) -lt 20000000 ] || fail "an interrupted stat waits on"

continue_faultfs a
wait "$unknown" || true
echo new >"$A/dir/31"
check_equal "a new file" "$(cat "$A/dir/31")" new
check_equal "listing afterwards" "$(find "$A/dir" -type f | wc -l)" 31
attributes | diff "$W/before" - || fail "attributes differ afterwards"
stop_node a
