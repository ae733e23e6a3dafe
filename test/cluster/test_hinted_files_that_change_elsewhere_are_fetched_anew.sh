#!/usr/bin/env bash
# What is ahead, and then changed by another node, or removed or renamed on this one, is not ahead any more; and what then has the name
# is fetched, when it is on the PFS. So is what is made on the PFS by anybody. The reader finds all of it here.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
A=$W/mnt-a B=$W/mnt-b
FILES=8

hints_are() { # AHEAD ABSENT, on b
    status_of b .hints | jq -e ".ahead == $1 and .absent == $2" >/dev/null
}

hints_are_not_all() {
    [ "$(status_of b .hints.ahead)" = $((FILES - 1)) ]
}

wait_hints() { # AHEAD ABSENT WHEN
    wait_for 30 hints_are "$1" "$2" || fail "$3: $(status_of b .hints)"
}

for i in $(seq $FILES); do head -c 300000 /dev/urandom >"$PFS/file$i"; done
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a" --flush immediate
start_node b "$W/pfs-b" --wait-nodes 2
mapfile -t names < <(seq -f "$B/file%.0f" $FILES)
"$EDDY_BUILD/eddy" hint "${names[@]}" "$B/later" &
hint=$!
record_process "$W" "$hint"
wait_hints $FILES 1 "at the beginning"

# --- Written by another node ---
head -c 200000 /dev/urandom >"$W/new3"
exec 9>"$A/file3"
cat "$W/new3" >&9
wait_for 30 hints_are_not_all || fail "while file3 is written: $(status_of b .hints)"
exec 9>&-
wait_hints $FILES 1 "after file3 was written"

# --- Truncated by another node ---
truncate -s 1000 "$A/file4"
wait_for 30 cmp -s "$A/file4" "$PFS/file4" || fail "file4 is not on the PFS"
wait_hints $FILES 1 "after file4 was cut"

# --- Removed, and renamed, on this node ---
rm "$B/file6"
wait_hints $((FILES - 1)) 2 "after file6 was removed"
mv "$B/file7" "$B/other"
wait_hints $((FILES - 2)) 3 "after file7 was renamed"
mv "$B/other" "$B/file7"
wait_hints $((FILES - 1)) 2 "after file7 has its name again"

# --- Made on the PFS ---
head -c 50000 /dev/urandom >"$PFS/later"
wait_hints $FILES 1 "after another was made on the PFS"

cmp "$B/file3" "$W/new3" || fail "file3 has wrong bytes"
cmp "$B/later" "$PFS/later" || fail "the file that was made on the PFS has wrong bytes"
for i in 1 2 4 5 7 8; do cmp "$B/file$i" "$PFS/file$i" || fail "file$i has wrong bytes"; done
check_equal "bytes that the reader waited for" "$(status_of b '.reads | .pfs_bytes + .peer_bytes')" 0
kill -TERM "$hint"
wait "$hint" || true
stop_node a
stop_node b
