# shellcheck shell=bash
#
# tools/setup on distributions that are not Debian: what is missing there, and how it is installed.

RUNTIME_PROGRAMS=(fusermount3)
BUILD_PROGRAMS=(cc meson ninja pkg-config)
BUILD_MODULES=(ucx libuv libcrypto libxxhash jansson mount libcap libmicrohttpd liburing) # as pkg-config calls them
TEST_PROGRAMS=(clang spin jq rsync git sqlite3 getfattr getfacl tar diff ps fuser python3 ip unshare gfortran shellcheck)
BENCH_PROGRAMS=(fio gnuplot rclone c++)

missing_programs() {
    local name
    for name; do
        command -v "$name" >/dev/null || echo "$name"
    done
}

missing_modules() {
    local name
    for name; do
        pkg-config --exists "$name" 2>/dev/null || echo "$name"
    done
}

# The command with which this distribution installs packages; nothing if it is not known.
install_command() {
    local name
    # shellcheck source=/dev/null
    for name in $( . /etc/os-release 2>/dev/null && echo "${ID-} ${ID_LIKE-}"); do
        case $name in
            fedora | rhel | centos) echo "dnf install"; return ;;
            suse | opensuse | sles) echo "zypper install"; return ;;
            arch) echo "pacman -S"; return ;;
            alpine) echo "apk add"; return ;;
        esac
    done
}

# package_of COMMAND PROGRAM, module_package COMMAND MODULE: what to tell the command. Distributions with rpm find a
# package by each file and each module of pkg-config that it brings.
package_of() {
    case $1,$2 in
        dnf*,ip | zypper*,ip) echo /usr/sbin/ip ;;
        dnf* | zypper*) echo "/usr/bin/$2" ;;
        *,fusermount3) echo fuse3 ;;
        *,cc) echo gcc ;;
        pacman*,pkg-config | apk*,pkg-config) echo pkgconf ;;
        pacman*,c++) echo gcc ;;
        *,c++) echo g++ ;;
        *,getfattr) echo attr ;;
        *,getfacl) echo acl ;;
        *,diff) echo diffutils ;;
        pacman*,ps) echo procps-ng ;;
        *,ps) echo procps ;;
        *,fuser) echo psmisc ;;
        *,ip) echo iproute2 ;;
        *,unshare) echo util-linux ;;
        pacman*,gfortran) echo gcc-fortran ;;
        *) echo "$2" ;;
    esac
}

module_package() {
    case $1,$2 in
        dnf* | zypper*) echo "'pkgconfig($2)'" ;;
        pacman*,ucx) echo openucx ;;
        pacman*,libcrypto) echo openssl ;;
        pacman*,libxxhash) echo xxhash ;;
        pacman*) echo "$2" ;;
        apk*,libcrypto) echo openssl-dev ;;
        apk*,libxxhash) echo xxhash-dev ;;
        apk*) echo "$2-dev" ;;
    esac
}

# tell_packages PROGRAMS MODULES: what to do about them.
tell_packages() {
    local command packages=() name
    command=$(install_command)
    if [ -z "$command" ]; then
        say "this is no Debian. Install what has these programs: ${1:-none}; and these modules of pkg-config: ${2:-none}"
        return
    fi
    for name in $1; do packages+=("$(package_of "$command" "$name")"); done
    for name in $2; do packages+=("$(module_package "$command" "$name")"); done
    say "this is no Debian. Install what is missing, as root:"
    say "  $command ${packages[*]}"
}

# $1: the level. What is there is found by looking for it, since who packages it is not known.
look_for_all() {
    local programs=("${RUNTIME_PROGRAMS[@]}") modules=() absent_programs absent_modules
    [ "$1" = --runtime ] || programs+=("${BUILD_PROGRAMS[@]}") modules+=("${BUILD_MODULES[@]}")
    case $1 in --test | --bench | --package) programs+=("${TEST_PROGRAMS[@]}") modules+=(check) ;; esac
    case $1 in --bench) programs+=("${BENCH_PROGRAMS[@]}") ;; esac
    absent_programs=$(missing_programs "${programs[@]}" | tr '\n' ' ')
    absent_modules=$(missing_modules ${modules[@]+"${modules[@]}"} | tr '\n' ' ')
    if [ -n "$absent_programs$absent_modules" ]; then
        tell_packages "${absent_programs% }" "${absent_modules% }"
        # shellcheck disable=SC2034 # main looks at it
        MISSING=1
    fi
    [ "$1" = --runtime ] || look_for_libfuse
}

look_for_libfuse() {
    local name
    name=$(sed -n 's/^source_filename *= *//p' "$WRAP")
    pkg-config --exists "fuse3 >= $FUSE_MINIMUM" "fuse3 < $FUSE_BEFORE" 2>/dev/null && return
    checksum_is_right "subprojects/packagefiles/$name" && return
    say "libfuse $FUSE_MINIMUM (older than $FUSE_BEFORE) is missing, with what is needed to compile with it (fuse3-devel, libfuse3-dev, fuse3)."
    say "  If your distribution has another one: put $name into subprojects/packagefiles. It is libfuse's source as"
    say "  Debian publishes it (package fuse3, $FUSE_SUITE); its SHA-256 is $(sed -n 's/^source_hash *= *//p' "$WRAP")"
    # shellcheck disable=SC2034 # main looks at it
    MISSING=1
}
