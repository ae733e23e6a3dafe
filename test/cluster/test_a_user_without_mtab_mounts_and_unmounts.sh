#!/usr/bin/env bash
# Where there is no /etc/mtab (bare containers), a user who is not root mounts, writes, and unmounts with everything
# on the PFS; a mount in use is told as busy and removed when its time is over; a dead mount is cleared by the next start.
# timeout: 90
. "$(dirname "$0")/lib.sh"
requires fuse user root cmd umount
in_namespaces

cp -a /etc "$W/etc"
rm -f "$W/etc/mtab"
mount --bind "$W/etc" /etc
mknod -m 666 "$W/fuse" c 10 229
mount --bind "$W/fuse" /dev/fuse
[ ! -e /etc/mtab ] || fail "/etc/mtab is there"
user=65534
run_as "$user" test -x "$EDDY_BUILD/eddyfs" || skip "user $user cannot run what is in $EDDY_BUILD"
unset XDG_RUNTIME_DIR
mkdir "$W/pfs-u" "$W/mnt-u" "$W/tmp"
chown "$user" "$W/pfs-u" "$W/mnt-u" "$W/tmp"
export TMPDIR=$W/tmp
as_user() {
    run_as "$user" "$@"
}
is_mounted() {
    grep -q " $W/mnt-u fuse.eddyfs " /proc/mounts
}
start() {
    as_user "$EDDY_BUILD/eddyfs" --session-dir "$W/tmp/session" --log "$W/tmp/log" "$@" "$W/pfs-u" "$W/mnt-u"
}

start --no-supervise >"$W/start.out" 2>&1 || fail "it does not start"
as_user cp /etc/passwd "$W/mnt-u/file"
as_user "$EDDY_BUILD/eddy" umount "$W/mnt-u" || fail "eddy umount ended with $?"
! is_mounted || fail "it is still mounted"
check_same /etc/passwd "$W/pfs-u/file"

# In use: busy for as long as it may be, then it is removed.
start --no-supervise >>"$W/start.out" 2>&1 || fail "it does not start again"
# shellcheck disable=SC2016 # the inner shell's
in_background as_user sh -c 'exec sleep 1000 <"$1"' sh "$W/mnt-u/file"
wait_for 10 sh -c "ls -l /proc/$!/fd/0 | grep -q mnt-u/file" || fail "nobody has the file open"
as_user "$EDDY_BUILD/eddy" umount --timeout 2 "$W/mnt-u" >"$W/busy.out" 2>&1 || fail "eddy umount of a busy mount ended with $?"
grep -q 'mnt-u is busy' "$W/busy.out" || fail "it is not said to be busy"
! is_mounted || fail "it is still mounted when the time is over"

# Dead: the next start clears it.
in_background start -f
daemon=$!
wait_for 20 is_mounted || fail "it does not start in the foreground"
wait_for 20 as_user test -f "$W/mnt-u/file" || fail "the file is not there"
kill -KILL "$daemon" # setpriv became the daemon
wait "$daemon" 2>/dev/null || true
start --no-supervise >"$W/dead.out" 2>&1 || fail "it does not start over a dead mount"
grep -q 'cleared the dead mount' "$W/dead.out" || fail "no dead mount was cleared"
as_user "$EDDY_BUILD/eddy" umount "$W/mnt-u" || fail "eddy umount ended with $?"
! is_mounted || fail "it is still mounted at the end"
