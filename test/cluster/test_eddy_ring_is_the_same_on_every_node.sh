#!/usr/bin/env bash
# eddy ring: every node says the same of a file; the shares of the members add up, and a node whose
# cache is twice as large has twice the share; nodes that are not there need no daemon; what is in no
# mount is refused.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse

mkdir "$PFS/dir"
head -c 5000001 /dev/urandom >"$PFS/dir/file"
start_node a "$PFS" --cache-size 64M
start_node b "$PFS" --cache-size 64M
start_node c "$PFS" --cache-size 128M
are_three() {
    [ "$(status_of a '.members | length')" = 3 ] &&
        [ "$(status_of c '.view.number')" = "$(status_of a '.view.number')" ]
}
requires cmd jq
wait_for 30 are_three || fail "they do not come together"

eddy ring "$W/mnt-a/dir/file" | tail -n +2 >"$W/ring-a"
eddy ring "$W/mnt-b/dir/file" | tail -n +2 >"$W/ring-b"
(cd "$W/mnt-c/dir" && eddy ring file) | tail -n +2 >"$W/ring-c"
check_same "$W/ring-a" "$W/ring-b"
check_same "$W/ring-a" "$W/ring-c"
check_equal "chunks" "$(grep -c '^  [0-9]' "$W/ring-a")" 5
awk '/^  [0-9]/ && ($2 == $3 || $2 !~ /^[abc]$/ || $3 !~ /^[abc]$/) { bad = 1 }
     END { exit bad }' "$W/ring-a" ||
    fail "owner or next are wrong: $(cat "$W/ring-a")"
grep -q '^  latest PFS$' "$W/ring-a" ||
    fail "the latest bytes are not on the PFS: $(cat "$W/ring-a")"

echo new >>"$W/mnt-b/dir/file"
eddy ring "$W/mnt-a/dir/file" | grep -q '^  latest b$' || fail "the claimant is not named"

# shares_of N: N lines of shares, 100 % together.
shares_of() {
    awk -v n="$1" 'NR > 1 { lines++; sum += $2 } END { exit !(lines == n && sum > 99.9 && sum < 100.1) }'
}
eddy ring "$W/mnt-a" | shares_of 3 ||
    fail "the shares do not add up: $(eddy ring "$W/mnt-a")"
check_equal "weights" "$(status_of b '[.members[] | .weight] | sort | join(" ")')" "64 64 128"
eddy ring "$W/mnt-a" | awk '$1 ~ /^[ab]$/ && ($2 < 24.5 || $2 > 25.5) { bad = 1 }
                            $1 == "c" && ($2 < 49.5 || $2 > 50.5) { bad = 1 } END { exit bad }' ||
    fail "the shares do not follow the sizes of the caches: $(eddy ring "$W/mnt-a")"
eddy ring --nodes 5 | shares_of 5 ||
    fail "the shares of five nodes do not add up"
check_equal "chunks on seven nodes" \
    "$(eddy ring --nodes 7 "$PFS/dir/file" | grep -c '^  [0-9].*node[1-7] ')" 5

code=0; eddy ring "$W/mnt-a/none" 2>/dev/null || code=$?
check_equal "code for a file that is not there" "$code" 1
code=0; eddy ring /usr 2>/dev/null || code=$?
check_equal "code outside of any mount" "$code" 1
code=0; eddy ring --nodes 0 2>/dev/null || code=$?
check_equal "code for no nodes" "$code" 2
stop_node a; stop_node b; stop_node c
