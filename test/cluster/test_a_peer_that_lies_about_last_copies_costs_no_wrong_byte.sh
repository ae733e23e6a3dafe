#!/usr/bin/env bash
# A member that knows the secret says that it keeps what it does not have, is silent, answers wrong, or dies before it answers; and asks
# others, many thousand times at once, to keep what is not its own, and what nobody has. Nodes that keep chunks for others are killed, too. Every
# byte that is read is right, also after the file was written and cut while others kept its chunks; and no node's memory grows.
# timeout: 300
# sanitize-long
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=protonodes.sh
. "$(dirname "$0")/protonodes.sh"
requires fuse cmd jq free 3000
MIB=1048576
CHUNKS=96
FLOOD=${FLOOD:-3000}
ROUNDS=${ROUNDS:-1}
PROTO_SESSIONS=$PFS/.eddyfs-$(id -u)
PROTO_OPTIONS=(--lie)

begin() {
    start_node "$1" "$PFS" --cache-size 64M --flush end --dirty-high 90% --dirty-low 85%
}
have() { # COUNT: that many members, as each of a, b and c sees it
    local n
    for n in a b c; do
        [ "$(status_of "$n" '.members | length')" = "$1" ] || return 1
    done
}
# new_input NAME: what is read from now on; nobody keeps any of it yet
new_input() {
    head -c $((CHUNKS * MIB)) /dev/urandom >"$W/expected"
    cp "$W/expected" "$PFS/$1"
    INPUT=$1
}
# Past the kernel's page cache, so that the caches of the nodes are what counts.
reads_right() {
    local n
    for n in "$@"; do
        dd if="$W/mnt-$n/$INPUT" bs=1M iflag=direct status=none | cmp - "$W/expected" || fail "node $n reads other bytes"
    done
}
counter() {
    status_of "$1" ".counters.$2 // 0"
}
asked_more() {
    [ "$(ask liar asked)" -gt "$1" ]
}
# asks_liar: a, which has no room for what it owns, asks the liar, which says that it has everything, to keep chunks
asks_liar() {
    local before
    before=$(ask liar asked)
    expect "said *" liar has "$INPUT" $CHUNKS
    for _ in 1 2 3; do
        reads_right a b c
        ! asked_more "$before" || return 0
    done
    fail "the liar was not asked"
}
# flood WHEN: all at once, to each node
flood() {
    local before after got
    for n in a b c; do
        before=$(awk '/VmRSS/ { print $2 }' "/proc/${NODE_PID[$n]}/status")
        got=$(ask liar keep "$n" "$INPUT" $CHUNKS "$FLOOD")
        after=$(awk '/VmHWM/ { print $2 }' "/proc/${NODE_PID[$n]}/status")
        echo "flood at $n, $1: $got; from $before to at most $after KiB"
        [[ $got == *" lies 0 "* ]] || fail "$n says that it keeps what it cannot have"
        [[ $got != "yes 0 "* ]] || [ "$1" = full ] || fail "$n keeps nothing"
        [ $((after - before)) -lt 65536 ] || [ -n "${ASAN_OPTIONS-}" ] || fail "$n has taken memory: $before, $after KiB"
    done
}
for n in a b c; do begin "$n"; done
up liar
wait_for 60 have 4 || fail "not all are members"

new_input input
head -c $((50 * MIB)) "$W/expected" >"$W/part" && mv "$W/part" "$W/expected"
truncate -s $((50 * MIB)) "$PFS/input"
reads_right a b c
reads_right c b a
flood "with room"
reads_right a b c
head -c $((48 * MIB)) /dev/zero >"$W/mnt-a/output"

for how in silent error other yes; do
    new_input "input-$how"
    expect OK liar says $how
    asks_liar
    reads_right b c a
    echo "$how: asked $(ask liar asked); a let go $(counter a let_go), redirects in vain $(counter a redirects_in_vain)"
done
[ "$(counter a let_go)" -gt 0 ] || fail "a let nothing go"
wait_for 60 have 4 || fail "the liar is no member any more"

flood full
reads_right a b c

# New bytes, in place; then the file is cut, and is longer again.
head -c $((8 * MIB)) /dev/urandom >"$W/new"
dd if="$W/new" of="$W/expected" bs=1M seek=11 conv=notrunc status=none
dd if="$W/new" of="$W/mnt-b/$INPUT" bs=1M seek=11 conv=notrunc status=none
reads_right c a b
truncate -s $((50 * MIB + 77)) "$W/expected" "$W/mnt-c/$INPUT"
truncate -s $((CHUNKS * MIB)) "$W/expected" "$W/mnt-c/$INPUT"
reads_right a b c
reads_right c b a
WRITTEN=$INPUT
mv "$W/expected" "$W/written"

# It dies when it is asked, before it has answered.
is_gone() {
    ! kill -0 "${P_PID[liar]}" 2>/dev/null
}
for round in $(seq "$ROUNDS"); do
    new_input "input-$round"
    expect "said *" liar has "$INPUT" $CHUNKS
    say liar says die # which may be at once
    dies() {
        reads_right a b c
        is_gone
    }
    wait_for 60 dies || fail "round $round: the liar was not asked"
    gone liar
    reads_right b a c
    up liar
    wait_for 60 have 4 || fail "not all are members again"
done

# So does a node that keeps chunks for others, and one that has let its own go, while all read.
for victim in b a; do
    new_input "input-$victim"
    expect OK liar says yes
    expect "said *" liar has "$INPUT" $CHUNKS
    survivors=()
    for n in a b c; do [ "$n" = "$victim" ] || survivors+=("$n"); done
    readers=()
    for n in "${survivors[@]}"; do
        in_background reads_right "$n"
        readers+=($!)
    done
    in_background dd if="$W/mnt-$victim/$INPUT" of=/dev/null bs=1M iflag=direct status=none
    dead=$!
    sleep "0.$((RANDOM % 10))" # somewhere in the middle of things
    kill_node "$victim"
    wait "$dead" 2>/dev/null || true
    for r in "${readers[@]}"; do
        wait "$r" || fail "a survivor of $victim did not read on"
    done
    reads_right "${survivors[@]}"
    begin "$victim"
    wait_for 60 have 4 || fail "not all are members after the death of $victim"
    reads_right a b c
done
leave liar
for n in a b c; do stop_node "$n"; done
cmp "$PFS/$WRITTEN" "$W/written" || fail "the PFS has other bytes"
check_same "$PFS/output" <(head -c $((48 * MIB)) /dev/zero)
