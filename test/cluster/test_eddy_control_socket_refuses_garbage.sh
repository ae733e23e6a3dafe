#!/usr/bin/env bash
# Garbage, half requests, thousands of connections and silent ones on the control socket: each
# is refused with a reason, and the daemon lives, serves and answers.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3

start_node a "$PFS"
check_equal "mode of the socket" "$(stat -c %a "$W/cache-a/control")" 600
python3 - "$W/cache-a/control" <<'END'
import os, random, socket, sys

def connection():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.settimeout(20)
    return s

def ask(request):
    s = connection()
    answer = b""
    try:
        s.sendall(request)
        while (more := s.recv(65536)):
            answer += more
    except OSError:
        pass # it may close before it has read all
    s.close()
    return answer

refused = [b"\n", b"{}\n", b'{"do":5}\n', b'{"do":"x\xff"}\n', b"[" * 10000 + b"\n", b"\0\n",
           b"a" * 20000, b'{"do":"nothing"}\n', b'{"do":"status","do":"flush"}\n',
           b'{"do":"where","path":"../x"}\n', b'{"do":"where","path":"none"}\n',
           b'["do","status"]\n', b'{"do":"flush_paths"}\n', b'{"do":"flush_paths","paths":[5]}\n',
           b'{"do":"flush_paths","paths":["a\\\\q"]}\n', b'{"do":"flush_paths","paths":["\\\\x00"]}\n',
           b'{"do":"flush_paths","paths":["a"],"more":true}\n[]\n']
for request in refused:
    answer = ask(request)
    assert b'"error"' in answer and b'"end":true' in answer, (request[:40], answer[:200])
random.seed(1)
for _ in range(1000):
    s = connection()
    try:
        s.sendall(random.randbytes(random.randint(0, 3000)))
    except OSError:
        pass
    s.close()
silent = [connection() for _ in range(40)]
for s in silent:
    s.close()
END
is_answering() {
    [ "$(status_of a .node 2>/dev/null)" = a ]
}
wait_for 10 is_answering || fail "the daemon does not answer any more"
echo data >"$W/mnt-a/file"
check_equal "what it serves" "$(cat "$W/mnt-a/file")" data
if [ "$(id -u)" = 0 ]; then
    code=0; run_as 65534 "$EDDY_BUILD/eddy" status "$W/mnt-a" 2>/dev/null || code=$?
    check_equal "code for another user" "$code" 1
fi
stop_node a
