#!/usr/bin/env bash
# 40 files are cut on node c, of which node b has borrowed parts that it must flush first, and its PFS hangs. Their claimant, node a,
# keeps no other file waiting meanwhile: what node c writes into one is written, and the 40 are cut when the PFS is back.
# timeout: 180
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
start_abc
cat >"$W/cut.py" <<'EOF'
import os
import sys
import threading

PIECE, COUNT = 64 << 10, 40
a, b, c = sys.argv[1:]


def piece(n):
    return bytes([n + 1]) * PIECE


def path(mount, n):
    return os.path.join(mount, "cut%d" % n)


fds = []
for n in range(COUNT):
    fds.append(os.open(path(a, n), os.O_RDWR | os.O_CREAT, 0o644))
    fds.append(os.open(path(b, n), os.O_RDWR))
    os.pwrite(fds[-2], piece(n) * 4, 0)
    os.pwrite(fds[-1], piece(n) * 8, 4 * PIECE)
other = os.open(os.path.join(a, "other"), os.O_RDWR | os.O_CREAT, 0o644)
os.pwrite(other, b"first", 0)
carried = os.open(os.path.join(c, "other"), os.O_RDWR)
print("lent", flush=True)
sys.stdin.readline()


def cut(n):
    os.truncate(path(c, n), PIECE * 5)


threads = [threading.Thread(target=cut, args=(n,)) for n in range(COUNT)]
for t in threads:
    t.start()
while not all(open("/proc/self/task/%d/syscall" % t.native_id).read().startswith("76 ") for t in threads):
    pass
print("cutting", flush=True)
for line in sys.stdin:
    if line == "end\n":
        break
    os.pwrite(carried, line.encode(), 0)
    print("written", flush=True)
for t in threads:
    t.join()
for n in range(COUNT):
    for mount in a, b, c:
        with open(path(mount, n), "rb") as f:
            assert f.read() == piece(n) * 5, "%s is wrong" % f.name
print("cut", flush=True)
EOF
coproc CUT { exec python3 "$W/cut.py" "$W/mnt-a" "$W/mnt-b" "$W/mnt-c"; }
heard() { # LINE SECONDS
    local line=
    read -r -t "$2" line <&"${CUT[0]}" || true
    [ "$line" = "$1" ] || fail "it does not say \"$1\" within $2 s, but \"$line\""
}
heard lent 60
check_equal "files of which b has borrowed parts" "$(status_of b .loans.borrowed_files)" 40
held=$(tell_faultfs b hang write)
echo >&"${CUT[1]}"
heard cutting 20
wait_for 20 fault_waits b "$held" || fail "no recall begins"
for n in $(seq 20); do
    echo "write $n" >&"${CUT[1]}"
    heard written 10
done
check_equal "what node a has of the other file" "$(cat "$W/mnt-a/other")" "write 20"
tell_faultfs b clear "$held"
echo end >&"${CUT[1]}"
heard cut 60
wait "$CUT_PID" || fail "cut.py ends with $?"
