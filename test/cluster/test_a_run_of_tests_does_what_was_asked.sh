#!/usr/bin/env bash
# test/run --only: a name with a slash is that one test, a pattern with a slash is for whole names, a word for parts of names.
# Where nothing matches it says so, builds nothing and fails; a run in which all is skipped tells why, and is no failure.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

run=$(realpath "$(dirname "$0")/../run")
export EDDY_BUILD=$W/build CI=

names() {
    "$run" --list "$@" | paste -sd ' '
}
kinds() {
    "$run" --list "$@" | sed 's|/[^/]*$||' | sort -u | paste -sd ' '
}
check_equal "one test" "$(names --only cluster/close_to_open)" cluster/close_to_open
check_equal "its kin" "$(names --only cached/cluster/close_to_open)" cached/cluster/close_to_open
check_equal "a word" "$(names --only close_to_open)" \
    "cluster/close_to_open cluster/close_to_open_10000 cached/cluster/close_to_open asan/cluster/close_to_open"
check_equal "a pattern within a name" "$(names --only 'close*10000')" cluster/close_to_open_10000
check_equal "kinds of cluster/*" "$(kinds --only 'cluster/*')" cluster
check_equal "kinds of --cluster" "$(kinds --cluster)" cluster
check_equal "kinds of */unit/*" "$(kinds --only '*/unit/*')" "asan/unit tsan/unit"
check_equal "kinds of all" "$(kinds)" \
    "asan/cluster asan/unit cached/cluster cluster fuzz model tsan/unit unit"

for option in '' --list; do
    code=0
    # shellcheck disable=SC2086 # an option or none
    "$run" $option --only cluster/no_such_test >"$W/out" 2>"$W/err" || code=$?
    [ "$code" != 0 ] || fail "a pattern that nothing matches is no failure"
    check_equal "what it says" "$(cat "$W/out" "$W/err")" \
        "no test matches cluster/no_such_test; test/run --list tells the names"
done

"$run" --no-setup --only 'cluster/close_to_open_1*' >"$W/out" 2>&1 || fail "all was skipped: code $?"
check_equal "what it says" "$(cat "$W/out")" "skip cluster/close_to_open_10000: only with --long
0 passed, 0 failed, 1 skipped"
[ ! -e "$EDDY_BUILD/build.ninja" ] || fail "something was built for tests that do not run"
