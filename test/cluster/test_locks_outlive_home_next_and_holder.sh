#!/usr/bin/env bash
# A lock's home and next die at once, so that only its holder speaks of it; then the holder dies, too, and home and next come
# back with nothing. Nobody gets the lock until the holder is back.
# timeout: 240
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=protonodes.sh
. "$(dirname "$0")/protonodes.sh"

up a b c d
wait_for_view a,b,c,d - a b c d
f=$(file_at d a b)
becomes 20 OK c lock "$f" fcntl w 0 9 1

crash a b
wait_for_view c,d a,b c d
expect EIO d lock "$f" fcntl w 50 59 1 # those who are absent may hold any
expect OK c unlock "$f" fcntl 5 9 1    # and what is known of it changes

crash c
wait_for_view d a,b,c d
up a b
wait_for_view a,b,d c a b d
for node in a b d; do
    expect EIO "$node" lock "$f" fcntl r 0 0 1
done
expect OK d lock "$f" fcntl w 5 9 1 # of the rest all is known now

up c
wait_for_view a,b,c,d - a b c d
becomes 40 OK a lock "$f" fcntl w 0 4 1
quit a
crash b c d
