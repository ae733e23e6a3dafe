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
AS_USER=(setpriv --reuid "$user" --regid "$user" --clear-groups --)
START=("${AS_USER[@]}" "$EDDY_BUILD/eddyfs" --no-supervise --session-dir "$W/tmp/session" --log "$W/tmp/log")
is_mounted() {
    grep -q " $W/mnt-u fuse.eddyfs " /proc/mounts
}
"${START[@]}" "$W/pfs-u" "$W/mnt-u" >"$W/start.out" 2>&1 || fail "it does not start"
"${AS_USER[@]}" cp /etc/passwd "$W/mnt-u/file"
"${AS_USER[@]}" "$EDDY_BUILD/eddy" umount "$W/mnt-u" || fail "eddy umount ended with $?"
! is_mounted || fail "it is still mounted"
check_same /etc/passwd "$W/pfs-u/file"

# In use: busy for as long as it may be, then it is removed; by umount(8), and by fusermount3 where there is /etc/mtab.
is_told_to_be_busy() {
    "${START[@]}" "$W/pfs-u" "$W/mnt-u" >>"$W/start.out" 2>&1 || fail "it does not start again"
    # shellcheck disable=SC2016 # the inner shell's
    in_background "${AS_USER[@]}" sh -c 'exec sleep 1000 <"$1"' sh "$W/mnt-u/file"
    wait_for 10 sh -c "ls -l /proc/$!/fd/0 | grep -q mnt-u/file" || fail "nobody has the file open"
    ! "${AS_USER[@]}" "$EDDY_BUILD/eddy" umount "$W/mnt-u" >"$W/busy.out" 2>&1 || fail "a mount that is in use is removed"
    grep -q 'mnt-u is busy' "$W/busy.out" && grep -q 'sleep' "$W/busy.out" || fail "$1: who uses it is not told: $(cat "$W/busy.out")"
    "${AS_USER[@]}" "$EDDY_BUILD/eddy" umount --timeout 2 "$W/mnt-u" >"$W/busy.out" 2>&1 ||
        fail "$1: eddy umount of a busy mount ended with $?: $(cat "$W/busy.out")"
    grep -q 'mnt-u is busy' "$W/busy.out" || fail "$1: it is not said to be busy: $(cat "$W/busy.out")"
    ! is_mounted || fail "$1: it is still mounted when the time is over"
}
is_told_to_be_busy "no mtab"
if command -v fusermount3 >/dev/null; then
    ln -s /proc/self/mounts "$W/etc/mtab"
    is_told_to_be_busy "mtab"
    # The daemon, which its abort ends, unmounts as well.  Here somebody always comes before eddy.
    helper=$(readlink -f "$(command -v fusermount3)")
    cp -p "$helper" "$W/helper"
    cat >"$W/late" <<EOF
#!/bin/sh
case " \$* " in *" -z "*) "$W/helper" "\$@" ;; esac
exec "$W/helper" "\$@"
EOF
    chmod 755 "$W/late"
    mount --bind "$W/late" "$helper"
    is_told_to_be_busy "another is first"
    umount "$helper"
    rm "$W/etc/mtab"
fi

# Dead: the next start clears it.
in_background "${START[@]}" -f "$W/pfs-u" "$W/mnt-u"
daemon=$!
wait_for 20 is_mounted || fail "it does not start in the foreground"
wait_for 20 "${AS_USER[@]}" test -f "$W/mnt-u/file" || fail "the file is not there"
kill -KILL "$daemon" # setpriv became the daemon
wait "$daemon" 2>/dev/null || true
"${START[@]}" "$W/pfs-u" "$W/mnt-u" >"$W/dead.out" 2>&1 || fail "it does not start over a dead mount"
grep -q 'cleared the dead mount' "$W/dead.out" || fail "no dead mount was cleared"
"${AS_USER[@]}" "$EDDY_BUILD/eddy" umount "$W/mnt-u" || fail "eddy umount ended with $?"
! is_mounted || fail "it is still mounted at the end"
