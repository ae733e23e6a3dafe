# shellcheck shell=bash
#
# Nodes without mounts (protonode.c), for tests of views, claims and locks. After lib.sh.
#
#   up a b c; ask a open-writer file; crash b; up b
#
# All are on this host; the PFS is $PFS, a plain directory.

declare -A P_PID P_FD P_OUT P_RUNS
PROTO_OPTIONS=()
PROTO_ENTER=()

# start_protonode NAME: in the background; the same name again has the same cache directory. Options
# for it are in PROTO_OPTIONS, what runs it elsewhere (nsenter -n) in PROTO_ENTER, and the session directory is PROTO_SESSIONS.
start_protonode() {
    local name=$1
    P_RUNS[$name]=$((${P_RUNS[$name]-0} + 1))
    P_OUT[$name]=$W/$name.${P_RUNS[$name]}.out
    rm -f "$W/in-$name"
    mkfifo "$W/in-$name"
    # Open both ways: it blocks nobody, and does not end before we say so.
    # shellcheck disable=SC1083,SC2086,SC2093 # an element that is to get the number
    exec {P_FD[$name]}<>"$W/in-$name"
    mkdir -p "${PROTO_SESSIONS:=$W/sessions}"
    ${PROTO_ENTER[@]+"${PROTO_ENTER[@]}"} "$EDDY_BUILD/test/protonode" --pfs "$PFS" --session-dir "$PROTO_SESSIONS" --cache-dir "$W/cache-$name" \
        --node "$name" "${PROTO_OPTIONS[@]}" <"$W/in-$name" >"${P_OUT[$name]}" 2>>"$W/$name.log" &
    P_PID[$name]=$!
    record_process "$W" "$!"
}

ready_or_ended() {
    grep -q '^ready$' "${P_OUT[$1]}" || ! kill -0 "${P_PID[$1]}" 2>/dev/null
}

# up NAME...: all at once, and waits until each has joined.
up() {
    local name
    for name in "$@"; do
        start_protonode "$name"
    done
    for name in "$@"; do
        wait_for 60 ready_or_ended "$name" || fail "$name does not join"
        grep -q '^ready$' "${P_OUT[$name]}" || fail "$name does not start"
    done
}

gone() {
    wait "${P_PID[$1]}" 2>/dev/null || true
    # shellcheck disable=SC1083,SC2086,SC2093
    exec {P_FD[$1]}>&-
    unset "P_PID[$1]"
}

# crash NAME...: kill -9, all at once.
crash() {
    local name
    for name in "$@"; do # none sees that another one of them is gone
        pause "${P_PID[$name]}"
    done
    for name in "$@"; do
        kill -KILL "${P_PID[$name]}"
    done
    for name in "$@"; do
        gone "$name"
    done
}

# quit NAME: ends it; it must end well.
quit() {
    local code=0
    say "$1" quit
    wait "${P_PID[$1]}" || code=$?
    check_equal "exit code of $1" "$code" 0
    gone "$1"
}

# leave NAME...: all at once, and they end.
leave() {
    local name
    declare -A tags
    for name in "$@"; do
        say "$name" leave
        tags[$name]=$TAG
    done
    for name in "$@"; do
        check_equal "leave of $name" "$(answer "$name" "${tags[$name]}")" OK
    done
    for name in "$@"; do
        quit "$name"
    done
}

# say NAME COMMAND...: the answer comes under $TAG.
say() {
    local name=$1
    shift
    TAG=t${EPOCHREALTIME/[.,]/}x$RANDOM
    echo "$TAG $*" >&"${P_FD[$name]}"
}

has_answered_tag() {
    grep -q "^$2 .*@" "${P_OUT[$1]}"
}

# answer NAME TAG: waits for it, and prints it without the times.
answer() {
    wait_for 60 has_answered_tag "$1" "$2" || fail "$1 does not answer $2"
    sed -n "s/^$2 \(.*\) @[0-9-]*\$/\1/p" "${P_OUT[$1]}"
}

# ask NAME COMMAND...
ask() {
    say "$@"
    answer "$1" "$TAG"
}

# expect ANSWER NAME COMMAND...: a shell pattern.
expect() {
    local got expected=$1
    shift
    got=$(ask "$@")
    # shellcheck disable=SC2053 # a pattern
    [[ $got == $expected ]] || fail "$*: got $got, expected $expected"
}

answers() {
    local got expected=$1
    shift
    got=$(ask "$@")
    # shellcheck disable=SC2053 # a pattern
    [[ $got == $expected ]]
}

# becomes SECONDS ANSWER NAME COMMAND...: asks until that is the answer.
becomes() {
    local seconds=$1
    shift
    wait_for "$seconds" answers "$@" || fail "${*:2}: got $(ask "${@:2}"), expected $1 within $seconds s"
}

sorted() {
    tr ',' '\n' <<<"$1" | sort | paste -sd, -
}

# The names in the view of NAME, sorted: members_seen_by NAME, absents_seen_by NAME
members_seen_by() {
    local view
    view=$(ask "$1" view)
    # shellcheck disable=SC2086 # words
    set -- $view
    sorted "${2-none}"
}

absents_seen_by() {
    local view
    view=$(ask "$1" view)
    # shellcheck disable=SC2086 # words
    set -- $view
    sorted "${4-none}"
}

sees() {
    [ "$(members_seen_by "$1")" = "$2" ] && [ "$(absents_seen_by "$1")" = "$3" ]
}

# wait_for_view MEMBERS ABSENTS NAME...: both sorted, with commas; "-" for nobody.
wait_for_view() {
    local members=$1 absents=$2 name
    shift 2
    for name in "$@"; do
        wait_for 40 sees "$name" "$members" "$absents" ||
            fail "$name sees $(ask "$name" view), expected members $members absent $absents"
    done
}

# file_at NAME HOME [NEXT]: a file of which HOME is the home (and NEXT the next) in the view of NAME. Each call
# gives the same one; SKIP=1 the one after it; none of those named in NOT.
file_at() {
    local name=$1 home=$2 next=${3-*} i skip=${SKIP-0}
    for i in $(seq 400); do
        [[ " ${NOT-} " != *" f$i "* ]] || continue
        [ -e "$PFS/f$i" ] || echo "$i" >"$PFS/f$i"
        if answers "$home $next" "$name" ring "f$i"; then
            [ "$skip" -gt 0 ] || { echo "f$i"; return; }
            skip=$((skip - 1))
        fi
    done
    fail "no file has home $home and next $next"
}
