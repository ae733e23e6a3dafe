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


def stopped(call):
    """The answer to what waits for a stopped node a, with a signal on the way."""
    os.kill(claimant, signal.SIGSTOP)
    me = threading.get_native_id()

    def signals():
        time.sleep(0.3)  # it waits by then, or the signal comes too early to show anything
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.8)
        os.kill(claimant, signal.SIGCONT)

    t = threading.Thread(target=signals)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    t.start()
    n = call()
    error = os.strerror(ctypes.get_errno()) if n < 0 else ""
    t.join()
    return n, error


for n in range(3):
    answer = stopped(lambda: libc.write(log, b"three%d\n" % n, 7))
    assert answer == (7, ""), "append %d: %s" % (n, answer)
answer = stopped(lambda: libc.ftruncate(log, ctypes.c_long(14)))
assert answer == (0, ""), "truncate: %s" % (answer,)
assert len(caught) == 4, "the signal came %d times" % len(caught)
got = open(a + "/log", "rb").read()
assert got == b"one\ntwo\nthree0", got
EOF
python3 "$W/signalled.py" "$W/mnt-a" "$W/mnt-b" "${NODE_PID[a]}" || fail "a change was answered wrong"
