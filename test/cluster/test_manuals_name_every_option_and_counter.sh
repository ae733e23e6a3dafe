#!/usr/bin/env bash
# Every option of eddyfs -h is in eddyfs(1) and in the README, every command of eddy -h is in
# eddy(1), every counter is in eddy(1) with the words of the code, and the pages are sound.
# timeout: 60
. "$(dirname "$0")/lib.sh"
cd "$(dirname "$SCRIPT")/../.."

eddyfs -h | sed -n 's/^ *\(-[a-zA-Z], \)\{0,1\}--\([a-z-]*\).*/\2/p' >"$W/options"
[ "$(wc -l <"$W/options")" -gt 10 ] || fail "eddyfs -h lists no options"
while read -r option; do
    grep -q -E "^\.It Fl (. , )?-$option( |\$)" packaging/man/eddyfs.1 ||
        fail "eddyfs(1) has no --$option"
    [ "$option" != help ] && [ "$option" != version ] || continue
    grep -q -- "^| .*\`--${option}[ \`]" README.md ||
        fail "the README has no --$option"
done <"$W/options"

eddy -h | sed -n 's/^  eddy \([a-z]*\) .*/\1/p' >"$W/commands"
[ "$(wc -l <"$W/commands")" -gt 4 ] || fail "eddy -h lists no commands"
while read -r command; do
    grep -q "^\.It Cm $command " packaging/man/eddy.1 || fail "eddy(1) has no $command"
    eddy "$command" -h >/dev/null || fail "eddy $command -h ends with $?"
done <"$W/commands"

sed -n 's/^    X(\([a-z_]*\), "\([^"]*\)").*/\1|\2/p' transport/base.h >"$W/counters"
[ "$(wc -l <"$W/counters")" -gt 10 ] || fail "there are no counters"
while IFS='|' read -r name help; do
    [ "$(grep -x -A 1 "\.It $name" packaging/man/eddy.1 | tail -n 1)" = "$help" ] ||
        fail "eddy(1) does not tell of $name as the code"
done <"$W/counters"

if command -v groff >/dev/null; then
    for page in packaging/man/*.[18]; do
        groff -mdoc -Tutf8 -ww "$page" >/dev/null 2>"$W/warnings"
        [ ! -s "$W/warnings" ] || fail "$page: $(cat "$W/warnings")"
    done
fi
