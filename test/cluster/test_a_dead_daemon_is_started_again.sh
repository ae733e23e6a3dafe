#!/usr/bin/env bash
# A daemon that dies by a signal is started again by its supervisor: the mount is back with all that
# was acknowledged; who writes meanwhile gets an error and fills no directory below the mount. eddy
# umount and SIGTERM end both processes; a mount that somebody took away is not made again, but what
# was left is flushed. --no-supervise leaves the daemon dead.
# timeout: 180
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

record_mount "$W" "$W/mnt-a"
mkdir "$W/mnt-a"
start() { # [OPTION...]: in the background, as users do; DAEMON and SUPERVISOR are its processes
    # shellcheck disable=SC2086 # options are words
    timeout 60 "$EDDY_BUILD/eddyfs" --node a --listen 127.0.0.1 --cache-dir "$W/cache-a" --session test \
        --log "$W/a.log" --flush-wait 3600 ${EDDY_TEST_OPTIONS-} "$@" "$PFS" "$W/mnt-a" >>"$W/a.out" 2>&1
    DAEMON=$(status_of a .pid)
    SUPERVISOR=$(awk '/^PPid:/ { print $2 }' "/proc/$DAEMON/status")
    record_process "$W" "$SUPERVISOR"
    record_process "$W" "$DAEMON"
}
is_gone() { ! kill -0 "$1" 2>/dev/null; }
is_back() { # another daemon than DAEMON serves
    local pid
    pid=$(status_of a .pid 2>/dev/null) && [ "$pid" != "$DAEMON" ] && mount_is_ready a "$W/mnt-a" fuse.eddyfs
}
killed_comes_back() { # SIGNAL
    kill -"$1" "$DAEMON"
    wait_for 30 is_back || fail "after $1: it is not back: $(tail -n 5 "$W/a.log")"
    DAEMON=$(status_of a .pid)
    record_process "$W" "$DAEMON"
}
both_end() {
    wait_for 30 is_gone "$DAEMON" || fail "$1: the daemon still runs"
    wait_for 30 is_gone "$SUPERVISOR" || fail "$1: the supervisor still runs"
    ! is_mounted "$W/mnt-a" || fail "$1: it is still mounted"
}

# Files that were made while the daemon died and came back are in the mount, and none is below it: where the kernel and the
# rights allow it, the new mount takes the place of the dead one in one step.
makes_files() { # until "$W/enough" is there
    python3 - "$W/mnt-a" "$W/enough" <<'PY'
import os
import sys
made = []
while not os.path.exists(sys.argv[2]):
    try:
        with open(f"{sys.argv[1]}/made-{len(made)}", "x") as f:
            f.write("here")
        made.append(len(made))
    except OSError:
        pass
lost = [n for n in made if not os.path.exists(f"{sys.argv[1]}/made-{n}")]
print(len(made), "made,", len(lost), "lost:", lost[:5])
sys.exit(1 if lost else 0)
PY
}
in_one_step() { [ "$(id -u)" = 0 ] && printf '6.5\n%s\n' "$(uname -r)" | sort -VC; }

start
[ "$(readlink "/proc/$SUPERVISOR/exe")" = "$EDDY_BUILD/eddyfs" ] || fail "it has no supervisor"
echo one >"$W/mnt-a/one"
makes_files >"$W/made" &
maker=$!
killed_comes_back SEGV
echo enough >"$W/enough"
if ! wait "$maker" && in_one_step; then
    fail "$(cat "$W/made")"
fi
check_equal "after the first death" "$(cat "$W/mnt-a/one")" one
check_equal "restarts" "$(status_of a .restarts)" 1
grep -q 'died by signal 11' "$W/a.log" || fail "the log does not say how it died"

# The second time it waits a second first.
kill -KILL "$DAEMON"
wait_for 10 is_gone "$DAEMON"
echo during 2>/dev/null >"$W/mnt-a/during" || true # it must not be below the mount: that is looked at in the end
wait_for 30 is_back || fail "it is not back after its second death"
DAEMON=$(status_of a .pid)
record_process "$W" "$DAEMON"
echo two >"$W/mnt-a/two"
check_equal "after the second death" "$(cat "$W/mnt-a/one" "$W/mnt-a/two")" "one
two"
eddy umount "$W/mnt-a" || fail "eddy umount ended with $?"
both_end "eddy umount"
check_equal "on the PFS" "$(cat "$PFS/one" "$PFS/two")" "one
two"
check_equal "below the mount" "$(ls -A "$W/mnt-a")" ""

start
echo three >"$W/mnt-a/three"
killed_comes_back ABRT
kill -TERM "$SUPERVISOR" "$DAEMON" # as who ends all processes of a job
both_end SIGTERM
check_equal "flushed at SIGTERM" "$(cat "$PFS/three" 2>/dev/null)" three

# Taken away while it is dead: the second death, so that there is time to.
start
killed_comes_back KILL
echo four >"$W/mnt-a/four"
kill -KILL "$DAEMON"
wait_for 10 is_gone "$DAEMON"
fusermount3 -uz "$W/mnt-a"
eddy wait "$W/mnt-a" || fail "eddy wait ended with $?"
both_end "taken away"
check_equal "flushed without a mount" "$(cat "$PFS/four" 2>/dev/null)" four

# Ended while it waits for its restart.
start
killed_comes_back KILL
echo five >"$W/mnt-a/five"
kill -KILL "$DAEMON"
wait_for 10 is_gone "$DAEMON"
kill -TERM "$SUPERVISOR"
both_end "SIGTERM while it waits"
check_equal "flushed at SIGTERM while it waits" "$(cat "$PFS/five" 2>/dev/null)" five

# Unmounted while the next daemon starts: what is there first is what the dead one left.
start
echo six >"$W/mnt-a/six"
kill -KILL "$DAEMON"
timeout 60 "$EDDY_BUILD/eddy" umount "$W/mnt-a" || fail "eddy umount while it starts again ended with $?"
both_end "eddy umount while it starts again"
check_equal "flushed by eddy umount while it starts again" "$(cat "$PFS/six" 2>/dev/null)" six

# Unmounted while it waits for its restart, with a file open in what the dead one left.
start
killed_comes_back KILL
echo seven >"$W/mnt-a/seven"
exec 9<"$W/mnt-a/seven"
kill -KILL "$DAEMON"
wait_for 10 is_gone "$DAEMON"
eddy umount "$W/mnt-a" || fail "eddy umount of a dead mount that is in use ended with $?"
exec 9<&-
both_end "eddy umount of a dead mount that is in use"
check_equal "flushed by eddy umount of it" "$(cat "$PFS/seven" 2>/dev/null)" seven

# A start that fails is the caller's to see, and is not tried again.
code=0
timeout 60 "$EDDY_BUILD/eddyfs" --node a --listen 127.0.0.1 --cache-dir "$W/cache-a" --session test \
    --listen 192.0.2.1 "$PFS" "$W/mnt-a" >"$W/fails.out" 2>&1 || code=$?
check_equal "code of a start that fails" "$code" 1

start --no-supervise
[ "$(readlink "/proc/$SUPERVISOR/exe")" != "$EDDY_BUILD/eddyfs" ] || fail "--no-supervise: it has a supervisor"
kill -KILL "$DAEMON"
wait_for 10 is_gone "$DAEMON"
code=0
eddy wait "$W/mnt-a" || code=$?
check_equal "code of eddy wait" "$code" 0
! is_mounted "$W/mnt-a" || fail "--no-supervise: still mounted"
