#!/usr/bin/env bash
# Another node removes or replaces files whose claimant is dead: by unlink, by a rename over them, after a rename, below a
# directory that was moved, and while they are open there. When the claimant is back, or its cache is recovered, it drops what
# it has of them: no file is named as not flushed, and none is put beside a new one. What somebody removes on the PFS, past
# the session, stays in the cache and is named.
# timeout: 150
. "$(dirname "$0")/lib.sh"
requires fuse

files="removed replaced renamed moved/below open-a-while open-until-later stays outside"
start_node b "$PFS" --flush-wait 3600
# As mv and rm, but these look at the file first.
# shellcheck disable=SC2016 # perl's variables
move() { perl -e 'rename($ARGV[0], $ARGV[1]) or die "$!\n"' "$1" "$2"; }
round() { # DIR NODE: its files are nowhere else; it dies; b removes them
    mkdir -p "$W/mnt-$2/$1/moved"
    for file in $files; do
        echo "$file" >"$W/mnt-$2/$1/$file"
    done
    exec 8<"$W/mnt-b/$1/open-a-while" 9<"$W/mnt-b/$1/open-until-later"
    check_equal "before" "$(cat <&9)" open-until-later
    crash_node "$2"
    away() { ! timeout 60 cat "$W/mnt-b/$1/stays" >"$W/said" 2>&1; }
    wait_for 60 away "$1" || fail "the claimant is dead, and its file can be read"
    (
        cd "$W/mnt-b/$1"
        for gone in removed open-a-while open-until-later; do
            unlink "$gone"
        done
        echo new >new
        move new replaced
        move renamed by-another-name
        unlink by-another-name
        move moved elsewhere
        unlink elsewhere/below
    )
    rm "$PFS/$1/outside"
    exec 8<&-
}
has() { # DIR: what must be on the PFS then
    eddy flush "$W/mnt-b"
    check_equal "names on the PFS" "$(cd "$PFS/$1" && find . -type f | sort | tr '\n' ' ')" "./replaced ./stays "
    check_equal "bytes on the PFS" "$(cat "$PFS/$1/replaced" "$PFS/$1/stays")" "new
stays"
}
named() { # NAME...: what eddy flush of a says that is not on the PFS
    local code=0
    eddy flush "$W/mnt-a" >"$W/flush.out" 2>&1 || code=$?
    [ "$code" = 3 ] && [ "$(sed -n 's/: .*, dirty for .*//p' "$W/flush.out" | sort)" = "$(printf '%s\n' "$@")" ]
}

start_node a "$PFS" --flush-wait 3600 --wait-nodes 2
round back a
start_node a "$PFS" --flush-wait 3600 9<&- # the daemon must not have it open
named back/open-until-later back/outside || fail "not flushed: $(cat "$W/flush.out")"
check_equal "read by what is open" "$(timeout 60 cat "/proc/self/fd/9" 9<&9)" open-until-later
exec 9<&-
wait_for 60 named back/outside || fail "not flushed: $(cat "$W/flush.out")"
has back
stop_node a 3 # what was removed past the session

# The same by eddy recover.
start_node c "$PFS" --flush-wait 3600
round recovered c
exec 9<&-
code=0
eddy recover "$W/cache-c" >"$W/recover.out" 2>&1 || code=$?
check_equal "code of eddy recover" "$code" 3
check_equal "what it names" "$(grep -o 'recovered/[a-z-]*' "$W/recover.out" | sort -u)" recovered/outside
has recovered
