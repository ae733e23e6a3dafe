#!/usr/bin/env bash
# A PFS that is full: each descriptor is told once, eddy status says which file, its bytes,
# since when, how often it was tried and why not; eddy flush --retry tries it, and only it, at
# once; with the policy close, close says so. When there is room all bytes arrive.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires root fuse cmd jq cmd python3 cmd setfattr
mount -t tmpfs -o size=16M tmpfs "$PFS"
record_mount "$W" "$PFS"
start_node a "$PFS" --flush end --session-dir "$W/session"
mnt=$W/mnt-a
head -c 6000000 /dev/urandom >"$W/content"

cat >"$W/descriptors.py" <<'PY'
import errno, os, subprocess, sys
eddy, mnt, content, ballast = sys.argv[1:5]
data = open(content, "rb").read()
def told(what, call, *args):
    try:
        call(*args)
        return None
    except OSError as e:
        return errno.errorcode[e.errno]
def expect(what, got, wanted):
    assert got == wanted, f"{what}: {got}, expected {wanted}"
# A process of its own from before the opens: a child would close its copies of the descriptors,
# and be told.
shell = subprocess.Popen(["bash", "-c", """while read -r args; do
    "$0" flush $args "$1" >/dev/null 2>&1 </dev/null; echo $?; done""", eddy, mnt],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def flush(*args):
    print(*args, file=shell.stdin, flush=True)
    return int(shell.stdout.readline())
f = mnt + "/failing"
first = os.open(f, os.O_RDWR | os.O_CREAT)
second = os.open(f, os.O_WRONLY)
third = os.open(f, os.O_WRONLY)
reader = os.open(f, os.O_RDONLY)
os.write(first, data)
expect("fsync before", told("", os.fsync, first), None)
with open(ballast, "wb") as b:
    b.write(b"x" * (14 << 20))
expect("eddy flush", flush(), 3)
expect("fsync of the first", told("", os.fsync, first), "ENOSPC")
expect("fsync again", told("", os.fsync, first), None)
expect("close of the second", told("", os.close, second), "ENOSPC")
expect("fsync by the reader", told("", os.fsync, reader), "ENOSPC")
later = os.open(f, os.O_WRONLY)
expect("fsync of one opened later", told("", os.fsync, later), None)
expect("eddy flush --retry", flush("--retry"), 3)
expect("fsync of the first, of the same error", told("", os.fsync, first), None)
expect("fsync of the third, which was not told yet", told("", os.fsync, third), "ENOSPC")
expect("fsync of the later one", told("", os.fsync, later), "ENOSPC")
expect("and again", told("", os.fsync, later), None)
for fd in first, third, later, reader:
    expect("close", told("", os.close, fd), None)
PY
python3 -B "$W/descriptors.py" "$EDDY_BUILD/eddy" "$mnt" "$W/content" "$PFS/ballast" || fail "see above"

eddy status --json "$mnt" >"$W/status.json"
jq -e '.flush.failed_count == 1 and (.flush.failed_files[0] | .path == "failing" and .bytes >= 6000000
       and .since >= 0 and .since < 100 and .tries >= 2 and .error == "No space left on device"
       and (.suspect | not)) and .counters.flush_errors >= 2' "$W/status.json" >/dev/null ||
    fail "status: $(jq -c .flush "$W/status.json")"
eddy status "$mnt" | grep -q "failing: .*No space left on device, .* tries, dirty for" || fail "status for people"
tries=$(jq '.flush.failed_files[0].tries' "$W/status.json")
tried_more() { [ "$(status_of a '.flush.failed_files[0].tries')" -gt "$1" ]; }
cp "$W/content" "$mnt/beside"
code=0
eddy flush --retry "$mnt" >"$W/listed" || code=$?
check_equal "code of eddy flush --retry" "$code" 3
tried_more "$tries" || fail "--retry does not try"
grep -q "^failing: .*No space left" "$W/listed" || fail "--retry does not list the file"
check_equal "size of a file that did not fail after --retry" "$(stat -c %s "$PFS/beside")" 0

# close waits, and says what came of it
mkdir "$mnt/results"
setfattr -n user.eddy.flush -v close "$mnt/results" 2>/dev/null || {
    setfattr -n user.eddy.flush -v close "$PFS/results" || skip "the tmpfs has no user attributes"
}
python3 - "$mnt/results/now" "$W/content" <<'PY' || fail "close with the policy close says nothing"
import errno, os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(fd, open(sys.argv[2], "rb").read())
try:
    os.close(fd)
    sys.exit(1)
except OSError as e:
    assert e.errno == errno.ENOSPC, e
PY

# room: --retry brings what failed, at once; the rest at the end
rm "$PFS/ballast"
mount -o remount,size=64M "$PFS"
eddy flush --retry "$mnt" || fail "eddy flush --retry ends with $? though there is room"
check_same "$W/content" "$PFS/failing"
check_same "$W/content" "$PFS/results/now"
check_equal "size of the file that did not fail" "$(stat -c %s "$PFS/beside")" 0
check_equal "failed files" "$(status_of a .flush.failed_count)" 0

# What another node has borrowed of a file is flushed there, and that node's descriptors are told.
start_node b "$PFS" --flush end --session-dir "$W/session" --wait-nodes 2
python3 -B - "$EDDY_BUILD/eddy" "$mnt" "$W/mnt-b" "$PFS/ballast" <<'PY' || fail "a borrower is not told"
import errno, os, subprocess, sys
eddy, a, b, ballast = sys.argv[1:5]
def told(fd):
    try:
        os.fsync(fd)
    except OSError as e:
        return errno.errorcode[e.errno]
first = os.open(a + "/shared", os.O_RDWR | os.O_CREAT)
os.pwrite(first, b"a" * (1 << 20), 0)
fd = os.open(b + "/shared", os.O_RDWR)
other = os.open(b + "/shared", os.O_RDWR)
for n in range(1, 9):
    os.pwrite(fd, b"b" * (1 << 20), n << 20)
assert told(fd) is None
with open(ballast, "wb") as f:
    try:
        f.write(b"x" * (64 << 20))
    except OSError:
        pass
shell = subprocess.run([eddy, "flush", b], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=True)
assert shell.returncode == 3, shell.returncode
got = [told(fd), told(fd), told(other), told(other)]
assert got == ["ENOSPC", None, "ENOSPC", None], got
os.unlink(ballast)
assert subprocess.run([eddy, "flush", b], stdout=subprocess.DEVNULL).returncode == 0
assert told(fd) is None
for n in range(9):
    assert os.pread(first, 1 << 20, n << 20) == (b"b" if n else b"a") * (1 << 20)
PY
stop_node b
stop_node a
check_same "$W/content" "$PFS/beside"
