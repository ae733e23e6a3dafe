#!/usr/bin/env bash
# The cache's disk has no inodes left: by the cache's own files, and because somebody else takes the last one. Files leave
# the cache for new ones: all that is written is taken and flushed, what the PFS has is read. A daemon that died starts
# again, and eddy recover and recover --to work, with no inode free at all; a start that cannot have one says what to do.
# timeout: 180
# both-long
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse cmd jq cmd mkfs.ext4
DISK=$W/disk
truncate -s 300M "$W/image"
mkfs.ext4 -q -N 400 "$W/image"
mkdir "$DISK"
record_mount "$W" "$DISK"
mount -o loop "$W/image" "$DISK" 2>"$W/mount.out" || skip "no loop mount here: $(cat "$W/mount.out")"
start() { start_node a "$PFS" --cache-dir "$DISK/cache" --cache-size 150M "$@"; }
free_inodes() { df --output=iavail "$DISK" | tail -n 1; }
take_inodes() { # all, as somebody else
    mkdir -p "$DISK/foreign"
    local n=0
    while n=$((n + 1)) && true >"$DISK/foreign/$RANDOM.$n"; do :; done 2>/dev/null
    check_equal "inodes that are free" "$(free_inodes | tr -d ' ')" 0
}
put() { # NAME: a file of a page and a bit
    head -c 5000 /dev/urandom | tee "$W/wanted/$1" >"$W/mnt-a/$1" || fail "$1 is refused"
}
on_the_pfs() {
    local file
    for file in "$W/wanted"/*; do
        check_same "$file" "$PFS/${file##*/}"
    done
}
mkdir "$W/wanted"

echo "--- more files than the disk has inodes, flushed at once and at the end"
for policy in immediate end; do
    start --flush "$policy"
    for n in $(seq 450); do
        put "$policy$n"
    done
    eddy flush "$W/mnt-a" # while no file can leave, new ones take what is kept free; it is free again once they can
    put "${policy}last"
    [ "$(free_inodes)" -ge 10 ] || fail "the cache leaves $(free_inodes) inodes free"
    check_same "$W/wanted/${policy}1" "$W/mnt-a/${policy}1"
    stop_node a
    on_the_pfs
done

echo "--- somebody else takes the last inode"
start --flush immediate
for n in $(seq 20); do
    put "before$n"
done
eddy flush "$W/mnt-a"
take_inodes
for n in $(seq 20); do
    put "after$n"
    check_same "$W/wanted/after$n" "$W/mnt-a/after$n"
done
for n in $(seq 40); do
    check_same "$W/wanted/end$n" "$W/mnt-a/end$n"
done
echo more | tee -a "$W/wanted/before1" >>"$W/mnt-a/before1"
eddy flush "$W/mnt-a"
on_the_pfs
passthrough=$(status_of a .passthrough)
stop_node a

echo "--- a start, which needs files of its own"
take_inodes
start --flush end
check_equal "passthrough" "$(status_of a .passthrough)" "$passthrough"

echo "--- with dirty files, after the daemon's death"
for n in $(seq 10); do
    put "dirty$n"
done
crash_node a
take_inodes
start --flush end
for n in $(seq 10); do
    check_same "$W/wanted/dirty$n" "$W/mnt-a/dirty$n"
done
put late
kill_node a
take_inodes
mkdir "$W/to"
eddy recover --to "$W/to" "$DISK/cache" || fail "eddy recover --to: $?"
check_same "$W/wanted/late" "$W/to/late"
take_inodes
eddy recover "$DISK/cache" || fail "eddy recover: $?"
on_the_pfs

echo "--- a start for which no inode is left says what to do"
rm -r "$DISK/cache"
take_inodes
code=0
eddyfs -f --node a --listen 127.0.0.1 --cache-dir "$DISK/cache" --session test "$PFS" "$W/mnt-a" 2>"$W/refused" || code=$?
[ "$code" != 0 ] || fail "it started"
grep -q "df -i" "$W/refused" || fail "it says: $(cat "$W/refused")"
