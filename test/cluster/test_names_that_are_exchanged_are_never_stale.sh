#!/usr/bin/env bash
# Processes on two nodes exchange the names of a few files and replace them, over a PFS that takes a while for each request. The names are never missing:
# no open of them, for reading or writing, stat or chmod ends with ESTALE.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
for node in a b; do
    start_faultfs $node --delay-meta-us 2000
done
start_node a "$W/pfs-a"
start_node b "$W/pfs-b" --wait-nodes 2
cat >"$W/exchange.py" <<'EOF'
import collections
import ctypes
import os
import random
import sys
import threading
import time

top, seconds = sys.argv[1], float(sys.argv[2])
os.chdir(top)
libc = ctypes.CDLL(None, use_errno=True)
EXCHANGE, AT_FDCWD = 2, -100
names = ["n%d" % n for n in range(5)]
done, failed = collections.Counter(), collections.Counter()
lock = threading.Lock()


def exchange(name):
    if libc.renameat2(AT_FDCWD, name.encode(), AT_FDCWD, random.choice(names).encode(), EXCHANGE):
        raise OSError(ctypes.get_errno(), "exchange")


def replace(name):
    temporary = "t%d.%d" % (os.getpid(), threading.get_native_id())
    with open(temporary, "wb") as f:
        f.write(b"replaced")
    os.rename(temporary, name)


def update(name):
    with open(name, "r+b") as f:
        f.write(b"updated!")


def read(name):
    with open(name, "rb") as f:
        f.read()


def mode(name):
    os.chmod(name, 0o644)


def work():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        what = random.choice([exchange, exchange, replace, update, update, read, os.stat, mode])
        try:
            what(random.choice(names))
        except OSError as e:
            with lock:
                failed["%s: %s" % (what.__name__, e.strerror)] += 1
        else:
            with lock:
                done[what.__name__] += 1


threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(dict(done), dict(failed))
assert not failed and min(done[w.__name__] for w in (exchange, replace, update, read)) > 2, "names that are there are stale"
EOF
for n in 0 1 2 3 4; do
    echo first >"$W/mnt-a/n$n"
done
python3 "$W/exchange.py" "$W/mnt-b" 15 &
other=$!
record_process "$W" "$other"
code=0
python3 "$W/exchange.py" "$W/mnt-a" 15 || code=$?
wait "$other" || fail "node b"
check_equal "code on node a" "$code" 0
