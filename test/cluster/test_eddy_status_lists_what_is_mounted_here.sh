#!/usr/bin/env bash
# eddy status --all lists the mounts of its own mount namespace, and says how many there are in others: those of containers, whose
# daemons and paths are not here.
# timeout: 90
. "$(dirname "$0")/lib.sh"
requires fuse root cmd jq cmd unshare
start_node a "$PFS"
mkdir "$W/mnt-x"
unshare --mount --pid --fork --kill-child --propagation private "$EDDY_BUILD/eddyfs" -f --session other --session-dir "$W/sessions-x" \
    --node x --listen 127.0.0.1 --cache-dir "$W/cache-x" "$PFS" "$W/mnt-x" >"$W/x.out" 2>&1 &
container=$!
record_process "$W" "$container"
wait_for 30 grep -q "is mounted at" "$W/x.out" || fail "it is not mounted in the container: $(cat "$W/x.out")"

# Mounts of other tests may be listed, too, and may be in trouble.
eddy status --all --json >"$W/json" 2>"$W/said" || true
check_equal "is a listed, is x" "$(jq -c '[.[].node] | [index("a"), index("x")] | map(. != null)' "$W/json")" "[true,false]"
grep -qE '[0-9]+ mounts? of other mount namespaces \(containers\) (is|are) not listed' "$W/said" || fail "it does not say that there are more: $(cat "$W/said")"
eddy status --all >"$W/text" 2>/dev/null || true
grep -q 'process 0' "$W/text" && fail "a process without a number: $(cat "$W/text")"

# There it is listed.
nsenter --mount --pid --target "$(pgrep -P "$container")" "$EDDY_BUILD/eddy" status --all --json >"$W/json" 2>"$W/said" || true
check_equal "mounts in the container" "$(jq -r '[.[].node] | index("x") != null' "$W/json")" true
stop_node a
kill "$container" 2>/dev/null || true
