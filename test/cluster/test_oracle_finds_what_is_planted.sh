#!/usr/bin/env bash
# What a node does wrong on purpose (a wrong byte, a wrong size, an old size, a time that moves) is found by the oracle, and
# made a short list of operations, which fails in the same way when it is done again.
# timeout: 400
# busy
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires cmd python3
ORACLE=$(dirname "$SCRIPT")/oracle

# planted NAME KEY LONGEST: it is found with that key, and is no longer than so many operations
planted() {
    local code=0 found
    python3 "$ORACLE/oracle.py" --native --all --work "$W/oracle-$1" --plant "$1" --findings "$W/found-$1" --shrink 60 \
        >"$W/$1.out" || code=$?
    check_equal "code, of $1" "$code" 1
    found=$(echo "$W/found-$1"/*.ops)
    # shellcheck disable=SC2254 # a pattern
    case $found in
        */[0-9]*-$2.ops) ;;
        *) fail "$1 is found as $found" ;;
    esac
    [ "$(grep -c '"op"' "$found")" -le "$3" ] || fail "$1 is not made short: $(cat "$found")"
    code=0
    python3 "$ORACLE/oracle.py" --native --all --work "$W/again-$1" --plant "$1" --replay "$found" >"$W/$1-again.out" || code=$?
    check_equal "code of a replay with $1" "$code" 1
    python3 "$ORACLE/oracle.py" --native --all --work "$W/without-$1" --replay "$found" || fail "$found fails without $1"
}

planted byte '*-bytes' 6
planted size '*-*' 8
planted old-size '*-end' 10
planted mtime '*-m*' 12
