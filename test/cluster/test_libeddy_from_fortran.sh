#!/usr/bin/env bash
# The Fortran module: it compiles without a warning, each function does on a mount what eddy.h says, and the example of
# docs/foreknowledge.md runs.
# timeout: 120
. "$(dirname "$0")/lib.sh"
requires fuse cmd gfortran cmd meson cmd pkg-config cmd jq
# shellcheck source-path=SCRIPTDIR source=foresight/examples.sh
. "$(dirname "$SCRIPT")/foresight/examples.sh"

install_here
start_mount
cd "$W" || exit

# compile PROGRAM SOURCE
compile() {
    # shellcheck disable=SC2046 # words
    gfortran -Wall -Wextra -Werror -std=f2018 -o "$1" "$INCLUDES/eddy.f90" "$2" $(pkg-config --libs libeddy)
}

compile "$W/queue" "$HERE/check_queue.f90"
timeout 60 "$W/queue" "$W/mnt-a" "$W" || fail "see above"
wait_for 20 no_queue || fail "a queue is left"

example restore.f90
compile "$W/restore" "$W/restore.f90"
tells 16 "$W/restore"
stop_node a
