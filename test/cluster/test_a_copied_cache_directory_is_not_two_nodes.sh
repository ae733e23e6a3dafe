#!/usr/bin/env bash
# A copy of a cache directory has the same identity. While the original's daemon lives, a start on the copy is refused,
# and both logs say why; the original goes on, and so does a restart of it. If the two cannot see each other, the one
# that the newest view has goes on: the other one ends, says why, and keeps what is not on the PFS; recover writes it.
# timeout: 240
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

code_of() { code=0; wait "$1" || code=$?; }
# start_copy [OPTION...]: a daemon on the copy, as node copy; its job is $COPY
# shellcheck disable=SC2120
start_copy() {
    mkdir -p "$W/mnt-copy"
    record_mount "$W" "$W/mnt-copy"
    "$EDDY_BUILD/eddyfs" -f --node copy --listen 127.0.0.1 --cache-dir "$W/cache-copy" --session test \
        --log "$W/copy.log" "$@" "$PFS" "$W/mnt-copy" >>"$W/copy.out" 2>&1 &
    COPY=$!
    record_process "$W" "$COPY"
}

start_node a "$PFS" --flush end
echo one >"$W/mnt-a/file"
stop_node a
start_node a "$PFS" --flush end
echo two >"$W/mnt-a/file"
# As it was when a was stopped, and as it is now: of one start, of another one, and while it runs.
cp -a "$W/cache-a" "$W/cache-copy"
rm "$W/cache-copy/control"
before=$(status_of a .view.number)
# shellcheck disable=SC2119
start_copy
code_of "$COPY"
check_equal "code of a start on a copy" "$code" 1
grep -q "identity of this cache directory" "$W/copy.out" || fail "the copy says: $(cat "$W/copy.out")"
grep -q "cache directory was copied" "$W/a.log" || fail "the original says nothing of it"
check_equal "the original's view" "$(status_of a .view.number)" "$before"
check_equal "what the original has" "$(cat "$W/mnt-a/file")" two
code=0
eddy recover "$W/cache-copy" >"$W/recovered" 2>&1 || code=$?
check_equal "code of eddy recover of a copy" "$code" 1
grep -q "identity of this cache directory" "$W/recovered" || fail "eddy recover says: $(cat "$W/recovered")"
check_equal "the PFS after that" "$(cat "$PFS/file")" one

# The original dies, and is started again: its port refuses, and it goes on at once.
crash_node a
start_node a "$PFS" --flush end
check_equal "what it has after a restart" "$(cat "$W/mnt-a/file")" two
stop_node a
check_equal "the file on the PFS" "$(cat "$PFS/file")" two

# They cannot see each other: the original is stopped, and comes back when the copy is in its place.
start_node a "$PFS" --flush end
rm -rf "$W/cache-copy"
cp -a "$W/cache-a" "$W/cache-copy"
rm "$W/cache-copy/control"
echo three >"$W/mnt-a/file"
echo only >"$W/mnt-a/other"
pause "${NODE_PID[a]}"
# shellcheck disable=SC2119
start_copy
waits_for_it() { grep -q 'waits to join the session.*identity of this cache directory, does not answer' "$W/copy.log"; }
wait_for 30 waits_for_it || fail "the copy does not wait: $(tail "$W/copy.log")"
copy_is_there() { [ "$(stat -f -c %t "$W/mnt-copy")" = 65735546 ]; }
wait_for 60 copy_is_there || fail "the copy does not go on: $(tail "$W/copy.log")"
kill -CONT "${NODE_PID[a]}"
code_of "${JOB[node-a]}"
check_equal "code of the original" "$code" 3
grep -q "another daemon is in this node's place in the session: node copy" "$W/a.log" ||
    fail "the original does not say why it ends"
grep -q "error: file: .* bytes are not on the PFS" "$W/a.log" || fail "it does not name what it keeps"
is_mounted "$W/mnt-a" && fail "its mount is still there"
unset "NODE_PID[a]"
check_equal "the file on the PFS" "$(cat "$PFS/file")" two
echo new >"$W/mnt-copy/new"
eddy umount "$W/mnt-copy" || fail "eddy umount of the copy ended with $?"
code_of "$COPY"
eddy recover "$W/cache-a" || fail "eddy recover of the original ended with $?"
check_equal "what the original had" "$(cat "$PFS/file" "$PFS/other")" "three
only"
