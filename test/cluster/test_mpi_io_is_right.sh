#!/usr/bin/env bash
# MPI-IO on one file, a rank on each of three nodes: OpenMPI with OMPIO and with ROMIO. Skipped where OpenMPI is not
# installed (Debian: openmpi-bin, libopenmpi-dev).
# timeout: 420
# both
. "$(dirname "$0")/lib.sh"
requires fuse root namespaces cmd mpicc cmd mpirun
HERE=$(realpath "$(dirname "$0")")
. "$HERE/mpi/ranks.sh"
mpicc -O1 -o "$W/mpiio" "$HERE/mpi/mpiio.c" || fail "mpiio.c does not compile"
start_ranks
parts=
for io in ompio romio321; do
    for part in independent sizes sieved collective ordered atomic; do
        # OMPIO has defects of its own
        if ! on_plain 15 $io "$W/mpiio" "$W/plain/$io" $part; then
            echo "$io: $part: fails on a plain directory, too"
            continue
        fi
        on_nodes 60 $io "$W/mpiio" "$W/job/$io" $part || fail "$io: $part: $(cat "$W/mpi.out")"
        parts+=" $io.$part"
    done
done
[ "$(wc -w <<<"$parts")" -ge 8 ] || fail "only these were tried:$parts"
flush_ranks
for file in $parts; do
    cmp "$PFS/$file" "$W/plain/$file" || fail "$file: the PFS has other bytes than a plain directory"
done
stop_ranks
