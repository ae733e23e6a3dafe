#!/usr/bin/env bash
# MPI-IO on one file, a rank on each of three nodes: MPICH, whose MPI-IO is ROMIO. Skipped where MPICH is not installed
# (Debian: mpich, libmpich-dev).
# timeout: 240
# long
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse root namespaces cmd mpicc.mpich cmd mpiexec.mpich
HERE=$(realpath "$(dirname "$0")")
. "$HERE/mpi/ranks.sh"
. "$HERE/mpi/mpiio.sh"
mpi_io_is_right 6 mpich
