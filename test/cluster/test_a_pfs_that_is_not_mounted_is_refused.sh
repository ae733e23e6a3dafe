#!/usr/bin/env bash
# The empty mount point of a PFS that is not mounted is not taken for the PFS, and what a cache has for one PFS is not written
# to another; a cache directory in the PFS is refused; what is odd, but costs no data, is said.
# timeout: 120
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
in_namespaces
requires fuse root cmd jq
[ -e /etc/fstab ] || skip "no /etc/fstab, so none of the test's own can be put there"
mkdir "$W/mnt" "$W/local" "$W/kept" "$W/local/pfs"
mount -t tmpfs none "$W/local/pfs"
mount --bind "$W/local/pfs" "$W/kept"
mkdir "$W/local/pfs/project"

# refused PATTERN ARGUMENT...: eddyfs ends with 1, says something like that, and has made nothing in the empty directory
refused() {
    local pattern=$1 code=0
    shift
    timeout 30 "$EDDY_BUILD/eddyfs" -f --listen 127.0.0.1 --node a --session test --cache-dir "$W/cache-a" "$@" "$W/local/pfs" "$W/mnt" \
        >"$W/said" 2>&1 || code=$?
    check_equal "code of eddyfs $*" "$code" 1
    grep -qE -- "$pattern" "$W/said" || fail "eddyfs $* says: $(cat "$W/said"), expected something like $pattern"
}
# served ARGUMENT...: it starts, and ends in order; what it says is in $W/said
served() {
    timeout 60 "$EDDY_BUILD/eddyfs" --listen 127.0.0.1 --node a --session test --cache-dir "$W/cache-a" --no-supervise "$@" \
        "$W/local/pfs" "$W/mnt" >"$W/said" 2>&1 || fail "eddyfs $*: $(cat "$W/said")"
    "$EDDY_BUILD/eddy" umount "$W/mnt" || fail "umount after $*"
}

# a daemon dies with data, and the PFS is not mounted when it starts again
start_node a "$W/local/pfs" --flush end
echo precious >"$W/mnt-a/file"
kill_node a
umount "$W/local/pfs"
refused "cache-a has [1-9][0-9]* files that are not on the PFS yet, and .*/local/pfs is another directory.*mounted there"
check_equal "what the refused start has made" "$(ls -A "$W/local/pfs")" ""
code=0
"$EDDY_BUILD/eddy" recover "$W/cache-a" >"$W/said" 2>&1 || code=$?
check_equal "code of eddy recover" "$code" 1
grep -q "mounted there" "$W/said" || fail "eddy recover says: $(cat "$W/said")"
check_equal "what eddy recover has made" "$(ls -A "$W/local/pfs")" ""

# --require-mount, and /etc/fstab
refused "nothing is mounted at .*/local/pfs, as --require-mount asks" --require-mount "$W/local/pfs"
refused "PFS directory .* is not in it" --require-mount "$W/kept"
printf 'server:/export %s nfs defaults 0 0\n' "$W/local/pfs" >"$W/fstab"
mount --bind "$W/fstab" /etc/fstab
refused "nothing is mounted at .*/local/pfs, where /etc/fstab says that server:/export is: mount it first"
check_equal "what the refused starts have made" "$(ls -A "$W/local/pfs")" ""

mount --bind "$W/kept" "$W/local/pfs"
served --require-mount "$W/local/pfs"
check_equal "the file, when the PFS is mounted again" "$(cat "$W/kept/file")" precious
served # as fstab says
umount "$W/local/pfs"

# an empty cache: a directory that is meant as it is
refused "mount it first"
served --require-mount /
printf 'server:/export %s nfs noauto 0 0\n' "$W/local/pfs" >"$W/fstab"
served
grep -q "nothing is mounted at .*/local/pfs, which /etc/fstab has for server:/export" "$W/said" || fail "noauto is not said: $(cat "$W/said")"
: >"$W/fstab"

# the cache's place
refused "cache directory .* is in the PFS directory" --cache-dir "$W/local/pfs/cache"
refused "cache directory .* is in the PFS directory" --cache-dir "$W/local/pfs"
served --cache-size 1000T --immutable no/such/path
grep -q -- "--cache-size 1000.0 TiB is more than the file system of .* has" "$W/said" || fail "too large a cache is not said: $(cat "$W/said")"
grep -q -- "--immutable no/such/path: there is no such file" "$W/said" || fail "a wrong --immutable is not said: $(cat "$W/said")"
