#!/usr/bin/env bash
# A file whose latest bytes are on a node that died: its name is listed, stat and open
# say EIO, it can be renamed and removed; what is said to fail is not done, and what is done is
# not said to fail (chmod, chown, times); its neighbours are not concerned. When the
# node is back, what was renamed has its bytes, and what was removed stays removed.
# timeout: 150
. "$(dirname "$0")/lib.sh"
requires fuse

start_node a "$PFS" --flush-wait 3600
start_node b "$PFS" --flush-wait 3600
mkdir "$W/mnt-a/d"
echo flushed >"$W/mnt-a/d/flushed"
eddy flush "$W/mnt-a"
for name in lost removed renamed; do
    echo "$name" >"$W/mnt-a/d/$name"
done
check_equal "before" "$(cat "$W/mnt-b/d/lost")" lost
crash_node a

says_eio() { # COMMAND...
    ! LC_ALL=C timeout 60 "$@" 2>"$W/said" >/dev/null && grep -q 'Input/output error' "$W/said"
}
wait_for 60 says_eio cat "$W/mnt-b/d/lost" || fail "a lost file: $(cat "$W/said")"
says_eio stat "$W/mnt-b/d/lost" || fail "stat of a lost file: $(cat "$W/said")"
# By calls that do not look at the file first, as programs of the shell do.
changes=('chmod 0640' 'utime 1, 2')
[ "$(id -u)" != 0 ] || changes+=('chown 1, 1')
for change in "${changes[@]}"; do
    before=$(stat -c '%a %u %g %Y' "$PFS/d/lost")
    code=0
    timeout 60 perl -e "$change"', $ARGV[0] or die "$!\n"' "$W/mnt-b/d/lost" 2>"$W/said" || code=$?
    after=$(stat -c '%a %u %g %Y' "$PFS/d/lost")
    [ "$code" = 0 ] || [ "$before" = "$after" ] || fail "$change of a lost file is done and fails: $(cat "$W/said")"
    [ "$code" != 0 ] || [ "$before" != "$after" ] || fail "$change of a lost file is not done and does not fail"
done
check_equal "mode of a lost file" "$(stat -c %a "$PFS/d/lost")" 640
check_equal "a file that is not lost" "$(timeout 60 cat "$W/mnt-b/d/flushed")" flushed
check_equal "names" "$(timeout 60 find "$W/mnt-b/d" -mindepth 1 -printf '%f\n' 2>/dev/null | sort | tr '\n' ' ')" \
    "flushed lost removed renamed "
timeout 60 unlink "$W/mnt-b/d/removed" || fail "a lost file cannot be removed"
# shellcheck disable=SC2016 # perl's variables
timeout 60 perl -e 'rename($ARGV[0], $ARGV[1]) or die "$!\n"' "$W/mnt-b/d/renamed" "$W/mnt-b/d/other" ||
    fail "a lost file cannot be renamed"
grep -q 'node a.*d/lost' "$W/b.log" || fail "the log does not name the file and the node"

# Back: what was renamed is flushed to its new name. What was removed is not made again, and nobody is told of it.
start_node a "$PFS" --flush-wait 3600
wait_for 60 grep -q lost "$W/mnt-b/d/lost" 2>/dev/null || fail "the lost file is not back"
check_equal "renamed while it was lost" "$(cat "$W/mnt-a/d/other")" renamed
eddy flush "$W/mnt-a" >"$W/flush.out" 2>&1 || fail "not flushed: $(cat "$W/flush.out")"
check_equal "names on the PFS" "$(ls -x "$PFS/d")" "flushed  lost  other"
check_equal "bytes on the PFS" "$(cat "$PFS/d/lost" "$PFS/d/other")" "lost
renamed"
