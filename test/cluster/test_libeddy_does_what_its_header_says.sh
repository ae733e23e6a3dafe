#!/usr/bin/env bash
# What programs see of queues: errors, names, forks, threads, many processes, the bound on memory; also through a bind mount
# of a part of the mount; a client that sends garbage loses its connection, and another user's is refused.
# timeout: 180
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
M=$W/mnt-a
CLIENT=$EDDY_BUILD/test/queueclient

queues_are() {
    [ "$(status_of a .hints.queues)" = "$1" ]
}

mkdir "$PFS/files"
for i in 0 1 2 3 4 5 6 7 8 9; do head -c 300000 /dev/urandom >"$PFS/files/file$i"; done
start_node a "$PFS" --cache-size 1G --memory 256M

"$CLIENT" "$M" errors "$W/run" || fail "errors"
"$CLIENT" "$M" names "$W" || fail "names"
"$CLIENT" "$M" threads || fail "threads"
"$CLIENT" "$M" queues 100 || fail "100 queues"
hints=$("$CLIENT" "$M" memory) || fail "memory: $hints"
[ "$hints" -ge 4000000 ] || fail "only $hints hints fit into 64 MiB"
wait_for 20 queues_are 0 || fail "queues stay: $(status_of a .hints)"
check_equal "memory without queues" "$(status_of a .hints.memory_bytes)" 0

# --- A forked child ---

mkfifo "$W/go"
"$CLIENT" "$M" fork <"$W/go" >"$W/child" &
client=$!
record_process "$W" "$client"
exec 5>"$W/go"
wait_for 20 grep -q "child ready" "$W/child" || fail "the child: $(cat "$W/child")"
wait_for 20 queues_are 0 || fail "the child keeps its parent's queue"
echo go >&5
wait "$client" || fail "fork: $(cat "$W/child")"

# --- Garbage ---

python3 - "$M" <<'END' || fail "garbage"
import os, socket, struct, sys

name = os.getxattr(sys.argv[1], "user.eddy.queues").split(b"\n")[0]

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(b"\0" + name)
    return s

def head(length, kind, request=1, reply=0, status=0):
    return struct.pack("=IHHIi", length, kind, reply, request, status)

hello = head(8, 1) + struct.pack("=II", 1, 0)
for what, data in {
    "no hello": head(0, 3),
    "an unknown type": head(0, 99),
    "an answer": head(8, 1, reply=1) + bytes(8),
    "two hellos": hello + hello,
    "a long body": hello + head(1 << 30, 2),
    "a bad body": hello + head(12, 2) + struct.pack("=III", 1, 1, 1),
    "a short number": hello + head(4, 5) + bytes(4),
    "text": b"GET / HTTP/1.1\r\n\r\n" + bytes(64),
}.items():
    s = connect()
    s.settimeout(20)
    s.sendall(data)
    while s.recv(4096):  # answers to what was right; the end, or this fails
        pass
    s.close()
s = connect()  # byte by byte it is as good
for b in hello:
    s.sendall(bytes([b]))
kind, status = struct.unpack("=4xHxx4xi", s.recv(16))
assert (kind, status) == (1, 0), (kind, status)
try:
    os.setxattr(sys.argv[1], "user.eddy.queues", b"x")
    sys.exit("the attribute can be set")
except PermissionError:
    pass
assert os.getxattr(sys.argv[1] + "/files/file1", "user.eddy.queues").split(b"\n")[1] == b"files/file1"
END
wait_for 20 queues_are 0 || fail "queues of garbage stay"

# --- The daemon ends while a queue waits ---

"$EDDY_BUILD/eddy" hint "$M/files/file0" >"$W/hint" 2>&1 &
hint=$!
record_process "$W" "$hint"
wait_for 20 queues_are 1 || fail "no queue"
stop_node a
code=0
wait "$hint" || code=$?
check_equal "code of eddy hint at the mount's end" "$code" 1
