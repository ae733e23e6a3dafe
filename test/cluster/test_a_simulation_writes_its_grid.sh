#!/usr/bin/env bash
# A simulation on a grid, a tile of it on each of four nodes, by OMPIO and ROMIO: all write their tiles after some steps, to
# a new file each time or to one that grows (the pattern of RDBench). Every checksum is that of what was computed. Skipped
# where OpenMPI is not installed (Debian: openmpi-bin, libopenmpi-dev).
# timeout: 300
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse root namespaces cmd mpicc cmd mpirun cmd ompi_info
HERE=$(realpath "$(dirname "$0")")
# shellcheck disable=SC2034 # ranks.sh
RANK_NODES="a b c d"
. "$HERE/mpi/ranks.sh"
mpicc -g -O1 -o "$W/reaction" "$HERE/mpi/reaction.c" || fail "reaction.c does not compile"
start_ranks
for io in $(openmpis_ios); do
    try_parts 60 "$io" reaction each grows alone
done
at_least 5
flush_ranks
parts_are_the_same
stop_ranks
