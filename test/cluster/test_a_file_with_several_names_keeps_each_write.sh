#!/usr/bin/env bash
# A file has two names in two directories, and was written by one of them, not flushed.  This name is removed or
# replaced, by the node that wrote or by another one, right after a restart that knows no other name, or with a kill
# right after the removal: the other name has all that was written, and nothing is written beside.
# timeout: 120
# both
. "$(dirname "$0")/lib.sh"
requires fuse
start() { start_node "$1" "$PFS" --flush end; }

# restart: before the removal; kill: right after it
names() {
    local remover kind when
    for remover in a b; do
        for kind in rm mv; do
            for when in restart kill; do
                echo "$remover-$kind-$when"
            done
        done
    done
}

take_away() { # CASE
    local remover=${1%%-*} d
    d=$W/mnt-$remover/$1/d
    case $1 in
        *-rm-*) rm "$d/f" ;;
        *-mv-*)
            echo new >"$d/new"
            mv "$d/new" "$d/f"
            ;;
    esac
}

for case in $(names); do
    mkdir -p "$PFS/$case/d" "$PFS/$case/e/x"
    echo old >"$PFS/$case/d/f"
    ln "$PFS/$case/d/f" "$PFS/$case/e/x/g"
done
start a
start b
for case in $(names); do
    echo written >>"$W/mnt-a/$case/d/f"
done
kill_node a
start a
for case in $(names | grep restart); do
    take_away "$case"
done
for case in $(names | grep kill); do
    take_away "$case"
    kill_node a
    start a
done
for case in $(names); do
    check_equal "$case, the other name at b" "$(cat "$W/mnt-b/$case/e/x/g")" $'old\nwritten'
done
stop_node a
stop_node b
for case in $(names); do
    check_equal "$case, the other name" "$(cat "$PFS/$case/e/x/g")" $'old\nwritten'
    case $case in
        *-rm-*) check_equal "$case" "$(ls "$PFS/$case/d")" "" ;;
        *-mv-*) check_equal "$case" "$(ls "$PFS/$case/d") $(cat "$PFS/$case/d/f")" "f new" ;;
    esac
done

# The other name is known: nothing is flushed for that.
start a
start b
for case in $(names); do
    echo again >>"$W/mnt-a/$case/e/x/g"
    ln "$W/mnt-a/$case/e/x/g" "$W/mnt-a/$case/e/third"
    rm "$W/mnt-a/$case/e/x/g"
done
check_equal "flushed" "$(status_of a .flush.flushed_bytes)" 0
kill_node a
start a
stop_node a
stop_node b
for case in $(names); do
    check_equal "$case, the third name" "$(cat "$PFS/$case/e/third")" $'old\nwritten\nagain'
done
