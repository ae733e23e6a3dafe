#!/usr/bin/env bash
# Under pressure, what nobody has told to read goes to the PFS first, and what is read soonest goes last, though it was written first. While the
# flush has too much to do, nothing is fetched ahead that is not read soon; when it has done it, that comes. A flush in a lull waits for what is
# read soon.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
MIB=1048576
start_faultfs a
mkdir "$PFS/input"
for i in 1 2 3; do head -c $((4 * MIB)) /dev/urandom >"$PFS/input/$i"; done
start_node a "$W/pfs-a" --cache-size 64M --flush-wait 3600 --flush-writers 1

write() { # FILE MIB
    head -c $(($2 * MIB)) /dev/urandom >"$W/expected-$1"
    cp "$W/expected-$1" "$W/mnt-a/$1"
}
on_pfs() {
    cmp -s "$W/expected-$1" "$PFS/$1"
}
hints() {
    status_of a .hints.hints
}
is_given() {
    [ "$(hints)" = "$1" ]
}

# --- The order ---

(cd "$W/mnt-a" && exec "$EDDY_BUILD/eddy" hint --no-start soon later latest) &
HINT=$!
record_process "$W" $HINT
wait_for 10 is_given 3 || fail "the hints are not there"
for file in soon later latest; do write $file 6; done
for file in x y z; do write $file 8; done # 42 MiB: above the high mark, 38
is_low() { # 25 MiB
    [ "$(status_of a .cache.dirty)" -le $((26 * MIB)) ]
}
wait_for 60 is_low || fail "nothing is flushed: $(status_of a .cache)"
for file in x y; do
    on_pfs $file || fail "$file is not on the PFS, though nobody reads it"
done
for file in soon later; do
    ! on_pfs $file || fail "$file was flushed before what nobody reads"
done
kill $HINT
wait $HINT 2>/dev/null || true
eddy flush "$W/mnt-a"
for file in soon later latest x y z; do
    check_same "$PFS/$file" "$W/expected-$file"
done
rm "$W"/mnt-a/{soon,later,latest,x,y,z}

# --- The budget ---

hang=$(tell_faultfs a hang write path='dirty*')
for file in dirty1 dirty2 dirty3; do write $file 14; done
wait_for 30 fault_waits a "$hang" || fail "the high mark starts no flush"
(cd "$W/mnt-a" && exec "$EDDY_BUILD/eddy" hint input/1 input/2 input/3) &
HINT=$!
record_process "$W" $HINT
first_is_ahead() {
    [ "$(status_of a .hints.ahead)" -ge 1 ]
}
all_are_ahead() {
    [ "$(status_of a .hints.ahead)" = 3 ]
}
wait_for 20 first_is_ahead || fail "what is read next is not fetched while the flush is behind"
sleep 1
check_equal "files that are ahead while the flush is behind" "$(status_of a .hints.ahead)" 1
tell_faultfs a clear
wait_for 60 all_are_ahead || fail "the rest is not fetched after the flush: $(status_of a .hints)"
for i in 1 2 3; do check_same "$W/mnt-a/input/$i" "$PFS/input/$i"; done
wait $HINT
stop_node a

# --- In a lull ---

start_node a "$W/pfs-a" --cache-size 64M --flush-wait 1
head -c $MIB /dev/urandom >"$PFS/input/4"
hang=$(tell_faultfs a hang read path=input/4)
(cd "$W/mnt-a" && exec "$EDDY_BUILD/eddy" hint input/4) &
HINT=$!
record_process "$W" $HINT
wait_for 20 fault_waits a "$hang" || fail "what is hinted is not read"
write quiet 1
sleep 3
! on_pfs quiet || fail "a flush in a lull does not wait for what is read soon"
eddy flush "$W/mnt-a" || fail "a flush that was asked for waits, too"
check_same "$PFS/quiet" "$W/expected-quiet"
write quiet2 1
tell_faultfs a clear
wait_for 20 on_pfs quiet2 || fail "the lull is not used when nothing is fetched any more"
kill $HINT
wait $HINT 2>/dev/null || true
stop_node a
