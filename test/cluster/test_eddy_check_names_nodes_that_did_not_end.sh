#!/usr/bin/env bash
# A node that is killed right after it wrote has told nobody what: eddy check says at least that it did
# not end in order, when all of the session are dead for a minute. Not of a node that runs, is back, or
# has left. (One that others have found dead: test_eddy_check_names_files_when_all_who_knew_are_dead.)
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
back() { "$EDDY_BUILD/eddy" check "$PFS" 2>/dev/null | grep -q "^node" && return 1 || return 0; }
back || fail "of a node that is back it says $("$EDDY_BUILD/eddy" check "$PFS" 2>&1)"
stop_node a
checked 0 "" || fail "of a node that has left it says $(cat "$W/check.txt")"
check_equal "what it wrote" "$(cat "$PFS/file")" data
