#!/usr/bin/env bash
# Over a PFS that is slow to answer, what a reader will want next is fetched before it asks: in order, backward, at a constant
# distance, several at once on one descriptor; a small file as soon as it is opened; at random nothing but what is read.
# Shown by how much of each file was asked of the PFS when its reader has stopped, and goes on to be.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
M=$W/mnt-a
MIB=1048576

asked_of() { # bytes of the file that the PFS was asked for
    stat_of a read_bytes "$1"
}

asked_at_least() {
    [ "$(asked_of "$1")" -ge "$2" ]
}

# read_some FILE PYTHON: reads by read(OFFSET, LENGTH) on one descriptor, which stays open as 5.
read_some() {
    exec 5<"$M/$1"
    python3 -c "
import os, sys
expected = os.open('$PFS/$1', os.O_RDONLY)
def read(off, n):
    if os.pread(5, n, off) != os.pread(expected, n, off):
        sys.exit(f'wrong bytes at {off}')
K = 1024; M = K * K
$2"
}

# ahead FILE READ: the reader took READ MiB; at least 8 more are asked for by and by, and not more than the window, of which
# the kernel's own read-ahead, 2 MiB a stream, moves the begin.
ahead() {
    wait_for 30 asked_at_least "$1" $((($2 + 8) * MIB)) ||
        fail "$1: $2 MiB were read and $(asked_of "$1") bytes fetched"
    exec 5<&-
    [ "$(asked_of "$1")" -le $((($2 + 23) * MIB)) ] ||
        fail "$1: $2 MiB were read, and as much as $(asked_of "$1") bytes fetched"
}

for f in order backward two apart random; do head -c 64M /dev/urandom >"$PFS/$f"; done
head -c 3500000 /dev/urandom >"$PFS/small"
start_faultfs a --delay-us 20000
start_node a "$W/pfs-a" --cache-size 1G

read_some order 'for i in range(64): read(i * 128 * K, 128 * K)'
ahead order 8

read_some backward 'for i in range(64): read(64 * M - (i + 1) * 128 * K, 128 * K)'
ahead backward 8

read_some two '
for i in range(40):
    read(i * 128 * K, 128 * K)
    read(32 * M + i * 128 * K, 128 * K)'
ahead two 10

# one of five chunks: those between are not fetched
read_some apart 'for i in range(8): read(i * 5 * M + 100 * K, 64 * K)'
wait_for 30 asked_at_least apart $((12 * MIB)) || fail "apart: only $(asked_of apart) bytes were fetched"
exec 5<&-

read_some random 'for i in (7, 50, 3, 22, 41, 12, 60, 29, 17, 36): read(i * M + 8 * K, 64 * K)'
exec 5<"$M/small"
wait_for 30 asked_at_least small 3500000 || fail "small: only $(asked_of small) bytes were fetched when it was opened"
exec 5<&-

stop_node a
check_equal "bytes fetched of what was read at random" "$(asked_of random)" $((10 * MIB))
check_equal "bytes fetched of the small file" "$(asked_of small)" 3500000
[ "$(asked_of apart)" -le $((13 * MIB)) ] || fail "apart: $(asked_of apart) bytes were fetched"
