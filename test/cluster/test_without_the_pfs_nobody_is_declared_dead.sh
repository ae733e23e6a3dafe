#!/usr/bin/env bash
# The PFS hangs, and then a node dies: no view can be made, so nobody is declared dead; what is cached is read on, and
# the log says what waits. When the PFS goes on, the others go on without the dead node.
# timeout: 120
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
head -c 8M /dev/urandom >"$PFS/file"
for n in a b c; do
    start_faultfs "$n"
    start_node "$n" "$W/pfs-$n" --no-passthrough --dead-after 5
done
members_of() {
    status_of "$1" '.members | length'
}
met() {
    [ "$(members_of a)" = 3 ] && [ "$(members_of b)" = 3 ] && [ "$(status_of a .view.lease)" = true ]
}
wait_for 30 met || fail "the nodes do not meet"
view=$(status_of a .view.number)
exec 7<"$W/mnt-a/file"
cmp - "$PFS/file" <&7

hangs=()
for n in a b; do # c would not end while a request of it hangs
    hangs+=("$n $(tell_faultfs "$n" hang all)")
done
crash_node c
said() {
    grep -q "session directory does not answer for .*: nobody is declared dead, cached files go on" "$W/$1.log"
}
wait_for 30 said a || fail "a does not say what waits"
wait_for 30 said b || fail "b does not say what waits"
suspects_c() {
    [ "$(status_of a '.members[] | select(.name == "c") | .state')" = suspected ]
}
wait_for 20 suspects_c || fail "c is not suspected"
[ "$(status_of a .view.lease)" = false ] || fail "a has a lease of a PFS that hangs"
sleep 6 # --dead-after is over
check_equal "view while the PFS hangs" "$(status_of a .view.number)" "$view"
check_equal "members while the PFS hangs" "$(members_of a)" 3
timeout 20 python3 -c '
import os, sys
want = open(sys.argv[1], "rb").read()
assert os.pread(7, 4 << 20, 1 << 20) == want[1 << 20:5 << 20]' "$PFS/file" || fail "cached data cannot be read"

for hang in "${hangs[@]}"; do
    # shellcheck disable=SC2086 # the node, and the number
    tell_faultfs ${hang% *} clear ${hang#* } >/dev/null
done
without_c() {
    [ "$(members_of a)" = 2 ] && [ "$(members_of b)" = 2 ]
}
wait_for 40 without_c || fail "the others do not go on without c"
check_same "$W/mnt-b/file" "$PFS/file"
exec 7<&-
on c fusermount3 -uz "$W/mnt-c"
stop_node a
stop_node b
