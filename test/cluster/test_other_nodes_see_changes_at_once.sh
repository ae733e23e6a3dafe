#!/usr/bin/env bash
# What one node does to a file, another one sees at once: sizes, bytes and attributes, by descriptors old and new, by
# names and after listings, under locks, with a file's claim here, there, or given back.
# timeout: 240
# both
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse
for policy in end immediate; do
    start_node "a-$policy" "$PFS" --flush "$policy"
    start_node "b-$policy" "$PFS" --flush "$policy" --wait-nodes 2
    python3 "$(dirname "$0")/looks.py" "$W/mnt-a-$policy" "$W/mnt-b-$policy" "$EDDY_BUILD/eddy"
    stop_node "a-$policy"
    stop_node "b-$policy"
    rm -f "$PFS"/*
done
