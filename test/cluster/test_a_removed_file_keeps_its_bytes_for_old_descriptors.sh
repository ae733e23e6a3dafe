#!/usr/bin/env bash
# A node has a file open since before another node wrote it, and does nothing with it until the writer has closed the
# file and its last name is gone: removed or replaced by the writer's node or by a third one. Then it finds the bytes
# that were written and never flushed, and the times that it sets stay. So it does if it was counted at an earlier
# claimant, and if the writer's daemon was started again. When it has closed the file nothing of it is left.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

cat >"$W/old.py" <<'PY'
import json, mmap, os, subprocess, sys, time

eddy = os.environ["EDDY_BUILD"] + "/eddy"
OLD, NEW = b"old " * 50000, b"new! " * 30000


def removed(path):
    os.unlink(path)


def replaced(path):
    with open(path + ".new", "w") as f:
        f.write("other")
    os.rename(path + ".new", path)


def put(path, data):
    with open(path, "wb") as f:
        f.write(data)


def read(fd, size, off):
    page = mmap.mmap(-1, (size + 4095) // 4096 * 4096) # O_DIRECT
    return page[:os.preadv(fd, [page], off)]


def same(what, fd, data):
    st = os.fstat(fd)
    assert st.st_size == len(data), f"{what}: {st}"
    got = read(fd, len(data), 0)
    assert got == data, f"{what}: {len(got)} bytes, {got[:8]}"


def told(mount):
    """How many messages about changes the node has sent."""
    status = subprocess.run([eddy, "status", "--json", mount], check=True, capture_output=True)
    return json.loads(status.stdout)["counters"]["changes_told"]


def has_told(what, mount, before):
    """The claimant is about to drop the bytes: nothing asks it for them before."""
    end = time.monotonic() + 20
    while told(mount) == before:
        assert time.monotonic() < end, f"{what}: nobody was told"


def use(what, fd):
    """Of a file that has no name any more, and NEW in it."""
    os.utime(fd, ns=(10**18 + 5, 10**18 + 7))
    assert os.fstat(fd).st_mtime_ns == 10**18 + 7, f"{what}: {os.fstat(fd)}"
    same(what, fd, NEW)
    assert os.fstat(fd).st_mtime_ns == 10**18 + 7, f"{what}, after a read: {os.fstat(fd)}"
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
    os.pwrite(again, b"zz", 70000)
    os.close(again)
    same(f"{what}, changed", fd, NEW[:70000] + b"zz" + NEW[70002:])
    os.close(fd)
PY
cat >"$W/before.py" <<'PY'
import itertools
from old import *

pfs, a, b, c = sys.argv[1:]
FLAGS = os.O_RDONLY, os.O_RDONLY | os.O_DIRECT
for n, (flags, looked, remover, take_away) in enumerate(
        itertools.product(FLAGS, (False, True), (a, b, c), (removed, replaced))):
    what = f"{n}: flags {flags}, looked {looked}, {take_away.__name__} by {remover[-1]}"
    put(f"{pfs}/f{n}", OLD)
    fd = os.open(f"{b}/f{n}", flags)
    if looked:
        same(what, fd, OLD)
    put(f"{a}/f{n}", NEW)
    before = told(a)
    take_away(f"{remover}/f{n}")
    if remover != b: # else it is counted first
        has_told(what, a, before)
    use(what, fd)
PY
cat >"$W/counted.py" <<'PY'
from old import *

a, b, c = sys.argv[1:]
for n, flags in enumerate((os.O_RDONLY, os.O_RDONLY | os.O_DIRECT)):
    what = f"counted at a, flags {flags}"
    with open(f"{a}/g{n}", "wb") as f: # while it is written b is no watcher
        f.write(OLD)
        f.flush()
        fd = os.open(f"{b}/g{n}", flags)
    subprocess.run([eddy, "flush", a], check=True, stdout=subprocess.DEVNULL)
    put(f"{c}/g{n}", NEW)
    before = told(c)
    os.unlink(f"{c}/g{n}")
    has_told(what, c, before)
    use(what, fd)
PY
cat >"$W/restart.py" <<'PY'
from old import *

pfs, a, b = sys.argv[1:]
put(f"{pfs}/h", OLD)
fd = os.open(f"{b}/h", os.O_RDONLY)
put(f"{a}/h", NEW)
print("written", flush=True)
sys.stdin.readline()
before = told(a)
os.unlink(f"{a}/h")
has_told("after a restart", a, before)
use("after a restart", fd)
PY

export EDDY_BUILD
start_node a "$PFS" --flush end
start_node b "$PFS" --flush end --wait-nodes 2
start_node c "$PFS" --flush end --wait-nodes 3

# In the first second or so of a view homes tell all nodes of each grant, and learn what they have open.
breaks() { echo $(($(status_of a .counters.breaks_sent) + $(status_of b .counters.breaks_sent) + $(status_of c .counters.breaks_sent))); }
late=0
late_enough() {
    local before
    before=$(breaks)
    for _ in {1..16}; do
        late=$((late + 1))
        echo late >"$W/mnt-c/late-$late"
    done
    [ "$(breaks)" = "$before" ]
}
wait_for 20 late_enough || fail "each grant is told to all nodes"

echo "--- open since before it was written"
python3 -B "$W/before.py" "$PFS" "$W/mnt-a" "$W/mnt-b" "$W/mnt-c" || fail "see above"

echo "--- counted at the claimant before"
python3 -B "$W/counted.py" "$W/mnt-a" "$W/mnt-b" "$W/mnt-c" || fail "see above"

echo "--- the claimant was started again"
coproc USER_OF_B { python3 -B "$W/restart.py" "$PFS" "$W/mnt-a" "$W/mnt-b"; }
read -r -t 60 _ <&"${USER_OF_B[0]}" || fail "nothing was written"
crash_node a
start_node a "$PFS" --flush end
echo go >&"${USER_OF_B[1]}"
wait "$USER_OF_B_PID" || fail "see above"

echo "--- nothing is left"
no_claims() { [ "$(status_of a .claims)$(status_of b .claims)$(status_of c .claims)" = 000 ]; }
for n in a b c; do
    eddy flush "$W/mnt-$n"
done
wait_for 20 no_claims || fail "claims of removed files stay: $(status_of a .claims) $(status_of b .claims) $(status_of c .claims)"
for n in a b c; do
    stop_node "$n"
done
