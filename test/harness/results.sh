# shellcheck shell=bash
#
# What test/run prints and counts of its tests. Lanes run at the same time, so each line is
# printed whole, and the counts are in a file, in lines "passed N", "failed N", "skipped N".

log_of() {
    echo "$LOGS/${1//\//_}.log"
}

# A time since $1, both as EPOCHREALTIME, in seconds.
seconds_since() {
    local tenths=$(((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}) / 100000))
    echo "$((tenths / 10)).$((tenths % 10))"
}

# Prints its standard input in one piece, whatever other lanes print.
print_whole() {
    flock "$LOGS/printing" cat
}

# count passed|failed|skipped N
count() {
    echo "$1 $2" >>"$COUNTS"
}

counted() {
    awk -v what="$1" '$1 == what { sum += $2 } END { print sum + 0 }' "$COUNTS"
}

# passed NAME TIME [CHECKS]
passed() {
    echo "ok $1 ($2)" | print_whole
    count passed "${3:-1}"
}

# failed NAME TIME [CHECKS_FAILED [CHECKS_PASSED]]
failed() {
    {
        echo "not ok $1 ($2)"
        tail -n 60 "$(log_of "$1")" | sed 's/^/    /'
    } | print_whole
    count failed "${3:-1}"
    count passed "${4:-0}"
}

# skipped NAME WHY
skipped() {
    echo "skip $1: $2" | print_whole
    count skipped 1
}

closing_line() {
    echo "$(counted passed) passed, $(counted failed) failed, $(counted skipped) skipped"
}

finish() {
    closing_line
    [ "$(counted failed)" = 0 ] || exit 1
    exit 0
}
