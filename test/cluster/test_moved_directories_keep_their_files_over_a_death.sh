#!/usr/bin/env bash
# A directory with unflushed files below it is moved, or takes another one's place (RENAME_EXCHANGE),
# then the daemon is killed: the next one finds the files where they are now, and flushes them there.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
start() { start_node a "$PFS" --flush end; }
exchange() {
    python3 - "$W/mnt-a/$1" "$W/mnt-a/$2" <<'PY'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other = (os.fsencode(path) for path in sys.argv[1:])
if libc.renameat2(-100, one, -100, other, 2):
    sys.exit(f"renameat2: {os.strerror(ctypes.get_errno())}")
PY
}
for name in one two three; do
    head -c 300000 /dev/urandom >"$W/$name"
done

start
cd "$W/mnt-a"
mkdir -p moved/below one/below two file-for-it
cp "$W/one" moved/below/f
mv moved there
cp "$W/one" one/below/f
cp "$W/two" two/f # of the same name as a directory's other file
cp "$W/three" one/g
exchange one two
cp "$W/three" file
cp "$W/two" file-for-it/f
exchange file file-for-it
cd "$W"
crash_node a
start
stop_node a
check_same "$W/one" "$PFS/there/below/f"
check_same "$W/one" "$PFS/two/below/f"
check_same "$W/three" "$PFS/two/g"
check_same "$W/two" "$PFS/one/f"
check_same "$W/three" "$PFS/file-for-it"
check_same "$W/two" "$PFS/file/f"
check_equal "files on the PFS" "$(cd "$PFS" && find . -path "./.eddyfs-*" -prune -o -type f -print | sort | tr '\n' ' ')" \
    "./file-for-it ./file/f ./one/f ./there/below/f ./two/below/f ./two/g "
