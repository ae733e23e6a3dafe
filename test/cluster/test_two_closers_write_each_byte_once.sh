#!/usr/bin/env bash
# With the policy close, one closes a file while another still writes to it, and closes later: what the first one's flush has brought
# to the PFS is not written again by the second one's, but for what changed between.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
start_faultfs a --bandwidth 100000000
start_node a "$W/pfs-a" --flush close
cat >"$W/two.py" <<'PY'
import os, sys
MIB = 1 << 20
path, content = sys.argv[1], open(sys.argv[2], "rb").read()
half = len(content) // 2
def put(fd, begin, end):
    for at in range(begin, end, MIB):
        os.pwrite(fd, content[at:at + MIB], at)
first, second = (os.open(path, os.O_WRONLY | os.O_CREAT) for _ in range(2))
put(first, 0, half)
put(second, half, half + 4 * MIB)
if os.fork() == 0: # each close writes back, and returns when that is done
    os.close(first)
    os._exit(0)
at = half + 4 * MIB
while os.waitpid(-1, os.WNOHANG)[0] == 0: # stores while the other one's flush goes on
    if at < len(content):
        put(second, at, at + MIB)
        at += MIB
    else:
        os.pwrite(second, content[half:half + 1], half)
put(second, at, len(content))
os.close(first)
os.close(second)
PY
head -c 32M /dev/urandom >"$W/content"
python3 "$W/two.py" "$W/mnt-a/x" "$W/content" || fail "see above"
check_same "$PFS/x" "$W/content"
written=$(stat_of a write_bytes x)
[ "$written" -ge 33554432 ] || fail "only $written bytes were written?"
[ "$written" -le 48000000 ] || fail "$written bytes were written of a file of 33554432"
stop_node a
check_same "$PFS/x" "$W/content"
