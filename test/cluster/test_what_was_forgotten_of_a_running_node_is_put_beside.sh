#!/usr/bin/env bash
# eddy forget of files of a node that was cut off from the others, but not from the PFS, and runs: it flushes
# nothing of them into them. What it had is beside the file and named, at once if nobody has the file open
# there, else when it is closed; until then it cannot be opened there again. When the node is back its
# applications read what the others wrote. A file that was not forgotten is complete.
# timeout: 300
. "$(dirname "$0")/lib.sh"
requires root fuse namespaces cmd jq cmd python3
in_namespaces

NODES=(n1 n2 n3)
for n in "${NODES[@]}"; do add_host "$n"; done
start_node n1 "$PFS" --flush-wait 3600 --fsync pfs
for n in n2 n3; do start_node "$n" "$PFS" --flush-wait 3600; done
members_are() { [ "$(status_of "$1" '[.members[].name] | sort | join(" ")')" = "$2" ]; }
for n in "${NODES[@]}"; do wait_for 30 members_are "$n" "n1 n2 n3" || fail "$n is not in one session with the others"; done
write() { # NODE NAME TEXT
    # shellcheck disable=SC2016 # the inner shell's variables
    on "$1" bash -c 'echo "$2" >"$1"' write "$W/mnt-$1/d/$2" "$3"
}
read_on() { on "$1" timeout 60 cat "$W/mnt-$1/d/$2" 2>&1; }
flush() { # NODE: prints the code
    local code=0
    on "$1" timeout 60 "$EDDY_BUILD/eddy" flush "$W/mnt-$1" >"$W/flush.txt" 2>&1 || code=$?
    echo "$code"
}

on n1 mkdir "$W/mnt-n1/d"
FORGOTTEN="closed open"
for name in kept $FORGOTTEN; do write n1 "$name" "old $name"; done
check_equal "code of eddy flush" "$(flush n1)" 0
for name in kept $FORGOTTEN; do write n1 "$name" "new $name"; done
# Appends a line to one of them as long as it is told to.
start_writer n1 "$W/mnt-n1/d/open"
append() {
    writer_appends "$1" || fail "the open file takes no $1"
}
append "at first"
# Has it open for reading, and calls fsync when it is told to.
mkfifo "$W/reader"
on n1 python3 -c 'import os, sys; fd = os.open(sys.argv[1], os.O_RDONLY); sys.stdin.readline(); os.fsync(fd)' \
    "$W/mnt-n1/d/open" <"$W/reader" >"$W/reader.txt" 2>&1 &
READER=$!
record_process "$W" "$READER"
exec 8>"$W/reader"

link_down n1
for n in n2 n3; do wait_for 60 members_are "$n" "n2 n3" || fail "$n has no view without n1"; done
wait_for 60 grep -q 'it is fenced' "$W/n1.log" || fail "n1 does not know that it is outside"
jobs=()
for name in $FORGOTTEN; do # at once: each waits for what n1 may be writing
    on n2 "$EDDY_BUILD/eddy" forget "$W/mnt-n2/d/$name" >"$W/forget-$name.txt" 2>&1 &
    jobs+=($!)
done
for job in "${jobs[@]}"; do wait "$job" || fail "eddy forget ended with $?: $(cat "$W"/forget-*.txt)"; done
for name in $FORGOTTEN; do
    check_equal "$name on n3, forgotten" "$(read_on n3 "$name")" "old $name"
    write n3 "$name" "newer $name"
done
check_equal "code of eddy flush on n3" "$(flush n3)" 0

# Still cut off.
was_put_beside() { grep -q "conflict: d/$1: was forgotten by an operator" "$W/n1.log"; }
wait_for 20 was_put_beside closed || fail "n1 has not put beside what was forgotten"
check_equal "beside it" "$(cat "$PFS/d/closed.eddy-conflict-n1")" "new closed"
append "forgotten"
echo fsync >&8
wait "$READER" && fail "fsync of what is void says that it is on the PFS"
grep -q 'Input/output error' "$W/reader.txt" || fail "fsync of what is void says $(cat "$W/reader.txt")"
check_equal "code of eddy flush, with a forgotten file that is open" "$(flush n1)" 3
grep -q 'd/open' "$W/flush.txt" || fail "eddy flush does not name it: $(cat "$W/flush.txt")"
! grep 'flush failed' "$W/n1.log" || fail "to wait until it is closed counts as a failed flush"
check_equal "failed flushes" "$(status_of n1 .counters.flush_errors)" 0
check_equal "kept, flushed by the fenced node" "$(cat "$PFS/d/kept")" "new kept"
for name in $FORGOTTEN; do check_equal "$name on the PFS" "$(cat "$PFS/d/$name")" "newer $name"; done

link_up n1
for n in "${NODES[@]}"; do wait_for 90 members_are "$n" "n1 n2 n3" || fail "$n is not in one view with the others again"; done
back() { [ "$(read_on n2 kept)" = "new kept" ]; }
wait_for 60 back || fail "the file that was not forgotten is not back: $(read_on n2 kept)"
append "back"
! LC_ALL=C read_on n1 open >"$W/said" && grep -q 'Input/output error' "$W/said" ||
    fail "what is void can be opened: $(cat "$W/said")"
check_equal "open, on n2" "$(read_on n2 open)" "newer open"
exec 6>&-
wait "$WRITER"
wait_for 20 was_put_beside open || fail "n1 has not put beside what was closed"
check_equal "beside it" "$(cat "$PFS/d/open.eddy-conflict-n1")" "$(printf '%s\n' "new open" "at first" forgotten back)"
for name in $FORGOTTEN; do
    check_equal "$name on the PFS" "$(cat "$PFS/d/$name")" "newer $name"
    for n in "${NODES[@]}"; do check_equal "$name on $n" "$(read_on "$n" "$name")" "newer $name"; done
done
check_equal "code of eddy flush after the return" "$(flush n1)" 0

# What it writes from now on is not void.
for name in $FORGOTTEN; do write n1 "$name" "newest $name"; done
check_equal "code of eddy flush of what came later" "$(flush n1)" 0
for name in $FORGOTTEN; do check_equal "$name, newest, on the PFS" "$(cat "$PFS/d/$name")" "newest $name"; done
check_equal "names on the PFS" "$(cd "$PFS/d" && echo *)" "closed closed.eddy-conflict-n1 kept open open.eddy-conflict-n1"
none_named() { eddy check "$PFS" >"$W/check.txt" 2>/dev/null; }
wait_for 20 none_named || fail "at the end eddy check names $(cat "$W/check.txt")"
for n in "${NODES[@]}"; do stop_node "$n"; done
