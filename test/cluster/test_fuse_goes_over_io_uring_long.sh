#!/usr/bin/env bash
# With --uring requests come over io_uring: bytes and names are right; Ctrl-C ends a read that waits for a PFS that hangs, also
# while many more wait and cached files are served; a daemon that is killed, a connection that is aborted and an
# unmount, all under load, leave no process behind that waits; a daemon that may not use it says why.
# timeout: 300
# both
# alone
# long
. "$(dirname "$0")/lib.sh"
requires root fuse cmd python3 cmd jq
in_namespaces
allow_uring
mkdir "$PFS/dir"
head -c 3000000 /dev/urandom >"$PFS/dir/cached"
head -c 9000000 /dev/urandom >"$PFS/dir/uncached"
start_faultfs a
start_node a "$W/pfs-a" --uring --no-supervise
check_equal "is it on" "$(status_of a .uring)" true

# --- Bytes and names

cat >"$W/work.py" <<'END'
# work.py DIRECTORY SEED ROUNDS: files of many sizes are made, written, read, moved and removed; ends with 3 when the mount goes.
import errno, os, random, sys
where, seed, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
def work(n):
    name = f"{where}/work-{seed}-{n % 7}-" + "x" * rng.randrange(120)
    data = rng.randbytes(rng.choice([0, 1, 4095, 4096, 70000, 1 << 20, 3000001]))
    if os.path.islink(name): # of a process that was ended in between: it would lead to a name that is too long
        os.unlink(name)
    with open(name, "wb") as f:
        f.write(data)
    os.setxattr(name, "user.test", data[:1000])
    os.rename(name, name + ".moved")
    os.symlink("y" * 3000, name)
    assert os.readlink(name) == "y" * 3000
    assert os.getxattr(name + ".moved", "user.test") == data[:1000]
    with open(name + ".moved", "rb") as f:
        assert f.read() == data, f"{name} has wrong bytes"
    assert os.path.basename(name) in os.listdir(where)
    os.unlink(name)
    os.unlink(name + ".moved")
try:
    for n in range(rounds):
        work(n)
        print("done", flush=True)
except OSError as e:
    if e.errno not in (errno.ENOTCONN, errno.ECONNABORTED, errno.ECANCELED, errno.ENOENT, errno.EIO):
        raise
    os._exit(3)
END
workers=()
work() {
    workers=()
    : >"$W/work.out"
    for seed in 1 2 3 4; do
        python3 "$W/work.py" "$W/mnt-a" "$seed" "$1" >>"$W/work.out" 2>&1 &
        workers+=($!)
        record_process "$W" $!
    done
}
# all_end CODES: all workers end, each with one of these codes
all_end() {
    local code worker
    for worker in "${workers[@]}"; do
        code=0
        wait "$worker" || code=$?
        [[ " $1 " = *" $code "* ]] || fail "a process ended with $code: $(tail -n 3 "$W/work.out")"
    done
}
work "$(many 5 2)"
all_end 0
cmp "$W/mnt-a/dir/cached" "$PFS/dir/cached" || fail "wrong bytes were read"

# --- Ctrl-C while the PFS hangs, and many more requests wait than a few

exec 5<"$W/mnt-a/dir/cached" 6<"$W/mnt-a/dir/uncached"
stop_faultfs a
cat >"$W/interrupt.py" <<'END'
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler) # a job in the background ignores it, and so would the processes below
def ends(p, sig):
    t = time.time()
    p.send_signal(sig)
    p.wait(timeout=20)
    t = time.time() - t
    print(f"{p.args}: signal {sig}: {t:.2f} s")
    assert t < 3, f"signal {sig} took {t:.2f} s"
def read():
    return subprocess.Popen(["dd", "of=/dev/null", "bs=64k", "status=none"], stdin=6) # an open of its own would wait, too
others = [subprocess.Popen(["stat", f"{sys.argv[1]}/dir/unknown-{n}"]) for n in range(40)]
for sig in signal.SIGINT, signal.SIGKILL:
    p = read()
    time.sleep(1)
    assert p.poll() is None, "a read of what is not cached does not wait"
    ends(p, sig)
assert others[0].poll() is None, "a name that is not known is known"
t = time.time()
assert len(os.pread(5, 1 << 20, 0)) == 1 << 20
t = time.time() - t
assert t < 4, f"a cached read waits for {t:.2f} s"
for p in others:
    p.send_signal(signal.SIGINT)
for p in others:
    p.wait(timeout=10)
END
python3 "$W/interrupt.py" "$W/mnt-a" 5<&5 6<&6 || fail "with a hanging PFS"
continue_faultfs a
cmp "$W/mnt-a/dir/uncached" "$PFS/dir/uncached" || fail "wrong bytes after the PFS went on"
exec 5<&- 6<&-

# --- Ends, under load

no_thread_waits() {
    ! grep -qs $'^State:\tD' /proc/[0-9]*/task/*/status
}
work 100000
wait_for 20 test -s "$W/work.out" || fail "no process works"
crash_node a
all_end 3
wait_for 20 no_thread_waits || fail "something waits for ever after a kill"
start_node a "$W/pfs-a" --uring --no-supervise
check_equal "is it on again" "$(status_of a .uring)" true
cmp "$W/mnt-a/dir/cached" "$PFS/dir/cached" || fail "wrong bytes were read after a kill"

work 100000
wait_for 20 test -s "$W/work.out" || fail "no process works"
mount -t fusectl none /sys/fs/fuse/connections
device=$(awk -v path="$W/mnt-a" '$5 == path { sub(".*:", "", $3); print $3 }' /proc/self/mountinfo)
echo 1 >"/sys/fs/fuse/connections/$device/abort"
all_end 3
wait "${JOB[node-a]}" || true
unset "NODE_PID[a]"
wait_for 20 no_thread_waits || fail "something waits for ever after an abort"
! is_mounted "$W/mnt-a" || umount -l "$W/mnt-a"

start_node a "$W/pfs-a" --uring --no-supervise
work 100000
wait_for 20 test -s "$W/work.out" || fail "no process works"
umount -l "$W/mnt-a" # files are open: the connection goes on until the daemon is told
kill -TERM "${NODE_PID[a]}"
wait "${JOB[node-a]}" || true
unset "NODE_PID[a]"
kill "${workers[@]}" || true # some have ended; paths lead to the directory below by now
all_end "1 3 143"
wait_for 20 no_thread_waits || fail "something waits for ever after an unmount"

# --- Where it is not allowed

was=$(cat "$URING")
echo N >"$URING"
start_node a "$W/pfs-a" --uring --no-supervise
echo "$was" >"$URING"
check_equal "is it on" "$(status_of a .uring)" false
status_of a .uring_why | grep -q enable_uring || fail "eddy status does not say why: $(status_of a .uring_why)"
grep -q "warn.*--uring: .*enable_uring" "$W/a.log" || fail "the log does not say why"
cmp "$W/mnt-a/dir/cached" "$PFS/dir/cached" || fail "wrong bytes were read by /dev/fuse"
stop_node a
