#!/usr/bin/env bash
# A busy mount is not unmounted: exit code 1, and each process that uses it is named with
# how (working directory, open file, mapped file); what was dirty is flushed all the same.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3

start_node a "$PFS" --flush-wait 3600
echo data >"$W/mnt-a/file"

(cd "$W/mnt-a" && exec sleep 600) &
worker=$!
record_process "$W" "$worker"
# shellcheck disable=SC2217 # it has it open
sleep 600 <"$W/mnt-a/file" &
reader=$!
record_process "$W" "$reader"
python3 - "$W/mnt-a/file" "$W/mapped" <<'END' &
import mmap, os, signal, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
m = mmap.mmap(fd, 4, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)
os.close(fd)
open(sys.argv[2], "w").close()
signal.pause()
END
mapper=$!
record_process "$W" "$mapper"
wait_for 20 test -e "$W/mapped"
for pid in "$worker" "$reader"; do
    wait_for 20 grep -qx sleep "/proc/$pid/comm" || fail "process $pid is no sleep"
done

code=0; eddy umount "$W/mnt-a" 2>"$W/umount.err" || code=$?
check_equal "code of a busy mount" "$code" 1
grep -q "process $worker (sleep), works in it" "$W/umount.err" ||
    fail "the worker is not named: $(cat "$W/umount.err")"
grep -q "process $reader (sleep), 1 open file" "$W/umount.err" ||
    fail "the reader is not named: $(cat "$W/umount.err")"
grep -q "process $mapper (python3.*maps a file" "$W/umount.err" ||
    fail "the mapper is not named: $(cat "$W/umount.err")"
check_equal "processes named" "$(grep -c '  process ' "$W/umount.err")" 3
check_equal "the flushed file" "$(cat "$PFS/file")" data
check_equal "the mount still works" "$(cat "$W/mnt-a/file")" data

kill "$worker" "$reader" "$mapper"
wait "$worker" "$reader" "$mapper" 2>/dev/null || true
stop_node a
