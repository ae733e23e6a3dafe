#!/usr/bin/env bash
# One byte written into a file that is not cached, then flushed: only that byte differs on the PFS; at page, chunk and
# end-of-file borders, for many sizes, and in a file without owner-write permission.
# timeout: 240
# both
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse
CHUNK=1048576

# what the file must be: the same change made to a plain copy
poke() { printf '\xa5' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }

offsets() { # borders within and at the end of a file of this size
    local size=$1 o
    for o in 0 99 100 4095 4096 4097 $((CHUNK - 1)) $CHUNK $((CHUNK + 1)) $((size - 1)) "$size" $((size + 5000)); do
        [ "$o" -ge 0 ] && [ "$o" -le $((size + 5000)) ] && echo "$o"
    done | sort -nu
}

mkdir "$PFS/f" "$W/model"
start_faultfs a
for size in 0 1 1000 4095 4096 4097 $((CHUNK - 1)) $CHUNK $((CHUNK + 1)) $((3 * CHUNK + 777)); do
    head -c "$size" /dev/urandom >"$W/content"
    for o in $(offsets "$size"); do
        cp "$W/content" "$PFS/f/$size.$o"
        cp "$W/content" "$W/model/$size.$o"
    done
done
head -c 1000 /dev/urandom >"$PFS/f/readonly"
cp "$PFS/f/readonly" "$W/model/readonly"

start_node a "$W/pfs-a"
for f in "$W"/model/*.*; do
    name=${f##*/}
    poke "$W/mnt-a/f/$name" "${name##*.}"
    poke "$f" "${name##*.}"
    cmp "$W/mnt-a/f/$name" "$f" || fail "before the flush $name differs"
done
# opened for writing while that was allowed; flushed when it is not any more
exec 5<>"$W/mnt-a/f/readonly"
chmod a-w "$W/mnt-a/f/readonly"
printf '\xa5' | dd bs=1 seek=100 conv=notrunc status=none >&5
exec 5>&-
poke "$W/model/readonly" 100
eddy flush "$W/mnt-a"
diff -r "$PFS/f" "$W/model" || fail "the PFS differs from the model"
check_equal "mode of the file without write permission" "$(stat -c %a "$PFS/f/readonly")" 444
diff -r "$W/mnt-a/f" "$W/model" || fail "the mount differs from the model after the flush"
stop_node a
diff -r "$PFS/f" "$W/model" || fail "the PFS differs from the model after the end"
echo "$(find "$W/model" -type f | wc -l) files"
