#!/usr/bin/env bash
# Reports, copies and farewells of far more records than one message holds: they go in pieces, the homes grant, and what
# the dead node had is known by each node that is home afterwards.
# timeout: 240
# waits
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=protonodes.sh
. "$(dirname "$0")/protonodes.sh"

FILES=${EDDY_PRETEND_FILES-300000} # 70 pieces and more

step() {
    echo "--- $* ($SECONDS s)"
}

step "a node with $FILES claims tells two others, who are home and next of them all"
up a
expect OK a pretend "$FILES"
up b c
wait_for_view a,b,c - a b c
f=$(file_at b b c)
becomes 60 HERE c open-writer "$f" # b is complete, and c has copies of all its records
expect OK c close-writer "$f"

step "it dies: all are lost, and a home that has copied them to its next grants"
crash a
wait_for_view b,c a b c
for n in b c; do
    becomes 60 "* records * lost $FILES" "$n" status
done
becomes 60 HERE c open-writer "$f"
expect OK c close-writer "$f"
becomes 20 'claims 0 *' c status

step "one of the two leaves: its farewell has them all, and the last one goes on"
leave b
wait_for_view c a c
becomes 60 "claims 0 * lost $FILES" c status
becomes 60 HERE c open-writer "$f"
expect OK c close-writer "$f"
leave c
