#!/usr/bin/env bash
# What one node makes, renames, replaces and removes is what the other one sees: a new
# name at once, a changed one within --attr-timeout (1 s); the data behind a name
# follows it, flushed or not.
# timeout: 120
# alone
. "$(dirname "$0")/lib.sh"
requires fuse

start_node a "$PFS" --flush-wait 3600
start_node b "$PFS" --flush-wait 3600
A=$W/mnt-a
B=$W/mnt-b

# soon WHAT COMMAND...: within the attribute time-out, and a little for the machine
soon() {
    local what=$1 end=$((${EPOCHREALTIME/[.,]/} + 1500000)) began
    shift
    while began=${EPOCHREALTIME/[.,]/} && ! "$@"; do
        [ "$began" -lt "$end" ] || fail "$what"
        sleep 0.02
    done
}
missing() { ! stat "$1" >/dev/null 2>&1; }
reads() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }
lists() { [ "$(ls -x "$1" 2>/dev/null)" = "$2" ]; }

# A name that was asked for in vain is there as soon as it is made.
for n in $(seq 50); do
    missing "$B/new$n" || fail "new$n is there before it is made"
    echo "$n" >"$A/new$n"
    check_equal "new$n" "$(cat "$B/new$n")" "$n"
done
rm "$A"/new*

# Unflushed data follows a rename, of the file and of what is above it.
mkdir -p "$A/d/e"
echo moved >"$A/d/e/f"
check_equal "before the rename" "$(cat "$B/d/e/f")" moved
mv "$A/d/e/f" "$A/d/e/g"
check_equal "the new name" "$(cat "$B/d/e/g")" moved
soon "the old name stays" missing "$B/d/e/f"
mv "$A/d" "$A/z"
check_equal "below a renamed directory" "$(cat "$B/z/e/g")" moved
soon "the old directory stays" missing "$B/d/e/g"
mkdir -p "$A/d/e"
echo other >"$A/d/e/g"
soon "another directory under the old name" reads "$B/d/e/g" other

# The other node renames what this one has not flushed, and it is flushed to the new name.
echo unflushed >"$A/mine"
mv "$B/mine" "$B/yours"
mv "$B/z" "$B/y"
echo more >>"$A/yours"
eddy flush "$A"
check_equal "flushed after another node's rename" "$(cat "$PFS/yours")" "unflushed
more"
check_equal "flushed below a renamed directory" "$(cat "$PFS/y/e/g")" moved
[ ! -e "$PFS/mine" ] || fail "the flush made the old name again"

# A rename over a name, flushed and not, the replaced file dirty or not.
for n in $(seq 20); do
    echo "old $n" >"$A/target"
    [ $((n % 3)) != 0 ] || eddy flush "$A"
    check_equal "before it is replaced" "$(cat "$B/target")" "old $n"
    echo "new $n" >"$B/tmp"
    mv "$B/tmp" "$B/target"
    soon "the replacing file, $n" reads "$A/target" "new $n"
done

# Several names of a file are removed on the other node: it is opened for writing by one that stays.
eddy flush "$A"
eddy flush "$B"
for n in $(seq 10); do
    for name in k l m n; do
        ln -T "$A/target" "$A/$name$n"
    done
    stat "$B/k$n" "$B/l$n" "$B/m$n" "$B/n$n" >/dev/null
    rm "$A/k$n" "$A/m$n" "$A/n$n"
    : >>"$B/l$n" || fail "a name that stays, $n"
    rm "$A/l$n"
done

# Removed before it was flushed: gone everywhere, also from who has it open elsewhere.
echo never >"$A/never"
exec 5<"$B/never"
rm "$B/never"
soon "a removed file stays" missing "$A/never"
check_equal "an open descriptor on another node" "$(cat <&5)" never
exec 5<&-
eddy flush "$A"
[ ! -e "$PFS/never" ] || fail "a removed file was flushed"

# Listings, cached ones too.
mkdir "$A/list"
for n in 1 2 3 4 5 6; do
    touch "$A/list/$n"
    soon "listing after $n was made" lists "$B/list" "$(ls -x "$PFS/list")"
    touch -d @1000 "$A/list" # as tar does
    [ $((n % 2)) = 0 ] || rm "$B/list/$n"
    soon "listing after a removal" lists "$A/list" "$(ls -x "$PFS/list")"
done
check_equal "the last listing" "$(ls -x "$B/list")" "2  4  6"

# Attributes of a file whose latest bytes are on the other node.
echo 12345 >"$A/attr"
check_equal "its size" "$(stat -c %s "$B/attr")" 6
[ "$(stat -c %b "$B/attr")" != 0 ] || fail "an unflushed file has no blocks on the other node"
chmod 600 "$B/attr"
ln "$B/attr" "$B/attr2"
touch -d '2001-02-03 04:05:06.000000007' "$B/attr"
truncate -s 3 "$B/attr"
touch -d '2001-02-03 04:05:06.000000007' "$B/attr"
has_mode() { [ "$(stat -c %a "$1")" = "$2" ]; }
soon "the mode" has_mode "$A/attr" 600
sleep 1 # the attribute time-out: what A's kernel knows of it is old now
check_equal "size and links" "$(stat -c '%s %h %a' "$A/attr")" "3 2 600"
eddy flush "$A"
eddy flush "$B"
check_equal "on the PFS" "$(cat "$PFS/attr2")" 123
for dir in "$PFS" "$A" "$B"; do
    check_equal "its time in $dir" "$(stat -c %y "$dir/attr" | cut -c 1-29)" "2001-02-03 04:05:06.000000007"
done

stop_node a
stop_node b
