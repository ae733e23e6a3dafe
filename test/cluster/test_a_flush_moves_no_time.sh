#!/usr/bin/env bash
# The times that stat tells of a file stay as they are when the file is flushed: on the node that wrote it, on
# one that asked before, on one that has it open, on one that asks for the first time after it, and after a
# restart. tar sees a quiet file. A chmod moves ctime on all of them, also in the middle of a flush.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd tar cmd python3

start_faultfs a
start_node a "$W/pfs-a" --flush-wait 3600 --session-dir "$W/session"
start_node b "$PFS" --attr-timeout 0 --session-dir "$W/session"
start_node c "$PFS" --session-dir "$W/session"
A=$W/mnt-a B=$W/mnt-b C=$W/mnt-c

times() { # [-L] FILE: as told
    stat -c '%y %z' "$@"
}
expire() { # what the kernel has been told of attributes
    sleep 1.1
}
all_tell() { # NAME TIMES
    expire
    check_equal "times of $1 on a" "$(times "$A/$1")" "$2"
    check_equal "times of $1 on b" "$(times "$B/$1")" "$2"
    check_equal "times of $1 on c" "$(times "$C/$1")" "$2"
}

# Written, flushed, read.
echo some bytes >"$A/f"
told=$(times "$A/f")
check_equal "times on b before the flush" "$(times "$B/f")" "$told"
sleep 0.02 # a later ctime
eddy flush "$A"
[ "$(times "$PFS/f")" != "$told" ] || fail "the flush has not moved the PFS's ctime"
all_tell f "$told"
cat "$A/f" "$B/f" "$C/f" >"$W/read"
all_tell f "$told"
check_equal "times of the listing on c" "$(find "$C" -name f -printf '%TY-%Tm-%Td %TH:%TM:%.12TS')" \
    "$(stat -c %y "$C/f" | cut -c 1-29)"

# Opened for writing elsewhere, and not written.
exec 7<>"$B/f"
all_tell f "$told"
exec 7>&-
all_tell f "$told"

# A node that has it open is told of a write at once, and keeps what it was told over the flush.
exec 8<"$C/f"
times -L "/proc/$$/fd/8" >"$W/before"
echo more bytes >>"$A/f"
told=$(times "$A/f")
check_equal "times of the open file on c" "$(times -L "/proc/$$/fd/8")" "$told"
sleep 0.02
eddy flush "$A"
check_equal "times of the open file on c after the flush" "$(times -L "/proc/$$/fd/8")" "$told"
all_tell f "$told"
check_equal "times of the open file on c later" "$(times -L "/proc/$$/fd/8")" "$told"
exec 8<&-
all_tell f "$told"

# A restart: the home may have forgotten what it knew.
kill_node a
start_node a "$W/pfs-a" --flush-wait 3600 --session-dir "$W/session"
all_tell f "$told"

# What was set moves ctime everywhere: by a chmod here, elsewhere, and on the PFS.
for who in "$A" "$B" "$PFS"; do
    before=$(stat -c %z "$C/f")
    sleep 0.02
    chmod $((RANDOM % 2 ? 640 : 600)) "$who/f"
    expire
    told=$(times "$PFS/f")
    [ "$(stat -c %z "$PFS/f")" != "$before" ] || fail "chmod has not moved ctime"
    all_tell f "$told"
done

# In the middle of a flush: it does not show, and a chmod does.
echo more >>"$A/f"
told=$(times "$A/f")
sleep 0.02
hang=$(tell_faultfs a hang fsync)
in_background eddy flush "$A"
flush=$!
wait_for 20 fault_waits a "$hang" || fail "the flush does not get to the PFS's fsync"
all_tell f "$told"
chmod 604 "$B/f"
moved=$(stat -c %z "$B/f")
[[ $moved > "${told#* * * }" ]] || fail "a chmod in the middle of a flush has not moved ctime"
tell_faultfs a clear "$hang"
wait "$flush"
told=$(times "$B/f")
[[ "${told#* * * }" > $moved || "${told#* * * }" = "$moved" ]] || fail "ctime has gone back"
all_tell f "$told"

# A claimant's word, a flush, and a home that has forgotten what it heard of it.
echo other bytes >"$A/g"
told=$(times "$A/g")
check_equal "times of g on b before the flush" "$(times "$B/g")" "$told"
sleep 0.02
eddy flush "$A"
kill_node c
start_node c "$PFS" --session-dir "$W/session"
expire
check_equal "times of g on a" "$(times "$A/g")" "$told"
check_equal "times of g on b" "$(times "$B/g")" "$told"

# A PFS that keeps whole seconds.
tell_faultfs a whole-seconds
echo coarse >"$A/h"
told=$(times "$A/h")
eddy flush "$A"
expire
check_equal "times of h on a" "$(times "$A/h")" "$told"
tell_faultfs a clear

# tar, while the lulls flush.
stop_node a
start_node a "$W/pfs-a" --flush-wait 0.2 --session-dir "$W/session"
mkdir "$A/src"
head -c 300000 /dev/urandom >"$A/src/1"
head -c 300000 /dev/urandom >"$A/src/2"
flushed() { [ "$(status_of a .flush.pending_files)" = 0 ]; }
tar -C "$A" -cf - src 2>"$W/tar.err" | {
    head -c 100000 >"$W/begin"
    wait_for 30 flushed || fail "nothing is flushed"
    sleep 1.1
    cat >"$W/rest"
}
check_equal "what tar says" "$(cat "$W/tar.err")" ""
stop_node a
stop_node b
stop_node c
