#!/usr/bin/env bash
# When a writer's lock goes, all who wait to read on another node get theirs at once,
# and drop what the kernel has of the file: none of them waits for a read that waits
# for them. Each reads what was written under the lock.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

echo begin >"$PFS/f"
start_node a "$PFS"
start_node b "$PFS"
cat >"$W/locks.py" <<'PY'
import fcntl, os, sys, threading

readers, rounds = 200, 6
writer = os.open(sys.argv[2], os.O_RDWR)
fds = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(readers)]
wrong = []

def read(fd, want, asking):
    asking.release()
    fcntl.flock(fd, fcntl.LOCK_SH)
    got = os.pread(fd, 8, 0)
    if got != want:
        wrong.append((got, want))
    fcntl.flock(fd, fcntl.LOCK_UN)

for n in range(rounds):
    fcntl.flock(writer, fcntl.LOCK_EX)
    want = b"%08d" % n
    os.pwrite(writer, want, 0)
    asking = threading.Semaphore(0)
    threads = [threading.Thread(target=read, args=(fd, want, asking), daemon=True) for fd in fds]
    for t in threads:
        t.start()
    for t in threads:
        asking.acquire()
    fcntl.flock(writer, fcntl.LOCK_UN)
    for t in threads:
        t.join(20)
    if any(t.is_alive() for t in threads):
        print("round", n, "hangs", flush=True)
        os._exit(1)
assert not wrong, wrong[:3]
PY
python3 "$W/locks.py" "$W/mnt-a/f" "$W/mnt-b/f" || fail "see above"
stop_node a
stop_node b
