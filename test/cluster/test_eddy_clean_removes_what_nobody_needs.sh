#!/usr/bin/env bash
# eddy clean removes the directories of sessions that are over, and no other: not of nodes that live, are stopped or cannot be
# reached, nor of nodes whose caches have data; it says why each of them stays.
# timeout: 180
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
in_namespaces
requires fuse cmd jq
BASE=$PFS/.eddyfs-$(id -u)

# cleans CODE PATTERN ARGUMENTS...
cleans() {
    local expected=$1 pattern=$2 code=0
    shift 2
    eddy clean "$@" >"$W/said" 2>&1 || code=$?
    check_equal "code of eddy clean $*: $(cat "$W/said")" "$code" "$expected"
    grep -qE -- "$pattern" "$W/said" || fail "eddy clean $* says: $(cat "$W/said"), expected something like $pattern"
}
newest() {
    find "$BASE/test/views" -name '[0-9]*' -printf '%f\n' | sort | tail -n 1
}
# age DAYS: as if the newest view had not been touched since.
age() {
    touch -d "$1 days ago" "$BASE/test/views/$(newest)"
}

cleans 0 "nothing to remove" "$PFS"
cleans 2 "usage" --session-dir "$BASE" "$PFS"
cleans 2 "number of days" --dead 0 "$PFS"

# --- A session that lives, and one whose node is stopped ---
start_faultfs a
start_node a "$W/pfs-a" --flush end --no-supervise
cleans 0 "kept: it is in use by a" "$PFS"
pid=$(eddy status --json "$W/mnt-a" | jq .pid)
pause "$pid"
age 3
cleans 3 "a did not end in order.*--dead DAYS" "$PFS"
age 3
cleans 3 "something answers at the address of a" --dead 2 "$PFS"
kill -CONT "$pid"
wait_for 10 eval 'eddy clean "$PFS" | grep -q "in use by a"' || fail "it is not in use again"
[ -s "$BASE/test/secret" ] || fail "the session of a node that was stopped is gone"

# --- A node that was killed: with data in its list, and without ---
echo precious >"$W/mnt-a/file"
wait_for 10 eval '[ -n "$(ls "$BASE/test/dirty")" ]' || fail "node a does not list its file"
kill_node a
age 3
cleans 3 "data that is not on the PFS" --dead 2 "$PFS"
eddy recover "$W/cache-a"
check_equal "the file" "$(cat "$PFS/file")" precious
[ ! -e "$BASE" ] || fail "the session stays after all was recovered: $(find "$BASE")"
start_node a "$W/pfs-a" --flush end --no-supervise
kill_node a
age 1
cleans 3 "gave a sign of life 1.0 days ago" --dead 2 "$PFS"
age 3
cleans 0 "would be removed" --dry-run --dead 2 "$PFS"
[ -e "$BASE/test/settings" ] || fail "a dry run removes something"
eddy clean --json --dead 2 "$PFS" >"$W/clean.json"
check_equal "what it says as JSON" "$(jq -c '[.dry_run, .removed, .sessions[0].session, .sessions[0].removed]' "$W/clean.json")" '[false,1,"test",true]'
[ ! -e "$BASE" ] || fail "something is left: $(find "$BASE")"

# --- What one left that was cut short at its end, or never complete ---
start_node a "$W/pfs-a" --no-supervise
cp -r "$BASE" "$W/saved"
stop_node a
cp -r "$W/saved" "$BASE"
number=$(printf %06d $((10#$(newest) + 1)))
printf 'eddyfs view 1\nnumber %d\nmembers 0\nabsent 0\nclosed\nend\n' "$((10#$number))" >"$BASE/test/views/$number"
mkdir -p "$BASE/.new-0123456789abcdef/views" "$BASE/.new-1111111111111111"
touch -d "2 hours ago" "$BASE/.new-0123456789abcdef"
cleans 0 "test: removed" "$PFS"
check_equal "what is left" "$(ls -A "$BASE")" .new-1111111111111111
rm -r "$BASE"
cp -r "$W/saved" "$BASE"
rm "$BASE/test/settings" "$BASE"/test/views/*
start_node a "$W/pfs-a" --no-supervise # takes the remains away by itself
stop_node a
check_equal "left on the PFS" "$(ls -A "$PFS")" file

# --- A wrong directory: nothing of it goes ---
mkdir -p "$W/wrong/etc/nodes" "$W/wrong/empty" "$W/wrong/home/views" "$W/wrong/.new-file"
for f in etc/passwd etc/nodes/name home/views/report.txt .new-file/data; do echo precious >"$W/wrong/$f"; done
find "$W/wrong" | sort >"$W/before"
touch -d "2 hours ago" "$W"/wrong/.new-file
for option in "" "--dead 1"; do
    # shellcheck disable=SC2086 # two words
    cleans 0 "etc: kept: it is no session" $option --session-dir "$W/wrong"
done
check_equal "what eddy clean has removed of a directory that is no session's" "$(find "$W/wrong" | sort | diff "$W/before" -)" ""
