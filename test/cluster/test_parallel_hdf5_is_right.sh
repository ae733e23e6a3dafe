#!/usr/bin/env bash
# Parallel HDF5 on one file, a rank on each of three nodes, by OMPIO and ROMIO. Skipped where it is not installed
# (Debian: openmpi-bin, libhdf5-openmpi-dev).
# timeout: 300
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse root namespaces cmd h5pcc cmd h5dump cmd mpirun
HERE=$(realpath "$(dirname "$0")")
. "$HERE/mpi/ranks.sh"
(cd "$W" && h5pcc -g -O1 -o h5 "$HERE/mpi/h5.c") || fail "h5.c does not compile"
start_ranks
for io in ompio romio321; do
    on_plain 60 $io "$W/h5" "$W/plain/$io.h5" || fail "$io: on a plain directory: $(cat "$W/mpi.out")"
    on_nodes 100 $io "$W/h5" "$W/job/$io.h5" || fail "$io: $(cat "$W/mpi.out")"
done
flush_ranks
for io in ompio romio321; do
    for set in contiguous chunked independent; do
        cmp <(h5dump -d /$set -y "$PFS/$io.h5" | tail -n +2) <(h5dump -d /$set -y "$W/plain/$io.h5" | tail -n +2) ||
            fail "$io: $set: the PFS has other data than a plain directory"
    done
done
stop_ranks
