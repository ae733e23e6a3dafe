#!/usr/bin/env bash
# chmod, chown, mv, ln, touch and setfattr change a file's ctime, and none of its
# bytes: what is cached, on this node and on others, is not read from the PFS again.
# timeout: 90
. "$(dirname "$0")/lib.sh"
requires fuse

mkdir "$PFS/data"
for n in $(seq 40); do
    head -c 100000 /dev/urandom >"$PFS/data/$n"
done
cp -a "$PFS/data" "$W/expected"
sleep 1.1 # files that were just changed are read again, whoever asks

start_faultfs a
start_faultfs b
start_node a "$W/pfs-a" --session-dir "$W/session"
start_node b "$W/pfs-b" --session-dir "$W/session"

read_all() {
    local n
    for n in "$1"/*; do
        cmp "$n" "$W/expected/$(basename "$n" .moved)" || fail "$n is wrong"
    done
}
pfs_reads() {
    echo $(($(stat_of a read_bytes) + $(stat_of b read_bytes)))
}

read_all "$W/mnt-a/data"
read_all "$W/mnt-b/data"
before=$(pfs_reads)
[ "$before" -ge 4000000 ] || fail "only $before bytes were read from the PFS: nothing is shown"

for n in $(seq 40); do
    f=$W/mnt-a/data/$n
    chmod 640 "$f"
    ln "$f" "$f.link"
    mv "$f" "$f.moved"
    touch -d @1000000000 "$f.moved"
    rm "$f.link"
    [ "$(id -u)" != 0 ] || chown 1:1 "$f.moved"
done
sleep 1.1 # attribute time-out
read_all "$W/mnt-a/data"
read_all "$W/mnt-b/data"
check_equal "bytes read from the PFS" "$(pfs_reads)" "$before"

# And a real change is seen, of the same size and with its old mtime.
printf X | dd of="$PFS/data/1.moved" bs=1 seek=5000 conv=notrunc status=none
touch -d @1000000000 "$PFS/data/1.moved"
cp "$PFS/data/1.moved" "$W/expected/1"
sleep 1.1
read_all "$W/mnt-a/data"
read_all "$W/mnt-b/data"

stop_node a
stop_node b
