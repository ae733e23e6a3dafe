# shellcheck shell=bash
#
# The kinds of tests, by the beginnings of their names: what there is of each, what it needs, how it is run.

# How many times longer a program takes with a sanitizer.
SLOWER=3

# The tests of each kind, in the order in which they are told.
all_names() {
    local file name
    for file in test/unit/test_*.c; do echo "unit/$(name_in "$file")"; done
    for name in $(test/model/run "--list${LONG:+-long}"); do echo "model/$name"; done
    for file in test/cluster/test_*.sh; do echo "cluster/$(name_in "$file")"; done
    for file in $(all_marked 'both\(-long\)\?'); do echo "cached/cluster/$(name_in "$file")"; done
    for file in test/unit/test_*.c; do echo "asan/unit/$(name_in "$file")"; done
    for file in $(all_marked 'sanitize\(-long\)\?'); do echo "asan/cluster/$(name_in "$file")"; done
    sed '/^#/d; s|^|tsan/unit/|' test/unit/threads.list
    for file in test/fuzz/fuzz_*.c; do echo "fuzz/$(name_in "$file")"; done
}

# name_in FILE: X of .../test_X.c, .../test_X.sh or .../fuzz_X.c
name_in() {
    local name=${1##*/}
    name=${name#*_}
    echo "${name%.*}"
}

script_of() {
    echo "test/cluster/test_${1##*/}.sh"
}

# What a cluster test says of itself in its head comment: is_marked NAME WORD, its_timeout NAME
is_marked() {
    grep -q "^# $2\$" "$(script_of "$1")"
}

all_marked() {
    grep -l "^# $1\$" test/cluster/test_*.sh || true
}

its_timeout() {
    local seconds
    seconds=$(sed -n 's/^# timeout: *\([0-9][0-9]*\) *$/\1/p' "$(script_of "$1")" | head -n 1)
    echo "${seconds:-$CLUSTER_TIMEOUT}"
}

# is_only_long NAME: it takes long, or this repeat of it is one of those that would make all runs longer.
is_only_long() {
    is_marked "$1" long && return
    case $1 in
        cached/*) is_marked "$1" both-long ;;
        asan/*) is_marked "$1" sanitize-long ;;
        *) return 1 ;;
    esac
}

# Why a test is skipped before anything is built for it, if it is.
why_skipped() {
    if [[ $1 == fuzz/* ]] && ! command -v clang >/dev/null; then
        echo "needs clang"
    elif [[ $1 == *cluster/* && -z $LONG ]] && is_only_long "$1"; then
        echo "only with --long"
    fi
}

# The build directory in which the test is.
build_of() {
    case $1 in
        asan/*) echo "$BUILD-asan" ;;
        tsan/*) echo "$BUILD-tsan" ;;
        fuzz/*) echo "$BUILD-fuzz" ;;
        *) echo "$BUILD" ;;
    esac
}

# build_for NAME: what the test of that name runs.
build_for() {
    local units
    case $1 in
        asan/*) build "$BUILD-asan" "" -Db_sanitize=address,undefined -Db_lundef=false ;;
        tsan/*)
            units=$(sed '/^#/d; s|^|test/unit_|' test/unit/threads.list)
            build "$BUILD-tsan" "$units" -Db_sanitize=thread -Db_lundef=false
            ;;
        fuzz/*) CC=clang build "$BUILD-fuzz" fuzzers -Dfuzz=true -Db_lundef=false ;;
        model/*) ;;
        *) build "$BUILD" "" ;;
    esac
}

is_sanitized() {
    [[ $1 == [at]san/* || $1 == fuzz/* ]]
}

# How many times longer than its limit a test of that name may take.
patience() {
    if is_sanitized "$1"; then echo $((PATIENCE * SLOWER)); else echo "$PATIENCE"; fi
}

# under NAME: sets UNDER to the command under which the test's programs run, if its build needs one: UCX's memory
# hooks and those of the sanitizers do not go together, and sanitizers of compilers as old as Debian 12's fail at
# random where the kernel spreads addresses further than they expect.
under() {
    UNDER=()
    is_sanitized "$1" || return 0
    UNDER=(env UCX_MEM_EVENTS=n)
    ! setarch "$(uname -m)" -R true 2>/dev/null || UNDER+=(setarch "$(uname -m)" -R)
}

# Those that take longest, the longest first.
SLOW_UNITS="store_crash peer_failures flush_bytes peer_stalls ring peer home_copy store_model data_claimants"

# slow_first NAME...: sets ORDERED: meson begins programs in the order in which they are named, whatever their priority, and one
# that takes two minutes must not be the last.
slow_first() {
    local name slow
    ORDERED=()
    for slow in $SLOW_UNITS; do
        for name in "$@"; do
            [ "${name##*/}" != "$slow" ] || ORDERED+=("$slow")
        done
    done
    for name in "$@"; do
        [[ " $SLOW_UNITS " = *" ${name##*/} "* ]] || ORDERED+=("${name##*/}")
    done
}

# run_units MOST NAME...: all that are to run of one build, in one run of meson test, MOST programs at a time.
run_units() {
    local dir name what why counts most=$1 times
    shift
    slow_first "$@"
    dir=$(build_of "$1")
    name=${1%/*}/meson
    times=$(patience "$1")
    under "$1"
    rm -f "$dir/meson-logs/testlog.json"
    # How it ends is how its tests end, which it writes down.
    run_logged $((UNITS_TIMEOUT * PATIENCE)) "$name" env CK_TIMEOUT_MULTIPLIER="$times" ${UNDER[@]+"${UNDER[@]}"} \
        meson test -C "$dir" --no-rebuild --num-processes "$most" --timeout-multiplier "$times" "${ORDERED[@]}" || true
    while IFS=$'\t' read -r what name why counts; do
        # shellcheck disable=SC2086 # words
        "$what" "$name" "$why" $counts
    done < <(test/harness/unit_results.py "$dir/meson-logs/testlog.json" "$(log_of "$name")" "$LOGS" "$@")
}

# how_it_ended NAME START CODE: of a test of which the exit code tells.
how_it_ended() {
    local time
    time="$(seconds_since "$2") s"
    case $3 in
        0) passed "$1" "$time" ;;
        77) skipped "$1" "$(sed -n 's/^skip: //p' "$(log_of "$1")" | tail -n 1)" ;;
        *) failed "$1" "$time, code $3" ;;
    esac
}

run_cluster() {
    local name=$1 start=$EPOCHREALTIME code=0 seconds mount_options=
    seconds=$(($(its_timeout "$name") * $(patience "$name")))
    under "$name"
    [[ $name != cached/* ]] || mount_options=--no-passthrough
    run_logged "$seconds" "$name" env EDDY_BUILD="$(build_of "$name")" EDDY_TEST_DIRS_FILE="$DIRS_FILE" \
        EDDY_TEST_OPTIONS="$mount_options" ${UNDER[@]+"${UNDER[@]}"} bash "$PWD/$(script_of "$name")" || code=$?
    clear_work_dirs
    how_it_ended "$name" "$start" "$code"
}

run_model() {
    local name=$1 start=$EPOCHREALTIME code=0
    run_logged $((MODEL_TIMEOUT * PATIENCE)) "$name" test/model/run "${name##*/}" || code=$?
    how_it_ended "$name" "$start" "$code"
}

# run_fuzz NAME SECONDS: each fuzzer begins with the seeds that there are for it, for messages those that the unit test
# compares with, and keeps what it finds in the build directory.
run_fuzz() {
    local name=$1 seconds=$2 start=$EPOCHREALTIME code=0 found seeds
    found=$(build_of "$name")/corpus/${name##*/}
    mkdir -p "$found"
    seeds=test/fuzz/corpus/${name##*/}
    [ "${name##*/}" != message ] || seeds=test/golden
    [ -d "$seeds" ] || seeds=
    under "$name"
    run_logged $((seconds + 120)) "$name" "${UNDER[@]}" "$(build_of "$name")/test/fuzz_${name##*/}" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$LOGS/" "$found" ${seeds:+"$seeds"} || code=$?
    how_it_ended "$name" "$start" "$code"
}
