# shellcheck shell=bash
#
# What programs in packaging/ share: the version, the archive of a version, libfuse's archive. They run in the project's
# directory.

say() {
    echo "packaging: $*"
}

die() {
    echo "packaging: $*" >&2
    exit 1
}

# The one in meson.build, which all others follow (cluster/packaging_is_in_order).
project_version() {
    sed -n "/^project(/,/)/s/^ *version: '\([^']*\)'.*/\1/p" meson.build
}

# make_archive FILE.tar.xz: of what is committed, by meson dist. Its tests are not run here. In a tree without a repository
# $EDDYFS_ARCHIVE names an archive that was made before.
make_archive() {
    local work
    if [ -n "${EDDYFS_ARCHIVE-}" ]; then
        cp "$EDDYFS_ARCHIVE" "$1"
        return
    fi
    [ -z "$(git status --porcelain --untracked-files=no)" ] || die "there are changes that are not committed: they would not be in the archive"
    work=$(mktemp -d)
    meson setup "$work/build" >"$work/log" 2>&1 || { cat "$work/log" >&2; die "meson setup failed"; }
    meson dist -C "$work/build" --no-tests --formats xztar >>"$work/log" 2>&1 ||
        { tail "$work/log" >&2; die "meson dist failed"; }
    cp "$work/build/meson-dist/eddyfs-$(project_version).tar.xz" "$1"
    rm -rf "$work"
}

wrap_says() {
    sed -n "s/^$1 *= *//p" subprojects/fuse3.wrap
}

# take_libfuse FILE: a copy of libfuse's archive, with the right checksum. Where the system's libfuse is new enough,
# tools/setup does not get it; then it is got as for a system whose own is older.
take_libfuse() {
    local archive
    archive=subprojects/packagefiles/$(wrap_says source_filename)
    [ -f "$archive" ] || tools/setup --libfuse
    echo "$(wrap_says source_hash)  $archive" | sha256sum --check --status || die "$archive does not have the checksum in subprojects/fuse3.wrap"
    cp "$archive" "$1"
}
