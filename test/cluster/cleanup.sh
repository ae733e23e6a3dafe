# shellcheck shell=bash
#
# Ends what a test left behind in its work directory: only the processes and mounts
# that are written down in it. Used by lib.sh at the end of a test, and by test/run
# after a test that had to be killed.

# Whether the kernel's FUSE may use io_uring; a test that sets it makes DIR/.uring.
URING=/sys/module/fuse/parameters/enable_uring

# When a process that runs was started, in ticks: with its number, that names it for ever.
start_time() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    stat=${stat##*) }
    [ "${stat%% *}" != Z ] || return 1
    # shellcheck disable=SC2086 # words
    set -- $stat
    echo "${20}"
}

# record_process DIR PID
record_process() {
    local started
    started=$(start_time "$2") || return 0
    echo "$2 $started" >>"$1/.processes"
}

# record_mount DIR PATH
record_mount() {
    echo "$2" >>"$1/.mounts"
}

is_running() {
    [ "$(start_time "$1")" = "$2" ]
}

# is_mounted PATH [TYPE]
is_mounted() {
    awk -v path="$1" -v type="${2-}" '
        $5 == path { for (i = 7; $i != "-"; i++); if (type == "" || $(i + 1) == type) found = 1 }
        END { exit !found }' /proc/self/mountinfo
}

# The last resort: the mount goes, whoever uses it.
unmount_lazily() {
    fusermount3 -uz "$1" 2>/dev/null || umount -l "$1"
}

kill_recorded() {
    local pid started tries
    while read -r pid started; do
        ! is_running "$pid" "$started" || kill -KILL "$pid"
    done <"$1"
    # They are to be gone before their files are removed; 2 s at most.
    while read -r pid started; do
        for ((tries = 0; tries < 40; tries++)); do
            is_running "$pid" "$started" || break
            sleep 0.05
        done
    done <"$1"
}

# clear_work_dir DIR: ends it all, and removes it.
clear_work_dir() {
    local dir=$1 mount
    [ -d "$dir" ] || return 0
    [ ! -f "$dir/.uring" ] || echo N >"$URING"
    [ ! -f "$dir/.processes" ] || kill_recorded "$dir/.processes"
    if [ -f "$dir/.mounts" ]; then
        while read -r mount; do
            # One mount may lie over another of the same name.
            while is_mounted "$mount"; do
                unmount_lazily "$mount" || break
            done
        done < <(tac "$dir/.mounts")
    fi
    rm -rf --one-file-system "$dir"
}
