#!/usr/bin/env bash
# A PFS mount that root made serves all users, with the rules of a local file system
# for owners, groups, the umask, sticky and setgid directories, ACLs and set-id bits.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse user cmd setfacl
start_faultfs a
M=$W/pfs-a

mkdir -m 1777 "$M/public"
mkdir "$M/group"
chgrp 50 "$M/group"
chmod 2777 "$M/group"
(umask 027 && run_as 1234 touch "$M/public/file" && run_as 1234 mkdir "$M/public/dir" &&
    run_as 1234 touch "$M/group/file")
check_equal "file" "$(stat -c '%u %g %a' "$PFS/public/file")" "1234 1234 640"
check_equal "directory" "$(stat -c '%u %g %a' "$PFS/public/dir")" "1234 1234 750"
check_equal "group of the directory" "$(stat -c '%u %g' "$PFS/group/file")" "1234 50"
! run_as 1234 touch "$M/not-mine" 2>/dev/null || fail "a user makes files in root's directory"
! run_as 1235 rm -f "$M/public/file" 2>/dev/null || fail "another user removes from a sticky one"
run_as 1234 rm "$M/public/file"

# A group that the user is in besides the own one.
mkdir -m 770 "$M/team"
chgrp 60 "$M/team"
setpriv --reuid 1234 --regid 1234 --groups 60 touch "$M/team/file"
! run_as 1234 touch "$M/team/other" 2>/dev/null || fail "who is not in the group writes there"

mkdir "$M/acl"
setfacl -d -m u:77:rwx "$M/acl"
(umask 077 && touch "$M/acl/file")
check_equal "mode from the default ACL" "$(stat -c %a "$PFS/acl/file")" 664

touch "$M/set-id"
chmod 4777 "$M/set-id"
run_as 1234 bash -c "echo >>'$M/set-id'"
check_equal "mode after another user's write" "$(stat -c %a "$PFS/set-id")" 777
