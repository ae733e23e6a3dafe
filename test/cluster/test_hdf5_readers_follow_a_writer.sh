#!/usr/bin/env bash
# HDF5's single writer with many readers (SWMR): one node appends, three follow. What was flushed before a reader looks is
# there, and is neither zero nor old.
# SWMR_SECONDS: how long it appends (20).
# timeout: 300
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd h5pcc
HERE=$(realpath "$(dirname "$0")")
SECONDS_OF_APPENDS=${SWMR_SECONDS:-20}
(cd "$W" && h5pcc -O1 -o swmr "$HERE/mpi/swmr.c") || fail "swmr.c does not compile"
# follow FILE SECONDS READERS_FILE...
follow() {
    local file=$1 seconds=$2 readers=() reader n=0
    shift 2
    rm -f "$W/told"
    "$W/swmr" write "$file" "$W/told" "$seconds" >"$W/writer.out" 2>&1 &
    local writer=$!
    record_process "$W" $writer
    wait_for 30 grep -q ready "$W/writer.out" || fail "the writer does not begin: $(cat "$W/writer.out")"
    for reader; do
        n=$((n + 1))
        "$W/swmr" read "$reader" "$W/told" >"$W/reader-$n.out" 2>&1 &
        readers+=($!)
        record_process "$W" $!
    done
    wait $writer || fail "the writer: $(tail -n 5 "$W/writer.out")"
    for reader in "${readers[@]}"; do
        wait "$reader" || fail "a reader: $(tail -n 5 "$W"/reader-*.out)"
    done
    echo "$(tail -n 1 "$W/writer.out");" "$(tail -qn 1 "$W"/reader-*.out | xargs)"
}
mkdir "$W/plain"
follow "$W/plain/file" 3 "$W/plain/file" "$W/plain/file" "$W/plain/file"
for node in a b c d; do
    start_faultfs $node
    start_node $node "$W/pfs-$node" --flush-wait 0.3
done
follow "$W/mnt-a/file" "$SECONDS_OF_APPENDS" "$W/mnt-b/file" "$W/mnt-c/file" "$W/mnt-d/file"
for node in a b c d; do
    "$W/swmr" all "$W/mnt-$node/file" "$W/told" || fail "what node $node has"
done
for node in a b c d; do
    eddy flush "$W/mnt-$node" || fail "eddy flush of $node"
done
"$W/swmr" all "$PFS/file" "$W/told" || fail "what the PFS has"
for node in a b c d; do
    stop_node $node
done
