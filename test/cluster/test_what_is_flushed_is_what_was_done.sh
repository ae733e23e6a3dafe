#!/usr/bin/env bash
# The same work on a plain directory and through eddyfs, flushed: bytes, modes, owners, times,
# xattrs, ACLs, hard links, symlinks and holes on the PFS are those of the plain directory, as
# `rsync -aHAX` compares them and block by block; as root, and as a user who mounts himself.
# Also after kill -9 and a restart.
# timeout: 150
# both
. "$(dirname "$0")/lib.sh"
requires fuse root user cmd rsync cmd setfattr cmd setfacl
in_namespaces

# /dev/fuse for everybody, in this namespace only.
mknod -m 666 "$W/fuse" c 10 229
mount --bind "$W/fuse" /dev/fuse
chmod 711 "$W/run"
USER_ID=65534

head -c 3000000 /dev/urandom >"$W/data"
chmod 644 "$W/data"

# work DIR ROOT: what an application does; ROOT: root can do more.
cat >"$W/work" <<'WORK'
set -eu -o pipefail
cd "$1"
umask 022
data=$3
mkdir -p tree/deep tree/setgid
cp "$data" tree/plain
cp "$data" tree/deep/appended && head -c 777 "$data" >>tree/deep/appended
: >tree/empty
# holes: in the middle, at the end, at the start, punched, grown
dd if="$data" of=tree/holes bs=65536 count=1 seek=3 status=none
dd if="$data" of=tree/holes bs=65536 count=2 seek=20 conv=notrunc status=none
truncate -s 5M tree/holes
truncate -s 3M tree/only-a-hole
cp "$data" tree/punched && fallocate -p -o 1048576 -l 655360 tree/punched
cp "$data" tree/shrunk && truncate -s 12345 tree/shrunk && truncate -s 200000 tree/shrunk
# modes: read-only, setuid, and one changed while it is dirty
cp "$data" tree/read-only && chmod 444 tree/read-only
cp "$data" tree/nobody-reads && chmod 0 tree/nobody-reads
cp "$data" tree/setuid && chmod 4755 tree/setuid
if [ "$2" = root ] && command -v setcap >/dev/null; then # after the bytes
    cp "$data" tree/capability && chmod 755 tree/capability && setcap cap_net_raw+ep tree/capability
fi
chmod 2775 tree/setgid && cp "$data" tree/setgid/made
# names
ln tree/plain tree/hard-link
ln -s plain tree/symbolic-link && ln -s nowhere tree/dangling
cp "$data" tree/old-name && mv tree/old-name tree/new-name
cp "$data" tree/over && cp "$data" tree/under && head -c 99 "$data" >>tree/over && mv tree/over tree/under
mkfifo tree/fifo
# xattrs and ACLs, before and after the bytes
: >tree/xattrs && setfattr -n user.before -v one tree/xattrs && cp --no-preserve=all "$data" tree/xattrs
setfattr -n user.after -v two tree/xattrs
cp "$data" tree/acl && setfacl -m u:1:r,g:2:rw tree/acl
setfattr -n user.dir -v three tree/deep
if [ "$2" = root ]; then
    cp "$data" tree/chowned && chown 1234:5678 tree/chowned
    cp "$data" tree/chowned-suid && chown 1234 tree/chowned-suid && chmod 6711 tree/chowned-suid
fi
# times: set after the bytes, in nanoseconds; before 1970; read-only
touch -d '2001-02-03 04:05:06.789012345' tree/plain tree/read-only
touch -d '1965-01-01 00:00:00.5' tree/punched
python3 - <<'PYTHON'
import os
fd = os.open('tree/while-open', os.O_CREAT | os.O_RDWR, 0o640)
os.write(fd, b'x' * 100000)
os.utime(fd, ns=(10**18, 10**18 + 7))
os.pwrite(fd, b'y' * 10, 5000)          # moves the time again
os.utime(fd, ns=(10**18, 10**18 + 9))
os.fchmod(fd, 0o400)
os.close(fd)
PYTHON
# directories last: names move their times
find tree -depth -type d -exec touch -d '2010-10-10 10:10:10.101010' {} +
WORK

# Times that the work did not set are those of the moment: the same in both is not to be expected.
same_times() { # REFERENCE OTHER: gives such files one time
    (cd "$1" && find . -newermt '2020-01-01' ! -type d -print0) |
        while IFS= read -r -d '' file; do
            touch -h -d @1500000000 "$1/$file" "$2/$file"
        done
}

extents() { # FILE: offsets and lengths of its data, in pages
    python3 - "$1" <<'PYTHON'
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(fd).st_size
at, out = 0, []
while at < size:
    try:
        start = os.lseek(fd, at, os.SEEK_DATA)
    except OSError:
        break
    at = os.lseek(fd, start, os.SEEK_HOLE)
    out.append(f'{start // 4096}-{(at + 4095) // 4096}')
print(size, *out)
PYTHON
}

compare() { # WHAT EXPECTED GOT
    local difference file
    check_equal "mtimes of files that were given one, $1" \
        "$(cd "$3/tree" && stat -c '%n %y' plain read-only punched while-open)" \
        "$(cd "$2/tree" && stat -c '%n %y' plain read-only punched while-open)"
    same_times "$2" "$3"
    difference=$(rsync -aHAXnci --delete "$2/tree/" "$3/tree/")
    check_equal "difference by rsync, $1" "$difference" ""
    for file in holes only-a-hole punched shrunk; do
        check_equal "extents of $file, $1" "$(extents "$3/tree/$file")" "$(extents "$2/tree/$file")"
    done
}

as_root() { "$@"; }
as_user() { run_as "$USER_ID" env XDG_RUNTIME_DIR= TMPDIR="$W/tmp" "$@"; }

# one WHO CRASH: the daemon dies before the flush, and is started again
one() {
    local who=$1 crash=$2 run=as_$1 name=$1$2
    mkdir -m 755 "$W/plain-$name" "$PFS/$name"
    # shellcheck disable=SC2174 # its parent is there
    mkdir -p -m 777 "$W/tmp"
    [ -d "$W/mnt-$name" ] || mkdir "$W/mnt-$name"
    [ "$who" = root ] || chown "$USER_ID:$USER_ID" "$W/plain-$name" "$PFS/$name" "$W/mnt-$name"
    record_mount "$W" "$W/mnt-$name"
    start() {
        # shellcheck disable=SC2086 # words
        start_daemon - "$W/$name.out" "$run" "$EDDY_BUILD/eddyfs" -f --node "$name" --listen 127.0.0.1 \
            --cache-dir "$W/tmp/cache-$name" --session test --flush-wait 3600 ${EDDY_TEST_OPTIONS-} \
            "$PFS/$name" "$W/mnt-$name"
        wait_for 30 ready || fail "it does not mount: $(cat "$W/$name.out")"
    }
    ready() { "$run" stat -f -c %t "$W/mnt-$name" 2>/dev/null | grep -q "$FUSE_MAGIC"; }
    start
    "$run" bash "$W/work" "$W/plain-$name" "$who" "$W/data" || fail "the work on a plain directory"
    "$run" bash "$W/work" "$W/mnt-$name" "$who" "$W/data" || fail "the work through eddyfs"
    if [ -n "$crash" ]; then
        kill -KILL "$STARTED_PID"
        wait "$STARTED_JOB" 2>/dev/null || true
        start
    fi
    "$run" "$EDDY_BUILD/eddy" umount "$W/mnt-$name" || fail "eddy umount ended with $?"
    compare "$name" "$W/plain-$name" "$PFS/$name"
}

one root ''
one user ''
one root -crash
one user -crash
