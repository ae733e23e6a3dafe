#!/usr/bin/env bash
# fcntl and flock locks of several nodes on one file: conflicts, waiting, cancelling, splitting, and nodes that are killed.
# timeout: 240
# sanitize-long
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=protonodes.sh
. "$(dirname "$0")/protonodes.sh"

step() {
    echo "--- $* ($SECONDS s)"
}

# The lock command of that tag waits at the home: a test of what it wants shows the holder, and it has no answer.
waits() {
    ! has_answered_tag "$1" "$2"
}

up a b c
wait_for_view a,b,c - a b c
f=$(file_at a b c)

step "conflicts"
becomes 20 OK a lock "$f" fcntl w 0 9 1
expect EAGAIN b lock "$f" fcntl w 5 5 1
expect EAGAIN c lock "$f" fcntl r 9 20 1
expect OK c lock "$f" fcntl r 10 20 1
expect OK b lock "$f" fcntl r 15 30 1
expect EAGAIN a lock "$f" fcntl w 20 20 1
expect 'w 0 9' c test "$f" fcntl r 3 3 1
expect 'free' a test "$f" fcntl w 0 9 1
expect 'r *' a test "$f" fcntl w 30 30 1
expect OK b lock "$f" flock w 0 max 1 # another kind: no conflict
expect EAGAIN c lock "$f" flock r 0 max 1

step "another owner of the same node conflicts, too"
expect EAGAIN a lock "$f" fcntl w 5 5 2

step "split and joined"
expect OK a unlock "$f" fcntl 3 5 1
expect OK b lock "$f" fcntl w 3 5 7
expect EAGAIN b lock "$f" fcntl w 2 2 7
expect EAGAIN b lock "$f" fcntl w 6 6 7
expect OK b unlock "$f" fcntl 3 5 7
expect OK a lock "$f" fcntl w 3 5 1
expect 'w 0 9' b test "$f" fcntl w 4 4 7
expect OK a lock "$f" fcntl r 4 4 1 # a part becomes a read lock
expect OK b lock "$f" fcntl r 4 4 7
expect EAGAIN b lock "$f" fcntl r 5 5 7
expect EAGAIN a lock "$f" fcntl w 4 4 1
expect OK b drop "$f" fcntl 7
expect OK a lock "$f" fcntl w 4 4 1

step "who waits gets it in the order of asking"
say b lock "$f" fcntl w 0 0 1 wait; first=$TAG
becomes 10 'w 0 9' b test "$f" fcntl w 0 0 1 # a message after it: it is at the home
say c lock "$f" fcntl w 0 0 1 wait; second=$TAG
becomes 10 'w 0 9' c test "$f" fcntl w 0 0 1
waits b "$first" || fail "b has the lock that a holds"
waits c "$second" || fail "c has the lock that a holds"
expect OK a unlock "$f" fcntl 0 0 1
check_equal "lock of b" "$(answer b "$first")" OK
expect 'w 0 0' c test "$f" fcntl w 0 0 1
waits c "$second" || fail "c has the lock that b holds"
expect OK b unlock "$f" fcntl 0 0 1
check_equal "lock of c" "$(answer c "$second")" OK
expect OK c unlock "$f" fcntl 0 0 1

step "who waits can give up, and the others go on"
expect OK a lock "$f" fcntl w 0 0 1
say b lock "$f" fcntl w 0 0 1 wait; first=$TAG
becomes 10 'w *' b test "$f" fcntl w 0 0 1
say c lock "$f" fcntl r 0 0 1 wait; second=$TAG
becomes 10 'w *' c test "$f" fcntl r 0 0 1
expect OK b cancel "$first"
check_equal "cancelled lock of b" "$(answer b "$first")" EINTR
expect OK a unlock "$f" fcntl 0 0 1
check_equal "lock of c" "$(answer c "$second")" OK
expect 'r 0 0' a test "$f" fcntl w 0 0 1
expect OK c unlock "$f" fcntl 0 0 1
expect 'free' a test "$f" fcntl w 0 0 99

step "a wait for longer than a request's deadline"
expect OK a lock "$f" fcntl w 100 100 1
say b lock "$f" fcntl w 100 100 1 wait; first=$TAG
for i in $(seq 40); do # other requests of others meanwhile
    expect EAGAIN c lock "$f" fcntl w 100 100 1
    sleep 0.1
done
waits b "$first" || fail "b has the lock that a holds"
expect OK a unlock "$f" fcntl 100 100 1
check_equal "lock of b" "$(answer b "$first")" OK
expect OK b unlock "$f" fcntl 100 100 1

