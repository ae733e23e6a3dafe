#!/usr/bin/env bash
# Who wrote a file, its home and its next, and whoever read it, die at once: eddy check names what was
# not flushed, and nothing else; it goes on doing so when the others start again without the writer,
# who name it as well, and when they have left. When the writer is back the files are complete, and
# no longer named.
# timeout: 300
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

NAMES="big log small" # whoever is home of these: of three nodes all but one know of each

for n in a b c; do start_node "$n" "$PFS" --flush-wait 3600; done
mkdir "$W/mnt-a/d"
for name in $NAMES flushed; do echo "old $name" >"$W/mnt-a/d/$name"; done
eddy flush "$W/mnt-a"
head -c 5000001 /dev/urandom >"$W/big"
echo "new small" >"$W/small"
printf 'old log\nnew log\n' >"$W/log"
cp "$W/big" "$W/mnt-a/d/big"
cp "$W/small" "$W/mnt-a/d/small"
echo "new log" >>"$W/mnt-a/d/log"
for n in b c; do
    for name in $NAMES; do cmp "$W/$name" "$W/mnt-$n/d/$name" || fail "$n reads something else"; done
done

checked() { # its exit code; what it names is in check.txt
    local code=0
    eddy check "$PFS" >"$W/check.unsorted" 2>/dev/null || code=$?
    grep -v "^node " "$W/check.unsorted" | sort >"$W/check.txt"
    echo "$code"
}
for name in $NAMES; do echo "d/$name: only on node a (session test)"; done | sort >"$W/expected.txt"
names_all() { [ "$(checked)" = 3 ] && cmp -s "$W/expected.txt" "$W/check.txt"; }
wait_for 15 names_all || fail "eddy check names $(cat "$W/check.txt")"

for n in a b c; do pause "${NODE_PID[$n]}"; done # none sees that another one is gone
for n in a b c; do kill_node "$n"; done
names_all || fail "when all are dead eddy check names $(cat "$W/check.txt")"
[ "$(checked)" = 3 ] || fail "eddy check ended with $(checked)"

# What b and c do not know any more they must not take for unclaimed.
start_node b "$PFS" --flush-wait 3600
start_node c "$PFS" --flush-wait 3600
says_eio() {
    ! LC_ALL=C timeout 60 cat "$1" 2>"$W/said" >/dev/null && grep -q 'Input/output error' "$W/said"
}
for n in b c; do
    for name in $NAMES; do
        wait_for 60 says_eio "$W/mnt-$n/d/$name" || fail "$n opens $name: $(cat "$W/said")"
    done
done
lost_files() { status_of b '[.lost_files[] | .node + ":" + .path] | sort | join(" ")'; }
names() { [ "$(lost_files)" = "$1" ]; }
wait_for 20 names "a:d/big a:d/log a:d/small" || fail "status names $(lost_files)"
names_all || fail "when the others are back eddy check names $(cat "$W/check.txt")"
stop_node c
stop_node b
names_all || fail "when the others have left eddy check names $(cat "$W/check.txt")"
check_equal "nodes that eddy check names" "$(grep "^node " "$W/check.unsorted")" \
    "node a (session test) did not end in order: what it wrote last may be only in its cache"

start_node b "$PFS" --flush-wait 3600
start_node a "$PFS" --flush-wait 3600
reads() { cmp -s "$W/$2" "$W/mnt-$1/d/$2"; }
for name in $NAMES; do
    wait_for 60 reads b "$name" || fail "$name is not complete after the writer's return"
done
wait_for 20 names "" || fail "after the return status names $(lost_files)"
eddy flush "$W/mnt-a"
for name in $NAMES; do check_same "$W/$name" "$PFS/d/$name"; done
check_equal "the file that was flushed before" "$(cat "$PFS/d/flushed")" "old flushed"
names_none() { [ "$(checked)" = 0 ] && [ ! -s "$W/check.txt" ]; }
wait_for 15 names_none || fail "after the flush eddy check names $(cat "$W/check.txt")"
stop_node a
stop_node b
check_equal "conflicts" "$(find "$PFS/d" -name '*conflict*')" ""
