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
        $compiler -g -O1 -rdynamic -o "$W/mpiio-$io" "$HERE/mpi/mpiio.c" || fail "$compiler does not compile mpiio.c"
        try_parts 60 "$io" "mpiio-$io" independent sizes late sieved collective ordered atomic
        # A program that hangs on a plain directory when a rank is late does so now and then on nodes, too.
        [[ " $PARTS " = *" $io.late "* ]] || fail "$io: late: a plain directory does not pass"
    done
    at_least "$least"
    flush_ranks
    parts_are_the_same
    stop_ranks
}
