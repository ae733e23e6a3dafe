#!/usr/bin/env bash
# What is hinted is fetched before it is read, in the order of the hints, as far as the cache has room, and each file once:
# forward and backward over twice the cache. A hint ends with its process, and what was read makes room.
# timeout: 120
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
M=$W/mnt-a
FILES=32
MIB=1048576

hints_are() { # FIELD VALUE
    [ "$(status_of a ".hints.$1")" = "$2" ]
}

hints_are_not() {
    ! hints_are "$@"
}

read_bytes() { # PLACE
    status_of a ".reads.$1_bytes"
}

for i in $(seq -w $FILES); do head -c 4M /dev/urandom >"$PFS/file$i"; done
start_faultfs a --bandwidth 200000000
start_node a "$W/pfs-a" --cache-size 80M

# run WHAT NAME...: the files are hinted and then read in this order; each is waited for, so that it must come from the store.
run() {
    local what=$1 left file
    shift
    in_background "$EDDY_BUILD/eddy" hint "${@/#/$M/}"
    local hint=$!
    left=$#
    for file in "$@"; do
        wait_for 20 hints_are_not ahead 0 || fail "$what: nothing is ahead before $file: $(status_of a .hints)"
        wait_for 20 next_is_here || fail "$what: $file does not come: $(status_of a .hints)"
        cmp "$M/$file" "$PFS/$file" || fail "$what: $file has wrong bytes"
        left=$((left - 1))
        wait_for 20 hints_left "$left" || fail "$what: $file is not consumed: $(status_of a .hints)"
    done
    wait "$hint" || fail "$what: eddy hint ended with $?"
    wait_for 20 hints_are queues 0 || fail "$what: the queue has not ended"
}

# All hints that are admitted are ahead: so the next one is.
next_is_here() {
    status_of a .hints | jq -e '.admitted > 0 and .admitted == .ahead' >/dev/null
}

hints_left() {
    [ $(($(status_of a .counters.hints) - $(status_of a .counters.hints_consumed))) = "$1" ]
}

names=()
for i in $(seq -w $FILES); do names+=("file$i"); done
run forward "${names[@]}"
check_equal "bytes read from the PFS by the reader" "$(read_bytes pfs)" 0
check_equal "bytes read from the store" "$(read_bytes local)" $((FILES * 4 * MIB))
check_equal "bytes read from the PFS by anybody" "$(status_of a .counters.pfs_read_bytes)" $((FILES * 4 * MIB))

# What was read last is here; of the rest, each file comes once.
before=$(status_of a .counters.pfs_read_bytes)
backward=()
for name in "${names[@]}"; do backward=("$name" "${backward[@]}"); done
run backward "${backward[@]}"
check_equal "bytes read from the PFS by the reader, backward" "$(read_bytes pfs)" 0
came=$(($(status_of a .counters.pfs_read_bytes) - before))
[ "$came" -le $(((FILES - 12) * 4 * MIB)) ] || fail "backward: $came bytes came from the PFS"

# --- A dead process's hints end ---

in_background "$EDDY_BUILD/eddy" hint "${names[@]/#/$M/}"
hint=$!
wait_for 20 hints_are_not admitted 0 || fail "nothing is admitted"
kill -KILL "$hint"
wait "$hint" || true
wait_for 20 hints_are queues 0 || fail "the queue outlives its process"
check_equal "hints of nobody" "$(status_of a '.hints | [.hints, .admitted, .ahead_bytes, .memory_bytes] | tostring')" "[0,0,0,0]"

stop_node a
