# shellcheck shell=bash
#
# Helpers for tests with several nodes. A test is a script test_WHAT_IT_SHOWS.sh:
#
#   #!/usr/bin/env bash
#   # What it shows, in a line or two.
#   # timeout: 60
#   . "$(dirname "$0")/lib.sh"
#   requires fuse
#   start_faultfs a; start_node a "$W/pfs-a"
#   start_faultfs b; start_node b "$W/pfs-b"
#   echo hello >"$W/mnt-a/file"
#   [ "$(cat "$W/mnt-b/file")" = hello ] || fail "b reads something else"
#   stop_node a; stop_node b
#
# All it makes is below $W, which is removed when it ends; a command that fails
# where nothing looks at its result ends the test as failed. Exit codes: 0 passed,
# 77 skipped with the reason on stdout, else failed.
#
# Comment lines of a test that test/run reads: "timeout: SECONDS" (default 180),
# "long" (only with --long), "sanitize" (also run with the sanitizers' build),
# "both" (also run with --no-passthrough, given by EDDY_TEST_OPTIONS), "busy" (uses a processor
# for half of its time and more: few at once), "alone" (measures short times, or needs that its
# processes never wait for a processor: runs beside no other). ../README.md tells when to use which.
#
# A test that calls in_namespaces before anything else runs with networks and
# mounts of its own; add_host NAME then makes a host, and start_faultfs NAME and
# start_node NAME of that name run there.

set -eEu -o pipefail

# shellcheck source-path=SCRIPTDIR source=cleanup.sh
. "$(dirname "${BASH_SOURCE[0]}")/cleanup.sh"

: "${EDDY_BUILD:?the build directory, absolute; test/run sets it}"
# A test's working directory is not to hold a mount.
SCRIPT=$(realpath "$0")
SCRIPT_ARGS=("$@")

declare -A NODE_PID FAULTFS_PID HOST_PID HOST_ADDRESS HOST_TIME JOB
HOST_COUNT=0
RAN_INNER=

# --- Ends of a test ----------------------------------------------------------

fail() {
    echo "FAILED: $*"
    exit 1
}

skip() {
    echo "skip: $*"
    exit 77
}

# requires root | fuse | user | namespaces | cmd NAME | module NAME (of pkg-config) | free MIB ...: skips the test
# where one is missing.
requires() {
    while [ $# -gt 0 ]; do
        case $1 in
            root) [ "$(id -u)" = 0 ] || skip "needs root" ;;
            fuse)
                # shellcheck disable=SC2188 # to open it is the test
                (<>/dev/fuse) 2>/dev/null || skip "/dev/fuse cannot be opened"
                command -v fusermount3 >/dev/null || skip "needs fusermount3"
                ;;
            user) # to run things as another user
                [ "$(id -u)" = 0 ] || skip "needs root, to become another user"
                command -v setpriv >/dev/null || skip "needs setpriv"
                ;;
            namespaces)
                unshare --mount --net --uts --ipc --pid --fork true 2>/dev/null ||
                    skip "needs namespaces, which unshare cannot make here"
                command -v ip >/dev/null || skip "needs ip"
                ;;
            cmd)
                command -v "$2" >/dev/null || skip "needs $2"
                shift
                ;;
            module)
                pkg-config --exists "$2" 2>/dev/null || skip "needs $2, as pkg-config calls it"
                shift
                ;;
            free)
                [ "$(df --output=avail -m "$W" | tail -n 1)" -ge "$2" ] ||
                    skip "needs $2 MiB free below $W"
                shift
                ;;
            *) fail "requires: unknown: $1" ;;
        esac
        shift
    done
}

# allow_uring: until the test ends the kernel's FUSE may use io_uring (eddyfs --uring). Skips the test where it cannot.
allow_uring() {
    "$EDDY_BUILD/eddyfs" --version | grep -q io_uring || skip "this eddyfs was built without liburing"
    [ -e "$URING" ] || skip "needs Linux 6.14, whose FUSE has io_uring"
    [ "$(cat "$URING")" = N ] || return 0
    (echo Y >"$URING") 2>/dev/null || skip "$URING cannot be set"
    : >"$W/.uring"
}

