#!/usr/bin/env bash
# The PFS stops answering: cached reads, eddy status and ls of a listed directory go on; a read that waits ends with Ctrl-C
# within a second; all is right when the PFS goes on.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
mkdir "$PFS/dir"
head -c 3000000 /dev/urandom >"$PFS/dir/cached"
head -c 9000000 /dev/urandom >"$PFS/dir/uncached" # a small one would be fetched when it is opened
start_faultfs a
start_node a "$W/pfs-a"
exec 5<"$W/mnt-a/dir/cached"
cmp "$W/mnt-a/dir/cached" "$PFS/dir/cached"
ls "$W/mnt-a/dir" >"$W/listing"
ls -l "$W/mnt-a/dir" >"$W/long-listing"
exec 6<"$W/mnt-a/dir/uncached"
sleep 1.5 # names and attributes in the kernel are older than their time-out now: that is what is tested
stop_faultfs a

cat > "$W/probe.py" <<'PY'
import os, signal, subprocess, sys, time
mnt, w = sys.argv[1:3]
def within(what, seconds, fn):
    t = time.time(); fn(); t = time.time() - t
    print(f"{what}: {t:.2f} s")
    assert t < seconds, f"{what} took {t:.1f} s"
def cached():
    data = b""
    while len(data) < 3000000:
        part = os.pread(5, 1 << 20, len(data))
        assert part
        data += part
    assert data == open(w + "/cached.copy", "rb").read()
within("read of a cached open file", 20, cached)
within("the same again", 20, cached)
within("ls of a listed directory", 20, lambda: subprocess.run(["ls", mnt + "/dir"], check=True, stdout=open(w + "/listing2", "w")))
within("ls -l of it", 20, lambda: subprocess.run(["ls", "-l", mnt + "/dir"], check=True, stdout=open(w + "/long-listing2", "w")))
p = subprocess.Popen(["dd", "if=/dev/fd/6", "of=/dev/null", "bs=64k", "status=none"], pass_fds=(6,))
time.sleep(1)
assert p.poll() is None, "a read of what is not cached does not wait"
t = time.time(); p.send_signal(signal.SIGINT); p.wait(); t = time.time() - t
print(f"interrupted after {t:.2f} s")
assert t < 20, f"Ctrl-C took {t:.1f} s"
PY
cp "$PFS/dir/cached" "$W/cached.copy"
python3 "$W/probe.py" "$W/mnt-a" "$W" 5<&5 6<&6 || fail "with a hanging PFS"
check_same "$W/listing" "$W/listing2"
check_same "$W/long-listing" "$W/long-listing2"
timeout 30 "$EDDY_BUILD/eddy" status "$W/mnt-a" >/dev/null || fail "eddy status waits for the PFS"
continue_faultfs a
cmp "$W/mnt-a/dir/uncached" "$PFS/dir/uncached" || fail "wrong bytes after the PFS went on"
exec 5<&- 6<&-
stop_node a
