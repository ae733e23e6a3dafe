#!/usr/bin/env bash
# A file that may be shared is opened without kernel I/O, so that its parts can be lent; the next ones of a directory whose
# files one node writes alone are not, and a directory's user.eddy.shared decides.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3 cmd jq cmd setfattr
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a" --flush-wait 3600 --attr-timeout 0
start_node b "$W/pfs-b" --wait-nodes 2 --flush-wait 3600 --attr-timeout 0
[ "$(status_of a .passthrough)" = true ] || skip "no passthrough here"

# passes FILE [FLAGS]: does an open of it for writing, which writes 128 KiB, have kernel I/O?
passes() {
    : >"$W/python.out" # not the one before
    python3 - "$W/mnt-a/$1" "${2:-os.O_RDWR | os.O_CREAT}" <<'END' >>"$W/python.out" 2>&1 &
import os, sys, time
fd = os.open(sys.argv[1], eval(sys.argv[2]), 0o644)
os.pwrite(fd, bytes(128 << 10), 0)
print("open", flush=True)
while not os.path.exists(sys.argv[1] + ".end"):
    time.sleep(0.01)
END
    local pid=$! answer=
    wait_for 10 grep -q open "$W/python.out" || fail "$1 cannot be written: $(cat "$W/python.out")"
    [ "$(status_of a .passthrough_files)" = 0 ] || answer=yes
    touch "$W/mnt-a/$1.end"
    wait $pid
    rm "$W/mnt-a/$1.end"
    wait_for 10 eval '[ "$(status_of a .passthrough_files)" = 0 ]' || fail "the descriptor of $1 stays"
    [ -n "$answer" ]
}
mkdir "$W/mnt-a/alone" "$W/mnt-a/always" "$W/mnt-a/never"
passes alone/new "os.O_WRONLY | os.O_CREAT | os.O_TRUNC" || fail "an open that replaces a file has no passthrough"
passes alone/excl "os.O_RDWR | os.O_CREAT | os.O_EXCL" || fail "an open that makes a file of its own has no passthrough"
! passes alone/1 || fail "a file that may be shared has passthrough"
passes alone/2 || fail "the second one of a directory with one writer has no passthrough"
setfattr -n user.eddy.shared -v always "$W/mnt-a/always"
setfattr -n user.eddy.shared -v never "$W/mnt-a/never"
! setfattr -n user.eddy.shared -v perhaps "$W/mnt-a/never" 2>/dev/null || fail "a policy that is none is accepted"
passes never/1 || fail "never: no passthrough"
! passes always/1 || fail "always: passthrough"
! passes always/2 || fail "always: passthrough the second time"
# and after several nodes have written one
python3 "$(dirname "$0")/shared_file.py" --name alone/shared --pieces 4 "$W/mnt-a" "$W/mnt-b"
! passes alone/3 || fail "passthrough, although two nodes wrote the last file"
stop_node a
stop_node b
