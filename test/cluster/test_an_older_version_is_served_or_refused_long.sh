#!/usr/bin/env bash
# Upgrades: builds of older versions, from the repository's history, meet this one in a session and at a cache directory with
# unflushed data. With the same protocol the nodes work together; with another one the node that comes is refused in words that
# say what to do, and the session goes on. With the same cache format the data is read and flushed; with another one the start is
# refused, nothing is changed, and the older version's eddy recover flushes it. docs/upgrade.md tells that to users.
# timeout: 1800
# long
# busy
. "$(dirname "$0")/lib.sh"
requires fuse cmd git
TREE=$(realpath "$(dirname "$SCRIPT")/../..")

# One with the protocol and the format of this one, one with another protocol, one with another format, too.
OLDER=${OLDER:-541366c d654ada 0703dff}

# build_older COMMIT: its programs come to $W/COMMIT/build, or are in $OLDER_BUILDS/COMMIT/build
build_older() {
    local tree=${OLDER_BUILDS:-$W}/$1 without_tests=-Dtests=disabled
    [ ! -x "$tree/build/eddyfs" ] || return 0
    mkdir -p "$tree"
    git -C "$TREE" archive "$1" | tar -C "$tree" -xf -
    cp -r "$TREE/subprojects/packagefiles" "$tree/subprojects/" 2>/dev/null || true
    grep -q "option('tests', type: 'feature'" "$tree"/meson* || without_tests=-Dtests=false
    { meson setup "$tree/build" "$tree" "$without_tests" && ninja -C "$tree/build" eddyfs eddy; } >"$W/build.out" 2>&1 ||
        fail "$1 does not build"
}

# The protocol or cache format of a version, as its documents say
protocol_of() {
    sed -n -E 's/^.* version \| major in the high byte.*0x0?([0-9a-f]+)[0-9a-f]{2} is.*/\1/p' "$1/docs/wire.md" | head -n 1
}
format_of() {
    sed -n -E 's/^ *format +"eddyfs-cache ([0-9]+)".*/\1/p' "$1/docs/store.md" | head -n 1
}

# begin VERSION NODE [OPTION...]: in the foreground; returns 1 if it does not come to be mounted
begin() {
    local bin=$1 node=$2
    shift 2
    mkdir -p "$W/mnt-$node"
    record_mount "$W" "$W/mnt-$node"
    in_background "$bin/eddyfs" -f --node "$node" --listen 127.0.0.1 --cache-dir "$W/cache-$node" --session-dir "$PFS/.session" \
        --flush end --log "$W/$node.log" "$@" "$PFS" "$W/mnt-$node" >"$W/$node.out" 2>&1
    PID_OF=$!
    up_or_ended() {
        is_mounted "$W/mnt-$node" || ! kill -0 "$PID_OF" 2>/dev/null
    }
    wait_for 60 up_or_ended || fail "$node neither starts nor ends"
    is_mounted "$W/mnt-$node" && wait_for 10 stat "$W/mnt-$node" >/dev/null
}
is_mounted() {
    grep -q " $1 fuse.eddyfs " /proc/mounts
}
end() { # VERSION NODE
    "$1/eddy" umount "$W/mnt-$2" || fail "$2: eddy umount ended with $?"
}
said() {
    cat "$W/$1.out" "$W/$1.log" 2>/dev/null || true
}
# has_said NODE PATTERN: all of it is read, so that cat is not stopped
has_said() {
    said "$1" | grep -E "$2" >/dev/null
}

# together FIRST SECOND WHAT: the second comes into the session of the first
together() {
    local first=$1 second=$2 what=$3
    rm -rf "$W"/cache-* "$PFS"/.session "$PFS"/from-*
    begin "$first" a --session s || fail "$what: the first node does not start: $(said a)"
    echo one >"$W/mnt-a/from-a"
    if [ "$EXPECTED" = served ]; then
        begin "$second" b --session s || fail "$what: is refused: $(said b)"
        check_equal "$what: b reads" "$(cat "$W/mnt-b/from-a")" one
        echo two >"$W/mnt-b/from-b"
        check_equal "$what: a reads" "$(cat "$W/mnt-a/from-b")" two
        end "$second" b
    else
        ! begin "$second" b --session s || fail "$what: is not refused"
        has_said b 'protocol.*(use one version on all nodes|install the same eddyfs)' || fail "$what: not said why: $(said b)"
        echo two >"$W/mnt-a/from-b"
    fi
    end "$first" a
    check_equal "$what: on the PFS" "$(cat "$PFS/from-a" "$PFS/from-b" | tr '\n' ' ')" "one two "
    echo "  $what: $EXPECTED"
}

