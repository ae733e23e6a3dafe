#!/usr/bin/env bash
# A mount that fails, and one that ends with everything on the PFS, leave nothing: no session directory on the PFS, no records in a
# new cache directory, nothing in /tmp. What must stay does: what is not on the PFS, the session of a node that has it, a cache
# directory that was named and has files. A session that ends while a node comes to it is not one that this node gets into.
# timeout: 240
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
in_namespaces
requires fuse cmd jq
mkdir "$W/mnt" "$W/tmp"
export TMPDIR=$W/tmp
COMMON=(--listen 127.0.0.1 --session tidy "$PFS" "$W/mnt")

nothing_but() {
    check_equal "left by $1" "$(cd "$W" && find pfs tmp cache* run -mindepth 1 ! -path 'run/*' 2>/dev/null | sort | tr '\n' ' ' || true)" "$2"
}

# --- A start that fails ---
code=0
eddyfs -f --node a --cache-dir "$W/cache" --wait-nodes 2 --wait-timeout 1 "${COMMON[@]}" 2>"$W/said" || code=$?
check_equal "code of a start without the other node" "$code" 1
nothing_but "a start that waited for another node" ""
[ ! -e "$W/cache" ] || fail "a start that failed leaves its cache directory"
mkdir "$W/cache-mine"
eddyfs -f --node a --cache-dir "$W/cache-mine" --listen 192.0.2.1 --session tidy "$PFS" "$W/mnt" 2>"$W/said" && fail "it listens on a strange address"
nothing_but "a start that could not listen" ""
rmdir "$W/cache-mine" || fail "a directory that was there before is gone"

# --- A mount that ends ---
eddyfs --node a --no-supervise "${COMMON[@]}" >/dev/null
eddy status --json "$W/mnt" >"$W/status.json"
check_equal "bytes of files in an empty cache" "$(jq .cache.content "$W/status.json")" 0
eddy status "$W/mnt" | grep -q " 0 B of .* used, .* set aside" || fail "status says: $(eddy status "$W/mnt")"
echo one >"$W/mnt/file"
eddy umount "$W/mnt"
check_equal "the file on the PFS" "$(cat "$PFS/file")" one
eddy wait "$W/mnt" || fail "eddy wait does not know that the mount ended in order"
left=$(find "$W/tmp" -mindepth 1 ! -path "*/eddyfs-run-*" | tr '\n' ' ')
check_equal "left in TMPDIR" "$left" ""
check_equal "left on the PFS" "$(ls -A "$PFS")" file
eddyfs --node a --cache-dir "$W/cache" --no-supervise "${COMMON[@]}" >/dev/null
check_equal "the file" "$(cat "$W/mnt/file")" one
eddy umount "$W/mnt"
[ -e "$W/cache/format" ] || fail "a cache directory that was named, and has files, is gone"
check_equal "left on the PFS" "$(ls -A "$PFS")" file
rm -rf "$W/cache"

# --- What must stay ---
start_faultfs a
start_node a "$W/pfs-a" --flush end
start_node b "$PFS"
stop_node b
echo precious >"$W/mnt-a/file"
kill_node a
[ -e "$PFS/.eddyfs-$(id -u)/test/settings" ] || fail "the session of a node that has data is gone"
start_node b "$PFS"
stop_node b
[ -e "$PFS/.eddyfs-$(id -u)/test/settings" ] || fail "the session of an absent node is gone"
start_node a "$W/pfs-a" --flush end
stop_node a
check_equal "the file on the PFS" "$(cat "$PFS/file")" precious
check_equal "left on the PFS" "$(ls -A "$PFS")" file

# --- Sessions end while nodes come: each mount works, and is in one session with the others that are there ---
many_times() {
    local i
    for i in $(seq 12); do
        eddyfs --node "$1" --no-supervise --cache-dir "$W/cache-$1" --listen 127.0.0.1 --session race --wait-timeout 30 \
            "$PFS" "$W/mnt-$1" || return 1
        echo "$1 $i" >"$W/mnt-$1/file-$1" || return 1
        eddy umount "$W/mnt-$1" || return 1
        check_equal "file-$1 on the PFS" "$(cat "$PFS/file-$1")" "$1 $i"
    done
}
mkdir "$W/mnt-x" "$W/mnt-y" "$W/mnt-z"
for name in x y z; do
    many_times "$name" >"$W/$name.out" 2>&1 &
    JOB["$name"]=$!
done
for name in x y z; do
    wait "${JOB[$name]}" || fail "$name: $(tail -n 5 "$W/$name.out"; tail -n 12 "$W/cache-$name/eddyfs.log")"
done
check_equal "left on the PFS" "$(ls -A "$PFS")" "$(printf '%s\n' file file-x file-y file-z)"
