#!/usr/bin/env bash
# With umount.fuse.eddyfs where umount(8) looks for it, root's umount flushes and waits: 0 when all
# is on the PFS, 3 when not; a busy mount stays; -f takes one away from its users; -l returns at
# once, and eddy wait waits.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse root
in_namespaces

# /sbin with the helper in it, in this namespace only.
mkdir "$W/helper"
sed "s|namespace eddy|namespace $EDDY_BUILD/eddy|" \
    "$(dirname "$SCRIPT")/../../packaging/umount.fuse.eddyfs" >"$W/helper/umount.fuse.eddyfs"
chmod 755 "$W/helper/umount.fuse.eddyfs"
cp "$W/helper/umount.fuse.eddyfs" "$W/helper/umount.fuse" # which of the two is asked for differs
mount -t overlay overlay -o "lowerdir=$W/helper:/sbin/" /sbin/ 2>/dev/null ||
    skip "no overlay over /sbin can be mounted here"

head -c 3000000 /dev/urandom >"$W/data"
start_node a "$PFS" --flush-wait 3600
cp "$W/data" "$W/mnt-a/file"
exec 5<"$W/mnt-a/file"
code=0
umount "$W/mnt-a" 2>"$W/busy.txt" || code=$?
check_equal "code of umount of a busy mount" "$code" 1
grep -q 'open file' "$W/busy.txt" || fail "who keeps it busy is not named: $(cat "$W/busy.txt")"
exec 5<&-
umount "$W/mnt-a" || fail "umount ended with $?"
check_same "$W/data" "$PFS/file"

start_node a "$PFS" --flush-wait 3600
cp "$W/data" "$W/mnt-a/lazily"
umount -l "$W/mnt-a"
eddy wait "$W/mnt-a" || fail "eddy wait ended with $?"
check_same "$W/data" "$PFS/lazily"

start_node a "$PFS" --flush-wait 3600
exec 5<"$W/mnt-a/file"
timeout 60 umount -f "$W/mnt-a" || fail "umount -f ended with $?"
is_mounted "$W/mnt-a" && fail "it is still mounted"
exec 5<&-
eddy wait "$W/mnt-a" || fail "eddy wait ended with $?"

# Bind mounts, of a directory in it and of all of it: only their own names go.
start_node a "$PFS" --flush-wait 3600
mkdir -p "$W/mnt-a/dir" "$W/bound" "$W/bound-all"
echo dirty >"$W/mnt-a/dir/file"
mount --bind "$W/mnt-a/dir" "$W/bound"
mount --bind "$W/mnt-a" "$W/bound-all"
exec 5<"$W/bound/file"
code=0
umount "$W/bound" 2>"$W/busy.txt" || code=$?
check_equal "code of umount of a busy bind mount" "$code" 1
grep -q 'open file' "$W/busy.txt" || fail "who keeps it busy is not named: $(cat "$W/busy.txt")"
exec 5<&-
for bound in bound bound-all; do
    umount "$W/$bound" || fail "umount of a bind mount ended with $?"
    is_mounted "$W/$bound" && fail "a bind mount is still mounted"
    check_equal "the file in the mount" "$(cat "$W/mnt-a/dir/file")" dirty
    [ -e "$PFS/dir/file" ] && [ -s "$PFS/dir/file" ] && fail "it was flushed"
done
umount "$W/mnt-a" || fail "umount ended with $?"
check_equal "the file on the PFS" "$(cat "$PFS/dir/file")" dirty

start_faultfs other
umount "$W/pfs-other" || fail "umount of another FUSE ended with $?"
is_mounted "$W/pfs-other" && fail "another FUSE is still mounted"
exit 0
