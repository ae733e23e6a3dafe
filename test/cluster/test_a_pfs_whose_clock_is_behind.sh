#!/usr/bin/env bash
# A PFS that keeps whole seconds, by a clock that is 7 s behind those of the nodes. What two nodes write within one second,
# of the same size, has the same time stamps there: the one that wrote first reads the other's bytes all the same. And of a
# directory that gets another flush policy within the second in which it got one, the last counts.
# timeout: 150
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3

for n in a b; do
    start_faultfs "$n"
    tell_faultfs "$n" whole-seconds >/dev/null
    tell_faultfs "$n" behind 7 >/dev/null
    start_node "$n" "$W/pfs-$n" --flush-wait 3600
done
: >"$PFS/now"
age=$(($(date +%s) - $(stat -c %Y "$W/pfs-a/now")))
[ "$age" -ge 7 ] && [ "$age" -le 9 ] || fail "the PFS's clock is $age s behind"

stamps() { stat -c '%s %Y %Z' "$W/pfs-a/file"; }
wanted=5 same=0
for i in $(seq 1000 1100); do
    sleep "0.$((RANDOM % 5))" # to be in some other part of a second
    echo "a $i" >"$W/mnt-a/file"
    eddy flush "$W/mnt-a"
    first=$(stamps)
    echo "b $i" >"$W/mnt-b/file"
    eddy flush "$W/mnt-b"
    [ "$(stamps)" != "$first" ] || same=$((same + 1))
    check_equal "what b wrote, on a, with stamps $first and then $(stamps)" "$(cat "$W/mnt-a/file")" "b $i"
    [ "$same" -lt "$wanted" ] || break
done
[ "$same" = "$wanted" ] || fail "only $same times both wrote within one second"

set_policy() {
    python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.eddy.flush", sys.argv[2].encode())' "$W/mnt-b/d" "$1"
}
is_flushed() { [ "$(cat "$PFS/d/$1")" = "$2" ]; }
set_twice_in_a_second() {
    set_policy end
    first=$(stat -c %Z "$W/pfs-b/d")
    echo 1 >"$W/mnt-a/d/first" # it asks
    set_policy immediate
    [ "$(stat -c %Z "$W/pfs-b/d")" = "$first" ] && [ ! -s "$PFS/d/first" ] && return
    eddy flush "$W/mnt-a"
    : >"$PFS/d/first"
    sleep "1.$((RANDOM % 10))" # --attr-timeout, and to be in some other part of a second
    return 1
}
mkdir "$PFS/d"
touch "$PFS/d/first" "$PFS/d/second"
wait_for 60 set_twice_in_a_second || fail "no policy was set twice within a second"
sleep 1.5 # --attr-timeout: until then a node may go on as before
echo 2 >"$W/mnt-a/d/second"
wait_for 20 is_flushed second 2 || fail "the first policy counts, not the last one"
stop_node a
stop_node b
