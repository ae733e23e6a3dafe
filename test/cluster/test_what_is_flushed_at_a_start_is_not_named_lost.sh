#!/usr/bin/env bash
# After a power loss the list of dirty files tells what is lost. Files that fsync had covered, and that the new daemon flushes
# while it reads the list, are not named.
# timeout: 120
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

FILES=1500
start_node a "$PFS" --no-passthrough --flush end
python3 - "$W/mnt-a" $FILES <<'PY'
import os, sys
for n in range(int(sys.argv[2])):
    fd = os.open(f"{sys.argv[1]}/f{n}", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"%d\n" % n)
    os.fsync(fd)
    os.close(fd)
PY
listed() { [ "$(cat "$PFS"/.eddyfs-*/test/dirty/* 2>/dev/null | grep -c " f[0-9]*\$")" = $FILES ]; }
wait_for 60 listed || fail "the list of dirty files has not all of them"
crash_node a
for slab in "$W"/cache-a/slabs/*; do
    printf 'another-boot' | dd of="$slab" bs=1 seek=40 conv=notrunc status=none
done
fusermount3 -uz "$W/mnt-a"
start_node a "$PFS" --no-passthrough --flush immediate
eddy flush "$W/mnt-a"
for n in 0 1 $((FILES - 1)); do
    check_equal "f$n" "$(cat "$PFS/f$n")" "$n"
done
grep -q "recovered: $FILES files" "$W/a.log" || fail "not recovered: $(cat "$W/a.log")"
! grep 'power loss: ' "$W/a.log" >"$W/named" || fail "named, though nothing of it is lost: $(wc -l <"$W/named"): $(head -1 "$W/named")"
stop_node a
