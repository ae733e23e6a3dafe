#!/usr/bin/env bash
# MPI-IO on one file, a rank on each of eight nodes: what test_mpi_io_is_right and test_mpi_io_of_mpich_is_right have on
# three. Skipped where OpenMPI is not installed; MPICH is tried where it is.
# timeout: 1800
# both
# busy
# long
. "$(dirname "$0")/lib.sh"
requires fuse root namespaces cmd mpicc cmd mpirun cmd ompi_info
HERE=$(realpath "$(dirname "$0")")
# shellcheck disable=SC2034 # ranks.sh
RANK_NODES="a b c d e f g h"
. "$HERE/mpi/ranks.sh"
. "$HERE/mpi/mpiio.sh"
ios=$(openmpis_ios)
! command -v mpicc.mpich >/dev/null || ios+=" mpich"
# shellcheck disable=SC2086 # words
mpi_io_is_right 8 $ios
