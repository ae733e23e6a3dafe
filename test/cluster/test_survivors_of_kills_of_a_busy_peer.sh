#!/usr/bin/env bash
# A peer is killed (kill -9) again and again in the middle of transfers in both directions: the other
# node lives, and every byte that is read on it is right.
# timeout: 240
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3 cmd jq free 1500
ROUNDS=${ROUNDS:-10}
mkdir "$PFS/tree"
for i in $(seq 1 60); do
    head -c $((2000000 + i * 50021)) /dev/urandom >"$PFS/tree/$i"
done
(cd "$PFS/tree" && sha256sum -- *) >"$W/sums"
# Each cache holds less than the tree, so that there is always something to fetch.
OPTIONS=(--cache-size 100M --flush-wait 300)

# reads MNT OUT STRICT: all files in random order, for ever; ends at a wrong byte. STRICT: an error is wrong, too.
cat >"$W/reads.py" <<'PY'
import hashlib, os, random, sys, time
mnt, out, strict = sys.argv[1], sys.argv[2], sys.argv[3] == "strict"
sums = {n: s for s, n in (l.split() for l in open(os.environ["SUMS"]))}
done = 0
while True:
    for n in random.sample(sorted(sums), len(sums)):
        try:
            f = os.open(f"{mnt}/tree/{n}", os.O_RDONLY)
            h = hashlib.sha256()
            while part := os.read(f, 1 << 20):
                h.update(part)
            os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(f)
        except OSError as e:
            if strict:
                sys.exit(f"{n}: {e}")
            sys.exit(0)
        if h.hexdigest() != sums[n]:
            open(out + ".wrong", "a").write(n + "\n")
            sys.exit(f"wrong bytes in {n}")
        done += 1
        with open(out + ".new", "w") as o:
            o.write(str(done))
        os.rename(out + ".new", out)
PY
# Large writes that are carried to the node that has the file open for writing; that it dies is an
# error that they may have.
cat >"$W/writes.py" <<'PY'
import os, sys, time
while True:
    try:
        f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o644)
        for i in range(8):
            os.pwrite(f, b"w" * (1 << 20), i << 20)
        os.close(f)
    except OSError:
        time.sleep(0.1) # it is said at once as long as the other node is away
PY
export SUMS=$W/sums

start_node a "$PFS" "${OPTIONS[@]}"
start_b() {
    start_node b "$PFS" "${OPTIONS[@]}"
    in_background python3 -c 'import sys, time
f = open(sys.argv[1], "a"); time.sleep(100000)' "$W/mnt-b/claimed"
    HOLDER=$!
    in_background python3 "$W/reads.py" "$W/mnt-b" "$W/read-b" loose
    READER_B=$!
}
start_b
for i in 1 2; do
    in_background python3 "$W/reads.py" "$W/mnt-a" "$W/read-a$i" strict
    READERS+=($!)
done
in_background python3 "$W/writes.py" "$W/mnt-a/claimed"
WRITER=$!

has_moved() { # since $1 bytes, and b asks, too
    [ "$(status_of a .counters.received_bytes)" -gt $(($1 + 8000000)) ] &&
        [ "$(status_of a .counters.served_bytes)" -gt $(($2 + 2000000)) ]
}
reads_on() {
    [ "$(cat "$W/read-a1")" -gt "$1" ] && [ "$(cat "$W/read-a2")" -gt "$2" ]
}
for reader in a1 a2; do
    wait_for 60 test -s "$W/read-$reader" || fail "reader $reader has read nothing"
done
alive=0
pid=${NODE_PID[a]}
for round in $(seq "$ROUNDS"); do
    received=$(status_of a .counters.received_bytes)
    served=$(status_of a .counters.served_bytes)
    wait_for 60 has_moved "$received" "$served" || fail "round $round: nothing moves between the nodes"
    sleep "0.$((RANDOM % 10))$((RANDOM % 10))" # somewhere in the middle of things
    kill_node b
    kill -KILL "$HOLDER" "$READER_B" 2>/dev/null || true
    wait "$HOLDER" "$READER_B" 2>/dev/null || true
    kill -0 "$pid" || fail "round $round: the survivor is gone"
    done1=$(cat "$W/read-a1") done2=$(cat "$W/read-a2")
    wait_for 60 reads_on "$done1" "$done2" || fail "round $round: the readers of the survivor do not go on"
    alive=$((alive + 1))
    [ ! -e "$W/read-a1.wrong" ] && [ ! -e "$W/read-a2.wrong" ] && [ ! -e "$W/read-b.wrong" ] ||
        fail "round $round: wrong bytes"
    start_b
done
for r in "${READERS[@]}"; do
    kill -0 "$r" || fail "a reader of the survivor ended"
done
kill -KILL "${READERS[@]}" "$WRITER" "$HOLDER" "$READER_B"
wait "${READERS[@]}" "$WRITER" "$HOLDER" "$READER_B" 2>/dev/null || true
echo "$alive of $ROUNDS alive"
check_equal "survivors" "$alive" "$ROUNDS"
stop_node a
stop_node b
