#!/usr/bin/env bash
# The rooms of docs/design.md: an include never goes up, files call each other in a circle only within one idea, no
# header has more than 25 functions; and a change that breaks one of these is found.
. "$(dirname "$0")/lib.sh"
requires cmd python3 cmd git cmd nm cmd ar cmd gcc

TOP=$(cd "$(dirname "$SCRIPT")/../.." && pwd)
python3 "$TOP/test/harness/rooms.py" "$TOP" "$EDDY_BUILD" || fail "see above"

# --- What is planted is found ---

mkdir "$W/source" "$W/build"
(cd "$TOP" && git ls-files -co --exclude-standard -- meson.build '*.c' '*.h' | tar -cf - -T -) | tar -xf - -C "$W/source"
git -C "$W/source" init -q
for library in "$EDDY_BUILD"/lib*.a; do # thin ones: their members are named from there
    (cd "$EDDY_BUILD" && ar t "${library##*/}" | xargs ar rc "$W/build/${library##*/}")
done

# finds WHAT TEXT
finds() {
    if python3 "$TOP/test/harness/rooms.py" "$W/source" "$W/build" >"$W/found"; then
        fail "$1 is not found"
    fi
    grep -q "$2" "$W/found" || fail "$1: $(cat "$W/found")"
}

echo '#include "fs/handle.h"' >>"$W/source/placement/store/space.h"
finds "an include that goes up" "placement/store/space.h includes fs/handle.h"

echo '#include <fuse_lowlevel.h>' >>"$W/source/flush/lull.h"
finds "libfuse outside of fs" "flush/lull.h includes <fuse_lowlevel.h>"

for i in $(seq 26); do echo "void many_$i(void);"; done >"$W/source/flush/many.h"
finds "a header with 26 functions" "flush/many.h has 26 functions"

for pair in 'one two' 'two one'; do
    read -r name other <<<"$pair"
    echo "void $other(void); void $name(void); void $name(void) { $other(); }" |
        gcc -xc -c -o "$W/build/flush_$name.c.o" -
done
ar r "$W/build/libflush.a" "$W/build/flush_one.c.o" "$W/build/flush_two.c.o"
finds "a circle of two files" "in a circle: flush/one flush/two"
