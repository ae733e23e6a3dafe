#!/usr/bin/env bash
# eddy status: the keys that scripts rely on; the three sources of reads add up to what was
# read; --all finds every mount; its exit codes.
# timeout: 120
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

mkdir "$PFS/tree"
for i in 1 2 3 4 5 6 7 8 9; do
    head -c $((i * 300000)) /dev/urandom >"$PFS/tree/$i"
done
size=$(cat "$PFS"/tree/* | wc -c)
start_node a "$PFS"
start_node b "$PFS"

cat "$W/mnt-a"/tree/* >/dev/null
cat "$W/mnt-b"/tree/* >/dev/null
eddy status --json "$W/mnt-b" >"$W/status.json"
jq -e '
    .node == "b" and .session == "test" and (.pfs | type) == "string"
    and (.mountpoint | endswith("/mnt-b"))
    and (.passthrough | type) == "boolean"
    and (.cache | (.dir | endswith("/cache-b")) and .size > 0 and .used > 0 and .dirty == 0)
    and (.flush | .policy == "idle" and (.state | type) == "string" and .flushed_bytes == 0
         and .pending_bytes == 0 and .failed_files == []
         and .low_bytes > 0 and .low_bytes < .high_bytes and .high_bytes < .full_bytes
         and .draining == false and .oldest_ms == 0 and .age_ms == 600000
         and .wait_ms == 1000 and .wait_auto == false)
    and (.reads | (.local_bytes | type) == "number" and (.peer_bytes | type) == "number"
         and (.pfs_bytes | type) == "number")
    and .view.number >= 1 and .view.joined
    and ([.members[] | .name] | sort) == ["a", "b"]
    and ([.members[] | select(.state == "ok" and (.address | startswith("127.0.0.1:")))]
         | length) == 2
    and (.counters.read_pfs_bytes | type) == "number"
    and (.end | not)' "$W/status.json" >/dev/null ||
    fail "keys are missing or wrong: $(cat "$W/status.json")"
jq -r 'keys[], "passthrough_why"' "$W/status.json" >"$W/keys"
sed -n '/^\.Sh JSON/,/^\.Sh COUNTERS/p' "$(dirname "$SCRIPT")/../../packaging/man/eddy.1" >"$W/manual"
while read -r key; do
    grep -q "^\.It.* $key\b" "$W/manual" || fail "eddy(1) does not tell of $key"
done <"$W/keys"
check_equal "local + peer + PFS" \
    "$(jq '.reads | .local_bytes + .peer_bytes + .pfs_bytes' "$W/status.json")" "$size"

eddy status "$W/mnt-a" >"$W/status.txt"
grep -q 'node a, session test' "$W/status.txt" ||
    fail "status does not name the node: $(cat "$W/status.txt")"
grep -q 'b .*127\.0\.0\.1:.*ok' "$W/status.txt" ||
    fail "status does not name the other node: $(cat "$W/status.txt")"

# The names of the nodes in this test's directory; others may run beside it.
all_nodes() {
    eddy status --json --all |
        jq -c --arg w "$W/" '[.[] | select(.mountpoint | startswith($w)) | .node] | sort'
}
check_equal "mounts that --all knows" "$(all_nodes)" '["a","b"]'
cd "$W/mnt-a"
check_equal "node of ." "$(eddy status --json . | jq -r .node)" a
check_equal "node of a path with slashes" "$(eddy status --json "$W//mnt-a/./" | jq -r .node)" a
cd /
ln -s "$W/mnt-b" "$W/link"
check_equal "node of a link" "$(eddy status --json "$W/link" | jq -r .node)" b

code=0; eddy status 2>/dev/null || code=$?
check_equal "code without a mount" "$code" 2
code=0; eddy status --nonsense "$W/mnt-a" 2>/dev/null || code=$?
check_equal "code with an unknown option" "$code" 2
code=0; eddy status "$W/pfs" 2>/dev/null || code=$?
check_equal "code where nothing is mounted" "$code" 1
stop_node a
code=0; eddy status "$W/mnt-a" 2>/dev/null || code=$?
check_equal "code after the end" "$code" 1
check_equal "mounts after the end" "$(all_nodes)" '["b"]'
stop_node b
