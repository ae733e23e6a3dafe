#!/usr/bin/env bash
# Many files are read in order at the same time, through a cache that could not hold a whole window ahead of each reader: what was
# read ahead is still there when its reader comes, so the PFS is read once.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
READERS=32
MIB=8
for n in $(seq $READERS); do
    head -c ${MIB}M /dev/urandom >"$PFS/$n"
done
start_faultfs a
start_node a "$W/pfs-a" --cache-size 96M --chunk-size 1M

cat >"$W/read.py" <<'END'
# read HERE PFS READERS: 128 KiB of each file in turn, by requests of their own
import os, sys
here, pfs, readers = sys.argv[1], sys.argv[2], int(sys.argv[3])
fds = [os.open(f"{here}/{n + 1}", os.O_RDONLY) for n in range(readers)]
right = [os.open(f"{pfs}/{n + 1}", os.O_RDONLY) for n in range(readers)]
for fd in fds:
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
off = 0
while off < os.fstat(fds[0]).st_size:
    for n in range(readers):
        if os.pread(fds[n], 131072, off) != os.pread(right[n], 131072, off):
            sys.exit(f"file {n + 1} has wrong bytes at {off}")
    off += 131072
END
before=$(stat_of a read_bytes)
python3 "$W/read.py" "$W/mnt-a" "$PFS" $READERS || fail "wrong bytes"
read=$((($(stat_of a read_bytes) - before) >> 20))
echo "$((READERS * MIB)) MiB were read, $read MiB of the PFS"
[ $read -le $((READERS * MIB * 105 / 100)) ] || fail "the PFS was read more than once: $read MiB for $((READERS * MIB))"
stop_node a
