#!/usr/bin/env bash
# A hundred processes, each with a queue of its own and an order of its own over the same files, which they read on two nodes; a third of them are
# killed at random instants. Processes that ask for a stage are killed before all is brought. All that is read is right, nothing waits, and
# neither queues nor stages nor memory are left.
# timeout: 200
# busy
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
PROCESSES=$(many 100 30)
FILES=60
mkdir "$PFS/files"
for i in $(seq 0 $((FILES - 1))); do head -c $((200000 + i * 7001)) /dev/urandom >"$PFS/files/$i"; done
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a" --cache-size 8M --chunk-size 64K
start_node b "$W/pfs-b" --cache-size 8M --chunk-size 64K --wait-nodes 2
EDDY_LIBRARY=$EDDY_BUILD/tools/lib/libeddy.so
PYTHONPATH=$(cd "$(dirname "$SCRIPT")/../../tools/lib" && pwd)
export EDDY_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE=1

cat >"$W/reader.py" <<'END_OF_READER'
import hashlib, os, random, signal, sys, time
import eddy
mounts, pfs, count, files = sys.argv[1:3], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
sums = [hashlib.sha256(open(f"{pfs}/files/{n}", "rb").read()).digest() for n in range(files)]

def read(seed):
    rng, mount = random.Random(seed), mounts[seed % 2]
    order = rng.choices(range(files), k=25)
    with eddy.Queue(mount, start=True) as queue:
        told = [n for n in order if rng.random() < 0.9] + [files + 5, files + 6]  # some are left out, some are no files
        queue.extend(f"{mount}/files/{n}" for n in told)
        for n in order:
            with open(f"{mount}/files/{n}", "rb") as file:
                if hashlib.sha256(file.read()).digest() != sums[n]:
                    print(f"FAILED: {mount}/files/{n} has wrong bytes", flush=True)
                    os._exit(1)
            time.sleep(rng.random() / 50)

children = {}
for seed in range(count):
    pid = os.fork()
    if not pid:
        try:
            read(seed)
            os._exit(0)
        except BaseException as e:
            print(f"FAILED: reader {seed}: {e!r}", flush=True)
        os._exit(1)
    children[pid] = seed
rng, killed = random.Random(1), set()
for pid in rng.sample(sorted(children), count // 3):
    time.sleep(rng.random() / 20)
    killed.add(pid)
    os.kill(pid, signal.SIGKILL)
while children:
    pid, status = os.wait()
    seed = children.pop(pid)
    if status and not (pid in killed and os.WIFSIGNALED(status)):
        print(f"FAILED: reader {seed} ended with {status}")
        sys.exit(1)
END_OF_READER
timeout 150 python3 "$W/reader.py" "$W/mnt-a" "$W/mnt-b" "$PFS" "$PROCESSES" $FILES || fail "readers: $?"
is_left() {
    status_of "$1" '.hints | [.queues, .hints, .admitted, .ahead_bytes, .memory_bytes] | tostring'
}
nothing_is_left() {
    [ "$(is_left a)" = "[0,0,0,0,0]" ] && [ "$(is_left b)" = "[0,0,0,0,0]" ]
}
wait_for 20 nothing_is_left || fail "queues of dead processes: $(is_left a) $(is_left b)"

# --- Who asks for a stage is killed ---

none_goes_on() {
    ! "$EDDY_BUILD/eddy" stage --status "$W/mnt-a" | grep -q "going on"
}
for how in --here --spread; do
    mkdir "$PFS/staged$how"
    for i in $(seq 20); do head -c 150000 /dev/urandom >"$PFS/staged$how/$i"; done
    hang_a=$(tell_faultfs a hang read path='staged*/1*') hang_b=$(tell_faultfs b hang read path='staged*/1*')
    "$EDDY_BUILD/eddy" stage $how --wait "$W/mnt-a/staged$how" >"$W/said" 2>&1 &
    job=$!
    record_process "$W" $job
    wait_for 20 fault_waits a "$hang_a" || wait_for 20 fault_waits b "$hang_b" || fail "$how: nothing is read"
    kill -KILL $job
    wait $job 2>/dev/null || true
    wait_for 20 none_goes_on || fail "$how: it goes on without who waits for it: $("$EDDY_BUILD/eddy" stage --status "$W/mnt-a")"
    tell_faultfs a clear
    tell_faultfs b clear
    wait_for 20 nothing_is_left || fail "$how: what a killed process has staged: $(is_left a) $(is_left b)"
    "$EDDY_BUILD/eddy" stage $how --wait "$W/mnt-a/staged$how" || fail "$how: it cannot be staged after that"
    diff -r "$W/mnt-a/staged$how" "$PFS/staged$how" || fail "$how: wrong bytes"
done
stop_node a
stop_node b
