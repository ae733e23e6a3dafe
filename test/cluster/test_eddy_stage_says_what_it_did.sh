#!/usr/bin/env bash
# eddy stage: what is where (--check), how far it is (--status), its end (--cancel, a signal, a time-out), what stays (--pin,
# unstage), what cannot be brought and why, what does not fit; links; lists; JSON.
# timeout: 300
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
MIB=1048576

for node in a b; do
    start_faultfs $node
    start_node $node "$W/pfs-$node" --cache-size 64M --flush-wait 3600 --attr-timeout 0
done
A=$W/mnt-a B=$W/mnt-b

# run CODE COMMAND ARGUMENT...: of eddy; what it says is in $W/said (standard output) and $W/complained.
run() {
    local expected=$1 code=0
    shift
    timeout 100 "$EDDY_BUILD/eddy" "$@" >"$W/said" 2>"$W/complained" || code=$?
    check_equal "code of eddy $* ($(cat "$W/said" "$W/complained"))" "$code" "$expected"
}
says() {
    grep -qF -- "$1" "$W/said" || fail "$1 is not said: $(cat "$W/said" "$W/complained")"
}
complains() {
    grep -qF -- "$1" "$W/complained" || fail "$1 is not complained of: $(cat "$W/said" "$W/complained")"
}
has() { # NODE FILE: bytes of it, as --check says
    local code=0
    timeout 100 "$EDDY_BUILD/eddy" stage --check --json "$A/$2" >"$W/has" || code=$?
    [ $code = 0 ] || [ $code = 6 ] || fail "eddy stage --check $2: $(cat "$W/has")" # 6: it does not fit
    jq --arg node "$1" '[.has[].nodes[] | select(.node == $node).bytes] | add // 0' "$W/has"
}
make() { # BYTES FILE...: on the PFS
    local bytes=$1
    shift
    for file in "$@"; do
        mkdir -p "$(dirname "$PFS/$file")"
        head -c "$bytes" /dev/urandom >"$PFS/$file"
    done
}
# Any node may own what is read, and read it for the other one.
both_faultfs() { # COMMAND...
    AT_A=$(tell_faultfs a "$@") AT_B=$(tell_faultfs b "$@")
}
one_waits() {
    fault_waits a "$AT_A" || fault_waits b "$AT_B"
}

# --- What is where, to the byte ---

make 100001 dir/one dir/sub/two
make $((3 * MIB + 7)) dir/three
run 0 stage --check "$A/dir"
says "dir/three: 3.0 MiB: at no node"
says "3 files, 3.2 MiB, of which 0 B are where they are to be; it fits"
run 0 stage --here --wait "$A/dir"
check_equal "bytes of one at a" "$(has a dir/one)" 100001
check_equal "bytes of three at a" "$(has a dir/three)" $((3 * MIB + 7))
owned=$(has b dir/three)
check_equal "bytes of three at b, which has read what it owns for a" "$owned" "$(stat_of b read_bytes dir/three)"
check_same "$B/dir/three" "$PFS/dir/three"
check_equal "bytes of three at b, which has read it" "$(has b dir/three)" $((3 * MIB + 7))
run 0 stage --check --json "$A/dir"
check_equal "the sums" "$(jq -c '[.files, .bytes, .here, .fits, .code, (.has | length)]' "$W/said")" \
    "[3,$((3 * MIB + 7 + 200002)),$((3 * MIB + 7 + 200002)),true,0,3]"

# --- Lists, paths that are relative, links ---

make 5000 list/one list/two list/three aside/four "$(printf 'list/a\nname')"
mkdir "$W/outside"
ln -s ../aside "$PFS/list/in"
ln -s . "$PFS/list/loop"
ln -s "$W/outside" "$PFS/list/out"
cd "$A/list" || exit
printf 'two\n../list/three\n' | run 0 stage --wait -f - one
check_equal "bytes of three at a" "$(has a list/three)" 5000
check_equal "bytes of four at a" "$(has a aside/four)" 0
printf 'a\nname\0' >"$W/names"
run 0 stage --wait -0 -f "$W/names"
cd "$W" || exit
check_equal "bytes of a strange name at a" "$(has a $'list/a\nname')" 5000
run 0 stage --wait --json "$A/list"
check_equal "skipped" "$(jq -c '[.skipped[].path, .files, .code]' "$W/said")" "[\"$A/list/out\",5,0]"
check_equal "bytes of four at a" "$(has a aside/four)" 5000

