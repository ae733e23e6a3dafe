#!/usr/bin/env bash
# Processes of one node have a file open in ways that the kernel cannot serve by one node id (some were opened before another node
# looked at the file, some after). Whatever makes the file longer through one of them, the position after an append through another
# one is the file's end.
# timeout: 60
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3 cmd setfattr
start_node a "$PFS"
start_node b "$PFS" --wait-nodes 2
setfattr -n user.eddy.shared -v always "$W/mnt-a"
cat >"$W/appends.py" <<'PY'
import os, sys
here, there = sys.argv[1:]
with open(here, "wb") as f:
    f.write(b"x" * 4097)
reads = os.open(here, os.O_RDONLY)
with open(there, "rb") as f:
    f.read()
by_descriptor = os.open(f"/proc/self/fd/{reads}", os.O_WRONLY | os.O_APPEND)
by_name = os.open(here, os.O_RDWR | os.O_APPEND)
other = os.open(here, os.O_RDWR)
end = 4097

def append(fd, length, after):
    global end
    os.write(fd, b"a" * length)
    end += length
    place = os.lseek(fd, 0, os.SEEK_CUR)
    if place != end:
        sys.exit(f"after {after}: an append ends at {end}, and the position is said to be {place}")

append(by_name, 1, "an open")
append(by_descriptor, 1, "an append")
append(by_name, 5000, "an append by descriptor")
os.pwrite(other, b"w" * 3000, end)
end += 3000
append(by_descriptor, 10, "a write")
os.posix_fallocate(other, end, 2000)
end += 2000
append(by_descriptor, 10, "fallocate")
end += 7000
os.ftruncate(other, end)
append(by_descriptor, 10, "ftruncate")
append(by_name, 10, "an append by descriptor")
end += os.copy_file_range(reads, other, 100, 0, end)
append(by_descriptor, 10, "copy_file_range")
for path in here, there:
    if os.stat(path).st_size != end:
        sys.exit(f"{path} has {os.stat(path).st_size} bytes, not {end}")
PY
cat >"$W/later.py" <<'PY'
import os, sys
path = sys.argv[1]
with open(path, "wb") as f:
    f.write(b"x")
reads = os.open(path, os.O_RDONLY)
os.close(os.open(path, os.O_WRONLY)) # the name leads to another node id from now on
by_descriptor = os.open(f"/proc/self/fd/{reads}", os.O_WRONLY | os.O_APPEND)
by_name = os.open(path, os.O_RDWR | os.O_APPEND)
for end in 2, 4, 6:
    os.write(by_name, b"a")
    os.write(by_descriptor, b"a")
    place = os.lseek(by_descriptor, 0, os.SEEK_CUR)
    if place != end + 1:
        sys.exit(f"an append by descriptor ends at {end + 1}, and the position is said to be {place}")
PY
python3 "$W/later.py" "$W/mnt-a/later" || fail "see above"
python3 "$W/appends.py" "$W/mnt-a/file" "$W/mnt-b/file" || fail "see above"
stop_node a
stop_node b