# A sanitizer's report fails a test that noticed nothing itself.
sanitizer_reports() {
    grep -l -E 'ERROR: (Address|Leak|Thread|Memory)Sanitizer|WARNING: ThreadSanitizer|runtime error:' \
        "$W"/*.log "$W"/*.out 2>/dev/null
}

show_logs() {
    local log
    for log in "$W"/*.out "$W"/*.log; do
        [ -s "$log" ] || continue
        echo "--- ${log##*/} (its end)"
        tail -n 40 "$log"
    done
}

on_exit() {
    local code=$? reports
    trap - EXIT ERR
    trap '' INT TERM HUP
    set +e
    reports=$(sanitizer_reports)
    if [ "$code" = 0 ] && [ -n "$reports" ]; then
        echo "FAILED: a sanitizer has something to say"
        code=1
    fi
    [ "$code" = 0 ] || [ "$code" = 77 ] || [ -n "$RAN_INNER" ] || show_logs
    cd /
    exec 2>/dev/null # where the shell tells of each job that is killed here
    # The end of the namespaces takes all in them away; the work directory is the outer run's.
    [ -n "${EDDY_TEST_INNER-}" ] || clear_work_dir "$W"
    # The shared memory of daemons that were killed. The directory of sessions does not exist: nothing else is removed.
    [ ! -d "/dev/shm/eddyfs-rdma-$(id -u)" ] || "$EDDY_BUILD/eddy" clean --session-dir "$W/none" >/dev/null
    exit "$code"
}

on_error() {
    echo "FAILED: line $1: $2" >&2
}

# The caches must not be on tmpfs, and the sockets' paths must stay short.
make_work_dir() {
    local base=${TMPDIR:-/tmp}
    [ "$(stat -f -c %T "$base")" != tmpfs ] || base=/var/tmp
    W=$(mktemp -d "$base/eddy-test.XXXXXX")
}

if [ -n "${EDDY_TEST_INNER-}" ]; then
    W=$EDDY_TEST_INNER
else
    make_work_dir
fi
trap on_exit EXIT
trap 'exit 130' INT
trap 'echo "FAILED: ended by a signal during: $BASH_COMMAND"; exit 143' TERM HUP
trap 'on_error "$LINENO" "$BASH_COMMAND"' ERR
if [ -n "${EDDY_TEST_DIRS_FILE-}" ]; then # where test/run looks after a test that had to be killed
    echo "$W" >>"$EDDY_TEST_DIRS_FILE"
fi
chmod 755 "$W" # other users' processes pass through it
# many NORMAL SLOW: how many times, in the normal build or in a sanitizer's, where each takes much longer.
many() {
    case $EDDY_BUILD in
        *-asan | *-tsan) echo "$2" ;;
        *) echo "$1" ;;
    esac
}

case " ${EDDY_TEST_OPTIONS-} " in *" --uring "*) allow_uring ;; esac
PFS=$W/pfs
mkdir -p "$PFS" "$W/run"
chmod 700 "$W/run"
export XDG_RUNTIME_DIR=$W/run XDG_CONFIG_HOME=$W/run # no configuration of this machine

# --- Waiting and checking ----------------------------------------------------

# wait_for SECONDS COMMAND...: until the command succeeds; returns 1 if it never does.
wait_for() {
    local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000)) began
    shift
    while began=${EPOCHREALTIME/[.,]/} && ! "$@"; do # a last try begins behind the end, however long this process stood still
        [ "$began" -lt "$end" ] || return 1
        sleep 0.05
    done
}

check_same() {
    cmp "$1" "$2" || fail "$1 and $2 differ"
}

# check_equal WHAT GOT EXPECTED
check_equal() {
    [ "$2" = "$3" ] || fail "$1: got $2, expected $3"
}

# run_as UID COMMAND...: with a group of the same number and no others.
run_as() {
    local uid=$1
    shift
    setpriv --reuid "$uid" --regid "$uid" --clear-groups -- "$@"
}

# in_background COMMAND...: its process is ended with the test; its number is in $!.
in_background() {
    "$@" &
    record_process "$W" $!
}

eddy() {
    "$EDDY_BUILD/eddy" "$@"
}

