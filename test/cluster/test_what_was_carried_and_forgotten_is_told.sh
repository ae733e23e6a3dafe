#!/usr/bin/env bash
# Node b writes into files whose latest bytes node a has: that is carried there. Node a dies, and an operator forgets one file, and
# then all that node a has: the next fsync or close of a descriptor that had written says EIO, once. One whose writes were
# synced, and one whose node comes back, has nothing to say.
# timeout: 400
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3

for n in a b; do start_node $n "$PFS" --flush-wait 3600; done
files="file closed node back"
for name in $files; do printf 'of a' >"$W/mnt-a/$name"; done
cat >"$W/write.py" <<'P'
import errno, os, sys

def outcome(call, fd):
    try:
        call(fd)
        return "0"
    except OSError as e:
        return errno.errorcode[e.errno]

fds = {}
for line in sys.stdin:
    what, key, *name = line.split()
    if what == "open":
        fds[key] = os.open(name[0], os.O_RDWR)
        said = str(os.pwrite(fds[key], b"of b", 4))
    elif what == "again":
        said = str(os.pwrite(fds[key], b"of b", 8))
    else:
        said = outcome(os.fsync if what == "sync" else os.close, fds[key])
    print(said, flush=True)
P
coproc WRITER { exec python3 "$W/write.py"; }
says() { # ANSWER COMMAND...
    local answer
    echo "${*:2}" >&"${WRITER[1]}"
    read -r answer <&"${WRITER[0]}"
    check_equal "${*:2}" "$answer" "$1"
}
for name in $files; do
    says 4 open "$name" "$W/mnt-b/$name"
done
says 4 open synced "$W/mnt-b/file"
says 0 sync synced
crash_node a
start_node a "$PFS" --flush-wait 3600
says 0 sync back # what was carried is there
says 4 again back
crash_node a
eddy forget "$W/mnt-b/closed" &
eddy forget "$W/mnt-b/file" || fail "eddy forget ended with $?"
wait $! || fail "eddy forget ended with $?"
says 0 sync synced
says EIO sync file
says 0 sync file
says 4 again closed # it goes on with what the PFS has
says EIO close closed
eddy forget --node a "$W/mnt-b" || fail "eddy forget --node ended with $?"
says EIO sync node
says 0 close node
says EIO sync back
says 4 again back
says 0 sync back
