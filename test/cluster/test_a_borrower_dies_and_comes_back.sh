#!/usr/bin/env bash
# Three nodes write one file. One that has borrowed parts of it is killed: the others go on in their own parts, and what it
# had acknowledged is there when it is back. The same with the claimant, and with both.
# timeout: 300
# sanitize
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ranks.sh"
requires fuse cmd python3 cmd jq
start_abc

start_ranks shared "a=$W/mnt-a" "b=$W/mnt-b" "c=$W/mnt-c" "pfs=$PFS"
# Node a has pieces from 0 on, b from 100, c from 200.
all() {
    local node
    for node in a b c; do
        rank "$1" $node "${@:2}"
    done
}
each_writes() { # FIRST COUNT SEED
    rank write a "$1" "$2" "$3"
    rank write b $((100 + $1)) "$2" "$3"
    rank write c $((200 + $1)) "$2" "$3"
}
all_check() { # FIRST COUNT SEED
    local node
    for node in a b c; do
        rank check $node "$1" "$2" "$3"
        rank check $node $((100 + $1)) "$2" "$3"
        rank check $node $((200 + $1)) "$2" "$3"
    done
}

all open
each_writes 0 20 1
all_check 0 20 1

echo "a borrower dies"
crash_node b
rank write a 20 10 1
rank write c 220 10 1
rank check a 0 30 1
rank check c 200 30 1
rank check a 200 30 1
fusermount3 -uz "$W/mnt-b"
start_one b
rank open b
rank write b 120 10 1
all_check 0 30 1

echo "the claimant dies"
crash_node a
rank write b 125 5 2 # its own since before
rank write c 225 5 2
rank check b 125 5 2
rank check c 225 5 2
fusermount3 -uz "$W/mnt-a"
start_one a
rank open a
rank write a 25 5 2
all_check 0 25 1
all_check 25 5 2

echo "both die"
crash_node a
crash_node b
rank write c 225 5 3
fusermount3 -uz "$W/mnt-a"
fusermount3 -uz "$W/mnt-b"
start_one a
start_one b
rank open a
rank open b
rank write a 25 5 3
rank write b 125 5 3
all_check 0 25 1
all_check 25 5 3

echo "all is on the PFS in the end"
all close
for node in a b c; do
    eddy flush "$W/mnt-$node"
done
rank open pfs
for at in 0 100 200; do
    rank check pfs $at 25 1
    rank check pfs $((at + 25)) 5 3
done
rank check pfs 30 70 0
stop_node a
stop_node b
stop_node c
