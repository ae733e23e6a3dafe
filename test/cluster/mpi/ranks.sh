# shellcheck shell=bash
# For tests with MPI: nodes (RANK_NODES) with a rank on each, which sees its own node's mount as $W/job.

: "${RANK_NODES:=a b c}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$W

start_ranks() {
    local node n=0
    for node in $RANK_NODES; do
        start_faultfs "$node"
        start_node "$node" "$W/pfs-$node" --flush-wait 3600 --wait-nodes $((++n))
    done
    mkdir "$W/job" "$W/plain"
    # a mount namespace of its own, with the mount bound
    cat >"$W/rank" <<END
#!/bin/sh
nodes="$RANK_NODES"
set -- \$nodes "\$@"
shift \$OMPI_COMM_WORLD_RANK
mount --bind "$W/mnt-\$1" "$W/job"
while [ "\$1" != -- ]; do shift; done
shift
cd "$W/job" || exit
exec "\$@"
END
    chmod +x "$W/rank"
}

# on_plain SECONDS IO COMMAND...: as many ranks, of OpenMPI's MPI-IO named IO; what they say is in $W/mpi.out
on_plain() {
    local seconds=$1 io=$2
    shift 2
    timeout "$seconds" mpirun --oversubscribe -n "$(wc -w <<<"$RANK_NODES")" -wdir "$W/plain" --mca io "$io" --mca btl self,vader,tcp --mca btl_tcp_if_include lo \
        "$@" >"$W/mpi.out" 2>&1
}

# on_nodes SECONDS IO COMMAND...: the same, each rank on its node, its working directory the mount
on_nodes() {
    local seconds=$1 io=$2
    shift 2
    on_plain "$seconds" "$io" unshare -m "$W/rank" -- "$@"
}

stop_ranks() {
    local node
    for node in $RANK_NODES; do
        stop_node "$node"
    done
}

flush_ranks() {
    local node
    for node in $RANK_NODES; do
        eddy flush "$W/mnt-$node" || fail "eddy flush of $node"
    done
}