# --- What cannot be brought ---

make 7000 mixed/good mixed/away mixed/denied
head -c 4000 /dev/urandom >"$B/mixed/away"
both_faultfs error EIO read path=mixed/denied
run 5 stage --wait "$A/mixed" "$A/missing"
says "$A/mixed/away: node b has bytes of it that are not on the PFS"
says "$A/mixed/denied: node a: Input/output error"
says "$A/missing: No such file or directory"
check_equal "paths with a reason" "$(wc -l <"$W/said")" 3
check_equal "bytes of good at a" "$(has a mixed/good)" 7000
check_equal "size of away on the PFS, which was not flushed" "$(stat -c %s "$PFS/mixed/away")" 7000
check_equal "bytes of away at b" "$(has b mixed/away)" 4000
run 1 stage --wait "$A/missing"
run 0 stage --status "$A/mixed" # the last one, and its reasons
says "  $A/mixed/denied: node a: Input/output error"
run 0 stage --cancel --json "$A/mixed" # what has ended is not cancelled
check_equal "the stages that were cancelled" "$(jq '[.[] | select(.state != "ended")] | length' "$W/said")" 0
run 1 stage --wait "$W/outside"
both_faultfs clear
run 5 stage --wait --json "$A/mixed"
check_equal "failed, as JSON" "$(jq -r '[.failed[].path, (.code | tostring)] | join(" ")' "$W/said")" "$A/mixed/away 5"
for wrong in "" "--here --spread $A" "--pin=soon $A" "--timeout x $A" "--status" "--check --status $A"; do
    # shellcheck disable=SC2086
    run 2 stage $wrong
done
run 2 unstage
run 1 stage -f "$W/no-list"

# --- What does not fit ---

make $((10 * MIB)) big/{1,2,3,4,5,6}
run 6 stage --here --wait "$A/big"
complains "it does not fit: a would have to keep 60.0 MiB"
check_equal "bytes read of what does not fit" "$(stat_of a read_bytes big/1)" 0
run 6 stage --check --json "$A/big"
check_equal "the check of what does not fit" "$(jq -c '[.fits, .node, .needed, .code]' "$W/said")" "[false,\"a\",$((60 * MIB)),6]"
run 0 stage --check --spread "$A/big"
run 0 stage --spread --wait "$A/big"
check_equal "bytes that both have" "$(($(has a big) + $(has b big)))" $((60 * MIB))
run 0 unstage "$A/big"

# --- It goes on, is looked at, and ends ---

make $((2 * MIB)) long/{1,2,3,4,5,6,7,8,9,10}
both_faultfs hang read path=long/5
run 0 stage "$A/long"
id=$(cat "$W/said")
[[ $id =~ ^[0-9a-f]{8}$ ]] || fail "no number: $id"
wait_for 30 one_waits || fail "the fifth file is not read"
run 0 stage --status "$id"
says "$id: $A: going on: "
run 0 stage --status --json "$A/long/3"
check_equal "the stage of a path" "$(jq -r '[.[] | select(.state == "going on").id] | join(" ")' "$W/said")" "$id"
run 0 stage --status --json "$A/dir"
check_equal "the stages of another path" "$(jq -r '[.[] | select(.state == "going on").id] | join(" ")' "$W/said")" ""
run 1 stage --status 00000000
run 5 stage --status "$id" 00000000
run 0 stage --cancel "$id"
both_faultfs clear
is_cancelled() {
    "$EDDY_BUILD/eddy" stage --status "$id" | grep -q ": cancelled: "
}
wait_for 30 is_cancelled || fail "it does not end"
run 0 stage --wait --quiet "$A/long" # and goes on
check_equal "bytes at a" "$(has a long)" $((20 * MIB))
check_equal "what --quiet says" "$(cat "$W/said" "$W/complained")" ""
run 0 unstage "$A/long"

