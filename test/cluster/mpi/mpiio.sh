# shellcheck shell=bash
# For tests of MPI-IO (mpiio.c): after ranks.sh.

# mpi_io_is_right LEAST IO...: all parts with each IO, of which LEAST must work on a plain directory.
mpi_io_is_right() {
    local least=$1 io compiler
    shift
    start_ranks
    for io; do
        compiler=mpicc
        [ "$io" != mpich ] || compiler=mpicc.mpich
        $compiler -O1 -o "$W/mpiio-$io" "$HERE/mpi/mpiio.c" || fail "$compiler does not compile mpiio.c"
        try_parts 15 "$io" "mpiio-$io" independent sizes sieved collective ordered atomic
    done
    at_least "$least"
    flush_ranks
    parts_are_the_same
    stop_ranks
}
