#!/usr/bin/env bash
# eddy recover of what a killed daemon left: refused while a daemon lives; --list names it and
# changes nothing; --to copies it elsewhere and changes nothing; then it is flushed without a
# mount, and other nodes of the session read it. Exit codes and JSON as the manual says.
# timeout: 150
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq

start_node a "$PFS" --flush-wait 3600
start_node b "$PFS" --flush-wait 3600
mkdir "$W/mnt-a/d"
head -c 3000001 /dev/urandom >"$W/big"
head -c 5000 /dev/urandom >"$W/small"
cp "$W/big" "$PFS/partly" # of which only a page is written
cp "$W/big" "$W/mnt-a/d/big"
cp "$W/small" "$W/mnt-a/small"
printf 'sparse' | dd of="$W/mnt-a/sparse" bs=1 seek=5000000 status=none
cp "$W/big" "$W/partly"
for f in "$W/partly" "$W/mnt-a/partly"; do
    dd if="$W/small" of="$f" bs=4096 count=1 seek=300 conv=notrunc status=none
done
touch -d '2001-02-03 04:05:06.789' "$W/mnt-a/small"

recover() { # CODE ARG...: its output in out, its complaints in err
    local expected=$1 code=0
    shift
    timeout 60 "$EDDY_BUILD/eddy" recover "$@" >"$W/recover.txt" 2>"$W/recover.err" || code=$?
    [ "$code" = "$expected" ] || cat "$W/recover.txt" "$W/recover.err"
    check_equal "code of eddy recover $*" "$code" "$expected"
}
recover 1 --list "$W/cache-a"
recover 1 "$W/cache-a"
grep -q 'a daemon uses it' "$W/recover.err" || fail "it does not say why: $(cat "$W/recover.err")"
recover 2
recover 2 --list --to "$W" "$W/cache-a"
recover 1 "$W"
crash_node a

recover 3 --list "$W/cache-a"
check_equal "files that are listed" "$(sed 's/: .*//' "$W/recover.txt" | sort | tr '\n' ' ')" \
    "d/big partly small sparse "
recover 3 --list --json "$W/cache-a"
check_equal "files in JSON" "$(jq -r '[.code, .node, (.files | length)] | @tsv' "$W/recover.txt")" \
    "$(printf '3\ta\t4')"

mkdir "$W/elsewhere"
echo other >"$W/elsewhere/small" # is in the way
recover 4 --to "$W/elsewhere" "$W/cache-a"
check_same "$W/big" "$W/elsewhere/d/big"
check_same "$W/small" "$W/elsewhere/small.eddy-conflict-a"
check_equal "what was in the way" "$(cat "$W/elsewhere/small")" other
check_same "$W/partly" "$W/elsewhere/partly"
check_equal "size of the sparse copy" "$(stat -c %s "$W/elsewhere/sparse")" 5000006
[ "$(stat -c %b "$W/elsewhere/sparse")" -lt 1000 ] || fail "the copy's hole was filled"
check_equal "mtime of a copy" "$(stat -c %y "$W/elsewhere/small.eddy-conflict-a" | cut -c 1-23)" \
    "$(TZ='' date -d '2001-02-03 04:05:06.789' '+%F %T.%3N')"
[ ! -s "$PFS/small" ] || fail "--to wrote to the PFS"
recover 3 --list "$W/cache-a" # is as it was

recover 0 --json "$W/cache-a"
check_equal "JSON" "$(jq -c '[.code, .files, .written]' "$W/recover.txt")" '[0,[],[]]'
check_same "$W/big" "$PFS/d/big"
check_same "$W/small" "$PFS/small"
check_same "$W/partly" "$PFS/partly"
check_equal "mtime of a flushed file" "$(stat -c %y "$PFS/small" | cut -c 1-23)" \
    "$(TZ='' date -d '2001-02-03 04:05:06.789' '+%F %T.%3N')"
reads() { cmp -s "$W/big" "$W/mnt-b/d/big"; }
wait_for 60 reads || fail "the other node does not read what was recovered"
recover 0 "$W/cache-a"
recover 0 --list "$W/cache-a"
eddy check "$PFS" || fail "eddy check still names files"
fusermount3 -uz "$W/mnt-a"
stop_node b