eddyfs() {
    "$EDDY_BUILD/eddyfs" "$@"
}

# --- Hosts: networks and mounts of their own ---------------------------------

# Runs the test once more inside namespaces of its own; their end takes away every
# process, mount and network in them. Needs root (or a user who may make them).
in_namespaces() {
    local inner code=0
    if [ -n "${EDDY_TEST_INNER-}" ]; then
        ip link set lo up
        ip link add br0 type bridge forward_delay 0
        ip link set br0 up
        return
    fi
    requires namespaces
    EDDY_TEST_INNER=$W unshare --mount --net --uts --ipc --pid --fork --kill-child=KILL \
        --mount-proc --propagation private -- bash "$SCRIPT" ${SCRIPT_ARGS[@]+"${SCRIPT_ARGS[@]}"} &
    inner=$!
    record_process "$W" "$inner"
    wait "$inner" || code=$?
    RAN_INNER=1
    exit "$code"
}

# host_clock SECONDS: the options of unshare for clocks that are so much ahead; none where that cannot be.
host_clock() {
    local options=(--time --boottime "$1" --monotonic "$1")
    [ "$1" != 0 ] && unshare "${options[@]}" true 2>/dev/null && echo "${options[@]}"
}

# add_host NAME [SECONDS]: its clocks (but the time of day) are so much ahead; its address is host_address NAME, its interface there NAME, here eth0.
add_host() {
    local name=$1 job clock
    clock=$(host_clock "${2-0}") || true
    HOST_TIME[$name]=${clock:+-T}
    HOST_COUNT=$((HOST_COUNT + 1))
    rm -f "$W/.up-$name" # of a host of that name that was killed
    # A shell that is process 1 there, and reaps.
    # shellcheck disable=SC2016,SC2086 # the inner shell's variables; words
    unshare --mount --net --uts --ipc --pid $clock --fork --kill-child=KILL --mount-proc -- \
        bash -c 'hostname "$0"; ip link set lo up; : >"$1"; while :; do sleep 86400 & wait; done' \
        "$name" "$W/.up-$name" &
    job=$!
    wait_for 10 test -e "$W/.up-$name" || fail "host $name does not start"
    JOB[$name]=$job
    HOST_PID[$name]=$(child_of "$job")
    ip link add "$name" type veth peer name eth0 netns "${HOST_PID[$name]}"
    ip link set "$name" master br0 up
    HOST_ADDRESS[$name]=10.77.0.$HOST_COUNT
    on "$name" ip addr add "${HOST_ADDRESS[$name]}/24" dev eth0
    on "$name" ip link set eth0 up
}

is_host() {
    [ -n "${HOST_PID[$1]-}" ]
}

host_address() {
    echo "${HOST_ADDRESS[$1]}"
}

# on NAME COMMAND...: on that host, or here where there is no host of that name.
on() {
    local name=$1
    shift
    if is_host "$name"; then
        # shellcheck disable=SC2086 # -T or nothing
        nsenter -t "${HOST_PID[$name]}" -m -n -u -i -p ${HOST_TIME[$name]} -- "$@"
    else
        "$@"
    fi
}

# The host and all that runs there go at once, as if its power went.
kill_host() {
    kill -KILL "${HOST_PID[$1]}"
    wait "${JOB[$1]}" 2>/dev/null || true
    unset "HOST_PID[$1]" "NODE_PID[$1]" "FAULTFS_PID[$1]"
    ip link del "$1" 2>/dev/null || true
}

link_down() {
    ip link set "$1" down
}

link_up() {
    ip link set "$1" up
}

# --- Daemons -----------------------------------------------------------------

# child_of PID: its first child's number.
child_of() {
    local children
    children=$(<"/proc/$1/task/$1/children")
    [ -n "$children" ] && echo "${children%% *}"
}

has_child_or_ended() {
    STARTED_PID=$(child_of "$1" 2>/dev/null) || ! kill -0 "$1" 2>/dev/null
}

