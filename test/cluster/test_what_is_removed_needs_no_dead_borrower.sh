#!/usr/bin/env bash
# Node b has borrowed parts of a file and dies, and the file is removed: its claimant leaves in order, and b's cache directory has
# nothing left to bring to the PFS.
# timeout: 240
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
start_abc
start_ranks shared "a=$W/mnt-a" "b=$W/mnt-b" "c=$W/mnt-c"
rank open a
rank open b
rank write a 0 4 1
rank write b 4 4 1
kill_node b
rank close a
rm "$W/mnt-a/shared"
stop_node a
only_b() { [ "$(status_of c '[.absent[].name] | join(" ")')" = b ]; }
wait_for 60 only_b || fail "absent are $(status_of c '[.absent[].name] | join(" ")')"
timeout 60 sh -c "echo new >'$W/mnt-c/shared'" || fail "a new file of that name: $?"
"$EDDY_BUILD/eddy" recover "$W/cache-b" || fail "eddy recover of b ended with $?"
stop_node c
check_equal "the new file" "$(cat "$PFS/shared")" new
check_equal "sessions that are left" "$(find "$PFS" -mindepth 2 -maxdepth 2 -path '*/.eddyfs-*' -type d)" ""
