#!/usr/bin/env bash
# Four nodes, each with networks and mounts of its own and a cache smaller than the tree, read all of
# it again and again, while one is killed, restarted, cut off and stopped: every byte is right, no
# read waits longer than 15 s, no open longer than 30 s. What the others have is not read from the
# PFS again: after a death the lost share is, once, and then no more than before; after a return
# next to nothing. At the end a table of the epochs' times, with --on-failure redirect (long form),
# and without a cache.
# timeout: 300
#
# EPOCH_MIB: the tree's size (48); EPOCH_ALL=1: also what takes long: cut off, stopped until it is
# taken out, redirect.
. "$(dirname "$0")/lib.sh"
requires root fuse namespaces cmd jq cmd python3
in_namespaces
HERE=$(dirname "$SCRIPT")
MIB=${EPOCH_MIB:-48}
ALL=${EPOCH_ALL:-}
NODES=(n1 n2 n3 n4)
CACHE=$((MIB * 6 / 10))M # with what the store does not use up: a third of the tree and its replicas

mkdir "$PFS/tree"
for i in $(seq 1 "$MIB"); do head -c $((1048576 + i * 4096 % 70000 - 32768)) /dev/urandom >"$PFS/tree/$i"; done
(cd "$PFS/tree" && sha256sum -- *) >"$W/sums"
TREE=$(find "$PFS/tree" -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')

start() { # NODE [OPTION...]
    local name=$1
    shift
    start_node "$name" "$W/pfs-$name" --cache-size "$CACHE" --chunk-size 256K --no-passthrough "$@"
}
start_all() { # [OPTION...]
    local n
    for n in "${NODES[@]}"; do start "$n" "$@"; done
    for n in "${NODES[@]}"; do wait_for 30 in_view "$n" 4 || fail "$n is not in one session with the others"; done
}
in_view() { # NODE COUNT
    [ "$(status_of "$1" '.members | length')" = "$2" ]
}
pfs_bytes() { # that were read by NODE...
    local n sum=0
    for n in "$@"; do sum=$((sum + $(stat_of "$n" read_bytes))); done
    echo "$sum"
}

EPOCH=0
EPOCH_PIDS=()
# begin_epoch MOUNTS NODE...: all read, in orders of their own; MOUNTS is mnt or pfs.
begin_epoch() {
    local where=$1 n
    shift
    EPOCH=$((EPOCH + 1))
    EPOCH_PIDS=()
    for n in "$@"; do
        on "$n" python3 "$HERE/epoch.py" "$W/$where-$n/tree" "$W/sums" "$EPOCH-$n" \
            >"$W/epoch-$n.txt" 2>"$W/epoch-$n.out" &
        EPOCH_PIDS+=("$n:$!")
    done
}
# end_epoch NAME NODE...: those read on, and must have read all; a line of the table: the slowest.
end_epoch() {
    local name=$1 entry n line time=0 open read
    shift
    for entry in "${EPOCH_PIDS[@]}"; do
        n=${entry%:*}
        if ! wait "${entry#*:}"; then
            [[ " $* " != *" $n "* ]] || fail "$name: $n: $(cat "$W/epoch-$n.out")"
            continue
        fi
        read -r line open read <"$W/epoch-$n.txt"
        time=$(printf '%s\n%s\n' "$time" "$line" | sort -g | tail -n 1)
        awk -v o="$open" -v r="$read" 'BEGIN { exit !(o <= 30 && r <= 15) }' ||
            fail "$name: on $n an open took $open s, a read $read s"
        SLOW_READ=$(printf '%s\n%s\n' "${SLOW_READ:-0}" "$read" | sort -g | tail -n 1)
    done
    LAST_TIME=$time
}
row() { # NAME
    printf '%-34s %8.2f %8.1f %8.2f\n' "$1" "$LAST_TIME" "$(awk -v b="$READ" 'BEGIN { print b / 1048576 }')" \
        "${SLOW_READ:-0}" >>"$W/table"
    SLOW_READ=0
}
# epoch NAME NODE...: a whole one of these nodes; READ is what they read from the PFS.
epoch() {
    local name=$1 before
    shift
    before=$(pfs_bytes "$@")
    begin_epoch mnt "$@"
    end_epoch "$name" "$@"
    READ=$(($(pfs_bytes "$@") - before))
    row "$name"
}
at_most() { # WHAT BYTES LIMIT
    [ "$2" -le "$3" ] || fail "$1: $2 bytes were read from the PFS, expected $3 at most; $(cat "$W/table")"
}
out_of() { # NODE: the others have a view without it
    wait_for 40 in_view n1 3 || fail "$1 is not taken out of the session"
}
# Also nsenter, which stops itself with what it waits for.
go_on() {
    kill -CONT "${NODE_PID[$1]}" "${JOB[node-$1]}"
}
bytes_read() { # by applications on n1
    status_of n1 '.reads | .local_bytes + .peer_bytes + .pfs_bytes'
}
has_read() {
    [ "$(bytes_read)" -ge "$1" ]
}
SLACK=$((TREE / 100))

for n in "${NODES[@]}"; do
    add_host "$n"
    start_faultfs "$n"
done
printf '%-34s %8s %8s %8s\n' "epoch of $MIB MiB, 4 nodes" seconds "PFS MiB" "longest read" >"$W/table"
begin_epoch pfs "${NODES[@]}"
end_epoch "no cache" "${NODES[@]}"
READ=$((4 * TREE))
row "without a cache"

start_all
before=$(pfs_bytes n4)
epoch "cold" "${NODES[@]}"
LOST=$(($(pfs_bytes n4) - before)) # n4's own share: each owner reads its own
at_most "the cold epoch" "$READ" $((TREE + SLACK))
epoch "warm: no failure" "${NODES[@]}"
WARM=$READ
at_most "the warm epoch" "$WARM" $SLACK

# (a) Killed in the middle of an epoch. What it had is read again by who takes over, once.
begin=$(pfs_bytes n1 n2 n3)
some=$(($(bytes_read) + TREE / 5))
begin_epoch mnt "${NODES[@]}"
wait_for 20 has_read "$some" || fail "the epoch does not go on"
kill_host n4
end_epoch "killed" n1 n2 n3
READ=$(($(pfs_bytes n1 n2 n3) - begin))
row "n4 is killed meanwhile"
out_of n4
epoch "after the death: recache" n1 n2 n3
at_most "both epochs after the death" $(($(pfs_bytes n1 n2 n3) - begin)) $((LOST + LOST * 3 / 100 + 2 * WARM + SLACK))
epoch "the next one" n1 n2 n3
at_most "the second epoch after the death" "$READ" $((WARM + SLACK))

# (d) It is back, with its cache directory: what it had is there, and nothing is read again.
add_host n4
start_faultfs n4
start n4
wait_for 40 in_view n1 4 || fail "n4 does not come back"
epoch "n4 is back" "${NODES[@]}"
at_most "the epoch after the return" "$READ" $((WARM + SLACK))

# (c) Stopped for 5 s: served around, and not taken out if nobody had to.
begin_epoch mnt n1 n2 n3
pause "${NODE_PID[n4]}"
sleep 5 # how long it hangs is what is shown
go_on n4
end_epoch "n4 hangs for 5 s" n1 n2 n3
READ=0
row "n4 hangs for 5 s meanwhile"
wait_for 60 in_view n4 4 || fail "n4 is not in the session again"
wait_for 60 in_view n1 4 || fail "n4 is not in the session of n1 again"
epoch "after it" "${NODES[@]}"

if [ -n "$ALL" ]; then
    # (b) Cut off: nothing tells it but silence.
    begin=$(pfs_bytes n1 n2 n3)
    begin_epoch mnt n1 n2 n3
    link_down n4
    end_epoch "cut off" n1 n2 n3
    READ=$(($(pfs_bytes n1 n2 n3) - begin))
    row "n4 is cut off meanwhile"
    out_of n4
    epoch "after that" n1 n2 n3
    at_most "both epochs after it was cut off" $(($(pfs_bytes n1 n2 n3) - begin)) \
        $((LOST + LOST * 3 / 100 + 2 * WARM + SLACK))
    link_up n4
    wait_for 120 in_view n1 4 || fail "n4 does not join again when its link is back"
    epoch "the link is back" "${NODES[@]}"

    # (c) Stopped for longer than it takes to be taken out.
    begin_epoch mnt n1 n2 n3
    pause "${NODE_PID[n4]}"
    end_epoch "n4 hangs" n1 n2 n3
    READ=0
    row "n4 hangs meanwhile"
    out_of n4
    go_on n4
    wait_for 120 in_view n1 4 || fail "n4 does not join again when it goes on"
    epoch "n4 goes on" "${NODES[@]}"
fi
for n in "${NODES[@]}"; do stop_node "$n"; done

if [ -n "$ALL" ]; then
    for n in "${NODES[@]}"; do rm -rf "$W/cache-$n"; done
    start_all --on-failure redirect
    epoch "cold, to redirect later" "${NODES[@]}"
    kill_host n4
    out_of n4
    epoch "after the death: redirect" n1 n2 n3
    first=$READ
    epoch "the next one: redirect" n1 n2 n3
    [ "$READ" -gt $((LOST / 2)) ] || fail "redirect: the second epoch reads $READ bytes from the PFS, the first $first"
    for n in n1 n2 n3; do stop_node "$n"; done
fi
cat "$W/table"
