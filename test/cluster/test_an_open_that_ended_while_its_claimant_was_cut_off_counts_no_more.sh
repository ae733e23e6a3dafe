#!/usr/bin/env bash
# A claimant is cut off. Another node, which has two of its files open for writing, closes them meanwhile, and one of them is
# forgotten. When the claimant is a member again, as the same daemon, it hears that the opens have ended: the claim of the
# one goes back, and what it has of the other is put beside it.
# timeout: 150
. "$(dirname "$0")/lib.sh"
requires root fuse namespaces cmd jq
in_namespaces
for node in n1 n2 n3; do add_host $node; done
for node in n1 n2 n3; do start_node $node "$PFS" --flush-wait 3600 --no-supervise; done
members_are() { [ "$(status_of "$1" '[.members[].name] | sort | join(" ")')" = "$2" ]; }
for node in n1 n2 n3; do wait_for 30 members_are $node "n1 n2 n3" || fail "$node is not in one view with the others"; done

on n1 bash -c "echo old >$W/mnt-n1/kept; echo old >$W/mnt-n1/forgotten"
mkfifo "$W/tell" "$W/said"
# shellcheck disable=SC2016 # the other shell's variables
on n2 bash -c 'exec 7>>"$1/kept" 8>>"$1/forgotten"; echo opened >"$3"; read -r _ <"$2"; exec 7>&- 8>&-; echo closed >"$3"' \
    writer "$W/mnt-n2" "$W/tell" "$W/said" &
record_process "$W" $!
check_equal "the writer" "$(timeout 60 cat "$W/said")" opened
check_equal "claims of n1" "$(status_of n1 .claims)" 2

link_down n1
wait_for 60 members_are n2 "n2 n3" || fail "n1 is not absent"
wait_for 60 grep -q 'it is fenced' "$W/n1.log" || fail "n1 does not know that it is outside"
echo >"$W/tell"
check_equal "the writer" "$(timeout 100 cat "$W/said")" closed
on n3 timeout 100 "$EDDY_BUILD/eddy" forget "$W/mnt-n3/forgotten" || fail "eddy forget"
link_up n1
for node in n1 n2 n3; do wait_for 90 members_are $node "n1 n2 n3" || fail "$node is not in one view with the others again"; done

wait_for 60 test -e "$PFS/forgotten.eddy-conflict-n1" || fail "what was forgotten is not put beside: $(on n1 eddy flush "$W/mnt-n1" 2>&1)"
check_equal "bytes beside" "$(cat "$PFS/forgotten.eddy-conflict-n1")" old
on n1 timeout 60 "$EDDY_BUILD/eddy" flush "$W/mnt-n1" || fail "eddy flush"
wait_for 60 eval '[ "$(status_of n1 .claims)" = 0 ]' || fail "n1 has $(status_of n1 .claims) claims of files that nobody has open"
check_equal "bytes of kept" "$(cat "$PFS/kept")" old
for node in n3 n2 n1; do stop_node $node; done
