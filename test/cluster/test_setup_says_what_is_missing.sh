#!/usr/bin/env bash
# tools/setup where it cannot install: on distributions that are not Debian it says with which command to install what is
# missing, and where libfuse's source goes; a user without sudo is told what root is to run.
# timeout: 60
. "$(dirname "$0")/lib.sh"
requires root user namespaces
in_namespaces
SETUP=$(dirname "$SCRIPT")/../../tools/setup

# A copy of what it reads, with no libfuse; and programs, but for those of Debian and some that are then missing.
mkdir -p "$W/tree/subprojects" "$W/bin"
cp -r "$(dirname "$SETUP")" "$W/tree/tools"
cp "$(dirname "$SETUP")/../subprojects/fuse3.wrap" "$W/tree/subprojects"
for program in bash env sed id sha256sum dirname tr grep cat awk cc setpriv pkg-config mktemp cp mv rm mkdir; do
    ln -s "$(command -v "$program")" "$W/bin/$program"
done

# on NAME: what it says on a distribution with this ID, in $W/said.out; its exit code is in CODE
on() {
    printf 'ID=%s\nID_LIKE="%s"\n' "$1" "${2-}" >"$W/os-release"
    mount --bind "$W/os-release" /etc/os-release
    CODE=0
    PKG_CONFIG_LIBDIR=$W/none PATH=$W/bin "$W/tree/tools/setup" --build >"$W/said.out" 2>&1 || CODE=$?
    umount /etc/os-release
    check_equal "exit code on $1" "$CODE" 1
}
says() {
    grep -q -F -- "$1" "$W/said.out" || fail "it does not say: $1: $(cat "$W/said.out")"
}

on rocky "rhel centos fedora"
says "  dnf install /usr/bin/fusermount3 /usr/bin/meson /usr/bin/ninja 'pkgconfig(ucx)' 'pkgconfig(libuv)'"
says "put fuse3_3.17.2.orig.tar.gz into subprojects/packagefiles"
says "$(sed -n 's/^source_hash *= *//p' "$W/tree/subprojects/fuse3.wrap")"
on opensuse-leap "suse opensuse"
says "  zypper install /usr/bin/fusermount3"
on arch
says "  pacman -S fuse3 meson ninja openucx libuv openssl xxhash jansson"
on strange
says "Install what has these programs: fusermount3 meson ninja; and these modules of pkg-config: ucx"

# All is there: it says nothing.
for program in meson ninja fusermount3; do ln -s /bin/true "$W/bin/$program"; done
printf '#!/bin/sh\nexit 0\n' >"$W/bin/every-module"
chmod +x "$W/bin/every-module"
ln -sf every-module "$W/bin/pkg-config"
PATH=$W/bin "$W/tree/tools/setup" --build >"$W/said.out" 2>&1 || fail "it ends with $? where nothing is missing"
[ ! -s "$W/said.out" ] || fail "it says something where nothing is missing: $(cat "$W/said.out")"

# A Debian, a user, no sudo: packages are missing there as dpkg-query knows none.
for program in apt-get dpkg-query; do ln -sf /bin/false "$W/bin/$program"; done
code=0
PATH=$W/bin run_as 65534 "$W/tree/tools/setup" --build >"$W/said.out" 2>&1 || code=$?
check_equal "exit code of a user without sudo" "$code" 1
says 'let root run "tools/setup --build" here'
says "these packages are missing: fuse3 "
