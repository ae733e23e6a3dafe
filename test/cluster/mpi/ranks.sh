# shellcheck shell=bash
# For tests with MPI: nodes a, b and c with a rank on each, which sees its own node's mount as $W/job.

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$W

start_ranks() {
    local node n=0
    for node in a b c; do
        start_faultfs $node
        start_node $node "$W/pfs-$node" --flush-wait 3600 --wait-nodes $((++n))
    done
    mkdir "$W/job" "$W/plain"
    # a mount namespace of its own, with the mount bound
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
}

# on_plain SECONDS IO COMMAND...: three ranks, of OpenMPI's MPI-IO named IO; what they say is in $W/mpi.out
on_plain() {
    local seconds=$1 io=$2
    shift 2
    timeout "$seconds" mpirun --oversubscribe -n 3 --mca io "$io" --mca btl self,vader,tcp --mca btl_tcp_if_include lo \
        "$@" >"$W/mpi.out" 2>&1
}

# on_nodes SECONDS IO COMMAND...: the same, each rank on its node
on_nodes() {
    local seconds=$1 io=$2
    shift 2
    on_plain "$seconds" "$io" unshare -m "$W/rank" -- "$@"
}

stop_ranks() {
    local node
    for node in a b c; do
        stop_node $node
    done
}

flush_ranks() {
    local node
    for node in a b c; do
        eddy flush "$W/mnt-$node" || fail "eddy flush of $node"
    done
}