# start_daemon NAME OUTPUT COMMAND...: in the background, on the host of that name if
# there is one. STARTED_JOB is the job to wait for, STARTED_PID the process itself.
start_daemon() {
    local name=$1 output=$2
    shift 2
    if is_host "$name"; then
        # shellcheck disable=SC2086 # -T or nothing
        nsenter -t "${HOST_PID[$name]}" -m -n -u -i -p ${HOST_TIME[$name]} -- "$@" >>"$output" 2>&1 &
        STARTED_JOB=$!
        STARTED_PID=
        wait_for 5 has_child_or_ended "$STARTED_JOB" || fail "$1 does not start on $name"
        [ -n "$STARTED_PID" ] || fail "$1 ended at once on $name"
    else
        "$@" >>"$output" 2>&1 &
        STARTED_JOB=$!
        STARTED_PID=$STARTED_JOB
    fi
    record_process "$W" "$STARTED_JOB"
    record_process "$W" "$STARTED_PID"
}

# mount_is_ready NAME PATH TYPE: it is there, and answers: to statfs, which the kernel
# does not answer from memory, as it may answer stat at a dead mount. What answers is to be
# FUSE: a new daemon clears a dead mount, and then the plain directory answers.
FUSE_MAGIC=65735546
mount_is_ready() {
    on "$1" grep -q " $2 .* - $3 " /proc/self/mountinfo &&
        [ "$(on "$1" timeout 20 stat -f -c %t "$2" 2>/dev/null)" = "$FUSE_MAGIC" ]
}

ready_or_dead() {
    mount_is_ready "$2" "$3" "$4" || ! kill -0 "$1" 2>/dev/null
}

# wait_for_mount JOB NAME PATH TYPE
wait_for_mount() {
    local code=0
    if wait_for 60 ready_or_dead "$@" && mount_is_ready "$2" "$3" "$4"; then
        return
    fi
    ! kill -0 "$1" 2>/dev/null || fail "$2: $4 does not answer at $3"
    wait "$1" || code=$?
    fail "$2: $4 does not mount at $3: it ended with $code"
}

# start_faultfs NAME [OPTION...]: mounts $PFS, counted, at $W/pfs-NAME.
start_faultfs() {
    local name=$1 mount=$W/pfs-$1
    shift
    mkdir -p "$mount"
    record_mount "$W" "$mount"
    start_daemon "$name" "$W/pfs-$name.out" "$EDDY_BUILD/test/faultfs" -f \
        --stats "$W/pfs-$name.json" --shared "$W/pfs.shared" --control "$W/pfs-$name.control" \
        "$@" "$PFS" "$mount"
    FAULTFS_PID[$name]=$STARTED_PID
    wait_for_mount "$STARTED_JOB" "$name" "$mount" fuse.faultfs
}

faultfs_asked() {
    jq .asked "$W/pfs-$1.json"
}

has_answered() {
    [ "$(faultfs_asked "$1")" -gt "$2" ]
}

