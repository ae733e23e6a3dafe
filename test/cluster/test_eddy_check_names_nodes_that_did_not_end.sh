#!/usr/bin/env bash
# A node that is killed right after it wrote has told nobody what: eddy check says at least that it did
# not end in order, as soon as others have found it dead, or when all are dead for a minute. Not of a
# node that runs, has left, or is back.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires fuse

checked() { # CODE LINES: what eddy check says, and ends with
    local code=0
    "$EDDY_BUILD/eddy" check "$PFS" >"$W/check.txt" 2>/dev/null || code=$?
    [ "$code" = "$1" ] && [ "$(cat "$W/check.txt")" = "$2" ]
}
unfinished="node a (session test) did not end in order: what it wrote last may be only in its cache"

start_node a "$PFS" --flush-wait 3600
checked 0 "" || fail "of a node that runs it says $(cat "$W/check.txt")"
view=$(ls "$PFS"/.eddyfs-*/test/views/000001)
echo data >"$W/mnt-a/file"
kill_node a
rm -f "$PFS"/.eddyfs-*/test/dirty/* # as if it had been quicker than its list
touch -d "2 minutes ago" "$view"
checked 3 "$unfinished" || fail "of a session that has died it says $(cat "$W/check.txt")"
start_node a "$PFS" --flush-wait 3600
stop_node a
checked 0 "" || fail "of a node that has left it says $(cat "$W/check.txt")"
check_equal "what it wrote" "$(cat "$PFS/file")" data
