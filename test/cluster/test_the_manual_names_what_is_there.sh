#!/usr/bin/env bash
# What the pages for users name is there: each message of docs/troubleshooting.md is one of the sources, each option and command in the pages is
# one of eddyfs or eddy, each file and section that is linked exists, and each page can be found from the README and from docs/design.md.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires cmd python3
# shellcheck source-path=SCRIPTDIR source=manual/pages.sh
. "$(dirname "$SCRIPT")/manual/pages.sh"

for page in "${PAGES[@]}"; do
    for list in README.md docs/design.md; do
        grep -q "]($([ $list = README.md ] && echo docs/)$page\.md" "$SOURCE/$list" || fail "$list does not name $page.md"
    done
    page_file "$page"
done >"$W/pages"
eddyfs --list-options | cut -f 1 >"$W/options"
eddy -h | sed -n 's/^  eddy \([a-z]*\) .*/\1/p' >"$W/commands"
while read -r command; do eddy "$command" -h; done <"$W/commands" >"$W/help"
python3 "$SOURCE/test/cluster/manual/names.py" "$SOURCE" "$W" || fail "the pages name what is not there"
