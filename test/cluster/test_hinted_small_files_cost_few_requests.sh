#!/usr/bin/env bash
# How many requests reach the PFS for each small file that is hinted, and that is staged, four directories deep: the directories are looked
# at once for all of them. A directory that is moved meanwhile, on this node or another one, leads to the right files.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
FILES=100
for node in a b; do
    start_faultfs $node
    # The session's own files are not to be counted.
    start_node $node "$W/pfs-$node" --session-dir "$W/session" --flush-wait 3600
done

make_files() { # DIRECTORY
    mkdir -p "$PFS/$1"
    for i in $(seq $FILES); do
        head -c 5000 /dev/urandom >"$PFS/$1/$i"
    done
}
requests() { # of node a, so far
    stat_of a lookup >/dev/null
    jq 'del(.asked, .read_bytes, .write_bytes, .copy_bytes, .files) | add' "$W/pfs-a.json"
}
same_twice() {
    BEFORE=$(requests)
    cp "$W/pfs-a.json" "$W/before.json"
    sleep 0.2
    [ "$(requests)" = "$BEFORE" ]
}
settle() { # what is open is closed, and what was looked at is known no longer
    sleep 1.2
    wait_for 10 same_twice || fail "the PFS is asked without end"
}
each() { # WHAT MOST BEFORE: how many of them since then, for each file, in hundredths
    local n kinds
    cp "$W/before.json" "$W/was.json"
    settle
    n=$((($(requests) - $3) * 100 / FILES))
    kinds=$(jq -n --slurpfile a "$W/was.json" --slurpfile b "$W/pfs-a.json" -r '[$b[0] | to_entries[] | select(.value | type == "number")
        | {key, n: (.value - $a[0][.key])} | select(.n > 5 and .n < 10000 and .key != "asked") | "\(.key) \(.n)"] | join(", ")')
    echo "$1: $n hundredths: $kinds"
    [ "$n" -le "$2" ] || TOO_MANY+="$1: $n hundredths, not $2; "
}
hint() { # DIRECTORY [OPTION...]: until all are ahead
    (cd "$W/mnt-a/$1" && exec "$EDDY_BUILD/eddy" hint $(seq $FILES)) &
    HINT=$!
    record_process "$W" $HINT
    wait_for 20 all_ahead || fail "of $1 only $(status_of a .hints.ahead) are ahead"
}
all_ahead() {
    [ "$(status_of a .hints.ahead)" -ge $FILES ]
}
end_hint() {
    kill $HINT
    wait $HINT 2>/dev/null || true
}

TOO_MANY=
for dir in hinted here staged moved/x/y/z other/x/y/z; do
    make_files one/two/three/$dir
done
# b brings nothing: each chunk of these is read by who owns it.
stop_node b
settle

hint one/two/three/hinted
each "hinted, not here" "${HINTED:-1300}" "$BEFORE"
end_hint
settle
hint one/two/three/hinted
each "hinted, here" "${HERE:-400}" "$BEFORE"
end_hint

settle
"$EDDY_BUILD/eddy" stage --here --wait "$W/mnt-a/one/two/three/staged"
each "staged, with the walk" "${STAGED:-1320}" "$BEFORE"
settle
"$EDDY_BUILD/eddy" stage --here --wait "$W/mnt-a/one/two/three/staged"
each "staged again" "${AGAIN:-400}" "$BEFORE"
[ -z "$TOO_MANY" ] || fail "requests: $TOO_MANY"
diff -r "$W/mnt-a/one/two/three/staged" "$PFS/one/two/three/staged" || fail "a has wrong bytes"

# --- Directories that move ---

start_node b "$W/pfs-b" --session-dir "$W/session" --flush-wait 3600
here() { # BASE: bytes of it that are here
    (cd "$W/mnt-a" && "$EDDY_BUILD/eddy" stage --check --here --json "$1") | jq .here
}
for mover in a b; do
    for round in 1 2 3; do
        hint one/two/three/moved/x/y/z
        mv "$W/mnt-$mover/one/two/three/moved" "$W/mnt-$mover/one/two/three/gone"
        mv "$W/mnt-$mover/one/two/three/other" "$W/mnt-$mover/one/two/three/moved"
        mv "$W/mnt-$mover/one/two/three/gone" "$W/mnt-$mover/one/two/three/other"
        end_hint
        [ $mover = a ] || sleep 1.1 # what another node renames is seen within --attr-timeout
        "$EDDY_BUILD/eddy" stage --here --wait "$W/mnt-a/one/two/three/moved" || fail "it is not staged after a move on $mover ($round)"
        check_equal "bytes that are here after a move on $mover" "$(here one/two/three/moved)" $((FILES * 5000))
        diff -rq "$W/mnt-a/one/two/three/moved" "$PFS/one/two/three/moved" >/dev/null || fail "wrong bytes after a move on $mover"
        "$EDDY_BUILD/eddy" unstage "$W/mnt-a/one/two/three/moved"
    done
done
stop_node a
stop_node b
