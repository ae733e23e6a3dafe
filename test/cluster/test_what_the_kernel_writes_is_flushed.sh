#!/usr/bin/env bash
# Files that applications write and map through the kernel (passthrough): a log that stays open is flushed again and again, only
# what changed; a mapping that outlived its close is seen; what is stored after the daemon's death is found at the next start;
# another node's writes and appends join; who reads an older version, or has it mapped, never sees zeros.
# timeout: 180
# sanitize
. "$(dirname "$0")/lib.sh"
requires root fuse cmd python3 cmd setfattr
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a" --flush-wait 0.3
start_node b "$W/pfs-b" --flush-wait 0.3 --wait-nodes 2
[ "$(status_of a .passthrough)" = true ] || skip "no passthrough here: $(status_of a .passthrough_why)"
setfattr -n user.eddy.shared -v never "$W/mnt-a" # opens without O_TRUNC have passthrough in a session of two nodes, too

echo "--- a log that stays open: only the chunks that changed are written again"
head -c 8388608 /dev/urandom >"$W/log"
exec 5>>"$W/mnt-a/log"
cat "$W/log" >&5
wait_for 20 cmp -s "$PFS/log" "$W/log" || fail "an open file is not flushed"
before=$(stat_of a write_bytes log)
echo "one line more" | tee -a "$W/log" >&5
wait_for 20 cmp -s "$PFS/log" "$W/log" || fail "an open file is not flushed again"
more=$(($(stat_of a write_bytes log) - before))
[ "$more" -le 1048576 ] || fail "$more bytes were written for one line"
[ "$(sha256sum <"$W/mnt-b/log")" = "$(sha256sum <"$W/log")" ] || fail "b reads other bytes of an open log"
exec 5>&-

echo "--- a mapping outlives its file's close"
cat >"$W/mapped.py" <<'PY'
import mmap, os, sys, time
path, say, size = sys.argv[1], sys.argv[2], 3 * 1024 * 1024
fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(fd, size)
m = mmap.mmap(fd, size)
os.close(fd)
for line in sys.stdin:
    at, text = line.split()
    m[int(at):int(at) + len(text)] = text.encode()
    open(say, "a").write(text + "\n")
PY
mkfifo "$W/stores"
python3 "$W/mapped.py" "$W/mnt-a/mapped" "$W/stored" <"$W/stores" &
mapper=$!
record_process "$W" "$mapper"
exec 6>"$W/stores"
says() { grep -q "$2" "$1" 2>/dev/null; }
has_at() { cmp -s <(dd if="$1" bs=1 skip="$2" count="${#3}" status=none 2>/dev/null) <(printf %s "$3"); }
for n in 1 2 3; do
    echo "$((n * 1000000)) round$n" >&6
    wait_for 10 says "$W/stored" "round$n" || fail "the mapping process"
    wait_for 20 has_at "$PFS/mapped" $((n * 1000000)) "round$n" || fail "store $n through a mapping is not flushed"
done
exec 6>&-
wait "$mapper"

echo "--- both nodes append to one file that is open on both"
python3 - "$W/mnt-a/both" "$W/mnt-b/both" <<'PY' || fail "appends of two nodes"
import os, sys, threading
fds = [os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)]
fds.append(os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND))
def lines(i):
    for n in range(500):
        assert os.write(fds[i], b"%d %04d\n" % (i, n)) == 7
t = [threading.Thread(target=lines, args=(i,)) for i in (0, 1)]
[x.start() for x in t]; [x.join() for x in t]
[os.close(fd) for fd in fds]
for path in sys.argv[1:]:
    got = open(path).read().split("\n")
    assert got[-1] == "" and len(got) == 1001, (path, len(got))
    for i in "01":
        assert [l for l in got if l.startswith(i)] == [f"{i} {n:04d}" for n in range(500)], path
PY

echo "--- a write with O_DSYNC is to reach the record as well: through the daemon"
python3 - "$W/mnt-a/synced" "$EDDY_BUILD/eddy" "$W/mnt-a" <<'PY' || fail "O_DSYNC"
import json, os, subprocess, sys
path, eddy, mount = sys.argv[1:]
def anchored():
    out = subprocess.run([eddy, "status", "--json", mount], check=True, capture_output=True).stdout
    return json.loads(out)["cache"]["anchored"]
for flag, served in ((os.O_DSYNC, False), (os.O_SYNC, False), (0, True)):
    with open(path, "wb") as f:
        f.write(b"0123456789" * 1000) # anchored are those that it has when it is opened
    fd = os.open(path, os.O_WRONLY | flag)
    assert (anchored() > 0) == served, flag
    os.write(fd, b"abc")
    os.close(fd)
PY

echo "--- a new version while the old one is open and mapped on another node"
head -c 3000000 /dev/urandom >"$W/old"
head -c 2500000 /dev/urandom >"$W/new"
cp "$W/old" "$PFS/version"
check_same "$W/mnt-a/version" "$W/old"
is_whole() { # the next open is served by the kernel when all of it is in the store
    local anchored
    exec 8<"$W/mnt-a/version"
    anchored=$(status_of a .cache.anchored)
    exec 8<&-
    [ "$anchored" -gt 0 ]
}
wait_for 10 is_whole || fail "a whole file is not opened in passthrough"
python3 - "$W/mnt-a/version" "$W/mnt-b/version" "$W/old" "$W/new" <<'PY' || fail "versions"
import mmap, os, sys
a, b, old, new = sys.argv[1], sys.argv[2], open(sys.argv[3], "rb").read(), open(sys.argv[4], "rb").read()
fd = os.open(a, os.O_RDONLY)
m = mmap.mmap(fd, len(old), prot=mmap.PROT_READ)
with open(b, "wb") as f:
    f.write(new)
for n in range(3):
    assert open(a, "rb").read() == new, n   # close-to-open
    data = os.pread(fd, len(old), 0)     # the descriptor and the mapping follow
    assert data == new, (len(data), data.count(0))
    assert m[:len(new)] == new
os.close(fd)
assert open(a, "rb").read() == new
assert m[:len(new)] == new, "the mapping changed when its file was closed"
PY

echo "--- stores after the daemon's death are found at the next start"
cat >"$W/writer.py" <<'PY'
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o644)
for line in sys.stdin:
    os.write(fd, line.encode())
    open(sys.argv[2], "a").write(line)
PY
mkfifo "$W/lines"
python3 "$W/writer.py" "$W/mnt-a/survivor" "$W/written" <"$W/lines" &
writer=$!
record_process "$W" "$writer"
exec 7>"$W/lines"
echo before >&7
wait_for 10 says "$W/written" before || fail "the writing process"
crash_node a
echo after >&7
wait_for 10 says "$W/written" after || fail "a write after the daemon's death"
start_node a "$W/pfs-a" --flush-wait 0.3 7>&- # who has the pipe open keeps the writer waiting
check_same "$W/mnt-a/survivor" "$W/written"
echo later >&7
wait_for 10 says "$W/written" later || fail "a write after the restart"
wait_for 20 cmp -s "$PFS/survivor" "$W/written" || fail "what was written after the daemon's death is not flushed"
exec 7>&-
wait "$writer"
stop_node a
stop_node b
check_same "$PFS/survivor" "$W/written"
check_same "$PFS/log" "$W/log"
check_same "$PFS/version" "$W/new"
