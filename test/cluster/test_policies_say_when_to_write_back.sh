#!/usr/bin/env bash
# idle waits for a lull, immediate does not, close begins before the close and has the file on the
# PFS when close returns, end waits for the unmount; a directory says which one holds below it.
# timeout: 120
# both-long
# alone
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd setfattr cmd python3
start_faultfs a
if ! setfattr -n user.eddy.test -v x "$W/pfs-a" 2>/dev/null; then
    skip "the file system of $PFS has no extended attributes"
fi
mnt=$W/mnt-a
head -c 3000000 /dev/urandom >"$W/content"
on_pfs() { [ "$(stat -c %s "$PFS/$1" 2>/dev/null)" = 3000000 ] && cmp -s "$PFS/$1" "$W/content"; }

# I/O that leaves no lull: what is flushed meanwhile is not flushed because of one
make_noise() {
    (while :; do
        echo x >>"$mnt/noise"
        sleep 0.1
    done) &
    noise=$!
    record_process "$W" "$noise"
}
end_noise() {
    kill "$noise"
    wait "$noise" 2>/dev/null || true
}

# a file in each policy's directory; the mount's own is idle
start_node a "$W/pfs-a" --flush-wait 1
make_noise
for p in idle immediate close end; do
    mkdir -p "$mnt/$p/below/deep"
    setfattr -n user.eddy.flush -v $p "$mnt/$p"
    check_equal "the attribute" "$(getfattr --only-values -n user.eddy.flush "$mnt/$p" 2>/dev/null)" $p
done
for p in idle immediate end; do
    cp "$W/content" "$mnt/$p/below/deep/file"
done
python3 - "$mnt/close/below/deep/file" "$PFS/close/below/deep/file" "$W/content" <<'PY' || fail "see above"
import os, sys, time
data = open(sys.argv[3], "rb").read()
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(fd, data[:1500000])
until = time.monotonic() + 20
while os.stat(sys.argv[2]).st_size != 1500000:
    assert time.monotonic() < until, "close waits with all until the close"
os.write(fd, data[1500000:])
os.close(fd)
assert open(sys.argv[2], "rb").read() == data, "close returned before the file was on the PFS"
PY
wait_for 20 on_pfs immediate/below/deep/file || fail "immediate waits for a lull"
sleep 2 # twice the wait interval
for p in idle end; do
    check_equal "size on the PFS of the file of $p while there is I/O" "$(stat -c %s "$PFS/$p/below/deep/file")" 0
done

# bad values are refused, with no trace; on what is no directory too
for bad in "" Idle idle2 "end " aVeryLongNameThatIsNoPolicy; do
    code=0
    setfattr -n user.eddy.flush -v "$bad" "$mnt/end" 2>"$W/said" || code=$?
    [ "$code" != 0 ] && grep -q "Invalid argument" "$W/said" || fail "'$bad' is taken: $(cat "$W/said")"
done
check_equal "the attribute after that" "$(getfattr --only-values -n user.eddy.flush "$PFS/end" 2>/dev/null)" end
setfattr -n user.eddy.flush -v end "$mnt/noise" 2>/dev/null && fail "a file takes a policy"

# the nearest directory's holds; removed, the one above it
setfattr -n user.eddy.flush -v immediate "$mnt/end/below"
cp "$W/content" "$mnt/end/below/deep/nearer"
wait_for 20 on_pfs end/below/deep/nearer || fail "the nearest directory's policy does not hold"
setfattr -x user.eddy.flush "$mnt/end/below"
cp "$W/content" "$mnt/end/below/deep/again"

# now a lull: idle is flushed, end is not
end_noise
wait_for 20 on_pfs idle/below/deep/file || fail "idle: not flushed in the lull"
sleep 1.5 # a longer lull
for f in file again; do
    check_equal "size of end/below/deep/$f on the PFS" "$(stat -c %s "$PFS/end/below/deep/$f")" 0
done
check_equal "state" "$(status_of a .flush.state)" "waiting for the end"
stop_node a
for f in file again; do
    on_pfs end/below/deep/$f || fail "end: $f not flushed at the unmount"
done

# set by another client of the PFS, the policy is seen after --attr-timeout; what is none is
# said and not regarded
start_node a "$W/pfs-a" --flush end
setfattr -n user.eddy.flush -v immediate "$PFS/idle"
setfattr -n user.eddy.flush -v nonsense "$PFS/immediate"
sleep 1.2 # more than the time-out
cp "$W/content" "$mnt/idle/below/seen"
cp "$W/content" "$mnt/immediate/below/mine"
wait_for 20 on_pfs idle/below/seen || fail "another client's change of the policy is not seen"
check_equal "size of the file with the mount's policy" "$(stat -c %s "$PFS/immediate/below/mine")" 0
grep -q 'immediate: its user.eddy.flush is "nonsense"' "$W/a.log" || fail "nothing is said of a policy that is none"
stop_node a
on_pfs immediate/below/mine || fail "not flushed at the unmount"
