#!/usr/bin/env bash
# The PFS of the other tests: two mounts of it agree with each other and with the
# directory below, and every byte is counted where it was asked for.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd rsync
start_faultfs a
start_faultfs b

cp -a /usr/include/linux "$W/pfs-a/tree"
diff -r --no-dereference /usr/include/linux "$W/pfs-b/tree" || fail "b sees another tree"
changes=$(rsync -aci --delete /usr/include/linux/ "$PFS/tree/")
check_equal "what rsync finds different below" "$changes" ""

head -c 3000000 /dev/urandom >"$W/pfs-a/file"
check_equal "bytes of the file written" "$(stat_of a write_bytes file)" 3000000
read_before=$(stat_of b read_bytes)
check_same "$W/pfs-b/file" "$PFS/file"
check_equal "bytes read" "$(($(stat_of b read_bytes) - read_before))" 3000000
check_equal "bytes of the file read" "$(stat_of b read_bytes file)" 3000000
check_equal "bytes of the file read through a" "$(stat_of a read_bytes file)" 0

# A file that another mount has open, grows and shrinks at once.
exec 3<"$W/pfs-b/file"
truncate -s 10 "$W/pfs-a/file"
check_equal "size through an open descriptor" "$(stat -L -c %s /proc/self/fd/3)" 10
printf 'abc' >>"$W/pfs-a/file"
check_equal "end through an open descriptor" "$(tail -c 3 <&3)" abc
exec 3<&-

mv "$W/pfs-a/file" "$W/pfs-a/moved"
[ ! -e "$W/pfs-b/file" ] || fail "b has the old name"
ln "$W/pfs-b/moved" "$W/pfs-b/linked"
check_equal "links" "$(stat -c %h "$W/pfs-a/moved")" 2
check_equal "inode" "$(stat -c %i "$W/pfs-a/linked")" "$(stat -c %i "$PFS/moved")"
