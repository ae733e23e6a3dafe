#!/usr/bin/env bash
# Who reads hinted files in the order that it told finds the next ones looked up: its opens do not wait for the PFS. What is changed
# between that look and the open, by this node or another one, is seen all the same.
# timeout: 120
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3 cmd jq
FILES=400
mkdir "$PFS/d" "$PFS/e"
for n in $(seq $FILES); do
    echo "$n" >"$PFS/d/$n"
    echo "$n" >"$PFS/e/$n"
done
start_faultfs a --delay-us 3000
start_node a "$W/pfs-a" --session-dir "$W/session"
start_node b "$PFS" --session-dir "$W/session" --wait-nodes 2

cat >"$W/read.py" <<'END'
# read HERE THERE FILES CHANGES: reads the files in order; CHANGES: each fifth one is changed just before it is read
import os, statistics, sys, time
here, there, files, changes = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "changes"
holds = {n: f"{n}\n" for n in range(1, files + 1)}

def by_another_node(n):
    with open(f"{there}/{n}", "w") as f:
        f.write(f"new {n}\n")
    holds[n] = f"new {n}\n"

def exchanged(n):
    os.rename(f"{here}/{n}", f"{here}/free")
    os.rename(f"{here}/{n + 1}", f"{here}/{n}")
    os.rename(f"{here}/free", f"{here}/{n + 1}")
    holds[n], holds[n + 1] = holds[n + 1], holds[n]

def replaced(n):
    with open(f"{here}/new", "w") as f:
        f.write(f"replaced {n}\n")
    os.rename(f"{here}/new", f"{here}/{n}")
    holds[n] = f"replaced {n}\n"

def mode_set(n):
    os.chmod(f"{here}/{n}", 0o640)

took = []
for n in range(1, files + 1):
    if changes and n % 5 == 0 and n < files:
        [by_another_node, exchanged, replaced, mode_set][n // 5 % 4](n)
    began = time.perf_counter()
    with open(f"{here}/{n}") as f:
        got = f.read()
    took.append(time.perf_counter() - began)
    if got != holds[n]:
        sys.exit(f"file {n} reads {got!r}, not {holds[n]!r}")
    mode = os.stat(f"{here}/{n}").st_mode & 0o777
    if changes and n % 20 == 15 and mode != 0o640:
        sys.exit(f"file {n} has mode {mode:o}")
print(f"median {statistics.median(took) * 1e3:.2f} ms")
END

all_ahead() {
    [ "$(status_of a .hints.ahead)" -ge $FILES ]
}
hint() { # DIRECTORY: until all are ahead, and no look at them counts any more
    (cd "$W/mnt-a/$1" && exec "$EDDY_BUILD/eddy" hint $(seq $FILES)) &
    HINT=$!
    record_process "$W" $HINT
    wait_for 30 all_ahead || fail "only $(status_of a .hints.ahead) are ahead"
    sleep 1.2
}

hint d
before=$(status_of a .counters.looks_saved)
python3 "$W/read.py" "$W/mnt-a/d" "$W/mnt-b/d" $FILES "" || fail "wrong bytes"
saved=$(($(status_of a .counters.looks_saved) - before))
echo "$saved of $FILES look-ups were answered"
[ $saved -ge $((FILES / 2)) ] || fail "only $saved of $FILES look-ups were answered by a look before"
kill $HINT 2>/dev/null || true
wait $HINT 2>/dev/null || true

hint e
python3 "$W/read.py" "$W/mnt-a/e" "$W/mnt-b/e" $FILES changes || fail "a change is not seen"
kill $HINT 2>/dev/null || true
wait $HINT 2>/dev/null || true
stop_node a
stop_node b
