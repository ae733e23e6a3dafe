# shellcheck shell=bash
#
# The builds that test/run tests: BUILD, and beside it those with sanitizers.

declare -A BUILT=() # "yes" or "no" by build directory

# compile NAME DIR TARGETS OPTION...
compile() {
    local name=$1 dir=$2 targets=$3 werror=false setup=(meson setup)
    shift 3
    [ "${CI-}" != true ] || werror=true
    # Configured again each time, to find new files.
    [ ! -f "$dir/build.ninja" ] || setup+=(--reconfigure)
    run_logged 300 "$name" "${setup[@]}" "$dir" "-Dwerror=$werror" -Dtests=enabled "$@" || return
    # shellcheck disable=SC2086 # words
    run_logged 1200 "$name" ninja -C "$dir" -j "$JOBS" $targets
}

# build DIR TARGETS OPTION...: once a run. Returns 1 if it fails, and counts that.
build() {
    local dir=$1 name start=$EPOCHREALTIME
    name=build/${dir##*/}
    if [ -z "${BUILT[$dir]-}" ]; then
        BUILT[$dir]=no
        if compile "$name" "$@"; then
            BUILT[$dir]=yes
            echo "built ${dir##*/} ($(seconds_since "$start") s)"
        else
            failed "$name" "does not build"
        fi
    fi
    [ "${BUILT[$dir]}" = yes ]
}
