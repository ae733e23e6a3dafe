# shellcheck shell=bash
#
# Runs tests as jobs beside each other: unit tests; busy ones, which are models, fuzzers and tests that are
# marked so; light ones, which wait most of their time; at last those marked "alone", one after the other.

CHILD=                     # what this process waits for
declare -A JOBS_RUNNING=() # their commands, by process
DIRS_FILE=                 # where the test of this job writes down the directories that it made

# run_logged SECONDS NAME COMMAND...: its output goes to the log of that name. It has
# no standard input. Returns its exit code.
run_logged() {
    local seconds=$1 log code=0 start=$SECONDS
    log=$(log_of "$2")
    shift 2
    # In the background, so that an interrupt is seen at once, not when the test ends.
    timeout -k 30 "$seconds" "$@" >"$log" 2>&1 </dev/null &
    CHILD=$!
    wait "$CHILD" 2>/dev/null || code=$?
    CHILD=
    if [ $((SECONDS - start)) -ge "$seconds" ]; then
        echo "timed out after $seconds s" >>"$log"
    fi
    return "$code"
}

# shellcheck disable=SC2317 # as those that follow
end_child() {
    [ -n "$CHILD" ] || return 0
    kill -TERM "$CHILD" 2>/dev/null || true
    wait "$CHILD" || true
}

# shellcheck disable=SC2317 # a trap calls it
interrupted() {
    local job
    trap '' INT TERM
    end_child # while it builds
    for job in "${!JOBS_RUNNING[@]}"; do
        kill -TERM "$job" 2>/dev/null || true
    done
    for job in "${!JOBS_RUNNING[@]}"; do
        wait "$job" || true
    done
    echo "interrupted"
    closing_line
    exit 1
}

# shellcheck disable=SC2317 # a trap calls it
job_interrupted() {
    trap '' INT TERM
    end_child
    clear_work_dirs
    exit 1
}

# After a test that could not clean up itself.
clear_work_dirs() {
    local dir
    [ -f "$DIRS_FILE" ] || return 0
    while read -r dir; do
        clear_work_dir "$dir" || true
    done <"$DIRS_FILE"
    rm -f "$DIRS_FILE"
}

# job COMMAND...: begins it.
job() {
    (
        JOBS_RUNNING=()
        DIRS_FILE=$LOGS/work-dirs-$BASHPID
        trap job_interrupted INT TERM
        rm -f "$DIRS_FILE"
        "$@"
    ) &
    JOBS_RUNNING[$!]=$*
}

# Until one of the jobs ends.
wait_for_a_job() {
    local ended=
    wait -n -p ended "${!JOBS_RUNNING[@]}" || {
        echo "not ok: ${JOBS_RUNNING[$ended]} ended early"
        count failed 1
    }
    unset "JOBS_RUNNING[$ended]"
}

# The processors' time until now, in ticks: sets ALL and IDLE.
read_ticks() {
    local cpu user nice system idle iowait irq softirq steal rest
    # shellcheck disable=SC2034 # by their places
    read -r cpu user nice system idle iowait irq softirq steal rest </proc/stat
    IDLE=$idle
    ALL=$((user + nice + system + idle + iowait + irq + softirq + steal))
}

# Were processors idle for a tenth of the next half second? Jobs that end meanwhile are counted.
were_idle() {
    local all idle tick
    read_ticks
    all=$ALL idle=$IDLE
    sleep 0.5 &
    tick=$!
    JOBS_RUNNING[$tick]="sleep"
    while [ -n "${JOBS_RUNNING[$tick]-}" ]; do
        wait_for_a_job
    done
    read_ticks
    [ $(((IDLE - idle) * 10)) -ge $((ALL - all)) ]
}

# wait_for_room MOST: until one more may begin: one for each processor always, and up to MOST while processors are idle.
# Where a virtual machine makes system calls dear, more only cost each other time: of twelve tests on two processors, six at
# once took twice the processor time that the twelve took one after the other, and longer than two at once.
wait_for_room() {
    while [ "${#JOBS_RUNNING[@]}" -ge "$1" ]; do
        wait_for_a_job
    done
    while [ "${#JOBS_RUNNING[@]}" -ge "$(nproc)" ]; do
        ! were_idle || return 0
    done
}

# run_jobs MOST COMMAND...: runs these, at most MOST of them at a time. Each is one string, of words without blanks in them.
run_jobs() {
    local most=$1 command
    shift
    for command in "$@"; do
        wait_for_room "$most"
        # shellcheck disable=SC2086 # words
        job $command
    done
    while [ "${#JOBS_RUNNING[@]}" -gt 0 ]; do
        wait_for_a_job
    done
}

# run_all NAME...: the tests of these names.
run_all() {
    local name units=() busy=() light=() alone=()
    for name in unit asan/unit tsan/unit; do
        names_below "$name" "$@"
        [ "${#BELOW[@]}" = 0 ] || units+=("${BELOW[*]}")
    done
    names_below fuzz "$@"
    for name in "$@"; do
        case $name in
            unit/* | */unit/*) ;;
            model/*) busy+=("run_model $name") ;;
            fuzz/*) busy+=("run_fuzz $name $(((FUZZ_SECONDS + ${#BELOW[@]} - 1) / ${#BELOW[@]}))") ;;
            *)
                if is_marked "$name" alone; then
                    alone+=("run_cluster $name")
                elif is_marked "$name" busy; then
                    busy+=("run_cluster $name")
                else
                    light+=("$name")
                fi
                ;;
        esac
    done
    local builds=${#units[@]} # which run at the same time, each several of its programs
    [ "$builds" = 0 ] || run_jobs "$builds" "${units[@]/#/run_units $((UNITS_AT_ONCE / builds)) }"
    run_jobs "$BUSY_AT_ONCE" ${busy[@]+"${busy[@]}"}
    mapfile -t light < <(longest_first ${light[@]+"${light[@]}"})
    run_jobs "$LIGHT_AT_ONCE" ${light[@]+"${light[@]/#/run_cluster }"}
    run_jobs 1 ${alone[@]+"${alone[@]}"}
}

# longest_first NAME...: those first that may take longest, so that none of them is alone at the end.
longest_first() {
    local name
    for name in "$@"; do
        echo "$(its_timeout "$name") $name"
    done | sort -s -k 1,1nr | cut -d ' ' -f 2
}

# names_below PREFIX NAME...: sets BELOW to those that are PREFIX/X.
names_below() {
    local prefix=$1 name
    shift
    BELOW=()
    for name in "$@"; do
        [ "${name%/*}" != "$prefix" ] || BELOW+=("$name")
    done
}
