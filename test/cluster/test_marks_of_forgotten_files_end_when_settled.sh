#!/usr/bin/env bash
# A mark of eddy forget lasts until its node has put beside the file what it is about, and no longer. A node that was cut off
# and comes back without a restart puts it aside with its next flush, and claims that it makes later are not void; marks of
# nothing go. While the file's directory is gone the mark stays, over restarts, and goes when there is one again.
# timeout: 300
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

for n in a b; do start_node "$n" "$PFS" --flush-wait 3600; done
mkdir "$W/mnt-a/d" "$W/mnt-a/e"
for name in d/gone e/kept; do echo "old $name" >"$W/mnt-a/$name"; done
eddy flush "$W/mnt-a"
echo "new e/kept" >"$W/mnt-a/e/kept"
marks() { find "$PFS"/.eddyfs-*/test/forgotten -type f ! -name '.*'; }
marks_left() { [ "$(marks | wc -l)" = "$1" ]; }
members_seen() { [ "$(status_of b '.members | length')" = "$1" ]; }
check_equal "what b reads" "$(cat "$W/mnt-b/e/kept")" "new e/kept"

# a stands still, and comes back while its file is being forgotten
pause "${NODE_PID[a]}"
wait_for 60 members_seen 1 || fail "no view without a is made"
eddy forget "$W/mnt-b/e/kept" >"$W/forget.out" 2>&1 &
forget=$!
record_process "$W" "$forget"
wait_for 30 marks_left 1 || fail "no mark is made: $(cat "$W/forget.out")"
mark=$(marks)
# A mark of a file that a has no claim on, as a forget leaves it that a return has ended.
printf 'eddyfs forgotten 1\nincarnation 1\nnumber 1\n' >"$(dirname "$mark")/0123456789abcdef0123456789abcdef.${mark##*.}"
kill -CONT "${NODE_PID[a]}"
wait_for 60 members_seen 2 || fail "a does not join again"
wait "$forget" || true
none_of_nothing() { ! marks | grep -q /0123456789abcdef; }
wait_for 60 none_of_nothing || fail "a mark of nothing stays: $(marks)"
grep -q 'e/kept: was forgotten by an operator' "$W/a.log" || fail "a does not say what was forgotten"
eddy flush "$W/mnt-a"
check_equal "beside it" "$(cat "$PFS/e/kept.eddy-conflict-a")" "new e/kept"
check_equal "the file" "$(cat "$W/mnt-b/e/kept")" "old e/kept"
check_equal "marks that are left" "$(marks)" ""
echo "later e/kept" >"$W/mnt-a/e/kept"
check_equal "a's next claim" "$(cat "$W/mnt-b/e/kept")" "later e/kept"
echo "new d/gone" >"$W/mnt-a/d/gone"

# The directory of a forgotten file is gone, and a is started again, twice
crash_node a
wait_for 60 members_seen 1 || fail "no view without a is made"
eddy forget "$W/mnt-b/d/gone" || fail "eddy forget ended with $?"
rm -r "$W/mnt-b/d"
wait_for 30 marks_left 1 || fail "marks: $(marks)"
for _ in 1 2; do
    start_node a "$PFS" --flush-wait 3600
    wait_for 60 members_seen 2 || fail "a does not come back"
    check_equal "a claim from before the mark" "$(timeout 60 cat "$W/mnt-b/e/kept")" "later e/kept"
    marks_left 1 || fail "the mark of what is not settled is gone"
    [ ! -e "$PFS/d" ] || fail "the directory is back"
    crash_node a
    wait_for 60 members_seen 1 || fail "no view without a is made"
done
start_node a "$PFS" --flush-wait 3600
wait_for 60 members_seen 2 || fail "a does not come back"
mkdir "$PFS/d"
eddy flush "$W/mnt-a"
check_equal "beside it" "$(cat "$PFS/d/gone.eddy-conflict-a")" "new d/gone"
[ ! -e "$PFS/d/gone" ] || fail "what was forgotten is flushed into its file"
check_equal "marks that are left" "$(marks)" ""
check_equal "what was not forgotten" "$(cat "$PFS/e/kept")" "later e/kept"
stop_node a
stop_node b
