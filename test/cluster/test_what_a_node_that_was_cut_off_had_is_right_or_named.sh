#!/usr/bin/env bash
# Three daemons, one of them cut off from the others, but not from the PFS, with unflushed files: its own
# applications go on with them; the others name them and get EIO, and go on with theirs. One of
# the files is flushed by the fenced node, and what it had named before is named no more. Healed, all
# are in one view, and every file has the bytes that were acknowledged last, on each node and on the PFS.
# timeout: 300
. "$(dirname "$0")/lib.sh"
requires root fuse namespaces cmd jq
in_namespaces

NODES=(n1 n2 n3)
COUNT=8 # files of each: of every pair of home and next some

for n in "${NODES[@]}"; do add_host "$n"; done
for n in "${NODES[@]}"; do start_node "$n" "$PFS" --flush-wait 3600 --fsync pfs; done
members_are() { [ "$(status_of "$1" '[.members[].name] | sort | join(" ")')" = "$2" ]; }
for n in "${NODES[@]}"; do wait_for 30 members_are "$n" "n1 n2 n3" || fail "$n is not in one session with the others"; done

# put NODE NAME TEXT: acknowledged when it returns, and then what is expected.
mkdir "$W/expected"
put() {
    # shellcheck disable=SC2016 # the inner shell's variables
    on "$1" bash -c 'echo "$2" >>"$1"' put "$W/mnt-$1/d/$2" "$3"
    echo "$3" >>"$W/expected/$2"
}
on n1 mkdir "$W/mnt-n1/d"
for i in $(seq "$COUNT"); do
    put n1 "cut-$i" "before $i"
    put n2 "near-$i" "before $i"
done
put n1 open before
put n1 flushed before
put n2 read before
for n in n1 n2; do on "$n" "$EDDY_BUILD/eddy" flush "$W/mnt-$n"; done
for i in $(seq "$COUNT"); do
    put n1 "cut-$i" "unflushed $i"
    put n2 "near-$i" "unflushed $i"
done
put n1 open unflushed
put n1 flushed unflushed
# A writer that has it open all the time: a line for each that is asked for.
start_writer n1 "$W/mnt-n1/d/open"
append() {
    writer_appends "$1" || fail "a file that is open on the fenced node takes no $1"
    echo "$1" >>"$W/expected/open"
}
append "opened"

named_by_check() { eddy check "$PFS" 2>/dev/null | grep -c "only on node $1 " || true; }
named() { [ "$(named_by_check "$1")" = "$2" ]; }
wait_for 20 named n1 $((COUNT + 2)) || fail "eddy check names $(named_by_check n1) files of n1"

link_down n1
for n in n2 n3; do wait_for 60 members_are "$n" "n2 n3" || fail "$n has no view without n1"; done
is_fenced() { grep -q 'it is fenced' "$W/n1.log"; }
wait_for 60 is_fenced || fail "n1 does not know that it is outside"

# The side of more than half.
lost_of() { status_of "$1" '[.lost_files[] | select(.node == "n1") | .path] | length'; }
names_lost() { [ "$(lost_of "$1")" = "$2" ]; }
says_eio() { # NODE NAME
    ! LC_ALL=C on "$1" timeout 60 cat "$W/mnt-$1/d/$2" 2>"$W/said" >/dev/null && grep -q 'Input/output error' "$W/said"
}
for n in n2 n3; do
    wait_for 30 names_lost "$n" $((COUNT + 2)) || fail "$n names $(lost_of "$n") files of n1"
    for i in $(seq "$COUNT"); do says_eio "$n" "cut-$i" || fail "$n opens cut-$i: $(cat "$W/said")"; done
done
for i in $(seq "$COUNT"); do
    put n2 "near-$i" "meanwhile $i"
    check_equal "near-$i on n3" "$(on n3 cat "$W/mnt-n3/d/near-$i")" "$(cat "$W/expected/near-$i")"
done
put n3 new meanwhile

# The fenced node's own, and what is not its own.
for i in $(seq 2 "$COUNT"); do put n1 "cut-$i" "fenced $i"; done
check_equal "its own file" "$(on n1 cat "$W/mnt-n1/d/cut-2")" "$(cat "$W/expected/cut-2")"
append "fenced"
put n1 flushed fenced
# T_open (30 s) since it was cut off, for one open, though the kernel asks more than once; then not at all.
began=$SECONDS
says_eio n1 near-1 || fail "the fenced node opens what another one has: $(cat "$W/said")"
[ $((SECONDS - began)) -le 36 ] || fail "that took $((SECONDS - began)) s"
began=$SECONDS
says_eio n1 near-2 || fail "the fenced node opens what another one has: $(cat "$W/said")"
! on n1 touch "$W/mnt-n1/d/near-3" 2>"$W/said" || fail "the fenced node changes what another one has"
[ $((SECONDS - began)) -le 6 ] || fail "the next opens took $((SECONDS - began)) s"
on n1 timeout 60 sync "$W/mnt-n1/d/flushed"
check_same "$W/expected/flushed" "$PFS/d/flushed"
wait_for 20 named n1 $((COUNT + 1)) || fail "after that flush eddy check names $(named_by_check n1) files of n1"

link_up n1
for n in "${NODES[@]}"; do wait_for 90 members_are "$n" "n1 n2 n3" || fail "$n is not in one view with the others again"; done
for n in "${NODES[@]}"; do
    check_equal "lost files that $n names" "$(status_of "$n" '.lost_files | length')" 0
done
append "healed"
! grep 'node ? ' "$W"/n?.log || fail "a message without the node's name"
exec 6>&-
wait "$WRITER"

# right NODE NAME: an open may wait for the view to be complete, and is not to get other bytes.
right() {
    on "$1" timeout 60 cat "$W/mnt-$1/d/$2" >"$W/got" 2>"$W/said" || return 1
    cmp "$W/expected/$2" "$W/got" || fail "$2 on $1 is $(cat "$W/got")"
}
for file in "$W"/expected/*; do
    for n in "${NODES[@]}"; do
        wait_for 60 right "$n" "${file##*/}" || fail "$n cannot open ${file##*/}: $(cat "$W/said")"
    done
done
for n in "${NODES[@]}"; do on "$n" "$EDDY_BUILD/eddy" flush "$W/mnt-$n"; done
for file in "$W"/expected/*; do check_same "$file" "$PFS/d/${file##*/}"; done
none_named() { eddy check "$PFS" >"$W/check.txt" 2>/dev/null; }
wait_for 20 none_named || fail "at the end eddy check names $(cat "$W/check.txt")"
check_equal "names on the PFS" "$(ls "$PFS/d")" "$(ls "$W/expected")"
for n in "${NODES[@]}"; do stop_node "$n"; done
