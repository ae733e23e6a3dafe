#!/usr/bin/env bash
# The commonest mistakes of a first day: each is told with what is wrong, where, and what to do.
# timeout: 150
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
in_namespaces
requires fuse root cmd jq cmd setpriv
chmod 755 "$W"
mkdir "$W/mnt" "$W/theirs" "$W/theirs/pfs" "$W/theirs/mnt"
chown -R 1234:1234 "$W/theirs"
chmod 755 "$EDDY_BUILD" "$EDDY_BUILD/eddyfs" "$EDDY_BUILD/eddy" 2>/dev/null || true
COMMON=(--listen 127.0.0.1 --session mistakes)
ARGUMENTS=(-f "${COMMON[@]}" --node a --cache-dir "$W/cache" "$PFS" "$W/mnt")
user=(setpriv --reuid 1234 --regid 1234 --clear-groups)
"${user[@]}" "$EDDY_BUILD/eddy" --version >/dev/null 2>&1 || skip "another user cannot run what was built here"

# says CODE PATTERN COMMAND...: it ends within 30 s with that code, and says something like that
says() {
    local expected=$1 pattern=$2 code=0
    shift 2
    timeout 30 "$@" >"$W/said" 2>&1 || code=$?
    check_equal "code of $*: $(cat "$W/said")" "$code" "$expected"
    grep -qE -- "$pattern" "$W/said" || fail "$* says: $(cat "$W/said"), expected something like $pattern"
}
eddyfs=$EDDY_BUILD/eddyfs eddy=$EDDY_BUILD/eddy

# --- What was typed ---
says 2 "did you mean --cache-size" "$eddyfs" --cach-size 1G "${ARGUMENTS[@]}"
says 2 "did you mean cache-size" "$eddyfs" -o cache_size=1G "${ARGUMENTS[@]}"
says 2 "did you mean --flush\?" "$eddyfs" --flush-policy end "${ARGUMENTS[@]}"
says 2 "--cache-dir: needs a value" "$eddyfs" --cache-dir
says 2 'did you mean "eddy status"' "$eddy" statsu "$W/mnt"
says 2 "did you mean --json" "$eddy" status --jsn "$W/mnt"
says 2 "two directories: eddyfs \[options\] PFS_DIR MOUNTPOINT" "$eddyfs" "$PFS"
says 1 "no eddyfs of yours is or was mounted there" "$eddy" umount /usr
says 2 "give ADDR, ADDR:PORT or .ADDR.:PORT .* port up to 65535" "$eddyfs" --listen 127.0.0.1:222222 "$PFS" "$W/mnt"
says 2 "from 64.0 KiB to 16.0 MiB, like 256K or 1M" "$eddyfs" --chunk-size 32M "${ARGUMENTS[@]}"
says 2 "or a part of the disk, like 80%" "$eddyfs" --cache-size 10 "${ARGUMENTS[@]}"
says 2 "--pin=5x: give a time above 0, like 90s" "$eddy" stage --pin=5x "$PFS"
says 2 "did you mean --pin=2h" "$eddy" stage --pin 2h "$PFS"
says 2 "--here and --spread: give one of them" "$eddy" stage --here --spread "$PFS"
says 2 "--range abc: give OFF:LEN" "$eddy" hint --range abc "$PFS"
says 2 "--list and --to: give one of them" "$eddy" recover --list --to "$W" "$W/cache"
says 1 "make the directory first" "$eddyfs" -f "${COMMON[@]}" --cache-dir "$W/cache" "$PFS" "$W/no/such"

# --- What the system forbids ---
says 1 "address space is limited to 390.6 MiB .ulimit -v." bash -c "ulimit -v 400000; exec \"\$@\"" - "$eddyfs" "${ARGUMENTS[@]}"
bash -c 'ulimit -n 64; exec "$@"' - "$eddyfs" "${COMMON[@]}" --no-supervise --node a --cache-dir "$W/cache" "$PFS" "$W/mnt" >"$W/said" 2>&1
grep -q "only 64 files may be open at once (ulimit -n)" "$W/cache/eddyfs.log" "$W/said" || fail "ulimit -n is not told: $(cat "$W/said")"
"$eddy" umount "$W/mnt"
says 1 "there is no usable /dev/fuse .*modprobe fuse" unshare -m bash -c \
    'mount -t tmpfs none /dev; mkdir /dev/shm; mknod -m 666 /dev/null c 1 3; exec "$@"' - "$eddyfs" "${ARGUMENTS[@]}"
