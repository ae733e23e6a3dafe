#!/usr/bin/env bash
# Somebody else fills the cache's disk to below the room that is to stay free on it: new files,
# longer ones and changes within old ones are written all the same, each write when the one before
# it is on the PFS; the cache takes next to nothing of what is left; every byte is right.
# timeout: 180
# both-long
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse cmd jq cmd mkfs.ext4 cmd fallocate free 1500
DISK=$W/disk
truncate -s 1G "$W/image"
mkfs.ext4 -q "$W/image"
mkdir "$DISK"
record_mount "$W" "$DISK"
mount -o loop "$W/image" "$DISK" 2>"$W/mount.out" || skip "no loop mount here: $(cat "$W/mount.out")"
free_mib() { df --output=avail -m "$DISK" | tail -n 1; }
head -c 50M /dev/urandom >"$W/bytes"
head -c 5M "$W/bytes" >"$PFS/old"
head -c 5M "$W/bytes" >"$W/old"

# For a limit that was asked for, and for the one that is a share of what is free.
for size in "--cache-size 200M" ""; do
    # shellcheck disable=SC2086 # words
    start_node a "$PFS" --cache-dir "$DISK/cache" --flush end $size
    echo "--- ${size:-the default limit}: $(free_mib) MiB are free"
    fallocate -l "$(($(free_mib) - 12))M" "$DISK/foreign"
    sleep 0.3 # the disk is asked ten times a second whether the kernel may write (README)
    cp "$W/bytes" "$W/mnt-a/new" || fail "a new file is refused"
    cmp "$W/bytes" "$W/mnt-a/new" || fail "a new file has other bytes"
    [ "$(free_mib)" -ge 4 ] || fail "the cache took what was left: $(free_mib) MiB are free"
    head -c 3000 /dev/urandom | tee "$W/part" |
        dd of="$W/mnt-a/old" bs=3000 iflag=fullblock oflag=seek_bytes seek=1234567 conv=notrunc status=none ||
        fail "a change in the middle of an old file is refused"
    dd if="$W/part" of="$W/old" bs=3000 oflag=seek_bytes seek=1234567 conv=notrunc status=none
    head -c 3M "$W/bytes" >>"$W/mnt-a/old" || fail "an old file cannot be made longer"
    head -c 3M "$W/bytes" >>"$W/old"
    check_same "$W/old" "$W/mnt-a/old"
    for n in $(seq 100); do
        head -c $((n * 500)) "$W/bytes" >"$W/mnt-a/small$n" || fail "small file $n is refused"
    done
    stop_node a
    check_same "$W/bytes" "$PFS/new"
    check_same "$W/old" "$PFS/old"
    for n in $(seq 100); do
        cmp <(head -c $((n * 500)) "$W/bytes") "$PFS/small$n" || fail "small file $n has other bytes"
    done
    rm "$DISK/foreign" "$PFS/new" "$PFS"/small*
    rm -r "$DISK/cache"
done
