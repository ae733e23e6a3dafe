#!/usr/bin/env bash
# Who looks at the files of a directory one after the other, over a PFS that takes its time, finds most of them looked at
# already; nothing that is told so is older than --attr-timeout, whoever changed it; and little is looked at in vain.
# timeout: 240
# sanitize
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3 cmd jq
TIMEOUT=3
mkdir "$PFS/d" "$PFS/few"
for n in $(seq 400); do
    echo "$n" >"$PFS/d/$n"
    echo "$n" >"$PFS/few/$n"
done
ln -s 1 "$PFS/d/link"
mkdir "$PFS/d/directory"
start_faultfs a --delay-us 1000
start_node a "$W/pfs-a" --session-dir "$W/session" --attr-timeout $TIMEOUT
start_node b "$PFS" --session-dir "$W/session" --attr-timeout $TIMEOUT --wait-nodes 2
A=$W/mnt-a
B=$W/mnt-b

cat >"$W/scan.py" <<'END'
# scan DIRECTORY COUNT: looks at so many of its files, in no order
import os, random, sys
names = os.listdir(sys.argv[1])
random.shuffle(names)
for name in names[:int(sys.argv[2])]:
    os.lstat(f"{sys.argv[1]}/{name}")
END
scan() { python3 "$W/scan.py" "$@"; }
looks() { status_of a ".counters.looks_$1"; }

scan "$A/d" 1000
scan "$A/few" 1000
sleep $TIMEOUT # the kernel asks again
ahead=$(looks ahead)
saved=$(looks saved)
scan "$A/d" 1000
ahead=$(($(looks ahead) - ahead))
saved=$(($(looks saved) - saved))
echo "of 400 files $ahead were looked at ahead, $saved of which helped"
[ "$saved" -ge 100 ] || fail "only $saved of 400 looks were saved, $ahead were made ahead"

# At most four for each that was asked for, but for the batch under way.
ahead=$(looks ahead)
scan "$A/few" 12
ahead=$(($(looks ahead) - ahead))
[ "$ahead" -le 112 ] || fail "$ahead looks ahead for 12 files"

# Others change files all the time while one process scans: what a look that begins later than the time-out finds is not
# older. The change is on the PFS, where nobody tells the session, or the other node's.
cat >"$W/change.py" <<'END'
import os, random, sys, threading, time
seen, changed, timeout, seconds = sys.argv[1], sys.argv[2:4], float(sys.argv[4]), float(sys.argv[5])
SLACK = 1.0  # of a machine that others use
random.seed(7)
names = [str(n) for n in range(1, 401)]
known = {}  # name: (time of the change, size, mode or None: it is not there)
lock = threading.Lock()
wrong, checked = [], 0
end = time.monotonic() + seconds
def look(path):
    try:
        st = os.lstat(path)
        return st.st_size, st.st_mode & 0o777
    except FileNotFoundError:
        return None
def scan():
    global checked
    while time.monotonic() < end and not wrong:
        random.shuffle(names)
        for name in names:
            with lock:
                before = known.get(name)
            began = time.monotonic()
            found = look(f"{seen}/{name}")
            with lock:
                same = known.get(name) == before
            if before and same and began > before[0] + timeout + SLACK:
                checked += 1
                if found != before[1]:
                    wrong.append((name, found, before, began))
scanner = threading.Thread(target=scan)
scanner.start()
size = 100
while time.monotonic() < end and not wrong:
    name, size = str(random.randint(1, 400)), size + 1
    where = changed[int(name) % 2]  # each by one of them: the session's unflushed data wins over what the PFS gets
    path = f"{where}/{name}"
    what = random.choice(["write", "mode", "replace", "remove"])
    with lock:
        known.pop(name, None)
    if what == "mode" and os.path.exists(path):
        os.chmod(path, random.choice([0o600, 0o640, 0o644]))
    elif what == "remove":
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
    elif what == "replace":
        with open(f"{where}/new", "w") as f:
            f.write("x" * size)
        os.rename(f"{where}/new", path)
    else:
        with open(path, "w") as f:
            f.write("x" * size)
    now = look(path)
    with lock:
        known[name] = (time.monotonic(), now)
    time.sleep(0.02)
scanner.join()
for name, found, expected, began in wrong:
    sys.exit(f"{name}: {found} is seen, not {expected[1]}, {began - expected[0]:.2f} s after the change")
print(f"{checked} looks found what was changed before")
if checked < 100:
    sys.exit(f"only {checked} looks came so long after a change")
END
saved=$(looks saved)
python3 "$W/change.py" "$A/d" "$PFS/d" "$B/d" $TIMEOUT 25
saved=$(($(looks saved) - saved))
[ "$saved" -ge 100 ] || fail "only $saved looks were saved meanwhile"

# It ends with the mount, also in the middle.
sleep $TIMEOUT
scan "$A/few" 100
stop_node b
stop_node a