step "a copy of a request that comes late locks nothing"
old=$(ask a number)
expect OK a lock "$f" fcntl w 300 309 1
expect OK a unlock "$f" fcntl 300 309 1
expect ESTALE a late "$f" fcntl w 300 309 1 "$old"
expect OK b lock "$f" fcntl w 300 309 1
expect OK b unlock "$f" fcntl 300 309 1
old=$(ask a number)
expect OK a lock "$f" fcntl w 300 309 1
expect OK a lock "$f" fcntl r 300 309 1
expect ESTALE a late "$f" fcntl w 300 309 1 "$old"
expect OK b lock "$f" fcntl r 300 309 1
expect OK b unlock "$f" fcntl 300 309 1
expect OK a unlock "$f" fcntl 300 309 1
expect OK b drop "$f" flock 1
old=$(ask a number)
expect OK a lock "$f" flock w 0 max 3
expect OK a lock "$f" flock r 0 max 3
expect ESTALE a late "$f" flock w 0 max 3 "$old"
expect OK b lock "$f" flock r 0 max 1
expect OK a drop "$f" flock 3
expect OK b drop "$f" flock 1

step "... nor does that of one that was cancelled, and who still waits asks under a new number"
expect OK b lock "$f" fcntl w 300 309 1
old=$(ask a number)
say a lock "$f" fcntl w 300 309 1 wait; first=$TAG
becomes 10 'w 300 309' a test "$f" fcntl w 300 309 1 # a message after it: it is at the home
expect OK a cancel "$first"
check_equal "cancelled lock of a" "$(answer a "$first")" EINTR
expect ESTALE a late "$f" fcntl w 300 309 1 "$old"
expect OK b unlock "$f" fcntl 300 309 1
expect OK b lock "$f" fcntl w 300 309 2
expect OK b unlock "$f" fcntl 300 309 2
now=$(ask a number)
expect OK a late "$f" fcntl w 300 309 9 $((now + 4)) unlock # what comes next has been overtaken
expect OK a lock "$f" fcntl w 300 309 1
expect EAGAIN b lock "$f" fcntl w 300 309 1
expect OK a unlock "$f" fcntl 300 309 1
expect OK b lock "$f" flock w 0 max 1

step "a conversion of flock gives up the older lock"
expect OK b drop "$f" flock 1
expect OK a lock "$f" flock r 0 max 5
expect OK b lock "$f" flock r 0 max 5
say a lock "$f" flock w 0 max 5 wait; first=$TAG
becomes 10 'r *' c test "$f" flock w 0 max 9
expect OK b lock "$f" flock w 0 max 5 # a's is gone while a waits
waits a "$first" || fail "a has the lock that b holds"
expect OK b drop "$f" flock 5
check_equal "lock of a" "$(answer a "$first")" OK
expect EAGAIN b lock "$f" flock r 0 max 5
expect OK a drop "$f" flock 5

step "the end of an owner drops its locks, and no others"
expect OK a lock "$f" fcntl w 200 201 11
expect OK a lock "$f" fcntl w 210 211 11
expect OK a lock "$f" fcntl w 220 221 12
expect OK a drop "$f" fcntl 11
expect OK b lock "$f" fcntl w 200 219 1
expect EAGAIN b lock "$f" fcntl w 220 220 1
expect OK a drop "$f" fcntl 12
expect OK b drop "$f" fcntl 1

step "the home is killed: locks stay, who waits goes on waiting"
expect OK a lock "$f" fcntl w 0 9 1
expect OK c lock "$f" fcntl r 50 59 1
say c lock "$f" fcntl w 5 5 1 wait; first=$TAG
becomes 10 'w *' c test "$f" fcntl w 5 5 1
crash b
becomes 40 'w 0 9' c test "$f" fcntl w 0 0 1
expect 'r 50 59' a test "$f" fcntl w 50 50 1
waits c "$first" || fail "c has the lock that a holds"
expect EAGAIN c lock "$f" fcntl w 0 0 1
expect OK a unlock "$f" fcntl 0 9 1
check_equal "lock of c" "$(answer c "$first")" OK
up b
wait_for_view a,b,c - a b c
becomes 40 'w 5 5' a test "$f" fcntl r 0 9 1
expect OK c drop "$f" fcntl 1
becomes 10 free a test "$f" fcntl w 0 max 1

step "a holder is killed: its locks cannot be had until it is back"
becomes 40 OK c lock "$f" fcntl w 0 9 1
say a lock "$f" fcntl w 0 0 1 wait; first=$TAG
becomes 10 'w *' a test "$f" fcntl w 0 0 1
crash c
check_equal "lock of a" "$(answer a "$first")" EIO
expect EIO b lock "$f" fcntl r 9 9 1
becomes 10 OK b lock "$f" fcntl w 10 10 1 # others can
expect OK b drop "$f" fcntl 1
up c
wait_for_view a,b,c - a b c
becomes 40 OK a lock "$f" fcntl w 0 0 1 # its processes have lost their descriptors
expect OK a drop "$f" fcntl 1

step "all end, and nothing is left"
leave a b c
up a
wait_for_view a - a
becomes 10 OK a lock "$f" fcntl w 0 max 1
quit a
