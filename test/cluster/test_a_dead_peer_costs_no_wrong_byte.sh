#!/usr/bin/env bash
# One of three nodes is killed: the others read everything right, no read takes longer than 15 s and no open longer than 30 s;
# what only the dead node had is EIO until it is back.
# timeout: 240
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
mkdir "$PFS/tree"
for i in $(seq 1 60); do head -c $((i * 50021 % 2500000 + 1)) /dev/urandom >"$PFS/tree/$i"; done
for n in a b c; do start_faultfs "$n"; done
start_node a "$W/pfs-a"
start_node b "$W/pfs-b" --wait-nodes 2
start_node c "$W/pfs-c" --wait-nodes 3 --flush-wait 300
cat "$W/mnt-b/tree/"* >/dev/null
echo "only c has this" >"$W/mnt-c/lost"
check_equal "before" "$(cat "$W/mnt-a/lost")" "only c has this"
kill_node c
cat > "$W/read.py" <<'PY'
import hashlib, os, sys, time
mnt, pfs = sys.argv[1:3]
slow_open = slow_read = 0
for n in sorted(os.listdir(pfs + "/tree")):
    want = open(f"{pfs}/tree/{n}", "rb").read()
    t = time.time(); f = os.open(f"{mnt}/tree/{n}", os.O_RDONLY); slow_open = max(slow_open, time.time() - t)
    data = b""
    while True:
        t = time.time(); part = os.read(f, 1 << 20); slow_read = max(slow_read, time.time() - t)
        if not part: break
        data += part
    os.close(f)
    assert data == want, f"wrong bytes in {n}"
print(f"longest open {slow_open:.1f} s, longest read {slow_read:.1f} s")
assert slow_open < 30 and slow_read < 15
PY
python3 "$W/read.py" "$W/mnt-a" "$PFS" || fail "reading on a after c died"
python3 "$W/read.py" "$W/mnt-b" "$PFS" || fail "reading on b after c died"
t=$SECONDS
echo new >"$W/mnt-a/new" || fail "a new file after c died"
[ $((SECONDS - t)) -lt 30 ] || fail "creating a file took $((SECONDS - t)) s"
lost() { ! cat "$W/mnt-a/lost" >/dev/null 2>"$W/err" && grep -qi "input/output" "$W/err"; }
wait_for 40 lost || fail "a file whose latest bytes are on the dead node is readable: $(cat "$W/mnt-a/lost")"
start_node c "$W/pfs-c"
back() { [ "$(cat "$W/mnt-a/lost" 2>/dev/null)" = "only c has this" ]; }
wait_for 60 back || fail "the file is not back with its node"
for n in a b c; do stop_node "$n"; done
check_equal "on the PFS" "$(cat "$PFS/lost")" "only c has this"
