#!/usr/bin/env bash
# Nodes that look at a file are told before another one is granted its claim: each once, nobody else, whatever dies or
# stands still meanwhile, and by nobody but the home.
# timeout: 400
# sanitize-long
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=protonodes.sh
. "$(dirname "$0")/protonodes.sh"

FILES=${EDDY_PRETEND_FILES-200000}

step() {
    echo "--- $* ($SECONDS s)"
}

# count WHAT NAME: sent, received, open, lookers, ended.
count() {
    local line
    line=" $(ask "$2" looks)"
    line=${line#* "$1" }
    echo "${line%% *}"
}

# told MORE...: NAME=N: so many BREAKs have come to it since mark. The others: none.
mark() {
    local n
    for n in "${!P_PID[@]}"; do
        MARK[$n]=$(count received "$n")
    done
}
declare -A MARK
told() {
    local n pair
    declare -A more
    for pair in "$@"; do
        more[${pair%=*}]=${pair#*=}
    done
    for n in "${!P_PID[@]}"; do
        check_equal "BREAKs at $n" "$(($(count received "$n") - MARK[$n]))" "${more[$n]-0}"
    done
}

# claim_and_back NAME PATH
claim_and_back() {
    expect HERE "$1" open-writer "$2"
    expect OK "$1" close-writer "$2"
    becomes 10 PFS "$1" where "$2"
}

# pick VARIABLE HOME [NEXT]: a file that no other step has.
pick() {
    local got
    got=$(NOT=$USED file_at a "${@:2}")
    USED+=" $got"
    printf -v "$1" %s "$got"
}
USED='' f='' kept=''

# In the first second or so of a view a home tells all that were in the view before.
late_enough() {
    local sent
    sent=$(count sent "$1")
    expect HERE "$2" open-writer "$3"
    expect OK "$2" close-writer "$3"
    wait_for 10 answers PFS "$2" where "$3"
    [ "$(count sent "$1")" = "$sent" ]
}
# settle HOME NAME: a file that no test uses, with this home.
settle() {
    local f
    f=$(NOT=$USED file_at "$2" "$1")
    wait_for 20 late_enough "$1" "$2" "$f" || fail "$1 tells all nodes of each claim"
}

step "four nodes"
up a b c d
wait_for_view a,b,c,d - a b c d
for n in a b c d; do
    settle "$n" a
done

for home in a b c; do
    step "the home is $home: one that has looked is told once, the others never"
    pick f "$home"
    mark
    expect 'PFS keep' b look "$f" stat
    claim_and_back a "$f"
    told b=1
    expect no b holds "$f"
    mark
    claim_and_back a "$f" # a itself has it from then on for a moment, as one that looks
    told
    expect 'PFS keep' c look "$f" stat
    expect yes c holds "$f"
done

step "three that look are told once each, and not again while they share the file"
pick f b
for n in b c d; do
    expect 'PFS keep' "$n" look "$f" open
done
mark
expect HERE a open-writer "$f"
told b=1 c=1 d=1
mark
for n in b c d; do
    expect no "$n" holds "$f"
    expect 'NODE a' "$n" look "$f" stat
done
expect HERE a open-writer "$f"
expect 'NODE a' b open-writer "$f"
expect OK a close-writer "$f"
expect OK a close-writer "$f"
becomes 10 PFS c where "$f"
expect HERE a open-writer "$f" # nobody has asked since
told
expect OK a close-writer "$f"
for n in b c d; do
    expect OK "$n" closed "$f"
done

step "a file that was closed again is not looked at any more"
pick f b
expect 'PFS keep' c look "$f" open
expect 'lookers c:open' b lookers "$f"
expect OK c closed "$f"
becomes 20 lookers b lookers "$f"
mark
claim_and_back a "$f"
told

step "a look by name is over after a moment"
pick f b
expect 'PFS keep' c look "$f" stat
expect 'lookers c:stat' b lookers "$f"
becomes 20 lookers b lookers "$f"
mark
claim_and_back a "$f"
told

step "what is left at a node makes it a watcher"
pick f b
expect OK c left 3
expect OK d left 1
expect 'PFS keep' c look "$f" open
expect 'PFS keep' d look "$f" open
expect 'PFS keep' b look "$f" open
expect HERE a open-writer "$f"
check_equal "a's watchers" "$(ask a watchers "$f" | tr ' ' '\n' | sort | xargs)" 'b:8 c:11 d:9 watchers'
expect OK a close-writer "$f"
becomes 10 PFS c where "$f"
mark
expect HERE a open-writer "$f" # they are still there
told c=1 d=1
check_equal "a's watchers" "$(ask a watchers "$f" | tr ' ' '\n' | sort | xargs)" 'b:8 c:11 d:9 watchers'
expect OK a close-writer "$f"
for n in b c d; do
    expect OK "$n" closed "$f"
    expect OK "$n" left 0
done

step "a node that has the file open, and keeps nothing, is named in each grant, and told once"
pick f b
expect 'PFS keep' d look "$f" open
mark
expect HERE a open-writer "$f"
told d=1
expect 'watchers d:8' a watchers "$f"
expect OK a close-writer "$f"
becomes 10 'lookers *d:quiet*' b lookers "$f"
mark
expect HERE a open-writer "$f"
told
expect 'watchers d:8' a watchers "$f"
expect OK a close-writer "$f"
expect OK d closed "$f"
becomes 20 lookers b lookers "$f"
expect HERE a open-writer "$f"
expect watchers a watchers "$f"
expect OK a close-writer "$f"

step "nobody but the home breaks"
pick f b
expect 'PFS keep' c look "$f" open
mark
expect 'ask again' a break c "$f"
expect 'ask again' d break c "$f"
told
expect yes c holds "$f"
expect OK b break c "$f"
expect OK b break c "$f"
expect no c holds "$f"
told c=2
expect OK c closed "$f"

step "one that stands still is waited for"
pick f b a # c is not next: the record would wait for it
expect 'PFS keep' c look "$f" open
expect 'PFS keep' d look "$f" open
mark
sent=$(count sent b)
pause "${P_PID[c]}"
say a open-writer "$f"
tag=$TAG
sent_more() {
    [ "$(count sent b)" -ge $((sent + 3)) ] # to c again, too
}
wait_for 20 sent_more || fail "b does not ask again"
! has_answered_tag a "$tag" || fail "a was granted a claim that c has not heard of"
expect 'PFS -' d look "$f" stat # until then nothing has changed
kill -CONT "${P_PID[c]}"
check_equal "open-writer" "$(answer a "$tag")" HERE
expect no c holds "$f"
expect OK a close-writer "$f"
wait_for_view a,b,c,d - a b c d
expect OK c closed "$f"
expect OK d closed "$f"

step "one that dies is not waited for when it is out of the view, and the others believe nothing of before"
pick f b a
pick kept b
expect 'PFS keep' c look "$f" open
expect OK d left 0
expect 'PFS keep' d look "$kept" open
mark
ended=$(count ended d)
pause "${P_PID[c]}"
say a open-writer "$f"
tag=$TAG
crash c
wait_for_view a,b,d c a b d
check_equal "open-writer" "$(answer a "$tag")" HERE
expect OK a close-writer "$f"
becomes 20 "* ended $((ended + 1))" d looks # c might have had the claim, and go on
told
expect OK d closed "$kept"
up c
wait_for_view a,b,c,d - a b c d
for n in a b c d; do
    settle "$n" a
done

step "one that was out of the view believes nothing of before when it is back"
pick kept b
expect 'PFS keep' d look "$kept" open
ended=$(count ended d)
pause "${P_PID[d]}"
wait_for_view a,b,c d a b c
kill -CONT "${P_PID[d]}"
wait_for_view a,b,c,d - a b c d
[ "$(count ended d)" -gt "$ended" ] || fail "d is back, and believes what it did"
expect OK d closed "$kept"
for n in a b c d; do
    settle "$n" a
done

step "the home dies: the next one knows what is open, and what was looked up"
pick f d c
expect 'PFS keep' b look "$f" open
expect 'PFS keep' c look "$f" open
expect OK c closed "$f"
crash d
wait_for_view a,b,c d a b c
becomes 40 "PFS*" a where "$f"
mark
wait_for 40 answers HERE a open-writer "$f" || fail "$f is not granted"
expect no b holds "$f"
[ $(($(count received b) - MARK[b])) -ge 1 ] || fail "b was not told"
expect OK a close-writer "$f"
expect OK b closed "$f"
up d
wait_for_view a,b,c,d - a b c d
for n in a b c d; do
    settle "$n" a
done

step "a claimant that was started again asks for its watchers"
pick f b
expect OK d left 2
expect 'PFS keep' d look "$f" open
expect HERE c open-writer "$f"
expect OK c write "$f" 0 dirty
expect 'watchers d:10' c watchers "$f"
crash c
up c
wait_for_view a,b,c,d - a b c d
becomes 20 'NODE c *' a where "$f"
expect watchers c watchers "$f"
becomes 40 HERE c open-writer "$f"
expect 'watchers d:10' c watchers "$f"
expect OK d left 0
expect OK d closed "$f"

step "a node with $FILES open files tells the homes of a new view in pieces"
expect OK a pretend-looks "$FILES"
crash d
wait_for_view a,b,c d a b c
all_known() {
    [ $(($(count lookers a) + $(count lookers b) + $(count lookers c))) -ge "$FILES" ]
}
wait_for 60 all_known || fail "the homes know of $(count lookers a), $(count lookers b), $(count lookers c)"
f=$(NOT=$USED file_at b b)
becomes 60 HERE b open-writer "$f"
expect OK b close-writer "$f"
