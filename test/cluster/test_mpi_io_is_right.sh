#!/usr/bin/env bash
# MPI-IO on one file, a rank on each of three nodes: OpenMPI with OMPIO and with ROMIO. Skipped where OpenMPI is not
# installed (Debian: openmpi-bin, libopenmpi-dev).
# timeout: 420
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse root namespaces cmd mpicc cmd mpirun cmd ompi_info
HERE=$(realpath "$(dirname "$0")")
. "$HERE/mpi/ranks.sh"
. "$HERE/mpi/mpiio.sh"
# OMPIO has defects of its own
# shellcheck disable=SC2046 # words
mpi_io_is_right 8 $(openmpis_ios)
