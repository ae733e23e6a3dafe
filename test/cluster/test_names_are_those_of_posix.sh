#!/usr/bin/env bash
# Names and attributes on one node behave as on a local file system: every kind of
# file, hard links, renames, files that are open when their name goes, ACLs and
# extended attributes, times, several users (as root), large directories, deep paths.
# And all of it is on the PFS at once: what is left there is what was left here.
# timeout: 300
# busy
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

options=()
[ "$(id -u)" != 0 ] || options=(-o allow_other)
start_node a "$PFS" "${options[@]}"

mkdir "$W/mnt-a/checks"
python3 -B "$(dirname "$SCRIPT")/posix/run.py" "$W/mnt-a/checks" || fail "see above"
[ -z "$(ls -A "$W/mnt-a/checks")$(ls -A "$PFS/checks")" ] || fail "something is left of the checks"

# The session directory is no name in the mount, for any operation.
hidden=.eddyfs-$(id -u)
[ -d "$PFS/$hidden" ] || fail "no session directory below the PFS directory"
check_equal "names in the root" "$(ls -A "$W/mnt-a")" checks
! stat "$W/mnt-a/$hidden" 2>/dev/null || fail "the session directory is visible"
! mkdir "$W/mnt-a/$hidden" 2>/dev/null || fail "the session directory can be made"
! mv "$W/mnt-a/checks" "$W/mnt-a/$hidden" 2>/dev/null || fail "the session directory can be replaced"

stop_node a
