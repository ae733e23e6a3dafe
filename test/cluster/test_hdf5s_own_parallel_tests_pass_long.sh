#!/usr/bin/env bash
# HDF5's own parallel tests, a rank on each of four nodes: what passes on a plain directory passes here. They are built from
# the sources of the HDF5 that is installed (Debian: openmpi-bin, libhdf5-openmpi-dev; apt-get source hdf5).
# HDF5_SOURCES: where these are; without it the test is skipped. HDF5_TESTS: only these programs; HDF5_IO: only these MPI-IOs.
# timeout: 7200
# both
# long
. "$(dirname "$0")/lib.sh"
requires fuse root namespaces cmd h5pcc cmd mpirun
HERE=$(realpath "$(dirname "$0")")
[ -n "${HDF5_SOURCES-}" ] || skip "needs HDF5_SOURCES, the directory with HDF5's sources"
[ -e "$HDF5_SOURCES/testpar/testphdf5.c" ] || skip "HDF5_SOURCES has no testpar/testphdf5.c"
# shellcheck disable=SC2034 # ranks.sh
RANK_NODES="a b c d"
. "$HERE/mpi/ranks.sh"
TESTS=${HDF5_TESTS:-t_mpi t_bigio testphdf5 t_shapesame t_filters_parallel t_pread t_init_term t_pshutdown t_prestart
    t_cache_image t_cache}
declare -A PARTS=([testphdf5]="t_dset t_file t_file_image t_mdset t_ph5basic t_coll_chunk t_span_tree t_chunk_alloc
    t_filter_read t_prop t_coll_md_read")

# The programs use what is not public, so they are linked with the static library, and compiled with the sources' headers.
compile() {
    (cd "$W/bin" && h5pcc -O1 -w -I"$W/bin" -I"$HDF5_SOURCES/src" -I"$HDF5_SOURCES/test" -I"$HDF5_SOURCES/testpar" "$@") ||
        fail "h5pcc $*"
}
build() {
    local test part source objects=
    mkdir "$W/bin"
    echo 'static const char *config_srcdir = ".";' >"$W/bin/H5srcdir_str.h"
    for part in h5test testframe cache_common; do
        compile -c "$HDF5_SOURCES/test/$part.c"
        objects+=" $part.o"
    done
    # shellcheck disable=SC2086
    (cd "$W/bin" && ar rcs libh5test.a $objects)
    for test in $TESTS; do
        source=
        for part in $test ${PARTS[$test]-}; do
            source+=" $HDF5_SOURCES/testpar/$part.c"
        done
        # shellcheck disable=SC2086
        compile -o "$test" $source libh5test.a
    done
}

# They make their files in the working directory, and start themselves from there. An abort is to end all ranks.
export HDF5TestExpress=${HDF5TestExpress:-1} HDF5_ALARM_SECONDS=3600

build
start_ranks
passed=0
for test in $TESTS; do
    for io in ${HDF5_IO:-ompio romio321}; do
        ln -sf "$W/bin/$test" "$W/plain/$test"
        began=$SECONDS
        code=0
        HDF5_PARAPREFIX="$W/plain" on_plain 900 "$io" "$W/bin/$test" || code=$?
        if [ $code = 124 ]; then
            echo "$test: $io: does not end in 900 s on a plain directory: not tried"
            continue
        elif [ $code != 0 ]; then
            echo "$test: $io: fails on a plain directory, too"
            continue
        fi
        plain=$((SECONDS - began)) began=$SECONDS
        ln -sf "$W/bin/$test" "$W/mnt-a/$test"
        HDF5_PARAPREFIX="$W/job" on_nodes 1800 "$io" "$W/bin/$test" || fail "$test: $io: $(tail -n 60 "$W/mpi.out")"
        echo "$test: $io: $plain s on a plain directory, $((SECONDS - began)) s on nodes"
        passed=$((passed + 1))
    done
done
[ $passed != 0 ] || fail "none of $TESTS passes on a plain directory"
flush_ranks
stop_ranks
