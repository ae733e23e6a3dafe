#!/usr/bin/env bash
# Files that were looked at ahead while the PFS took its time are answered for when it has become quick.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
TIMEOUT=8
mkdir "$PFS/d" "$PFS/other"
for n in $(seq 400); do
    echo "$n" >"$PFS/d/$n"
    echo "$n" >"$PFS/other/$n"
done
start_faultfs a --delay-us 1000
start_node a "$W/pfs-a" --attr-timeout $TIMEOUT
A=$W/mnt-a

looks() { status_of a ".counters.looks_$1"; }
scan() { # DIRECTORY FIRST LAST
    (cd "$1" && stat -c %s $(seq "$2" "$3")) >/dev/null
}

scan "$A/d" 1 400
sleep $TIMEOUT # the kernel asks again
ahead=$(looks ahead)
most_are_looked_at() { [ "$(looks ahead)" -ge $((ahead + 250)) ]; }
scan "$A/d" 1 100
wait_for 5 most_are_looked_at || fail "only $(($(looks ahead) - ahead)) files were looked at ahead"

tell_faultfs a delay-us 0
scan "$A/other" 1 400
saved=$(looks saved)
scan "$A/d" 101 400
saved=$(($(looks saved) - saved))
[ "$saved" -ge 150 ] || fail "only $saved of 300 looks were saved"

# What is asked for again so soon is to be exact: open with O_EXCL does so.
python3 - "$PFS/d" "$A/d" <<'END' || fail "see above"
import os, sys
pfs, mount = sys.argv[1:]
for n in range(101, 400, 10):
    os.remove(f"{pfs}/{n}")
    os.close(os.open(f"{mount}/{n}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
END
