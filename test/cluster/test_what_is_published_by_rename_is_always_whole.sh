#!/usr/bin/env bash
# A file is published again and again: written under another name, and renamed over the one before, also by two
# nodes in turn.  Every open on each node finds one whole version: never nothing, never an error; nor has stat one.
# timeout: 120
# both
# busy
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

cat >"$W/publish.py" <<'PY'
import collections, itertools, os, sys, time

writers, readers, seconds = sys.argv[1].split(":"), sys.argv[2].split(":"), float(sys.argv[3])


def version(i):
    return b"version %06d " % i + b"x" * (i % 3000) + b" end"


def publish(i):
    d = writers[i % len(writers)]
    with open(f"{d}/.new.{i}", "xb", buffering=0) as f:
        f.write(version(i))
    os.rename(f"{d}/.new.{i}", f"{d}/published")


def read(d):
    fd = os.open(f"{d}/published", os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        got = os.read(fd, 100000)
        n = int(got[8:14] or -1)
        assert got == version(n) and size == len(got), f"{len(got)} bytes, size {size}: {got[:20]}"
    finally:
        os.close(fd)


publish(0)
if not os.fork():
    end = time.time() + seconds
    for i in itertools.count(1):
        publish(i)
        time.sleep(0.01)
        if time.time() > end:
            os._exit(0)
end, wrong, n = time.time() + seconds, collections.Counter(), 0
while time.time() < end:
    for d in readers:
        try:
            read(d)
            os.stat(f"{d}/published")
        except (OSError, AssertionError) as e:
            wrong[f"{d[-3:]}: {e}"] += 1
        n += 1
    time.sleep(0.002)
if os.wait()[1] or wrong:
    sys.exit(f"{n} opens: {dict(wrong)}")
PY
start_node a "$PFS"
start_node b "$PFS" --wait-nodes 2
A=$W/mnt-a B=$W/mnt-b
for turn in "$A $A" "$A $B" "$B $A" "$A:$B $A:$B"; do
    dir=$(tr -d /: <<<"$turn" | tr ' ' - | tail -c 30)
    mkdir "$A/$dir"
    # shellcheck disable=SC2001,SC2046 # two words
    python3 -B "$W/publish.py" $(sed "s#mnt-[ab]#&/$dir#g" <<<"$turn") 5 || fail "published by, read by: $turn"
done
stop_node a
stop_node b
check_equal "names on the PFS" "$(find "$PFS" -mindepth 2 -maxdepth 2 ! -path '*/.eddyfs*' -printf '%f\n' | sort -u)" published
