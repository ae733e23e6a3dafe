#!/usr/bin/env bash
# A process on node b that catches SIGTERM gets it while its change waits for node a, which is stopped for a moment. The change is made, and
# no error says that it was not: who asks again after EINTR would append twice, or find that its new name is there.
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
start_node a "$PFS"
start_node b "$PFS" --wait-nodes 2
cat >"$W/signalled.py" <<'EOF'
import ctypes
import os
import signal
import sys
import threading
import time

a, b, claimant = sys.argv[1], sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)  # Python's own calls go on after EINTR
caught = []
signal.signal(signal.SIGTERM, lambda *_: caught.append(1))
kept = os.open(a + "/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
os.write(kept, b"one\n")
log = os.open(b + "/log", os.O_WRONLY | os.O_APPEND)
os.write(log, b"two\n")


def text(path):
    with open(path) as f:
        return f.read()


def is_stopped(task):
    return any(line.startswith("State:\t") and line[7] in "TD" for line in text(task + "/status").splitlines())


def stopped(number, call):
    """The answer to a call with this number, which waits for a stopped node a, with a signal on the way."""
    os.kill(claimant, signal.SIGSTOP)
    tasks = "/proc/%d/task/" % claimant
    while not all(is_stopped(tasks + task) for task in os.listdir(tasks)):
        pass
    me = "/proc/self/task/%d/syscall" % threading.get_native_id()

    def signals():
        while not text(me).startswith("%d " % number):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.8)  # longer than an interrupted call is left to end by itself
        os.kill(claimant, signal.SIGCONT)

    t = threading.Thread(target=signals)
    t.start()
    n = call()
    error = os.strerror(ctypes.get_errno()) if n < 0 else ""
    t.join()
    return n, error


for n in range(3):
    answer = stopped(1, lambda: libc.write(log, b"three%d\n" % n, 7))
    assert answer == (7, ""), "append %d: %s" % (n, answer)
answer = stopped(77, lambda: libc.ftruncate(log, ctypes.c_long(14)))
assert answer == (0, ""), "truncate: %s" % (answer,)
assert len(caught) == 4, "the signal came %d times" % len(caught)
got = open(a + "/log", "rb").read()
assert got == b"one\ntwo\nthree0", got
EOF
python3 "$W/signalled.py" "$W/mnt-a" "$W/mnt-b" "${NODE_PID[a]}" || fail "a change was answered wrong"
