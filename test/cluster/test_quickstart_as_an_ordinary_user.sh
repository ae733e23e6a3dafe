#!/usr/bin/env bash
# tools/quickstart by a user who is not root, where /dev/fuse allows it, with what is built; where there is no /etc/mtab,
# too (bare containers).
# timeout: 180
. "$(dirname "$0")/lib.sh"
requires fuse user root
in_namespaces

cp -a /etc "$W/etc"
rm -f "$W/etc/mtab"
mount --bind "$W/etc" /etc
# /dev/fuse for everybody, in this namespace only.
mknod -m 666 "$W/fuse" c 10 229
mount --bind "$W/fuse" /dev/fuse
user=65534
run_as "$user" test -x "$EDDY_BUILD/eddyfs" || skip "user $user cannot run what is in $EDDY_BUILD"
mkdir -m 777 "$W/tmp" "$W/tree"
for i in $(seq 100); do
    head -c $((i * 500)) /dev/urandom >"$W/tree/$i"
done
chown -R "$user" "$W/tree"
unset XDG_RUNTIME_DIR

TMPDIR=$W/tmp run_as "$user" "$(dirname "$SCRIPT")/../../tools/quickstart" "$W/tree" >"$W/show.out" 2>&1 ||
    fail "it ended with $?"
tail -n 4 "$W/show.out" | awk '/node[123] / { n++ } END { exit n != 3 }' || fail "no table"
check_equal "files left behind" "$(find "$W/tmp" -mindepth 1 | wc -l)" 0
check_equal "files in the tree" "$(find "$W/tree" | wc -l)" 101
