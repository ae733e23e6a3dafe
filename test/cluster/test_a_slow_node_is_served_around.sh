#!/usr/bin/env bash
# A node that stands still is suspected and served around, also as the home of what is read, and is in full use again when
# it goes on: no view is made without it. One that waits for a slow PFS is not suspected. One that is killed is known at once.
# timeout: 150
# alone
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
head -c 24M /dev/urandom >"$PFS/first"
for n in 1 2 3 4 5 6 7 8; do
    head -c 24M /dev/urandom >"$PFS/second$n"
done
head -c 24M /dev/urandom >"$PFS/third"
TIMES=(--suspect-after 2.5 --dead-after 30 --open-wait 60)
for n in a b c; do
    start_faultfs "$n"
    start_node "$n" "$W/pfs-$n" --no-passthrough "${TIMES[@]}"
done
joined() {
    [ "$(status_of a '.members | length')" = 3 ] && [ "$(status_of a .view.number)" = "$(status_of b .view.number)" ]
}
wait_for 30 joined || fail "the nodes do not meet"
check_equal "times" "$(status_of a '.times | "\(.suspect_ms) \(.dead_ms) \(.lease_ms) \(.wait_ms) \(.open_ms)"')" \
    "2500 30000 4000 5000 60000"
[[ $(eddy status "$W/mnt-a") == *"suspected after 2.5 s, dead after 30 s; lease 4 s, wait 5 s; opens wait 60 s"* ]] ||
    fail "eddy status does not tell the times"
code=0
timeout 30 "$EDDY_BUILD/eddyfs" -f --listen 127.0.0.1 --session test --node d --cache-dir "$W/cache-d" \
    "$W/pfs-a" "$W/pfs" >"$W/said" 2>&1 || code=$?
check_equal "code of a node with other times" "$code" 1
grep -q -e "--suspect-after 2.5 --dead-after 30 --lease 4 --open-wait 60" "$W/said" || fail "it says: $(cat "$W/said")"

suspicions() {
    status_of "$1" .counters.suspicions
}
view=$(status_of a .view.number)
state_of_c() {
    [ "$(status_of "$1" '.members[] | select(.name == "c") | .state')" = "$2" ]
}

# c waits for its PFS for longer than it may be silent: who asks it waits, too, and does not read in its place
suspected=$(($(suspicions a) + $(suspicions b)))
hang=$(tell_faultfs c hang read path=first)
cmp "$W/mnt-a/first" "$PFS/first" >"$W/cmp.out" 2>&1 &
reader=$!
record_process "$W" "$reader"
wait_for 20 fault_waits c "$hang" || fail "c reads nothing of the PFS"
sleep 5 # that long is twice --suspect-after
kill -0 "$reader" 2>/dev/null || fail "somebody else has read in the place of c"
tell_faultfs c clear "$hang" >/dev/null
wait "$reader" || fail "wrong bytes: $(cat "$W/cmp.out")"
check_equal "suspicions while c's PFS was slow" "$(($(suspicions a) + $(suspicions b)))" "$suspected"
[ "$(status_of c .counters.served_bytes)" -gt 1000000 ] || fail "c did not serve its share"

# c stands still: a file of which it is the home and one of another home are read, looked at and opened
second='' stopped=''
for n in 1 2 3 4 5 6 7 8; do
    if eddy ring "$W/mnt-a/second$n" | grep -q '^  home   c,'; then stopped=second$n; else second=second$n; fi
done
[ -n "$second" ] || skip "c is the home of all files"
[ -n "$stopped" ] || skip "c is the home of no file"
exec 7<"$W/mnt-a/$second" 8<"$W/mnt-a/$stopped"
pause "${NODE_PID[c]}"
start=$SECONDS
cmp - "$PFS/$second" <&7 || fail "wrong bytes"
cmp - "$PFS/$stopped" <&8 || fail "wrong bytes of a file whose home stands still"
exec 7<&- 8<&-
check_equal "size, by a node that has not looked yet" "$(stat -c %s "$W/mnt-b/$stopped")" $((24 << 20))
check_same "$W/mnt-b/$stopped" "$PFS/$stopped"
[ $((SECONDS - start)) -lt 20 ] || fail "reads took $((SECONDS - start)) s"
wait_for 20 state_of_c a suspected || fail "c is not suspected by who asked it"
[ "$(suspicions a)" -gt 0 ] || fail "no suspicion is counted"
kill -CONT "${NODE_PID[c]}"
wait_for 10 state_of_c a ok || fail "c is not back in use at a"
wait_for 10 state_of_c b ok || fail "c is not back in use at b"
served=$(status_of c .counters.served_bytes)
check_same "$W/mnt-a/third" "$PFS/third"
[ "$(status_of c .counters.served_bytes)" -gt $((served + 1000000)) ] || fail "c is not asked any more"
check_equal "view" "$(status_of a .view.number)" "$view"

# c is killed: its host refuses connections, and nobody waits for 30 s
kill_node c
without_c() {
    [ "$(status_of a '.members | length')" = 2 ]
}
wait_for 10 without_c || fail "the death of a process is not known at once"
stop_node a
stop_node b