# stat_of NAME COUNTER [FILE]: of the faultfs of that name, as it is now: a total
# (read_bytes, write_bytes, copy_bytes, or the number of requests of a kind: lookup,
# open, read ...), or one file's (reads, read_bytes, writes, write_bytes).
stat_of() {
    local name=$1 counter=$2 asked
    asked=$(faultfs_asked "$name")
    kill -USR1 "${FAULTFS_PID[$name]}"
    wait_for 10 has_answered "$name" "$asked" || fail "faultfs $name writes no counters"
    if [ $# -ge 3 ]; then
        jq --arg f "$3" --arg c "$counter" '.files[$f][$c] // 0' "$W/pfs-$name.json"
    else
        jq --arg c "$counter" '.[$c] // error("no counter " + $c)' "$W/pfs-$name.json"
    fi
}

# pfs_read DIRECTORY NODE...: bytes that these nodes have read of the files below it.
pfs_read() {
    local dir=$1 node sum=0
    shift
    for node in "$@"; do
        stat_of "$node" read_bytes >/dev/null # they are up to date
        sum=$((sum + $(jq --arg dir "$dir/" '[.files | to_entries[] | select(.key | startswith($dir)).value.read_bytes] | add // 0' \
            "$W/pfs-$node.json")))
    done
    echo "$sum"
}

# tell_faultfs NAME COMMAND...: what it is to get wrong from now on; faultfs --help tells how.
# Prints the fault's number, by which it is cleared: tell_faultfs NAME clear [NUMBER].
tell_faultfs() {
    local name=$1
    shift
    "$EDDY_BUILD/test/faultfs" --tell "$W/pfs-$name.control" "$@"
}

# fault_waits NAME NUMBER: do requests hang in that fault now?
fault_waits() {
    tell_faultfs "$1" list | grep -q "^$2 .* waiting=[1-9]"
}

# pause PID: SIGSTOP, and until none of its threads runs any more: kill alone comes back before that,
# and what is asked of the process just then is answered. A thread that waits in the kernel (D) stops
# before it is back. kill -CONT lets it go on.
pause() {
    kill -STOP "$1"
    wait_for 10 is_paused "$1" || fail "process $1 does not stop"
}
is_paused() {
    ! grep -qs $'^State:\t[^TD]' /proc/"$1"/task/*/status
}

# A PFS that hangs, and that goes on.
stop_faultfs() {
    pause "${FAULTFS_PID[$1]}"
}

continue_faultfs() {
    kill -CONT "${FAULTFS_PID[$1]}"
}

# start_node NAME PFS_DIR [OPTION...]: mounts eddyfs at $W/mnt-NAME; a later option
# overrides one given here. The same name again uses the same cache directory.
start_node() {
    local name=$1 pfs=$2 mount=$W/mnt-$1 address=127.0.0.1
    shift 2
    ! is_host "$name" || address=$(host_address "$name")
    # stat would hang or fail at the dead mount of a node that was killed
    is_mounted "$mount" || mkdir -p "$mount"
    record_mount "$W" "$mount"
    # shellcheck disable=SC2086 # options are words
    start_daemon "$name" "$W/$name.out" "$EDDY_BUILD/eddyfs" -f --node "$name" \
        --listen "$address" --cache-dir "$W/cache-$name" --session test --log "$W/$name.log" \
        ${EDDY_TEST_OPTIONS-} "$@" "$pfs" "$mount"
    NODE_PID[$name]=$STARTED_PID
    JOB[node-$name]=$STARTED_JOB
    wait_for_mount "$STARTED_JOB" "$name" "$mount" fuse.eddyfs
}

# crash_node NAME: kill -9, the dead mount stays.
crash_node() {
    kill -KILL "${NODE_PID[$1]}"
    wait "${JOB[node-$1]}" 2>/dev/null || true
    unset "NODE_PID[$1]"
}

# kill_node NAME: kill -9, and the dead mount goes.
kill_node() {
    crash_node "$1"
    on "$1" fusermount3 -uz "$W/mnt-$1"
}

# stop_node NAME [CODE]: unmounts as a user does, and checks that eddy ends with that
# code (0). At 0 the daemon must have ended well, too.
stop_node() {
    local name=$1 expected=${2:-0} code=0
    on "$name" "$EDDY_BUILD/eddy" umount "$W/mnt-$name" || code=$?
    check_equal "code of eddy umount of $name" "$code" "$expected"
    [ "$code" = 0 ] || return 0
    wait "${JOB[node-$name]}" || code=$?
    check_equal "code of the daemon $name" "$code" 0
    unset "NODE_PID[$name]"
}

# status_of NAME JQ_PATH: from eddy status, for example status_of a .reads.pfs_bytes
status_of() {
    on "$1" "$EDDY_BUILD/eddy" status --json "$W/mnt-$1" | jq -r "$2"
}

# start_writer HOST FILE: a process there that has FILE open for appending until its input (descriptor 6) ends; it is $WRITER.
start_writer() {
    mkfifo "$W/writer"
    : >"$W/written"
    # shellcheck disable=SC2016 # the inner shell's variables
    on "$1" bash -c 'exec 7>>"$1"; while read -r line; do echo "$line" >&7; echo "$line" >>"$2"; done <"$3"' \
        writer "$2" "$W/written" "$W/writer" &
    WRITER=$!
    record_process "$W" "$WRITER"
    exec 6>"$W/writer"
}
# writer_appends LINE: it has written it.
writer_appends() {
    echo "$1" >&6
    wait_for 20 grep -qx "$1" "$W/written"
}
