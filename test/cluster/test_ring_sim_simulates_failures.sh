#!/usr/bin/env bash
# ring_sim: on 300 nodes of two weights, of which 3 fail, placement keeps to its bounds:
# shares within a tenth of what each node should have, the least moves, the files of the failed go
# to nearly as many nodes as by chance, more than from a ring of 100 points; it plots; what makes no
# sense is refused.
# timeout: 120
# busy
. "$(dirname "$0")/lib.sh"
PATH=$EDDY_BUILD/test:$PATH
requires cmd jq

ring_sim --nodes 300 --fail 3 --files 60000 --trials 2 --weights 1,2 \
    --vnodes 10,100 --json >"$W/json" || fail "the simulation ends with $?"
check_equal "schemes" "$(jq -r '[.schemes[] | "\(.scheme) \(.vnodes)"] | join(", ")' "$W/json")" \
    "slots null, ring 10, ring 100, multiprobe 10, multiprobe 100"
jq -e '.schemes[0] | .share_max.worst <= 1.10 and .share_min.worst >= 0.90 and
    .share_max_after.worst <= 1.10 and .share_min_after.worst >= 0.90 and
    .moved_to_least.worst == 1 and .receivers_to_chance.mean >= 0.95' "$W/json" >"$W/jq" ||
    fail "placement is beyond its bounds: $(jq '.schemes[0]' "$W/json")"
jq -e '[.schemes[] | .moved_to_least.worst == 1 and .lost.mean > 300 and .lost.mean < 1200] | all' \
    "$W/json" >"$W/jq" || fail "more than the least moves: $(cat "$W/json")"
jq -e '.schemes | .[0].receivers.mean > .[2].receivers.mean and
    .[2].receivers.mean > .[1].receivers.mean' "$W/json" >"$W/jq" ||
    fail "the receivers are few: $(cat "$W/json")"

ring_sim --nodes 20 --files 1000 --trials 1 --scheme rendezvous,slots >"$W/table"
grep -q '^look-up, ns *[0-9.]* *[0-9.]*$' "$W/table" || fail "no table: $(cat "$W/table")"

few=(ring_sim --nodes 20 --files 1000 --trials 1)
if command -v gnuplot >"$W/which"; then
    "${few[@]}" --plot "$W/it's.svg" >"$W/table" || fail "it cannot plot"
    grep -q '</svg>' "$W/it's.svg" || fail "it plots no SVG"
    code=0; "${few[@]}" --plot "$W/none/plot.svg" >"$W/table" 2>"$W/said" || code=$?
    check_equal "code for a plot that cannot be written" "$code" 1
fi
code=0; PATH=$EDDY_BUILD/test "${few[@]}" --plot "$W/plot.svg" >"$W/table" 2>"$W/said" || code=$?
check_equal "code without gnuplot" "$code" 1
[[ $(<"$W/said") == *"gnuplot: "*"--plot needs it"* ]] || fail "it says: $(<"$W/said")"

# refused ARGUMENT...: wrong usage.
refused() {
    code=0; ring_sim "$@" >"$W/table" 2>&1 || code=$?
    check_equal "code of ring_sim $*" "$code" 2
}
refused --nodes 3 --fail 3
refused --scheme best
refused --vnodes 1,x
refused --weights ''
refused "$W"
refused --simulate
code=0; eddy ring --simulate >"$W/table" 2>&1 || code=$?
check_equal "code of eddy ring --simulate" "$code" 2
