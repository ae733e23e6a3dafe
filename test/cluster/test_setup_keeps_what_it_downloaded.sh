#!/usr/bin/env bash
# tools/setup keeps libfuse's source for the user's next clone, which gets it without a network; a kept file with another
# checksum is not used.
# timeout: 60
. "$(dirname "$0")/lib.sh"
SETUP=$(dirname "$SCRIPT")/../../tools/setup

# clone NAME: what tools/setup reads, where libfuse's source is a small file
echo "libfuse's source" >"$W/source"
clone() {
    mkdir -p "$W/$1/subprojects"
    cp -r "$(dirname "$SETUP")" "$W/$1/tools"
    sed "s/^source_hash.*/source_hash = $(sha256sum "$W/source" | cut -d' ' -f1)/" \
        "$(dirname "$SETUP")/../subprojects/fuse3.wrap" >"$W/$1/subprojects/fuse3.wrap"
}
NAME=$(sed -n 's/^source_filename *= *//p' "$(dirname "$SETUP")/../subprojects/fuse3.wrap")

# apt-get, which downloads that file while there is a network, and counts.
mkdir "$W/bin"
cat >"$W/bin/apt-get" <<END
#!/bin/sh
case "\$*" in
    *indextargets*) echo 'Debian|Debian|http://debian.example/debian' ;;
    *"source --download-only"*) [ -e "$W/network" ] && echo >>"$W/downloads" && cp "$W/source" "$NAME" ;;
esac
END
chmod +x "$W/bin/apt-get"
setup() {
    (cd "$W/$1" && XDG_CACHE_HOME=$W/cache PATH=$W/bin:$PATH tools/setup --libfuse >"$W/said.out" 2>&1)
}
has_source() {
    cmp -s "$W/source" "$W/$1/subprojects/packagefiles/$NAME" || fail "$1 has no source: $(cat "$W/said.out")"
}

clone first
setup first && fail "it ends with 0 without a network"
grep -q "where there is no network, put it into subprojects/packagefiles" "$W/said.out" ||
    fail "it does not say what to do without a network: $(cat "$W/said.out")"

touch "$W/network"
setup first || fail "it ends with $?: $(cat "$W/said.out")"
has_source first
clone second
rm "$W/network"
setup second || fail "the second clone is not set up without a network: $(cat "$W/said.out")"
has_source second

# A kept file that was changed is downloaded again, and is right again then.
echo "something else" >"$W/cache/eddyfs/$NAME"
clone third
setup third && fail "it takes a kept file with another checksum"
touch "$W/network"
setup third || fail "it ends with $?: $(cat "$W/said.out")"
has_source third
cmp -s "$W/source" "$W/cache/eddyfs/$NAME" || fail "the kept file is not right again"
check_equal "downloads" "$(wc -l <"$W/downloads")" 2
