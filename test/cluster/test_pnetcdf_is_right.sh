#!/usr/bin/env bash
# PnetCDF on one file, a rank on each of three nodes, by OMPIO and ROMIO: collective, independent and nonblocking writes,
# records, a header that grows, fill values. Skipped where it is not installed (Debian: openmpi-bin, libpnetcdf-dev).
# timeout: 300
# long
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse root namespaces cmd mpicc cmd mpirun cmd ompi_info cmd setfattr cmd pkg-config module pnetcdf
HERE=$(realpath "$(dirname "$0")")
. "$HERE/mpi/ranks.sh"
# shellcheck disable=SC2046 # words
mpicc -g -O1 -o "$W/pnetcdf" "$HERE/mpi/pnetcdf.c" $(pkg-config --cflags --libs pnetcdf) || fail "pnetcdf.c does not compile"
start_ranks
lend_short_writes_in_one_run
for io in $(openmpis_ios); do
    try_parts 60 "$io" pnetcdf blocking nonblocking records header filled
done
at_least 8
flush_ranks
parts_are_the_same
stop_ranks
