#!/usr/bin/env bash
# NetCDF-4 in parallel on one file, a rank on each of three nodes, by OMPIO and ROMIO: collective and independent access, an
# unlimited dimension, compression, variables that come later. Skipped where it is not installed (Debian: openmpi-bin,
# libnetcdf-mpi-dev, netcdf-bin).
# timeout: 300
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse root namespaces cmd mpicc cmd mpirun cmd ompi_info cmd ncdump cmd setfattr cmd pkg-config module netcdf-mpi
HERE=$(realpath "$(dirname "$0")")
. "$HERE/mpi/ranks.sh"
# Debian has the header beside its pkgconfig directory, which does not name it.
# shellcheck disable=SC2046 # words
mpicc -g -O1 -o "$W/netcdf" "-I$(pkg-config --variable=prefix netcdf-mpi)/include" "$HERE/mpi/netcdf.c" \
    $(pkg-config --cflags --libs netcdf-mpi) || fail "netcdf.c does not compile"
start_ranks
lend_short_writes_in_one_run
for io in $(openmpis_ios); do
    try_parts 60 "$io" netcdf fixed records later
    # A rank of OMPIO's goes on before others have written what it gave them, and HDF5 1.10 reads compressed chunks at once:
    # on a plain directory this fails in one run of about thirty.
    [ "$io" = ompio ] || try_parts 60 "$io" netcdf compressed
done
at_least 6
flush_ranks
for part in $PARTS; do
    ncdump "$PFS/$part" >"$W/dump" || fail "$part: ncdump cannot read what is on the PFS"
    cmp "$W/dump" <(ncdump "$W/plain/$part") || fail "$part: the PFS has other values than a plain directory"
done
stop_ranks
