#!/usr/bin/env bash
# Files that are made, read and removed while I/O goes on never reach the PFS but for their
# names, with the policy idle and its usual wait interval; with `end` not even when there are
# pauses.
# timeout: 240
# both-long
# alone
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
start_faultfs a
start_node a "$W/pfs-a" --session-dir "$W/session"

cat >"$W/phase.py" <<'PY'
import os, sys
os.chdir(sys.argv[1])
count, alive = int(sys.argv[2]), 100
for n in range(count + alive):
    if n < count:
        with open(f"t{n}", "wb") as f:
            f.write(os.urandom(64) * 64 * (1 + n % 8))
        with open(f"t{n}", "rb") as f:
            assert len(f.read()) == 4096 * (1 + n % 8)
    if n >= alive:
        os.unlink(f"t{n - alive}")
PY
count=${TEMPORARY_FILES:-$(many 3000 300)}
began=$SECONDS
python3 -B "$W/phase.py" "$W/mnt-a" "$count" || fail "see above"
echo "$count files in $((SECONDS - began)) s"
sleep 3 # lulls, in which nothing is left to flush
check_equal "files left" "$(find "$PFS" -mindepth 1 -maxdepth 1 ! -name '.*' | wc -l)" 0
check_equal "dirty bytes" "$(status_of a .cache.dirty)" 0
check_equal "bytes written to the PFS" "$(stat_of a write_bytes)" 0
[ "$(stat_of a create)" -ge "$count" ] || fail "the names were not made on the PFS"
stop_node a
check_equal "bytes written to the PFS at the end" "$(stat_of a write_bytes)" 0

start_node a "$W/pfs-a" --session-dir "$W/session" --flush end --flush-wait 0.1
for n in $(seq 50); do
    head -c 100000 /dev/urandom >"$W/mnt-a/kept$n"
done
sleep 2 # many lulls
cat "$W/mnt-a"/kept* | wc -c >"$W/read"
check_equal "bytes read back" "$(cat "$W/read")" 5000000
rm "$W"/mnt-a/kept*
stop_node a
check_equal "bytes written to the PFS with end" "$(stat_of a write_bytes)" 0
