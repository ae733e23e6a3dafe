#!/usr/bin/env bash
# A power loss after which the cache is as it was at a file's last fsync, and nothing in it tells
# that the file had changed since: the list of dirty files does, and the log names it, with
# passthrough and without. What was fsynced as it was, and renamed since, is not named.
# timeout: 120
# both
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3

start_node a "$PFS" --flush-wait 3600 --flush end
mnt=$W/mnt-a
list() { cat "$PFS"/.eddyfs-*/test/dirty/* 2>/dev/null; }
lists() { list | grep -q "$1"; }
# fsynced NAME: with 100,000 bytes of it
fsynced() {
    head -c 100000 /dev/urandom | dd of="$mnt/$1" bs=100000 iflag=fullblock conv=fsync status=none
}

fsynced written-since
fsynced renamed-since
fsynced fsynced-again
cp "$mnt/written-since" "$W/as-fsynced"
for name in written-since renamed-since fsynced-again; do
    wait_for 30 lists " $name\$" || fail "$name is not on the list of dirty files"
done

# What is on the disk is this from now on ...
cp -a --sparse=always "$W/cache-a" "$W/disk"
list >"$W/before"
# ... but for what is fsynced
echo more >>"$mnt/fsynced-again"
sync "$mnt/fsynced-again"
cp -a --sparse=always "$W/cache-a/slabs" "$W/cache-a/data" "$W/disk"

mv "$mnt/renamed-since" "$mnt/renamed"
echo lost >>"$mnt/written-since"
# The list says so without a new file on it.
told() {
    list >"$W/after" && lists ' renamed$' &&
        ! cmp -s <(grep written-since "$W/before") <(grep written-since "$W/after")
}
wait_for 30 told || fail "the list of dirty files does not tell of a change after an fsync: $(list)"

crash_node a
rm -r "$W/cache-a/slabs" "$W/cache-a/data"
cp -a --sparse=always "$W/disk/slabs" "$W/disk/data" "$W/cache-a"
for slab in "$W"/cache-a/slabs/*; do
    printf 'another-boot' | dd of="$slab" bs=1 seek=40 conv=notrunc status=none
done
fusermount3 -uz "$mnt"
start_node a "$PFS" --flush end
check_same "$W/as-fsynced" "$mnt/written-since"
grep 'power loss: ' "$W/a.log" >"$W/named" || true
grep -q 'power loss: written-since: .*after its last fsync is lost' "$W/named" || fail "not named: $(cat "$W/named")"
# Of what the kernel serves nobody knows what it stored last: all of it is named.
case ${EDDY_TEST_OPTIONS-} in
    *--no-passthrough*) ! grep -q -e renamed -e fsynced-again "$W/named" || fail "named, though nothing of it is lost: $(cat "$W/named")" ;;
esac
stop_node a
check_same "$W/as-fsynced" "$PFS/written-since"
