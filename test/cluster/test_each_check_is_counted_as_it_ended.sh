#!/usr/bin/env bash
# What a run of tests tells of programs of checks: each check counts, one that cannot be done here is skipped with its
# reason, and a program that crashes, leaves, hangs or ends badly after its checks has failed, in JUnit's file, too.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires cmd meson cmd python3

harness=$(realpath "$(dirname "$0")/../harness")
WAYS=(well fails kills crashes leaves hangs leaks)
mkdir "$W/tree" "$W/logs"
cat >"$W/tree/meson.build" <<MESON
project('ways')
foreach way : ['${WAYS[0]}'$(printf ", '%s'" "${WAYS[@]:1}")]
    test(way, find_program('$harness/tap.py'), args: ['$EDDY_BUILD/test/checks', way], protocol: 'tap', timeout: way == 'hangs' ? 15 : 100)
endforeach
MESON
meson setup "$W/tree/build" "$W/tree" >"$W/meson.out"
meson test -C "$W/tree/build" >>"$W/meson.out" 2>&1 && fail "meson test says that all is well: $(cat "$W/meson.out")"
"$harness/unit_results.py" "$W/tree/build/meson-logs/testlog.json" "$W/meson.out" "$W/logs" \
    "${WAYS[@]/#/unit/}" unit/none >"$W/results"
cat "$W/results"

# told WHAT NAME COUNTS: such a line is among the results; times are not looked at.
told() {
    awk -F'\t' -v what="$1" -v name="$2" -v counts="$3" '
        { tail = $4 ($5 == "" ? "" : " " $5) }
        $1 == what && $2 == name && tail == counts { found = 1 }
        END { exit !found }' "$W/results" || fail "nothing says: $1 $2 $3"
}
for way in "${WAYS[@]}"; do
    grep -qx "skipped"$'\t'"unit/$way: first: of two:cannot_be_done"$'\t'"it needs a # and more" "$W/results" ||
        fail "$way: the check that was skipped is not told"
done
told passed unit/well 2
told failed unit/fails "1 1"
told failed unit/kills "1 1"
told failed unit/crashes "1 1"
told failed unit/leaves "1 1"
told failed unit/hangs "1 1"
told failed unit/leaks "1 2"
told failed unit/none 1
check_equal "lines" "$(wc -l <"$W/results")" $((2 * ${#WAYS[@]} + 1))
grep -q 'is("fails")' "$W/logs/unit_fails.log" || fail "the log does not say what failed"
grep -q 'ended by SIGABRT' "$W/logs/unit_crashes.log" || fail "the log does not say how it ended"
grep -q 'timed out after' "$W/logs/unit_hangs.log" || fail "the log does not tell of the time-out"

python3 - "$W/tree/build/meson-logs/testlog.junit.xml" "${WAYS[@]}" <<'PY'
import sys
import xml.etree.ElementTree

suites = {s.get("name").split(".")[-1].split(":")[-1]: s for s in xml.etree.ElementTree.parse(sys.argv[1]).getroot()}
for way in sys.argv[2:]:
    count = {what: len(suites[way].findall(f"testcase/{what}")) for what in ("skipped", "failure")}
    assert count == {"skipped": 1, "failure": int(way != "well")}, (way, count)
PY
