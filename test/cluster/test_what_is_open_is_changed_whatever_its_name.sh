#!/usr/bin/env bash
# fchmod, futimens and fsetxattr of an open file, and whoever works in a directory,
# do not depend on the name by which it was found: another node may have renamed it,
# or it may have one that was never looked at here.
# timeout: 60
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

mkdir "$PFS/job"
echo data >"$PFS/moved"
echo data >"$PFS/first"
ln "$PFS/first" "$PFS/second"
start_node a "$PFS"
start_node b "$PFS"
A=$W/mnt-a B=$W/mnt-b

cat >"$W/change.py" <<'PY'
import os, subprocess, sys

def change(path, by_another):
    fd = os.open(path, os.O_RDWR)
    subprocess.run(by_another, check=True)
    os.fchmod(fd, 0o600)
    os.utime(fd, ns=(10**9, 3 * 10**9))
    os.setxattr(fd, "user.x", b"1")
    assert os.getxattr(fd, "user.x") == b"1"
    os.close(fd)

a, b = sys.argv[1:]
change(a + "/moved", ["mv", b + "/moved", b + "/elsewhere"])
change(a + "/first", ["rm", a + "/first"])
PY
python3 "$W/change.py" "$A" "$B" || fail "see above"
for f in elsewhere second; do
    check_equal "$f" "$(stat -c '%a %Y' "$PFS/$f")" "600 3"
done

cd "$A/job"
echo before >old
mv "$B/job" "$B/job.old"
mkdir "$B/job"
sleep 1.1 # attribute time-out
touch "$A/job/new"
cat old >/dev/null || fail "what is in the working directory is not found any more"
echo after >made || fail "nothing can be made in the working directory any more"
check_equal "names" "$(echo *)" "made old"
cd "$W"

# Nothing else has its name, and its new one was never looked at here.
mkdir "$PFS/run"
echo first >"$PFS/run/file"
cd "$A/run"
cat file >/dev/null
mv "$B/run" "$B/run.old"
sleep 1.1
check_equal "names in a renamed working directory" "$(ls)" file
cat file >/dev/null
echo second >"$PFS/new"
mv "$PFS/new" "$PFS/run.old/file"
echo third >>file # the kernel has the old one's name for this second
check_equal "a file that was replaced in it" "$(cat file)" $'second\nthird'
check_equal "names after that" "$(ls)" file
rm file
cd "$W"
check_equal "names in it on the PFS" "$(ls "$PFS/run.old")" ""
rmdir "$PFS/run.old"

check_equal "what was made" "$(cat "$B/job.old/made")" after
check_equal "names in the new directory" "$(ls "$A/job")" new
stop_node a
stop_node b
check_equal "on the PFS" "$(cd "$PFS" && echo job*/*)" "job.old/made job.old/old job/new"
check_equal "what was made, on the PFS" "$(cat "$PFS/job.old/made")" after
