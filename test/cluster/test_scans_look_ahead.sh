#!/usr/bin/env bash
# Who looks at the files of a directory one after the other, over a PFS that takes its time, finds most of them looked at
# already; nothing that is told so is older than --attr-timeout, whoever changed it; and little is looked at in vain.
# timeout: 240
# sanitize-long
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
# scan DIRECTORY COUNT [ATTRIBUTE...]: looks at so many of its files, in no order, and that they have no such extended attribute
import errno, os, random, sys
names = os.listdir(sys.argv[1])
random.shuffle(names)
for name in names[:int(sys.argv[2])]:
    os.lstat(f"{sys.argv[1]}/{name}")
    for attribute in sys.argv[3:]:
        try:
            sys.exit(f"{name}: {os.getxattr(f'{sys.argv[1]}/{name}', attribute, follow_symlinks=False)}")
        except OSError as e:
            if e.errno != errno.ENODATA:
                raise
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

# Of a large directory with few known files no more is asked than once.
cat >"$W/few.py" <<'END'
import os, sys
for n in range(20):
    os.lstat(f"{sys.argv[1]}/{n * 1000}")
END
mkdir "$PFS/large"
(cd "$PFS/large" && seq 0 19999 | xargs touch)
requests() { # of any kind
    stat_of a lookup >/dev/null
    jq 'del(.asked, .files) | add' "$W/pfs-a.json"
}
quiet() {
    local before
    before=$(requests)
    sleep 1
    [ "$(requests)" = "$before" ]
}
python3 "$W/few.py" "$A/large"
sleep $TIMEOUT
ahead=$(looks ahead)
python3 "$W/few.py" "$A/large"
wait_for 30 quiet || fail "a large directory is looked at ahead without end"
ahead=$(($(looks ahead) - ahead))
[ "$ahead" -le 20 ] || fail "20 known files of a large directory were looked at $ahead times"

# A name that is found to lead elsewhere is looked at again, whatever was known: what is open here is not opened again
# under a name that others have given to another file.
cat >"$W/replaced.py" <<'END'
import os, subprocess, sys
dir, pfs, *scan = sys.argv[1:]
held = [os.open(f"{dir}/{n}", os.O_RDWR) for n in range(1, 101)]
subprocess.run(scan, check=True)
for n in range(1, 101):
    with open(f"{pfs}/new", "w") as f:
        f.write("new")
    os.rename(f"{pfs}/new", f"{pfs}/{n}")
for n in range(1, 101):
    with open(f"{dir}/{n}", "r+") as f: # ESTALE, if the kernel is told the same again
        found = f.read()
        assert found == "new", (n, found)
END
mkdir "$PFS/replaced"
for n in $(seq 400); do
    echo "$n" >"$PFS/replaced/$n"
done
scan "$A/replaced" 1000
sleep $TIMEOUT
saved=$(looks saved)
python3 "$W/replaced.py" "$A/replaced" "$PFS/replaced" python3 "$W/scan.py" "$A/replaced" 1000
[ "$(looks saved)" -gt $((saved + 50)) ] || fail "nothing was looked at ahead beside open files"

# What `ls -l` asks of each file besides is asked ahead, and known as long as the file's ctime stays.
ASKED=(security.selinux security.capability)
asked() { # what the scan makes the PFS be asked
    local before
    before=$(stat_of a getxattr)
    scan "$A/files" 1000 "${ASKED[@]}"
    echo $(($(stat_of a getxattr) - before))
}
mkdir "$PFS/files"
cp "$PFS"/d/[0-9]* "$PFS/files"
sleep 0.1 # else one could be set in the same tick of its clock
echo "first: $(asked)"
sleep $TIMEOUT
again=$(asked)
[ "$again" -le 100 ] || fail "$again requests for extended attributes of 400 files that are known to have none"

# Others change files all the time while one process scans: what a look that begins later than the time-out finds is not
# older. The change is on the PFS, where nobody tells the session, or the other node's.
cat >"$W/change.py" <<'END'
import errno, os, random, struct, sys, threading, time
seen, changed, timeout, seconds = sys.argv[1], sys.argv[2:4], float(sys.argv[4]), float(sys.argv[5])
SLACK = 1.0  # of a machine that others use
random.seed(7)
names = [str(n) for n in range(1, 401)]
known = {}  # name: (time of the change, size, mode or None: it is not there)
lock = threading.Lock()
wrong, checked = [], 0
end = time.monotonic() + seconds
ACL = struct.pack("<I" + "HHI" * 5, 2, 1, 6, 2**32 - 1, 2, 4, 1234, 4, 4, 2**32 - 1, 16, 4, 2**32 - 1, 32, 4, 2**32 - 1)
def has_acl(path):
    try:
        return len(os.getxattr(path, "system.posix_acl_access")) > 0
    except OSError as e:
        if e.errno not in (errno.ENODATA, errno.EOPNOTSUPP):
            raise
        return False
def look(path):
    try:
        st = os.lstat(path)
        return st.st_size, st.st_mode & 0o777, has_acl(path)
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
size, acls = 100, 0
while time.monotonic() < end and not wrong:
    name, size = str(random.randint(1, 400)), size + 1
    where = changed[int(name) % 2]  # each by one of them: the session's unflushed data wins over what the PFS gets
    path = f"{where}/{name}"
    what = random.choice(["write", "mode", "replace", "remove", "acl"])
    with lock:
        known.pop(name, None)
    if what == "mode" and os.path.exists(path):
        os.chmod(path, random.choice([0o600, 0o640, 0o644]))
    elif what == "acl" and os.path.exists(path):
        try:
            os.setxattr(path, "system.posix_acl_access", ACL)
            acls += 1
        except OSError as e: # not every file system has them
            if e.errno != errno.EOPNOTSUPP:
                raise
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
print(f"{checked} looks found what was changed before; {acls} ACLs were set")
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
