#!/usr/bin/env bash
# The test bed of namespaces: hosts reach each other, a mount is on its host alone, and
# a host's end takes its processes and mounts with it.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
in_namespaces
requires fuse cmd jq
add_host n1
add_host n2
start_faultfs n1
start_faultfs n2

on n1 bash -c "echo hello >'$W/pfs-n1/file'"
check_equal "text on n2" "$(on n2 cat "$W/pfs-n2/file")" hello
check_equal "bytes read on n2" "$(stat_of n2 read_bytes)" 6
[ ! -e "$W/pfs-n1/file" ] || fail "the mount of n1 is seen outside of it"

reaches() {
    # bash's own TCP: a refused connection is an answer, too.
    local answer
    answer=$(on "$1" timeout 2 bash -c "echo >/dev/tcp/$(host_address "$2")/9" 2>&1 || true)
    [[ $answer == *refused* ]]
}
wait_for 10 reaches n1 n2 || fail "n1 does not reach n2"
link_down n2
! reaches n1 n2 || fail "n1 reaches n2 without a link"
link_up n2
wait_for 10 reaches n1 n2 || fail "n1 does not reach n2 any more"

faultfs=${FAULTFS_PID[n2]}
kill_host n2
wait_for 5 test ! -e "/proc/$faultfs" || fail "faultfs lives on"
check_equal "text on n1" "$(on n1 cat "$W/pfs-n1/file")" hello
