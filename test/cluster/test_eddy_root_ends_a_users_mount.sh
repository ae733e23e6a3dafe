#!/usr/bin/env bash
# Root finds a user's mount by the user's own list of mounts: status, umount, and wait after
# the user's own unmount, with what is not on the PFS; another user finds nothing.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse user root
in_namespaces

# /dev/fuse for everybody, in this namespace only.
mknod -m 666 "$W/fuse" c 10 229
mount --bind "$W/fuse" /dev/fuse
user=65534
mkdir -m 777 "$W/tmp" "$W/mnt-u"
chown "$user" "$PFS" "$W/mnt-u"
unset XDG_RUNTIME_DIR
export TMPDIR=$W/tmp

start() {
    run_as "$user" "$EDDY_BUILD/eddyfs" --node u --session test --listen 127.0.0.1 \
        --cache-dir "$W/tmp/cache" --flush-wait 3600 "$PFS" "$W/mnt-u" >>"$W/u.out" 2>&1
}
start
run_as "$user" sh -c "echo data >$W/mnt-u/file"
eddy status "$W/mnt-u" >"$W/status.txt" || fail "root's eddy status ends with $?"
grep -q 'node u, session test' "$W/status.txt" || fail "root sees: $(cat "$W/status.txt")"
code=0
run_as 65533 "$EDDY_BUILD/eddy" status "$W/mnt-u" 2>/dev/null || code=$?
check_equal "code of another user's eddy status" "$code" 1
eddy umount "$W/mnt-u"
check_equal "the file on the PFS" "$(cat "$PFS/file")" data

start
run_as "$user" sh -c "echo more >>$W/mnt-u/file"
run_as "$user" fusermount3 -u "$W/mnt-u"
eddy wait "$W/mnt-u"
check_equal "the file on the PFS" "$(cat "$PFS/file")" "data
more"
