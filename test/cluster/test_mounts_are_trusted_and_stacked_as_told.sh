#!/usr/bin/env bash
# What other parts of the kernel make of a mount: setuid programs and devices work with -o suid,dev of root's own mount,
# and only there, and not where the PFS's own mount does not have them; a directory of it is the lower layer of an
# overlay, with passthrough too; setgid goes with a write of somebody who is not in the group.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse root user cmd setpriv
in_namespaces

id=$(command -v id) user=65534
start_node a "$PFS" -o allow_other
cp "$id" "$W/mnt-a/id"
chmod 4755 "$W/mnt-a/id"
mknod "$W/mnt-a/null" c 1 3
chmod 666 "$W/mnt-a/null"
writes() { run_as "$user" sh -c "echo x >$1" 2>/dev/null; }
check_equal "uid by a setuid program, as a mount is without more" "$(run_as "$user" "$W/mnt-a/id" -u)" "$user"
writes "$W/mnt-a/null" && fail "a device works, as a mount is without more"
stop_node a

start_node a "$PFS" -o allow_other,suid,dev
check_equal "uid by a setuid program with -o suid" "$(run_as "$user" "$W/mnt-a/id" -u)" 0
writes "$W/mnt-a/null" || fail "a device does not work with -o dev"
stop_node a
start_node a "$PFS" -o suid,dev,nosuid,allow_other
check_equal "uid by a setuid program, the last word being nosuid" "$(run_as "$user" "$W/mnt-a/id" -u)" "$user"
stop_node a

mkdir "$W/untrusted" "$W/mnt-u"
mount --bind "$PFS" "$W/untrusted"
mount -o remount,bind,nosuid,nodev "$W/untrusted"
start_node b "$W/untrusted" -o allow_other,suid,dev
check_equal "uid by a setuid program of an untrusted PFS" "$(run_as "$user" "$W/mnt-b/id" -u)" "$user"
writes "$W/mnt-b/null" && fail "a device of an untrusted PFS works"
stop_node b

# A user's mount, made by root.
mkdir -m 700 "$W/cache-user" "$W/mnt-user"
chown "$user:$user" "$W/cache-user" "$W/mnt-user"
chmod 777 "$PFS"
record_mount "$W" "$W/mnt-user"
TMPDIR=$W/cache-user XDG_RUNTIME_DIR='' eddyfs --user "$user" --node u --session user --listen 127.0.0.1 -o allow_other,suid,dev \
    --cache-dir "$W/cache-user/c" "$PFS" "$W/mnt-user" >"$W/user.out" 2>&1 || fail "no mount for a user: $(cat "$W/user.out")"
grep " $W/mnt-user " /proc/self/mountinfo | grep -q 'nosuid,nodev' || fail "a user's mount is trusted"
eddy umount "$W/mnt-user" || fail "eddy umount ended with $?"

# --- the lower layer of an overlay ---
start_node a "$PFS" -o allow_other
mkdir -p "$W/mnt-a/lower" "$W/upper" "$W/work" "$W/over"
echo low >"$W/mnt-a/lower/file"
mount -t overlay overlay -o "lowerdir=$W/mnt-a/lower,upperdir=$W/upper,workdir=$W/work" "$W/over" ||
    fail "no overlay over the mount: $(status_of a '.passthrough, .passthrough_why')"
check_equal "the file in the overlay" "$(cat "$W/over/file")" low
echo high >>"$W/over/file"
check_equal "the file below" "$(cat "$W/mnt-a/lower/file")" low
umount "$W/over"

# --- a cache directory that is itself on an overlay: as many layers as the kernel allows, with passthrough all the same ---
mkdir -p "$W/cache-lower" "$W/cache-upper" "$W/cache-work" "$W/cache-over" "$W/mnt-c"
mount -t overlay overlay -o "lowerdir=$W/cache-lower,upperdir=$W/cache-upper,workdir=$W/cache-work" "$W/cache-over" ||
    fail "no overlay for a cache can be mounted"
plain=$(status_of a .passthrough)
start_node c "$PFS" --cache-dir "$W/cache-over/c" --cache-size 100M
[ "$plain" = false ] || [ "$(status_of c .passthrough)" = true ] ||
    status_of c .passthrough_why | grep -q 'leases\|whole seconds' || fail "on an overlay: $(status_of c .passthrough_why)"
stop_node c

# --- setgid, where the group may not execute ---
mkdir "$W/plain"
for dir in "$W/plain" "$W/mnt-a"; do
    for who in "65533 65533" "65533 1" "0 0"; do
        read -r uid gid <<<"$who"
        echo x >"$dir/g-$uid-$gid"
        chown 1:1 "$dir/g-$uid-$gid"
        chmod 6666 "$dir/g-$uid-$gid"
        setpriv --reuid "$uid" --regid "$gid" --clear-groups -- sh -c "echo y >>$dir/g-$uid-$gid"
        echo x >"$dir/t-$uid-$gid"
        chown 1:1 "$dir/t-$uid-$gid"
        chmod 6666 "$dir/t-$uid-$gid"
        setpriv --reuid "$uid" --regid "$gid" --clear-groups -- truncate -s 1 "$dir/t-$uid-$gid"
    done
done
modes() { (cd "$1" && stat -c '%n %a' ./[gt]-*); }
modes "$W/plain" >"$W/plain.modes"
modes "$W/mnt-a" >"$W/mnt.modes"
check_same "$W/plain.modes" "$W/mnt.modes"
eddy flush "$W/mnt-a"
modes "$W/mnt-a" >"$W/mnt.modes"
check_same "$W/plain.modes" "$W/mnt.modes"
modes "$PFS" >"$W/pfs.modes"
check_same "$W/plain.modes" "$W/pfs.modes"
stop_node a
