#!/usr/bin/env bash
# eddyfs --user UID, run by root: every thread is the user, with CAP_SYS_ADMIN and nothing else,
# and cannot gain more; passthrough works; files belong to the user; a PFS that only the user may
# enter, and a /dev/fuse that only root may open, are no obstacle. The user ends it himself.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse root user cmd jq
in_namespaces

mknod -m 600 "$W/fuse" c 10 229
mount --bind "$W/fuse" /dev/fuse
user=$(id -u nobody) # fusermount3 wants a name
gid=$(id -g nobody)
mkdir -m 777 "$W/tmp"
mkdir -m 700 "$W/cache" "$W/mnt-u"
chmod 700 "$PFS"
chown "$user:$gid" "$PFS" "$W/cache" "$W/mnt-u"
unset XDG_RUNTIME_DIR
export TMPDIR=$W/tmp

run() {
    # shellcheck disable=SC2086 # words
    eddyfs --user "$user" --node u --session test --listen 127.0.0.1 --cache-dir "$W/cache/u" \
        --flush-wait 3600 ${EDDY_TEST_OPTIONS-} "$@" "$PFS" "$W/mnt-u"
}
record_mount "$W" "$W/mnt-u"
run >"$W/u.out" 2>&1 || fail "it does not start"
pid=$(run_as "$user" "$EDDY_BUILD/eddy" status --json "$W/mnt-u" | jq .pid)
record_process "$W" "$pid"

field() { awk -v f="$2:" '$1 == f { $1 = ""; print substr($0, 2) }' "$1"; }
for status in /proc/"$pid"/status /proc/"$pid"/task/*/status; do
    check_equal "uids in $status" "$(field "$status" Uid)" "$user $user $user $user"
    check_equal "gids in $status" "$(field "$status" Gid)" "$gid $gid $gid $gid"
    check_equal "groups in $status" "$(field "$status" Groups | xargs)" "$(id -G nobody)"
    for set in CapEff CapPrm CapBnd; do # 1 << 21
        check_equal "$set in $status" "$(field "$status" "$set")" 0000000000200000
    done
    for set in CapInh CapAmb; do
        check_equal "$set in $status" "$(field "$status" "$set")" 0000000000000000
    done
    check_equal "NoNewPrivs in $status" "$(field "$status" NoNewPrivs)" 1
done
if [ -z "${EDDY_TEST_OPTIONS-}" ] && ! grep -q 'passthrough on' "$W/u.out"; then
    run_as "$user" "$EDDY_BUILD/eddy" status "$W/mnt-u"
    [ "$(uname -r | cut -d. -f1)" -lt 6 ] || fail "no passthrough: $(cat "$W/u.out")"
fi
grep " $W/mnt-u " /proc/self/mountinfo | grep -q "nosuid,nodev.* - fuse.eddyfs .*user_id=$user" ||
    fail "mounted as $(grep " $W/mnt-u " /proc/self/mountinfo)"

ls "$W/mnt-u" >/dev/null 2>&1 && fail "root may enter a user's mount"
run_as "$user" sh -c "echo data >$W/mnt-u/file && cat $W/mnt-u/file >/dev/null"
run_as "$user" "$EDDY_BUILD/eddy" umount "$W/mnt-u" || fail "eddy umount ended with $?"
check_equal "the file" "$(stat -c '%u:%g' "$PFS/file") $(cat "$PFS/file")" "$user:$gid data"
check_equal "the cache's owner" "$(stat -c %u "$W/cache/u/lock")" "$user"

# Killed, and started again by its supervisor, which is not root.
run >>"$W/u.out" 2>&1
run_as "$user" sh -c "echo again >$W/mnt-u/again"
pid=$(eddy status --json "$W/mnt-u" | jq .pid)
kill -KILL "$pid"
is_back() { [ "$(run_as "$user" cat "$W/mnt-u/again" 2>/dev/null)" = again ]; }
wait_for 30 is_back || fail "it is not started again: $(tail -n 5 "$W/cache/u/eddyfs.log")"
eddy umount "$W/mnt-u" || fail "eddy umount after the restart ended with $?"
check_equal "the file after the restart" "$(stat -c '%u:%g' "$PFS/again") $(cat "$PFS/again")" "$user:$gid again"

# Killed, and recovered by root as the user.
run --no-supervise >>"$W/u.out" 2>&1
run_as "$user" sh -c "echo more >>$W/mnt-u/file"
pid=$(eddy status --json "$W/mnt-u" | jq .pid)
kill -KILL "$pid"
wait_for 10 test ! -e "/proc/$pid"
umount -l "$W/mnt-u"
eddy recover "$W/cache/u" || fail "eddy recover ended with $?"
check_equal "the file" "$(cat "$PFS/file")" "data
more"
check_equal "owners of what is in the cache" "$(find "$W/cache/u" -printf '%u\n' | sort -u | wc -l)" 1

refused() { # WHAT ARG...
    local what=$1
    shift
    "$@" >>"$W/refused.out" 2>&1 && fail "$what was not refused"
    return 0
}
refused "a user who mounts for another" run_as 65532 "$EDDY_BUILD/eddyfs" --user "$user" "$PFS" "$W/mnt-u"
refused "root as the user" eddyfs --user 0 "$PFS" "$W/mnt-u"
refused "a user who does not exist" eddyfs --user no-such-user "$PFS" "$W/mnt-u"
mkdir -m 755 "$W/not-his"
refused "another's mount point" eddyfs --user "$user" --cache-dir "$W/cache/v" "$PFS" "$W/not-his"
is_mounted "$W/not-his" && fail "it is mounted"
ln -s not-his "$W/tmp/link"
refused "another's mount point by a link" eddyfs --user "$user" --cache-dir "$W/cache/v" "$PFS" "$W/tmp/link"
