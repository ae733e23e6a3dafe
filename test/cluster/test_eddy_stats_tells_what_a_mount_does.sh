#!/usr/bin/env bash
# eddy stats and eddy metrics: what they tell adds up to what was read and written, of one node and of all; a node that does
# not answer is named; a screen only on a terminal; Prometheus's own check of the text, if it is here.
# timeout: 120
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd script

head -c 6000000 /dev/urandom >"$PFS/big"
mkdir "$PFS/d"
for i in 1 2 3 4 5 6 7 8 9; do echo "$i" >"$PFS/d/$i"; done
start_node a "$PFS" --no-passthrough
start_node b "$PFS" --no-passthrough

# What came between two intervals' answers, of all intervals: rates times seconds.
sum_of() { # file, jq path of the row, key
    jq -s "[.[] | .seconds as \$s | $2 | .$3 * \$s] | add | round" "$1"
}
near() { # WHAT GOT EXPECTED: six digits are printed
    [ $(($2 > $3 ? $2 - $3 : $3 - $2)) -le $(($3 / 1000)) ] || fail "$1: got $2, expected $3"
}
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

in_background "$EDDY_BUILD/eddy" stats --interval 0.2 --json --session "$W/mnt-a" >"$W/stats.json"
stats=$!
wait_for 20 has_lines "$W/stats.json" 2 || fail "eddy stats says nothing"
cat "$W/mnt-a/big" "$W/mnt-b/big" >/dev/null
head -c 3000000 /dev/urandom >"$W/mnt-b/new"
cat "$W/mnt-a"/d/* >/dev/null
n=$(wc -l <"$W/stats.json")
wait_for 20 has_lines "$W/stats.json" $((n + 3)) || fail "eddy stats stops"
kill -TERM "$stats" # a job in the background ignores SIGINT
wait "$stats" || true

near "bytes read on a" "$(sum_of "$W/stats.json" '.nodes[0]' read_bytes)" 6000018
near "bytes read on b" "$(sum_of "$W/stats.json" '.nodes[1]' read_bytes)" 6000000
near "bytes read on all" "$(sum_of "$W/stats.json" '.all' read_bytes)" 12000000
near "bytes written on b" "$(sum_of "$W/stats.json" '.nodes[1]' written_bytes)" 3000000
near "bytes from a's sources" \
    "$(jq -s '[.[] | .seconds as $s | .nodes[0] | (.read_local_bytes + .read_peer_bytes + .read_pfs_bytes) * $s] | add | round' "$W/stats.json")" 6000018
reads=$(jq -s '[.[] | .seconds as $s | .operations.read.calls // 0 | . * $s] | add | round' "$W/stats.json")
[ "$reads" -ge 6 ] && [ "$reads" -le 3000 ] || fail "$reads reads for 6 MB"
opens=$(jq -s '[.[] | .seconds as $s | .operations.open.calls // 0 | . * $s] | add | round' "$W/stats.json")
[ "$opens" -ge 10 ] || fail "$opens opens of ten files"
jq -se '[.[] | .operations.read | select(.) | .median_ms > 0 and .p99_ms >= .median_ms and .waited > 0] | all and length > 0' \
    "$W/stats.json" >/dev/null || fail "latencies of reads: $(tail -n 3 "$W/stats.json")"
jq -se 'map(.nodes | length == 2) | all' "$W/stats.json" >/dev/null || fail "not two nodes in each interval"

# Lines: a header, and one for each node and one for all.
eddy stats -i 0.1 -n 2 "$W/mnt-a" >"$W/lines"
check_equal "lines of one node" "$(wc -l <"$W/lines")" 3
eddy stats -i 0.1 -n 2 --session "$W/mnt-a" >"$W/lines"
check_equal "lines of two nodes" "$(wc -l <"$W/lines")" 7
check_equal "nodes in them" "$(awk 'NR > 1 {print $2}' "$W/lines" | sort | uniq -c | tr -s ' \n' ' ')" " 2 a 2 all 2 b "
grep -q $'\033' "$W/lines" && fail "escapes in a pipe"

# A screen, which is taken away again.
TERM=xterm LC_ALL=C.UTF-8 script -qec "stty rows 40 cols 100; '$EDDY_BUILD/eddy' stats -i 0.1 -n 3 --session '$W/mnt-a'" "$W/screen" >/dev/null </dev/null
grep -q $'\033\\[?1049h' "$W/screen" || fail "no screen on a terminal"
grep -q $'\033\\[?1049l' "$W/screen" || fail "the screen stays"
# Ctrl-C ends it, as no failure, and takes the screen away.
two_lines() { [ "$(wc -l <"$W/lines")" -ge 2 ]; }
code=0
in_background env --default-signal=INT "$EDDY_BUILD/eddy" stats -i 0.1 "$W/mnt-a" >"$W/lines"
stats=$!
wait_for 20 two_lines || fail "no lines: $(cat "$W/lines")"
kill -INT "$stats"
wait "$stats" || code=$?
check_equal "exit code after SIGINT" "$code" 0
grep -q 'own cache' "$W/screen" || fail "the screen does not tell the sources"

# A node that does not answer is named, and the others are told.
pause "${NODE_PID[b]}"
eddy stats -i 0.1 -n 1 --session --json "$W/mnt-a" >"$W/silent.json"
kill -CONT "${NODE_PID[b]}"
jq -e '.nodes[0].read_bytes == 0 and .nodes[1].error == "it does not answer" and .nodes[1].node == "b"' "$W/silent.json" >/dev/null ||
    fail "a node that is stopped: $(cat "$W/silent.json")"

# Metrics.
eddy metrics "$W/mnt-a" >"$W/metrics"
sum=$(awk '/^eddyfs_read_(local|peer|pfs)_bytes_total\{/ {s += $NF} END {printf "%d", s}' "$W/metrics")
check_equal "bytes read, by the metrics" "$sum" "$(eddy status --json "$W/mnt-a" | jq '.reads | add')"
grep -q '^eddyfs_operation_seconds_bucket{node="a",session="test",operation="read",le="+Inf"} [1-9]' "$W/metrics" ||
    fail "no histogram of reads"
grep -q "$W\|big\|/" <(grep -v '^#' "$W/metrics") && fail "a path in the metrics"
# Every line is a comment or a sample, each name has a type, and buckets only rise.
awk '/^# TYPE/ {type[$3] = $4; next} /^#/ {next}
     {name = $1; sub(/[{].*/, "", name); base = name; sub(/_(bucket|sum|count)$/, "", base)
      if (!(name in type) && type[base] != "histogram") {print "no type: " name; bad = 1}
      if ($0 !~ /^[a-z_]+[{][^}]*[}] [0-9.e+-]+$/) {print "no sample: " $0; bad = 1}}
     /_bucket/ {op = $1; sub(/.*operation="/, "", op); sub(/".*/, "", op)
      if (op == last && $NF < before) {print "falls: " $0; bad = 1}; last = op; before = $NF}
     END {exit bad}' "$W/metrics" || fail "the text is not Prometheus's"
if command -v promtool >/dev/null; then
    promtool check metrics <"$W/metrics" >"$W/promtool" 2>&1 || fail "promtool: $(cat "$W/promtool")"
fi

for wrong in "-i 0" "-i x" "-n 0" "-n -1"; do
    code=0
    # shellcheck disable=SC2086 # two words
    eddy stats $wrong "$W/mnt-a" 2>"$W/err" || code=$?
    check_equal "exit code of $wrong" "$code" 2
done
stop_node a
stop_node b
code=0
eddy stats -n 1 "$W/mnt-a" 2>"$W/err" || code=$?
check_equal "exit code without a daemon" "$code" 1
