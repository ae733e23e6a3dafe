#!/usr/bin/env bash
# Real programs give right bytes: tar (also -S before the flush), cp -a, rsync -c, git clone and fsck, sqlite3 with its rollback
# journal and with WAL, a gcc build; as root with allow_other and another uid, or as the user who runs the test.
# timeout: 300
. "$(dirname "$0")/lib.sh"
requires fuse cmd git cmd rsync cmd tar cmd gcc cmd sqlite3
start_faultfs a
if [ "$(id -u)" = 0 ]; then
    chmod 755 "$W"
    chmod 1777 "$PFS"
    start_node a "$W/pfs-a" -o allow_other
    mkdir -m 777 "$W/home"
    as() { HOME=$W/home run_as 4711 "$@"; }
else
    start_node a "$W/pfs-a"
    as() { "$@"; }
fi
M=$W/mnt-a
mkdir "$W/src"
cp -r /usr/include/linux "$W/src/linux"
truncate -s 5M "$W/src/sparse"
printf 'end' >>"$W/src/sparse"
ln -s linux/fs.h "$W/src/link"
ln "$W/src/linux/fs.h" "$W/src/hard"
chmod 444 "$W/src/linux/fuse.h"
chmod -R a+rX "$W/src"
as mkdir "$M/work"

echo "tar"
tar -C "$W/src" -cf "$W/src.tar" .
as mkdir "$M/work/tar"
as tar -C "$M/work/tar" -xf "$W/src.tar"
tar -C "$M/work/tar" -cSf "$W/back.tar" .    # before it is flushed: holes and unflushed data
mkdir "$W/back" && tar -C "$W/back" -xf "$W/back.tar"
diff -r --no-dereference "$W/src" "$W/back"
echo "cp -a"
as cp -a "$W/src" "$M/work/cp"
diff -r --no-dereference "$W/src" "$M/work/cp"
echo "rsync -c"
as rsync -rlHtc "$W/src/" "$M/work/rsync/"
check_equal "what rsync would still copy" "$(as rsync -rlHtcni "$W/src/" "$M/work/rsync/" | wc -l)" 0

echo "git"
as git init -q "$M/work/repo"
as cp -r "$W/src/linux" "$M/work/repo/"
as git -C "$M/work/repo" add .
as git -C "$M/work/repo" -c user.name=t -c user.email=t@t commit -qm "first commit"
as git clone -q "$M/work/repo" "$M/work/clone"
as git -C "$M/work/clone" fsck --full --strict >"$W/fsck.out" 2>&1 || fail "git fsck says: $(cat "$W/fsck.out")"
check_equal "changes in the clone" "$(as git -C "$M/work/clone" status --porcelain | wc -l)" 0

echo "sqlite3"
for mode in delete wal; do
    db=$M/work/$mode.db
    as sqlite3 "$db" "PRAGMA journal_mode=$mode; CREATE TABLE t(k INTEGER PRIMARY KEY, v BLOB);" >/dev/null
    for _ in 1 2 3 4 5; do
        as sqlite3 "$db" "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 200)
            INSERT INTO t(v) SELECT randomblob(500) FROM n;"
        as sqlite3 "$db" "DELETE FROM t WHERE k % 3 = 0; UPDATE t SET v = randomblob(700) WHERE k % 5 = 0;"
    done
    check_equal "integrity of the database in mode $mode" "$(as sqlite3 "$db" 'PRAGMA integrity_check;')" ok
done

echo "gcc"
as mkdir "$M/work/build"
for i in 1 2 3 4 5 6 7 8; do
    as sh -c "echo 'int f$i(void) { return $i; }' >$M/work/build/f$i.c"
done
as sh -c "printf 'int f1(void), f8(void);\nint main(void) { return f1() + f8() - 9; }\n' >$M/work/build/main.c"
(cd "$M/work/build" && as sh -c 'for f in *.c; do gcc -O2 -c $f; done; ar rcs libf.a f?.o; gcc main.o libf.a -o prog; ./prog')

stop_node a
diff -r --no-dereference "$W/src" "$PFS/work/cp"
diff -r --no-dereference "$W/src" "$PFS/work/tar"
diff -r --no-dereference "$W/src" "$PFS/work/rsync"
check_equal "integrity on the PFS" "$(sqlite3 "$PFS/work/delete.db" 'PRAGMA integrity_check;')" ok
git -c safe.directory='*' -C "$PFS/work/clone" fsck --full >/dev/null
[ "$(id -u)" != 0 ] || check_equal "owner" "$(stat -c %u:%g "$PFS/work/cp/linux/fs.h")" 4711:4711
check_equal "links of a hard link" "$(stat -c %h "$PFS/work/tar/hard")" 2