make $((2 * MIB)) late/{1,2,3,4,5,6}
both_faultfs hang read path=late/3
run 124 stage --timeout 2 "$A/late"
complains "the time is over"
env --default-signal=INT "$EDDY_BUILD/eddy" stage --wait "$A/late" >"$W/said" 2>"$W/complained" &
job=$!
record_process "$W" "$job"
goes_on() {
    "$EDDY_BUILD/eddy" stage --status "$A/late" | grep -q "going on"
}
wait_for 30 goes_on || fail "eddy stage does not ask"
kill -INT "$job"
code=0
wait "$job" || code=$?
check_equal "code of an interrupted stage" "$code" 130
complains "interrupted"
if command -v script >/dev/null; then
    script -qefc "echo \$\$ >$W/staging; exec env --default-signal=INT $EDDY_BUILD/eddy stage --timeout 60 $A/late" /dev/null >"$W/terminal" </dev/null &
    job=$!
    record_process "$W" "$job"
    wait_for 30 grep -qs 'staging: .* of 12.0 MiB' "$W/terminal" || fail "no progress line: $(cat -v "$W/terminal")"
    kill -INT "$(cat "$W/staging")"
    code=0
    wait "$job" || code=$?
    check_equal "code on a terminal" "$code" 130
fi
both_faultfs clear
not_going_on() { ! goes_on; }
wait_for 30 not_going_on || fail "an interrupted stage goes on"
run 0 stage --wait "$A/late"
check_equal "bytes at a" "$(has a late)" $((12 * MIB))
run 0 unstage --all "$A"

# --- What is pinned stays, until its time is over or it is let go ---

fill_cache() { # with other files, far more than it has room for; each time with others, as the kernel keeps their pages
    FILLED=$((${FILLED-0} + 1))
    make $((8 * MIB)) "other$FILLED"/{1,2,3,4,5,6,7,8,9,10,11,12}
    for i in $(seq 12); do cat "$A/other$FILLED/$i" >/dev/null; done
}
make $((8 * MIB)) pinned/{1,2,3,4} unpinned/{1,2}
run 0 stage --wait --pin "$A/pinned"
run 0 stage --wait --pin "$A/pinned" # it has the room already
run 0 stage --wait "$A/pinned" # and its end is not that of the pin
run 0 stage --wait "$A/unpinned"
check_equal "bytes that are kept for stages, and pinned" "$(status_of a '.hints | [.staged_bytes, .pinned_bytes] | tostring')" \
    "[$((32 * MIB)),$((32 * MIB))]"
in_background "$EDDY_BUILD/eddy" hint "$A"/pinned/{1,2,3,4} # a reader that tells when it has read it lets nothing go
hint=$!
all_are_hinted() {
    [ "$(status_of a .hints.hints)" = 4 ]
}
wait_for 30 all_are_hinted || fail "what is pinned is not hinted: $(status_of a .hints)"
cat "$A"/pinned/{1,2,3,4} >/dev/null
wait "$hint" || fail "eddy hint ended with $?"
fill_cache
check_equal "bytes of what is pinned, at a" "$(has a pinned)" $((32 * MIB))
[ "$(has a unpinned)" -lt $((16 * MIB)) ] || fail "what is not pinned has stayed: the cache was not filled"
run 6 stage --wait --pin "$A/other1"
run 0 unstage "$A/pinned/2"
fill_cache
check_equal "bytes of what is pinned, after an unstage of the other file" "$(has a pinned/1)" $((8 * MIB))
[ "$(has a pinned/2)" -lt $((8 * MIB)) ] || fail "the file that was let go has stayed"
cd "$A" || exit
run 0 unstage --all
cd "$W" || exit
fill_cache
[ "$(has a pinned/1)" -lt $((8 * MIB)) ] || fail "what was let go has stayed"
run 0 stage --wait --pin=1s "$A/pinned"
leaves() {
    fill_cache
    [ "$(has a pinned)" -lt $((32 * MIB)) ]
}
wait_for 60 leaves || fail "it stays when its time is over"

stop_node a
stop_node b