THEIRS=(-f "${COMMON[@]}" --node theirs --cache-dir "$W/theirs/cache" "$W/theirs/pfs")
# MODE COMMAND...: as the other user, with a /dev/fuse of that mode, and something else in fusermount3's place
with_device=(unshare -m bash -c 'mount -t tmpfs none /dev; mkdir -m 1777 /dev/shm; mknod -m 666 /dev/null c 1 3
    mknod -m "$0" /dev/fuse c 10 229; ! helper=$(command -v fusermount3) || mount --bind /bin/true "$helper"
    exec setpriv --reuid 1234 --regid 1234 --clear-groups "$@"')
says 1 "this user may not open /dev/fuse .*chmod 666 /dev/fuse" "${with_device[@]}" 600 "$eddyfs" "${THEIRS[@]}" "$W/theirs/mnt"
says 1 "fusermount3.*install the package fuse3" "${with_device[@]}" 666 "$eddyfs" "${THEIRS[@]}" "$W/theirs/mnt"

# --- What belongs to others ---
"$eddyfs" "${COMMON[@]}" --no-supervise --node a --cache-dir "$W/cache" -o allow_other "$PFS" "$W/mnt" >/dev/null
echo something >"$W/mnt/cached"
says 1 "user root has an eddyfs mounted at .*/mnt: name another mount point" "${user[@]}" "$eddyfs" "${THEIRS[@]}" "$W/mnt"
says 1 "another user's" "${user[@]}" "$eddy" umount "$W/mnt"
says 1 "end it with .eddy umount" "$eddyfs" -f "${COMMON[@]}" --node b --cache-dir "$W/cache-b" "$PFS" "$W/mnt"
says 1 "cache directory .*in use|uses it|another" "$eddy" recover "$W/cache"
"$eddy" umount "$W/mnt"
says 1 "belongs to uid 1234" "$eddyfs" -f "${COMMON[@]}" --node b --cache-dir "$W/theirs" "$PFS" "$W/mnt"

# --- Caches ---
mkdir -m 755 "$W/data"
echo mine >"$W/data/file"
says 1 "is not an eddyfs cache directory and not empty" "$eddyfs" -f "${COMMON[@]}" --node b --cache-dir "$W/data" "$PFS" "$W/mnt"
check_equal "mode of a directory that was refused" "$(stat -c %a "$W/data")" 755
says 1 "is not a cache directory of eddyfs" "$eddy" recover /etc
says 1 "No such file" "$eddy" recover "$W/nowhere"
cp -r "$W/cache" "$W/newer"
sed -i '1s/.*/eddyfs-cache 99/' "$W/newer/format"
says 1 "has format 99, that of a newer eddyfs" "$eddyfs" -f "${COMMON[@]}" --node b --cache-dir "$W/newer" "$PFS" "$W/mnt"
says 1 "made by another version of eddyfs" "$eddy" recover "$W/newer"
start_faultfs a
start_node a "$W/pfs-a" --flush end
echo precious >"$W/mnt-a/file"
kill_node a
tell_faultfs a error ENOSPC write >/dev/null
says 1 "No space left on device: make room on the PFS first" "$eddy" recover --timeout 60 "$W/cache-a"
tell_faultfs a clear
tell_faultfs a error ENOSPC write path=file >/dev/null
says 3 "file: .*No space left on device" "$eddy" recover --timeout 60 "$W/cache-a"
tell_faultfs a clear
says 2 "is in the cache directory itself" "$eddy" recover --to "$W/cache-a/data" "$W/cache-a"
says 0 "" "$eddy" recover "$W/cache-a"
check_equal "the file, when there is room again" "$(cat "$PFS/file")" precious

# --- Other nodes ---
"$eddyfs" "${COMMON[@]}" --no-supervise --node a --cache-dir "$W/cache" "$PFS" "$W/mnt" >/dev/null
mkdir "$W/mnt-b"
says 1 "has chunks of 1048576 bytes, not 2097152" "$eddyfs" -f "${COMMON[@]}" --node b --cache-dir "$W/warm" --chunk-size 2M "$PFS" "$W/mnt-b"
[ ! -e "$W/warm" ] || fail "a cache was made, or emptied, for a start that is refused"
"$eddy" umount "$W/mnt"
says 1 "only 1 of 3 nodes .* joined session mistakes in $PFS/.eddyfs-0 within 2 s .*: a\. .*--session" \
    "$eddyfs" --wait-nodes 3 --wait-timeout 2 "${ARGUMENTS[@]}"
add_host x
add_host y
start_faultfs x
start_node x "$W/pfs-x"
on x ip route add unreachable "$(host_address y)"
code=0
on y timeout 60 "$eddyfs" -f --node y --listen "$(host_address y)" --cache-dir "$W/cache-y" --session test --wait-timeout 15 \
    "$PFS" "$W/mnt" >"$W/said" 2>&1 || code=$?
check_equal "code of a node that cannot reach the other one" "$code" 1
grep -q "node x cannot be reached at $(host_address x):[0-9]*: .*firewall.*--listen" "$W/said" || fail "y says: $(cat "$W/said")"
