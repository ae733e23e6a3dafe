#!/usr/bin/env bash
# A user's file is given to somebody else on the PFS before it is flushed. The node that has it
# open writes it back all the same, as any process could; a daemon that has to open it anew is
# refused: EACCES by fsync, eddy status, eddy flush and eddy umount (3), the data kept, and
# flushed when the right is given back.
# timeout: 120
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires user fuse cmd jq
in_namespaces

# /dev/fuse for everybody, in this namespace only.
mknod -m 666 "$W/fuse" c 10 229
mount --bind "$W/fuse" /dev/fuse
user=65534 # one that has a name: fusermount3 asks for it
run_as "$user" test -x "$EDDY_BUILD/eddyfs" || skip "user $user cannot run what is in $EDDY_BUILD"
mkdir "$PFS/dir" "$W/user" "$W/user/cache" "$W/user/mnt"
chown "$user:$user" "$PFS/dir" "$W/user" "$W/user/cache" "$W/user/mnt" "$W/run"
mnt=$W/user/mnt
record_mount "$W" "$mnt"
start() {
    start_daemon u "$W/user.out" setpriv --reuid "$user" --regid "$user" --clear-groups -- \
        "$EDDY_BUILD/eddyfs" -f --node u --session test --listen 127.0.0.1 --flush end \
        --log "$W/user/log" --cache-dir "$W/user/cache" "$PFS/dir" "$mnt"
    NODE_PID[u]=$STARTED_PID JOB[node-u]=$STARTED_JOB
    wait_for_mount "$STARTED_JOB" u "$mnt" fuse.eddyfs
}
as() { run_as "$user" "$@"; }
# code_of CODE COMMAND...: its output goes to $W/listed
code_of() {
    local expected=$1 code=0
    shift
    "$@" >"$W/listed" || code=$?
    check_equal "code of $*" "$code" "$expected"
}
take_away() { chown 0:0 "$PFS/dir/$1" && chmod 600 "$PFS/dir/$1"; }

start
head -c 300000 /dev/urandom >"$W/data"
as cp "$W/data" "$mnt/open"
as cp "$W/data" "$mnt/file"
take_away open
code_of 0 as "$EDDY_BUILD/eddy" flush "$mnt"
check_same "$W/data" "$PFS/dir/open"

head -c 300000 /dev/urandom >"$W/data"
as cp "$W/data" "$mnt/file"
crash_node u
umount -l "$mnt" # the dead mount is not to be taken for the new one
take_away file
start
code_of 3 as "$EDDY_BUILD/eddy" flush "$mnt"
grep -q '^file: .*Permission denied' "$W/listed" || fail "eddy flush: $(cat "$W/listed")"
as "$EDDY_BUILD/eddy" status --json "$mnt" >"$W/status"
jq -e '.flush.failed_count == 1 and (.flush.failed_files[0] | .path == "file" and .bytes >= 300000 and
       .tries >= 1 and .error == "Permission denied")' "$W/status" >/dev/null ||
    fail "eddy status: $(jq -c .flush "$W/status")"
grep -q 'flush failed (Permission denied): file: .*give this user the right' "$W/user/log" ||
    fail "the log does not say what to do"
code_of 3 as "$EDDY_BUILD/eddy" umount "$mnt"
grep -q '^file: ' "$W/listed" || fail "eddy umount: $(cat "$W/listed")"

chown "$user:$user" "$PFS/dir/file"
start
code_of 0 as "$EDDY_BUILD/eddy" umount "$mnt"
check_same "$W/data" "$PFS/dir/file"
