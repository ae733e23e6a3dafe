#!/usr/bin/env bash
# fcntl locks taken through descriptors that only read go when the process closes any descriptor of
# the file, also while the file stays open: by another descriptor, or by a child. Seen by another node.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
start_node a "$PFS"
start_node b "$PFS" --wait-nodes 2
echo text >"$W/mnt-a/file"

# Says "locked", closes on a line of input, says "closed", and keeps the file open until the input ends.
cat >"$W/reader.py" <<'END'
import fcntl, os, sys
how, path = sys.argv[1:]
f = os.open(path, os.O_RDONLY)
other = os.open(path, os.O_RDONLY)
fcntl.lockf(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
back, child = os.pipe(), 0
if how == "child":
    child = os.fork()
    if not child:
        os.close(back[1])
        os.read(back[0], 1)
        os._exit(0)
os.close(back[0])
print("locked", flush=True)
sys.stdin.readline()
os.close(f if child else other)
print("closed", flush=True)
sys.stdin.readline()
END
cat >"$W/writer.py" <<'END'
import fcntl, os, sys
f = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
END
writes() { python3 "$W/writer.py" "$W/mnt-b/file" 2>/dev/null; }

for how in descriptor child; do
    coproc READER { exec python3 "$W/reader.py" "$how" "$W/mnt-a/file"; }
    record_process "$W" "$READER_PID"
    pid=$READER_PID
    read -r said <&"${READER[0]}"
    check_equal "the reader ($how)" "$said" locked
    ! writes || fail "a reader's lock does not hold on the other node ($how)"
    echo >&"${READER[1]}"
    read -r said <&"${READER[0]}"
    check_equal "the reader ($how)" "$said" closed
    wait_for 10 writes || fail "the lock outlives the close of a descriptor ($how)"
    echo >&"${READER[1]}"
    wait "$pid"
done

# One thread waits for a lock while another closes the descriptor: what is granted then has no
# descriptor, and ends with the last close.
cat >"$W/closer.py" <<'END'
import fcntl, os, sys, threading
f = os.open(sys.argv[1], os.O_RDWR)
def lock():
    try:
        fcntl.lockf(f, fcntl.LOCK_EX)
    except OSError as e:
        print(e)
waiter = threading.Thread(target=lock)
waiter.start()
sys.stdin.readline()
os.close(f)
print("closed", flush=True)
waiter.join()
END
coproc HOLDER { exec python3 "$W/reader.py" descriptor "$W/mnt-b/file"; }
holder=$HOLDER_PID
record_process "$W" "$holder"
read -r said <&"${HOLDER[0]}"
mkfifo "$W/go"
python3 "$W/closer.py" "$W/mnt-a/file" <"$W/go" >"$W/closer" &
closer=$!
record_process "$W" "$closer"
exec 8>"$W/go"
asks() { grep -q request_wait_answer /proc/"$closer"/task/*/wchan; }
wait_for 10 asks || fail "nobody asks for the lock"
echo >&8
closed() { grep -q closed "$W/closer"; }
wait_for 10 closed
! grep -q "Bad file" "$W/closer" || fail "the lock was not asked for before the descriptor was closed"
echo >&"${HOLDER[1]}" # it closes, which ends its lock
read -r said <&"${HOLDER[0]}"
echo >&"${HOLDER[1]}"
wait "$holder"
wait "$closer"
exec 8>&-
wait_for 10 writes || fail "a lock that was granted after its descriptor was closed outlives its process"
stop_node a
stop_node b
