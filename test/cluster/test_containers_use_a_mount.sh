#!/usr/bin/env bash
# Containers as Apptainer makes them for an ordinary user, by namespaces: a mount that is made outside is bound into one, read and
# written there. Inside one, as root of its user namespace, eddyfs mounts and unmounts without fusermount3 and /etc/mtab.
# timeout: 90
. "$(dirname "$0")/lib.sh"
requires fuse user root cmd unshare
user=65534
in_namespaces
mknod -m 666 "$W/fuse" c 10 229
mount --bind "$W/fuse" /dev/fuse
run_as "$user" unshare --user --map-root-user --mount true 2>/dev/null || skip "users can make no user namespaces here"
run_as "$user" test -x "$EDDY_BUILD/eddyfs" || skip "user $user cannot run what is in $EDDY_BUILD"
unset XDG_RUNTIME_DIR
mkdir "$W/pfs-u" "$W/mnt-u" "$W/tmp" "$W/image" "$W/inside"
chown "$user:$user" "$W/pfs-u" "$W/mnt-u" "$W/tmp" "$W/image" "$W/inside"
export TMPDIR=$W/tmp
AS_USER=(setpriv --reuid "$user" --regid "$user" --clear-groups --)
head -c 3000000 /dev/urandom >"$W/pfs-u/input"

# An image: the programs of the host, nothing of its own but the directories; no /etc at all.
for dir in usr proc dev data; do mkdir "$W/image/$dir"; done
for dir in bin sbin lib lib64; do [ ! -L "/$dir" ] || ln -s "usr/$dir" "$W/image/$dir"; done
chown -R "$user" "$W/image"
# in_container COMMAND: with another root, as root of a user namespace, the mount bound at /data
in_container() {
    # shellcheck disable=SC2016 # the inner shell's
    "${AS_USER[@]}" unshare --user --map-root-user --mount --pid --fork sh -euc '
        mount --rbind /usr "$1/usr"
        mount --rbind /dev "$1/dev"
        mount -t proc proc "$1/proc"
        mount --rbind "$2" "$1/data"
        exec chroot "$1" /bin/sh -euc "$3"' sh "$W/image" "$W/mnt-u" "$1"
}

"${AS_USER[@]}" "$EDDY_BUILD/eddyfs" --no-supervise --session-dir "$W/tmp/session" --log "$W/tmp/log" --cache-dir "$W/tmp/cache" \
    "$W/pfs-u" "$W/mnt-u" >"$W/start.out" 2>&1 || fail "it does not start"
in_container 'test ! -e /etc; cat /data/input >/data/output; mkdir /data/dir; mv /data/output /data/dir/' ||
    fail "a container cannot use the mount"
"${AS_USER[@]}" cmp "$W/pfs-u/input" "$W/mnt-u/dir/output" || fail "other bytes"
"${AS_USER[@]}" "$EDDY_BUILD/eddy" umount "$W/mnt-u" || fail "eddy umount ended with $?"
check_same "$W/pfs-u/input" "$W/pfs-u/dir/output"

# Inside: no fusermount3 in the PATH, and an empty /etc.
cat >"$W/inside.sh" <<'END'
set -eu
mount -t tmpfs tmpfs /etc
"$BUILD/eddyfs" --no-supervise --session-dir "$D/tmp/session2" --log "$D/tmp/log2" --cache-dir "$D/tmp/cache2" "$D/pfs-u" "$D/inside"
grep -q "$D/inside fuse.eddyfs" /proc/mounts
cmp "$D/pfs-u/input" "$D/inside/dir/output"
cp "$D/inside/input" "$D/inside/second"
"$BUILD/eddy" umount "$D/inside"
! grep "$D/inside fuse.eddyfs" /proc/mounts
END
mkdir "$W/bin"
for program in sh cmp cp grep mount; do ln -s "$(command -v "$program")" "$W/bin/$program"; done
"${AS_USER[@]}" env PATH="$W/bin" BUILD="$EDDY_BUILD" D="$W" "$(command -v unshare)" --user --map-root-user --mount sh "$W/inside.sh" >"$W/inside.out" 2>&1 ||
    fail "inside a container: $(cat "$W/inside.out"; tail -n 5 "$W/tmp/log2")"
check_same "$W/pfs-u/input" "$W/pfs-u/second"
