#!/usr/bin/env bash
# MPI-IO on one file, a rank on each of three nodes: OpenMPI with OMPIO and with ROMIO. Skipped where OpenMPI is not
# installed (Debian: openmpi-bin, libopenmpi-dev).
# timeout: 300
# both
. "$(dirname "$0")/lib.sh"
requires fuse root namespaces cmd mpicc cmd mpirun
HERE=$(realpath "$(dirname "$0")")
mpicc -O1 -o "$W/mpiio" "$HERE/mpi/mpiio.c" || fail "mpiio.c does not compile"
n=0
for node in a b c; do
    start_faultfs $node
    start_node $node "$W/pfs-$node" --flush-wait 3600 --wait-nodes $((++n))
done
parts=
# Each rank has the mount of its own node at one path, as on a cluster.
mkdir "$W/job"
cat >"$W/rank" <<END
#!/bin/sh
nodes="a b c"
set -- \$nodes "\$@"
shift \$OMPI_COMM_WORLD_RANK
mount --bind "$W/mnt-\$1" "$W/job"
while [ "\$1" != -- ]; do shift; done
shift
exec "\$@"
END
chmod +x "$W/rank"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$W
mkdir "$W/plain"
# run IO SECONDS COMMAND...
run() {
    local io=$1 seconds=$2
    shift 2
    timeout "$seconds" mpirun --oversubscribe -n 3 --mca io "$io" --mca btl self,vader,tcp --mca btl_tcp_if_include lo \
        "$@" >"$W/mpi.out" 2>&1
}
for io in ompio romio321; do
    for part in independent sizes sieved collective ordered atomic; do
        # OMPIO has defects of its own
        if ! run $io 15 "$W/mpiio" "$W/plain/$io" $part; then
            echo "$io: $part: fails on a plain directory, too"
            continue
        fi
        run $io 60 unshare -m "$W/rank" -- "$W/mpiio" "$W/job/$io" $part || fail "$io: $part: $(cat "$W/mpi.out")"
        parts+=" $io.$part"
    done
done
[ "$(wc -w <<<"$parts")" -ge 8 ] || fail "only these were tried:$parts"
for node in a b c; do
    eddy flush "$W/mnt-$node"
done
for file in $parts; do
    cmp "$PFS/$file" "$W/plain/$file" || fail "$file: the PFS has other bytes than a plain directory"
done
for node in a b c; do
    stop_node $node
done
