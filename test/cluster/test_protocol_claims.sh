#!/usr/bin/env bash
# Claims of files among nodes that are killed and started again: one node has it, or nobody knows who and it is lost.
# timeout: 300
# sanitize-long
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=protonodes.sh
. "$(dirname "$0")/protonodes.sh"

step() {
    echo "--- $* ($SECONDS s)"
}

step "three start at once: one view of three, which is settled"
up a b c
wait_for_view a,b,c - a b c
for n in a b c; do
    becomes 20 '* settled 1' "$n" view
done

step "two ask for one claim: one has it, the other is sent there"
for i in $(seq 8); do
    echo x >"$PFS/both$i"
    say a open-writer "both$i"; tag_a=$TAG
    say b open-writer "both$i"; tag_b=$TAG
    got="$(answer a "$tag_a") $(answer b "$tag_b")"
    case $got in
        "HERE NODE a"*) winner=a loser=b ;;
        "NODE b"*" HERE") winner=b loser=a ;;
        *) fail "open-writer of both$i on a and b: $got" ;;
    esac
    expect "NODE $winner *" c where "both$i"
    expect OK "$winner" close-writer "both$i"
    becomes 10 PFS c where "both$i"
    expect HERE "$loser" open-writer "both$i"
    expect OK "$loser" close-writer "both$i"
    becomes 10 PFS c where "both$i"
done

step "many files are claimed by many nodes"
for i in $(seq 30); do
    echo x >"$PFS/many$i"
    expect HERE a open-writer "many$i"
done
for i in $(seq 30); do
    expect 'NODE a' b open-writer "many$i"
    expect OK a close-writer "many$i"
done
becomes 10 'claims 0 *' a status

step "a claimant is killed: its file is lost, the others are not; it returns: its file is served"
dirty=$(file_at a a)
expect HERE c open-writer "$dirty"
expect OK c write "$dirty" 0 unflushed
expect 'NODE c 9' a where "$dirty"
other=$(SKIP=1 file_at a a)
crash c
becomes 30 'LOST c' a where "$dirty"
expect EIO a open-writer "$dirty"
expect EIO b open-writer "$dirty"
expect PFS b where "$other"
expect HERE b open-writer "$other"
expect OK b close-writer "$other"
wait_for_view a,b c a b
up c
wait_for_view a,b,c - a b c
becomes 10 'NODE c 9' a where "$dirty"
becomes 10 'NODE c 9' b where "$dirty"
expect 'NODE c' b open-writer "$dirty"
expect '"unflushed"' c read "$dirty"

step "a home is killed: the next one knows its claims"
claimed=$(file_at a b c)
free=$(SKIP=1 file_at a b c)
expect HERE a open-writer "$claimed"
crash b
becomes 30 'NODE a *' c where "$claimed"
expect 'NODE a' c open-writer "$claimed"
expect OK a close-writer "$claimed"
becomes 10 PFS c where "$claimed"
expect HERE c open-writer "$claimed"
expect HERE a open-writer "$free"
up b
wait_for_view a,b,c - a b c
becomes 10 'NODE c *' b where "$claimed"
becomes 10 'NODE a *' b where "$free"
expect OK c close-writer "$claimed"
expect OK a close-writer "$free"
becomes 10 PFS b where "$claimed"

step "a home stands still: the next one tells where its files are, in the same view"
still=$(NOT="$dirty" file_at a b c)
free=$(SKIP=1 NOT="$dirty" file_at a b c)
given_back=$(SKIP=2 NOT="$dirty" file_at a b c)
expect HERE a open-writer "$still"
expect HERE a open-writer "$given_back"
expect OK a close-writer "$given_back"
becomes 10 PFS c where "$given_back"
view=$(ask a view)
pause "${P_PID[b]}"
start=$SECONDS
expect 'NODE a *' c where "$still" # by the next one itself
expect PFS c where "$free"
expect PFS a where "$free" # by another one
expect PFS a where "$given_back"
[ $((SECONDS - start)) -lt 8 ] || fail "it took $((SECONDS - start)) s"
kill -CONT "${P_PID[b]}"
becomes 10 'NODE a *' b where "$still"
check_equal "view" "$(ask a view)" "$view"
expect OK a close-writer "$still"
becomes 10 PFS b where "$still"

step "the home and the claimant are killed: next has the record"
both=$(file_at a b a)
expect HERE c open-writer "$both"
expect OK c write "$both" 0 more
crash b c
becomes 40 'LOST c' a where "$both"
up b
becomes 20 'LOST c' b where "$both"
expect EIO b open-writer "$both"
up c
wait_for_view a,b,c - a b c
becomes 10 'NODE c 4' b where "$both"

step "home and next are killed: nobody knows what they knew; the others' files go on"
blind=$(file_at a b c)
known=$(SKIP=1 file_at a a)
expect HERE a open-writer "$blind"
crash b c
wait_for_view a b,c a
becomes 10 'PFS' a where "$known"
expect HERE a where "$blind"
expect OK a close-writer "$blind"
lost=0
for i in $(seq 60); do
    [ -e "$PFS/f$i" ] || echo "$i" >"$PFS/f$i"
    [[ $(ask a where "f$i") != LOST* ]] || lost=$((lost + 1))
done
[ "$lost" -gt 5 ] || fail "only $lost of 60 files are lost with two of three nodes"
[ "$lost" -lt 55 ] || fail "$lost of 60 files are lost with two of three nodes"
becomes 10 PFS a where "$blind" # its claimant said so: it is known though its home and next are gone
up b c
wait_for_view a,b,c - a b c
for i in $(seq 60); do
    [ "f$i" = "$dirty" ] || [ "f$i" = "$both" ] || becomes 10 PFS a where "f$i"
done
expect 'NODE c *' a where "$dirty"

step "the keeper is killed and started again at once, while the others still have the old one in the view"
for n in a b c; do
    crash "$n"
    up "$n"
    wait_for_view a,b,c - a b c
done
becomes 20 'NODE c 9' a where "$dirty"
becomes 40 HERE a open-writer many1
expect OK a close-writer many1

step "one is killed and started three times in a row"
for i in 1 2 3; do
    crash b
    start_protonode b
done
crash b
up b
wait_for_view a,b,c - a b c

step "all are killed and started again: nothing is lost"
crash a b c
up a b c
wait_for_view a,b,c - a b c
becomes 40 'NODE c 9' a where "$dirty"
becomes 40 'NODE c 4' b where "$both"
expect '"unflushed"' c read "$dirty"
becomes 40 HERE a open-writer many2
expect 'NODE a' b open-writer many2
expect OK a close-writer many2
