#!/usr/bin/env bash
# What packages are made of agrees with the build: versions, dependencies, files that are installed; completion knows every
# option, value and command; systemd and Lmod read what is installed. No package is built here: packaging/build-deb,
# build-rpm and check-debian do that, by hand.
# timeout: 90
. "$(dirname "$0")/lib.sh"
TREE=$(realpath "$(dirname "$SCRIPT")/../..")
cd "$TREE" || exit

# ---- one version everywhere ----

version=$(sed -n "/^project(/,/)/s/^ *version: '\([^']*\)'.*/\1/p" meson.build)
[ -n "$version" ] || fail "meson.build has no version"
check_equal "version of eddyfs -V" "$(eddyfs -V | sed -n '1s/^eddyfs \([^ ]*\) .*/\1/p')" "$version"
check_equal "version of the spec" "$(sed -n 's/^Version: *//p' packaging/eddyfs.spec)" "$version"
check_equal "version of the changelog of Debian" "$(sed -n '1s/^eddyfs (\(.*\)-[0-9]*) .*/\1/p' packaging/debian/changelog)" "$version"
check_equal "newest version in CHANGELOG.md" "$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)" "$version"
grep -q "version(\"$version\"" packaging/spack/packages/eddyfs/package.py || fail "Spack's recipe has another version than $version"
numbers=$(eddyfs -V | sed -n '1s/.*, cache format \([0-9]*\), protocol \([0-9]*\))/Cache format \1, protocol \2./p')
grep -q -F "$numbers" CHANGELOG.md || fail "CHANGELOG.md does not say of $version: $numbers"

# ---- dependencies, and libfuse ----

sed -nE "/^(needed|optional) = [{]/,/^}/s/^ *'([^']*)': '([^']*)',/\1 \2/p" meson.build >"$W/needed"
[ "$(wc -l <"$W/needed")" -ge 5 ] || fail "meson.build needs nothing"
while read -r module package; do
    grep -q "^ *$package,\?\$" packaging/debian/control || fail "debian/control has no $package"
    grep -q -F "pkgconfig($module)" packaging/eddyfs.spec || fail "the spec has no pkgconfig($module)"
    grep -q -w "$package" tools/setup || fail "tools/setup has no $package"
    sed -n 's/^BUILD_MODULES=//p' tools/setup_elsewhere.sh | grep -q -w "$module" || fail "tools/setup_elsewhere.sh has no $module"
done <"$W/needed"
# shellcheck disable=SC2013 # words
for name in $(sed -n 's/^ *depends_on("\([a-z]*\)".*/\1/p' packaging/spack/packages/eddyfs/package.py); do
    case $name in
        c | meson | ninja | pkgconfig | python | check) ;;
        openssl) grep -q '^libcrypto ' "$W/needed" ;;
        *) grep -q "^\(lib\)\?$name " "$W/needed" ;;
    esac || fail "Spack's recipe depends on $name, which meson.build does not"
done
read -r minimum before < <(sed -n "s/^fuse_dep = dependency('fuse3', version: \['>= \([0-9.]*\)', '< \([0-9.]*\)'\].*/\1 \2/p" meson.build)
check_equal "libfuse in tools/setup" "$(sed -n 's/^FUSE_MINIMUM=//p' tools/setup)" "$minimum"
check_equal "libfuse in debian/rules" "$(sed -n 's/^FUSE_MINIMUM = //p' packaging/debian/rules)" "$minimum"
check_equal "libfuse that is too new, in tools/setup" "$(sed -n 's/^FUSE_BEFORE=//p' tools/setup)" "$before"
check_equal "libfuse that is too new, in debian/rules" "$(sed -n 's/^FUSE_BEFORE = //p' packaging/debian/rules)" "$before"
check_equal "libfuse's archive in the spec" "$(sed -n 's/^%global libfuse //p' packaging/eddyfs.spec)" \
    "$(sed -n 's/^source_filename *= *//p' subprojects/fuse3.wrap)"

# ---- what is installed is packaged ----

meson introspect --installed "$EDDY_BUILD" 2>/dev/null | jq -r 'to_entries[] | select(.key | contains("/fuse-") | not) | .value' |
    sed 's|.*/||' | sort -u >"$W/installed"
[ "$(wc -l <"$W/installed")" -gt 15 ] || fail "nothing is installed: $(cat "$W/installed")"
for name in eddyfs eddy eddyfs.1 eddy.1 umount.fuse.eddyfs.8 umount.fuse.eddyfs prolog eddyfs@.service libeddy.so; do
    grep -q -x -F "$name" "$W/installed" || fail "$name is not installed: $(cat "$W/installed")"
done
for page in packaging/man/*.[1-8]; do
    grep -q -x -F "${page##*/}" "$W/installed" || fail "$page is not installed"
done
[ -x packaging/debian/rules ] || fail "debian/rules cannot be executed"
# shellcheck disable=SC2013
for package in $(sed -n 's/^Package: //p' packaging/debian/control); do
    [ -s "packaging/debian/$package.install" ] || fail "nothing is installed by Debian's package $package"