# leave_dirty VERSION: a killed daemon's unflushed file, in cache-d
leave_dirty() {
    rm -rf "$W"/cache-d "$PFS/.session" "$PFS/dirty"
    begin "$1" d --session of-d || fail "d does not start: $(said d)"
    head -c 3000000 /dev/urandom >"$W/bytes"
    cp "$W/bytes" "$W/mnt-d/dirty"
    kill -KILL "$PID_OF"
    wait "$PID_OF" 2>/dev/null || true
    "$1/eddy" umount "$W/mnt-d" >/dev/null 2>&1 || true
    ! is_mounted "$W/mnt-d" || umount -l "$W/mnt-d"
    [ "$(stat -c %s "$PFS/dirty")" != 3000000 ] || ! cmp -s "$W/bytes" "$PFS/dirty" || fail "it is flushed already"
}

# taken_up BEFORE AFTER WHAT: what BEFORE left dirty meets AFTER, in another session, as a next job has
taken_up() {
    local before=$1 after=$2 what=$3
    leave_dirty "$before"
    if [ "$EXPECTED" = read ]; then
        begin "$after" d --session next || fail "$what: does not start: $(said d)"
        cmp "$W/bytes" "$W/mnt-d/dirty" || fail "$what: other bytes"
        end "$after" d
    else
        find "$W/cache-d" -type f ! -name '*.log' -exec cksum {} + | sort >"$W/before"
        ! begin "$after" d --session next || fail "$what: is not refused"
        has_said d "has format $(format_of "$BEFORE_TREE").*flush it with the eddyfs that made it" || fail "$what: not said what to do: $(said d)"
        "$after/eddy" recover "$W/cache-d" >"$W/recover.out" 2>&1 && fail "$what: is recovered by the other version"
        find "$W/cache-d" -type f ! -name '*.log' -exec cksum {} + | sort >"$W/after"
        check_same "$W/before" "$W/after"
        "$before/eddy" recover "$W/cache-d" >"$W/recover.out" 2>&1 || fail "$what: the version that made it does not recover it: $(cat "$W/recover.out")"
    fi
    cmp "$W/bytes" "$PFS/dirty" || fail "$what: other bytes on the PFS"
    echo "  $what: $EXPECTED"
}

new_protocol=$(protocol_of "$TREE")
new_format=$(format_of "$TREE")
[ -n "$new_protocol" ] && [ -n "$new_format" ] || fail "docs/wire.md and docs/store.md do not tell versions"
git -C "$TREE" cat-file -e "${OLDER%% *}" 2>/dev/null || skip "needs the repository's history"
for commit in $OLDER; do
    build_older "$commit"
    old_tree=${OLDER_BUILDS:-$W}/$commit
    old=$old_tree/build
    echo "$commit: protocol $(protocol_of "$old_tree"), format $(format_of "$old_tree"); this one: $new_protocol, $new_format"
    EXPECTED=refused
    [ "$(protocol_of "$old_tree")" != "$new_protocol" ] || EXPECTED=served
    together "$old" "$EDDY_BUILD" "a new node in an old session"
    together "$EDDY_BUILD" "$old" "an old node in a new session"
    EXPECTED=refused
    [ "$(format_of "$old_tree")" != "$new_format" ] || EXPECTED="read"
    BEFORE_TREE=$old_tree taken_up "$old" "$EDDY_BUILD" "old unflushed data, and this version"
    BEFORE_TREE=$TREE taken_up "$EDDY_BUILD" "$old" "new unflushed data, and the old version"
done
