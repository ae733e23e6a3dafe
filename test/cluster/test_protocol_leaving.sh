#!/usr/bin/env bash
# Nodes that leave cleanly, alone and together, and nodes that are paused or alone: who acts, and when.
# timeout: 240
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=protonodes.sh
. "$(dirname "$0")/protonodes.sh"

step() {
    echo "--- $* ($SECONDS s)"
}

# The first of the view makes the others'; "d" leaves together with it.
first_of() {
    local view
    view=$(ask "$1" view)
    # shellcheck disable=SC2086 # words
    set -- $view
    echo "${2%%,*}"
}

up a b c d
wait_for_view a,b,c,d - a b c d
becomes 20 '* settled 1' a view

step "one leaves: it is not absent, and claims can be had without waiting for its lease"
f=$(file_at a d a)
expect HERE c open-writer "$f"
leave d
wait_for_view a,b,c - a b c
for n in a b c; do
    becomes 3 '* settled 1' "$n" view # W is 5 s
done
expect 'NODE c *' b where "$f"
expect OK c close-writer "$f"
becomes 5 HERE b open-writer "$f"
expect OK b close-writer "$f"

step "the keeper leaves"
up d
wait_for_view a,b,c,d - a b c d
becomes 20 '* settled 1' a view
keeper=$(first_of a)
rest=()
for n in a b c d; do
    [ "$n" = "$keeper" ] || rest+=("$n")
done
leave "$keeper"
wait_for_view "$(sorted "$(IFS=,; echo "${rest[*]}")")" - "${rest[@]}"
becomes 3 '* settled 1' "${rest[0]}" view
up "$keeper"
wait_for_view a,b,c,d - a b c d

step "two leave at once, the keeper is one of them"
keeper=$(first_of a)
other=a
[ "$keeper" != a ] || other=b
rest=()
for n in a b c d; do
    [ "$n" = "$keeper" ] || [ "$n" = "$other" ] || rest+=("$n")
done
leave "$keeper" "$other"
wait_for_view "$(sorted "$(IFS=,; echo "${rest[*]}")")" - "${rest[@]}"
becomes 3 '* settled 1' "${rest[0]}" view

step "all leave at once, and start again at once"
up "$keeper" "$other"
wait_for_view a,b,c,d - a b c d
leave a b c d
view=$(find "$W/sessions" -path '*/views/*' | sort | tail -n 1)
check_equal "members of the last view" "$(sed -n 's/^members //p' "$view")" 0
check_equal "absent nodes of the last view" "$(sed -n 's/^absent //p' "$view")" 0
up a b
wait_for_view a,b - a b
becomes 3 '* settled 1' a view
expect HERE b open-writer "$f"
expect OK b close-writer "$f"

step "the last one leaves while another one is absent with a claim: it is not forgotten"
g=$(file_at a a)
expect HERE b open-writer "$g"
expect OK b write "$g" 0 kept
crash b
wait_for_view a b a # one of two has no majority: it waits, and goes on
expect 'LOST b' a where "$g"
leave a
up a
becomes 20 'LOST b' a where "$g"
expect EIO a open-writer "$g"
up b
wait_for_view a,b - a b
becomes 10 'NODE b 4' a where "$g"

step "a node is paused: the others go on without it; it wakes, is fenced, and joins again"
up c
wait_for_view a,b,c - a b c
h=$(NOT=$g file_at a c a) # b has a claim on g
mine=$(NOT="$g $h" file_at a c a)
becomes 20 HERE c open-writer "$mine"
expect OK c lock "$h" fcntl w 0 9 1
becomes 20 '* settled 1' a view
pause "${P_PID[c]}"
wait_for_view a,b c a b
expect 'LOST c' a where "$mine"
becomes 20 HERE a open-writer "$h" # c was its home
expect EIO b lock "$h" fcntl w 0 0 1
say c where "$h"; tag_where=$TAG
say c open-writer "$h"; tag_open=$TAG
say c view; tag_view=$TAG
kill -CONT "${P_PID[c]}"
# What it says at first is not under the old view's lease.
[[ $(answer c "$tag_view") != *'lease 1'* || $(answer c "$tag_view") == *a,b* ]] ||
    fail "c has a lease for $(answer c "$tag_view")"
got=$(answer c "$tag_where")
[[ $got == 'NODE a '* ]] || fail "c, which was paused, says of a's file: $got"
check_equal "open of a's file on c" "$(answer c "$tag_open")" 'NODE a'
wait_for_view a,b,c - a b c
becomes 10 'NODE c *' a where "$mine" # its claim has held all the time
becomes 10 EAGAIN b lock "$h" fcntl w 0 0 1
expect OK c unlock "$h" fcntl 0 9 1
becomes 10 OK b lock "$h" fcntl w 0 0 1
expect OK b drop "$h" fcntl 1
expect OK c close-writer "$mine"
expect OK a close-writer "$h"
becomes 10 PFS b where "$mine"
becomes 10 PFS b where "$h"
leave a c
quit b
