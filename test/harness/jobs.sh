# shellcheck shell=bash
#
# Runs tests as jobs beside each other: so many of those that work, so many of those that wait, and at the end,
# one after the other, those that need the machine to themselves.

CHILD=         # what this process waits for
declare -A JOB=() # the kind of each job that runs (works, waits or alone), by its process
DIRS_FILE=     # where the test of this job writes down the directories that it made

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
    for job in "${!JOB[@]}"; do
        kill -TERM "$job" 2>/dev/null || true
    done
    for job in "${!JOB[@]}"; do
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

# job KIND COMMAND...: begins it.
job() {
    local kind=$1
    shift
    (
        JOB=()
        DIRS_FILE=$LOGS/work-dirs-$BASHPID
        trap job_interrupted INT TERM
        rm -f "$DIRS_FILE"
        "$@"
    ) &
    JOB[$!]=$kind
}

jobs_of_kind() {
    local job n=0
    for job in "${!JOB[@]}"; do
        [ "${JOB[$job]}" != "$1" ] || n=$((n + 1))
    done
    echo "$n"
}

# Until one of the jobs ends.
wait_for_a_job() {
    local ended=
    wait -n -p ended "${!JOB[@]}" || {
        echo "not ok: a job of ${JOB[${ended:-0}]-tests} ended early"
        count failed 1
    }
    unset "JOB[$ended]"
}

# start_next KIND MOST: begins what is left in the array of that kind, until MOST of it run.
start_next() {
    local kind=$1 most=$2
    local -n left=$1
    while [ "${#left[@]}" -gt 0 ] && [ "$(jobs_of_kind "$kind")" -lt "$most" ]; do
        # shellcheck disable=SC2086 # words
        job "$kind" ${left[0]}
        left=("${left[@]:1}")
    done
}

# run_jobs KIND=MOST...: runs the commands in the arrays of these kinds, MOST of each at a time.
run_jobs() {
    local kind
    while :; do
        for kind in "$@"; do
            start_next "${kind%=*}" "${kind#*=}"
        done
        [ "${#JOB[@]}" -gt 0 ] || break
        wait_for_a_job
    done
}

# run_all NAME...: the tests of these names. The kind of a cluster test is in its head comment.
run_all() {
    local name units works=() waits=() alone=()
    for units in unit asan/unit tsan/unit; do
        names_below "$units" "$@"
        [ "${#BELOW[@]}" = 0 ] || works+=("run_units ${BELOW[*]}")
    done
    for name in "$@"; do
        case $name in
            unit/* | */unit/*) ;;
            model/*) works+=("run_model $name") ;;
            fuzz/*) works+=("run_fuzz $name") ;;
            *)
                if is_marked "$name" alone; then
                    alone+=("run_cluster $name")
                elif is_marked "$name" waits; then
                    waits+=("run_cluster $name")
                else
                    works+=("run_cluster $name")
                fi
                ;;
        esac
    done
    run_jobs works="$WORK_AT_ONCE" waits="$WAIT_AT_ONCE"
    run_jobs alone=1
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
