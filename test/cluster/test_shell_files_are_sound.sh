#!/usr/bin/env bash
# Of no shell file of this tree has shellcheck anything to say: programs with all that they source, tests by themselves.
# timeout: 300
# busy
. "$(dirname "$0")/lib.sh"
requires cmd shellcheck
cd "$(dirname "$SCRIPT")/../.."

# All files but those of libfuse and builds, with or without a repository.
all_files() {
    find . \( -name .git -o -name 'build*' -o -path './subprojects/*' \) -prune -o -type f -size -200k -print
}
all_files >"$W/files"
# A name, a first line, or a word to shellcheck says that it is shell.
xargs -d '\n' awk 'FNR == 1 && (/^#!.*[\/ ](ba|da)?sh( |$)/ || /^# shellcheck shell=/ || FILENAME ~ /\.sh$/) { print FILENAME }
    { nextfile }' <"$W/files" | sort >"$W/shell"
[ "$(wc -l <"$W/shell")" -gt 200 ] || fail "only these are shell files: $(cat "$W/shell")"
# What tests source is as large as they are: followed 200 times, it takes minutes. So names of their library are taken
# as given there (SC2034, SC2153, SC2154), and that a command that fails ends it (SC2164).
grep '^\./test/cluster/test_' "$W/shell" >"$W/tests"
grep -v '^\./test/cluster/test_' "$W/shell" >"$W/programs"

code=0
xargs -d '\n' -n 20 -P "$(nproc)" shellcheck -f gcc -e SC1091,SC2034,SC2153,SC2154,SC2164 <"$W/tests" || code=1
xargs -d '\n' -n 8 -P "$(nproc)" shellcheck -f gcc -x <"$W/programs" || code=1
[ "$code" = 0 ] || fail "see above"
