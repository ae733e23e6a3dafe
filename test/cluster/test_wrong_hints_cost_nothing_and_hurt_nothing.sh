#!/usr/bin/env bash
# Hints that are wrong: in another order than the files are read, never read, of names that are no files, of a file that
# changes on the PFS and on this node, of a reader that stops in between. All that is read is right, writers find room, and what is not
# wanted any more leaves.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
M=$W/mnt-a
FILES=40

hint() { # PATH...: HINT is the process
    "$EDDY_BUILD/eddy" hint "$@" &
    HINT=$!
    record_process "$W" "$HINT"
}

end_hint() {
    kill -TERM "$HINT"
    wait "$HINT" || true
    wait_for 20 hints_are queues 0 || fail "the queue has not ended"
}

hints_are() {
    [ "$(status_of a ".hints.$1")" = "$2" ]
}

is_still() { # all that is admitted has come
    status_of a .hints | jq -e '.admitted > .absent and .admitted == .ahead + .absent' >/dev/null
}

most_is_ahead() {
    status_of a .hints | jq -e '.ahead_bytes > 30000000 and .admitted == .ahead' >/dev/null
}

all_is_right() {
    local i
    for i in "$@"; do
        cmp "$M/file$i" "$PFS/file$i" || fail "file$i has wrong bytes"
    done
}

for i in $(seq $FILES); do head -c 2M /dev/urandom >"$PFS/file$i"; done
mkdir "$PFS/dir"
mkfifo "$PFS/fifo"
start_faultfs a
start_node a "$W/pfs-a" --cache-size 40M

# --- Another order, and names that are no files ---
mapfile -t order < <(seq $FILES)
hint "$M/dir" "$M/fifo" "$M/file1/below" "$M/no/such" "${order[@]/#/$M/file}"
wait_for 20 is_still || fail "another order: $(status_of a .hints)"
all_is_right $(seq $FILES -1 1)
check_equal "names that are no files" "$(status_of a .hints.absent)" 4
end_hint

# --- Never read: the reader goes on to other files, which take the room of those that were left out ---
hint "${order[@]/#/$M/file}"
wait_for 20 most_is_ahead || fail "never read: $(status_of a .hints)"
for i in 1 2 3 4; do head -c 8M /dev/urandom >"$W/new$i"; cp "$W/new$i" "$M/new$i"; done # writers find room
eddy flush "$M"
[ "$(status_of a .counters.hints_given_up)" -gt 0 ] || fail "nothing was given up for writers"
for i in 1 2 3 4; do cmp "$W/new$i" "$M/new$i" || fail "new$i is wrong"; done
end_hint
check_equal "bytes that are ahead for nobody" "$(status_of a .hints.ahead_bytes)" 0
all_is_right $(seq $FILES)
limit=$(status_of a .cache.size)
[ "$(status_of a .cache.used)" -le "$limit" ] || fail "the cache is larger than its limit"

# --- A file that is ahead changes, here and on the PFS ---
hint "$M/file1" "$M/file2" "$M/file3"
wait_for 20 is_still || fail "changes: $(status_of a .hints)"
head -c 3M /dev/urandom >"$W/changed"
cat "$W/changed" >"$M/file1"
cmp "$M/file1" "$W/changed" || fail "what was written here is not read"
eddy flush "$M"
check_same "$PFS/file1" "$W/changed"
head -c 1M /dev/urandom >"$PFS/file2"
touch -d "+2 seconds" "$PFS/file2"
wait_for 20 cmp -s "$M/file2" "$PFS/file2" || fail "what changed on the PFS is not seen"
rm "$M/file3"
[ ! -e "$M/file3" ] || fail "file3 is still there"
end_hint

# --- Files get names that are hinted and never read, when they are on the PFS already: they leave for writers, too ---
hint --no-start "$M"/late1 "$M"/late2 "$M"/late3 "$M"/late4
wait_for 20 hints_are hints 4 || fail "late: $(status_of a .hints)"
for i in 1 2 3 4; do cp "$W/new$i" "$M/.late$i"; done
eddy flush "$M"
for i in 1 2 3 4; do mv "$M/.late$i" "$M/late$i"; done
for i in 5 6 7 8; do cp "$W/new1" "$M/new$i"; done
eddy flush "$M"
for i in 5 6 7 8; do cp "$W/new1" "$M/new$i"; done
eddy flush "$M"
end_hint
before=$(status_of a .reads.pfs_bytes)
for i in 1 2 3 4; do cmp "$W/new$i" "$M/late$i" || fail "late$i is wrong"; done
[ "$(status_of a .reads.pfs_bytes)" -gt "$before" ] || fail "nothing of the late files has left for writers"

# --- No hint is left: what leaves is decided as ever ---
all_is_right 1 2 $(seq 4 $FILES)
check_equal "hints that are left" "$(status_of a '.hints | [.queues, .hints, .admitted, .memory_bytes] | tostring')" "[0,0,0,0]"
stop_node a