done
soname=$(sed -n "s/.*soversion: '\([0-9]*\)'.*/\1/p" tools/lib/meson.build)
grep -q "^Package: libeddy$soname\$" packaging/debian/control || fail "Debian's package of libeddy.so.$soname has another name"
grep -q "^libeddy.so.$soname libeddy$soname " "packaging/debian/libeddy$soname.symbols" || fail "symbols of another library"
if command -v dpkg-parsechangelog >/dev/null; then
    dpkg-parsechangelog --all -l packaging/debian/changelog >/dev/null 2>"$W/changelog.out" || fail "$(cat "$W/changelog.out")"
    [ ! -s "$W/changelog.out" ] || fail "$(cat "$W/changelog.out")"
fi
python3 - packaging/spack/packages/eddyfs/package.py <<'END'
import ast, sys
ast.parse(open(sys.argv[1]).read())
END

# ---- completion ----

# completes WORD...: what bash offers for the last of these words, one a line
completes() {
    # shellcheck disable=SC2016 # the inner shell's
    PATH=$EDDY_BUILD:$PATH bash -c '
        compopt() { :; }
        . packaging/completion/eddy
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        complete=$(complete -p "$1")
        function=${complete#*-F }
        "${function%% *}" "$1"
        printf "%s\n" "${COMPREPLY[@]}"' complete "$@"
}
eddyfs -h | sed -n 's/^ *\(-[a-zA-Z], \)\{0,1\}\(--[a-z-]*\).*/\2/p' | sort >"$W/options"
[ "$(wc -l <"$W/options")" -gt 10 ] || fail "eddyfs -h lists no options"
completes eddyfs -- | sort >"$W/offered"
check_same "$W/options" "$W/offered"
check_equal "eddyfs --flush" "$(completes eddyfs --flush '' | sort | tr '\n' ' ')" "close end idle immediate "
check_equal "eddyfs --flush=i" "$(completes eddyfs --flush = i | sort | tr '\n' ' ')" "idle immediate "
check_equal "eddyfs --fsync" "$(completes eddyfs --fsync '' | sort | tr '\n' ' ')" "local pfs "
check_equal "eddyfs --log-level d" "$(completes eddyfs --log-level d)" debug
check_equal "eddyfs -o allow_other,sess" "$(completes eddyfs -o allow_other,sess | sort | tr '\n' ' ')" \
    "allow_other,session-dir= allow_other,session= "
check_equal "eddyfs PFS" "$(completes eddyfs packaging/debian/s)" packaging/debian/source
check_equal "eddyfs --cache-dir" "$(completes eddyfs --cache-dir packaging/debian/s)" packaging/debian/source
eddy -h | sed -n 's/^  eddy \([a-z]*\) .*/\1/p' | sort >"$W/commands"
completes eddy '' | grep -v -e --help -e --version | sort >"$W/offered"
check_same "$W/commands" "$W/offered"
while read -r command; do
    eddy "$command" -h | sed -n 's/^ *\(-[a-zA-Z], \)\{0,1\}\(--[a-z-]*\).*/\2/p' | sort -u >"$W/options"
    completes eddy "$command" -- | sort -u >"$W/offered"
    missing=$(comm -23 "$W/options" "$W/offered")
    [ -z "$missing" ] || fail "eddy $command: not offered: $missing"
done <"$W/commands"
check_equal "eddy flush FILE" "$(completes eddy flush packaging/debian/ru)" packaging/debian/rules

# ---- what reads them, where it is there ----

if command -v systemd-analyze >/dev/null; then
    mkdir "$W/units"
    for unit in "$EDDY_BUILD"/packaging/*.service packaging/systemd/*.timer; do
        # The programs are not installed here.
        sed -E 's|^(Exec[A-Za-z]*=)[^ ]*|\1/bin/true|' "$unit" >"$W/units/${unit##*/}"
    done
    systemd-analyze verify --man=no "$W"/units/eddyfs@login.service "$W"/units/eddyfs-recover-left.* 2>&1 |
        grep -E "^($W|eddyfs)" >"$W/units.out" || true
    [ ! -s "$W/units.out" ] || fail "units: $(cat "$W/units.out")"
fi
lmod=$(find /usr/share/lmod -path '*/libexec/lmod' 2>/dev/null | head -n 1 || true)
if [ -n "$lmod" ]; then
    mkdir -p "$W/modules/eddyfs"
    cp "$EDDY_BUILD/packaging/$version.lua" "$W/modules/eddyfs/"
    # shellcheck disable=SC2016 # the inner shell's
    MODULEPATH=$W/modules bash -c 'eval "$("$1" bash load eddyfs)"; echo "$PATH|$EDDYFS_ROOT|$CPATH"' load "$lmod" >"$W/module.out" 2>&1
    prefix=$(meson introspect --buildoptions "$EDDY_BUILD" | jq -r '.[] | select(.name == "prefix") | .value')
    grep -q "^$prefix/bin:.*|$prefix|$prefix/include" "$W/module.out" || fail "the module loads: $(cat "$W/module.out")"
fi
