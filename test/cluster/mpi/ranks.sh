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
    # Collective writes are done by one rank of each host: here, as if each rank had a host, by all.
    export ROMIO_HINTS=$W/hints OMPI_MCA_io_ompio_num_aggregators=$n
    printf 'cb_config_list *:*\ncb_nodes %d\n' "$n" >"$ROMIO_HINTS"
    # a mount namespace of its own, with the mount bound
    cat >"$W/rank" <<END
#!/bin/sh
nodes="$RANK_NODES"
set -- \$nodes "\$@"
shift \${OMPI_COMM_WORLD_RANK-\${PMI_RANK:?}}
mount --bind "$W/mnt-\$1" "$W/job"
while [ "\$1" != -- ]; do shift; done
shift
cd "$W/job" || exit
exec "\$@"
END
    chmod +x "$W/rank"
}

# Of the two runs of a test that is marked "both", the one without passthrough lends parts for every write, however short; in
# the other one short writes go to the claimant at first (docs/mpi.md). For programs whose pieces are short. After start_ranks.
lend_short_writes_in_one_run() {
    [[ ${EDDY_TEST_OPTIONS-} != *--no-passthrough* ]] || setfattr -n user.eddy.shared -v always "$W/mnt-${RANK_NODES%% *}"
}

# The MPI-IOs of the OpenMPI that is installed, by the names that mpirun knows them by.
openmpis_ios() {
    ompi_info --parsable | sed -n 's/^mca:io:\([a-z0-9]*\):version:.*/\1/p' | sort -u
}

# processes_below PROCESS: what it has started, and what that has started.
processes_below() {
    local child
    for child in $(pgrep -P "$1" || true); do
        echo "$child"
        processes_below "$child"
    done
}

# rank_of PROCESS: the number of the rank that it is; nothing if it is none.
rank_of() {
    tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | sed -n -E 's/^(OMPI_COMM_WORLD_RANK|PMI_RANK)=//p' | head -n 1
}

# where_ranks_are PROCESS: in which calls the ranks are that it has started: the kernel's functions, and the program's
# where gdb is installed. One that waits for an answer of the file system may not stop for gdb: so gdb is not waited for long.
where_ranks_are() {
    local process rank
    for process in $(processes_below "$1"); do
        rank=$(rank_of "$process") || true
        [ -n "$rank" ] || continue
        echo "rank $rank: $(tr '\0' ' ' <"/proc/$process/cmdline" || true)"
        echo "  in the kernel: $(sed -n -E 's/^\[<0>\] ([^+]*).*/\1/p' "/proc/$process/stack" 2>/dev/null | paste -s -d' ')"
        ! command -v gdb >/dev/null || timeout -s KILL 10 gdb -p "$process" -batch -ex bt 2>/dev/null | sed -n -E 's/^#[0-9]+ +(0x[0-9a-f]+ in )?/  /p' || true
    done
}

# within SECONDS COMMAND...: starts ranks. Those that have not ended by then it ends, after it has told where each of them is;
# it returns 124 then, as timeout does.
within() {
    local seconds=$1 job
    shift
    in_background "$@"
    job=$!
    if wait_for "$seconds" has_ended "$job"; then
        wait "$job"
        return
    fi
    echo "the ranks have not ended in $seconds s"
    where_ranks_are "$job"
    kill "$job"
    wait "$job" || true
    return 124
}

has_ended() {
    ! kill -0 "$1" 2>/dev/null
}

# on_plain SECONDS IO COMMAND...: as many ranks, of OpenMPI's MPI-IO named IO or of mpich; what they say is in $W/mpi.out
on_plain() {
    local seconds=$1 io=$2 start=(mpirun --oversubscribe)
    shift 2
    case $io in
        mpich) start=(mpiexec.mpich) ;;
        *) start+=(--mca io "$io" --mca btl "self,vader,tcp" --mca btl_tcp_if_include lo) ;;
    esac
    within "$seconds" "${start[@]}" -n "$(wc -w <<<"$RANK_NODES")" -wdir "$W/plain" "$@" >"$W/mpi.out" 2>&1
}

# on_nodes SECONDS IO COMMAND...: the same, each rank on its node, its working directory the mount
on_nodes() {
    local seconds=$1 io=$2
    shift 2
    on_plain "$seconds" "$io" unshare -m "$W/rank" -- "$@"
}

# try_parts SECONDS IO PROGRAM PART...: each part of the program, on a plain directory and then on nodes. The files of
# what was done on both are $W/plain/IO.PART and $PFS/IO.PART, these after flush_ranks; PARTS has their names. A part that
# fails on a plain directory, or does not end there in SECONDS, is not tried: MPI-IOs have defects of their own.
PARTS=
try_parts() {
    local seconds=$1 io=$2 program=$3 part
    shift 3
    for part; do
        if ! on_plain "$seconds" "$io" "$W/$program" "$W/plain/$io" "$part"; then
            echo "$io: $part: fails on a plain directory, too: $(cat "$W/mpi.out")"
            continue
        fi
        on_nodes 100 "$io" "$W/$program" "$W/job/$io" "$part" || fail "$io: $part: $(cat "$W/mpi.out")"
        PARTS+=" $io.$part"
    done
}

# at_least N: of the parts must have been tried.
at_least() {
    [ "$(wc -w <<<"$PARTS")" -ge "$1" ] || fail "only these were tried:$PARTS"
}

# The PFS has the same files as the plain directory, byte by byte: IO.PART, or IO.PART.NUMBER of a part that makes several.
parts_are_the_same() {
    local part file
    for part in $PARTS; do
        for file in "$W/plain/$part" "$W/plain/$part".*; do
            [ ! -e "$file" ] || cmp "$PFS/${file##*/}" "$file" || fail "${file##*/}: the PFS has other bytes than a plain directory"
        done
    done
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
