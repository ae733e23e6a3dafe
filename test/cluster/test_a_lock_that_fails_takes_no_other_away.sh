#!/usr/bin/env bash
# A process on node b has a read lock on the first bytes of a file whose claimant, node a, dies. It asks for more, and gets EIO, as the file's bytes
# are lost: it has what it had before, and nothing else.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3 cmd jq
start_node a "$PFS" --flush-wait 3600
start_node b "$PFS" --flush-wait 3600 --wait-nodes 2
cat >"$W/locks.py" <<'EOF'
import fcntl
import os
import struct
import sys

path = sys.argv[1]
fd = os.open(path, os.O_RDONLY)
other = os.open(path, os.O_RDONLY)


def lock(fd, how, what, start, length):
    return struct.unpack("hhqqi", fcntl.fcntl(fd, how, struct.pack("hhqqi", what, 0, start, length, 0)))


def taken(start):
    """Of this byte, as another process sees it."""
    read, write = os.pipe()
    if not os.fork():
        os.write(write, b"%d" % lock(other, fcntl.F_GETLK, fcntl.F_WRLCK, start, 1)[0])
        os._exit(0)
    os.wait()
    return int(os.read(read, 8)) != fcntl.F_UNLCK


lock(fd, fcntl.F_SETLK, fcntl.F_RDLCK, 0, 10)
print("locked", flush=True)
sys.stdin.readline()
try:
    lock(fd, fcntl.F_SETLK, fcntl.F_RDLCK, 0, 20)
    sys.exit("a lock of a file whose bytes are lost is granted")
except OSError as e:
    assert e.strerror == "Input/output error", e
while taken(15):
    pass
assert taken(0) and taken(9), "it has lost what it had"
EOF
exec 7<>"$W/mnt-a/file"
head -c 100 /dev/zero >&7
coproc LOCKS { exec python3 "$W/locks.py" "$W/mnt-b/file"; }
read -r -t 20 line <&"${LOCKS[0]}" || fail "no lock"
check_equal "the first lock" "$line" locked
kill_node a
wait_for 30 eval '[ "$(status_of b ".absent | length")" = 1 ]' || fail "a is not absent"
echo >&"${LOCKS[1]}"
wait "$LOCKS_PID" || fail "locks.py ends with $?"
