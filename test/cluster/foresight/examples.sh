# shellcheck shell=bash
#
# For the tests of libeddy's languages: an installation of this build below $W/root, a mount with a run's files in it, and the
# examples of docs/foreknowledge.md.

SOURCE=$(cd "$(dirname "$SCRIPT")/../.." && pwd)
export HERE=$SOURCE/test/cluster/foresight

# What is built is installed below $W/root; the languages find it there, and `eddy` too.
install_here() {
    DESTDIR=$W/root meson install -C "$EDDY_BUILD" --no-rebuild --skip-subprojects >"$W/install.txt" 2>&1 ||
        fail "it cannot be installed: $(tail -n 5 "$W/install.txt")"
    LIBS=$(dirname "$(find "$W/root" -name libeddy.so.0 | head -n 1)")
    [ -e "$LIBS/libeddy.so.0" ] || fail "no libeddy.so.0 is installed"
    PYTHONPATH=$(dirname "$(find "$W/root" -name eddy.py | head -n 1)")
    [ -e "$PYTHONPATH/eddy.py" ] || fail "no eddy.py is installed"
    INCLUDES=$(dirname "$(find "$W/root" -name eddy.h | head -n 1)")
    export INCLUDES PYTHONPATH LD_LIBRARY_PATH=$LIBS PYTHONDONTWRITEBYTECODE=1
    export PKG_CONFIG_PATH=$LIBS/pkgconfig PKG_CONFIG_SYSROOT_DIR=$W/root
    PATH=$(dirname "$(find "$W/root" -name eddy -type f -perm -u+x | head -n 1)"):$PATH
}

# A mount of node a, of the files that the examples read, run/step-00 to step-15. None of them is in the cache.
start_mount() {
    mkdir "$PFS/run"
    for i in $(seq -w 0 15); do
        head -c 200000 /dev/urandom >"$PFS/run/step-$i"
    done
    start_node a "$PFS"
}

# example NAME: docs/foreknowledge.md's, with the mount in place of its own, at $W/NAME.
example() {
    awk -v mark="<!-- example $1 -->" '$0 == mark { found = 1; next }
        found && /^```/ { if (inside) exit; inside = 1; next }
        inside' "$SOURCE/docs/foreknowledge.md" | sed "s|/mnt/data|$W/mnt-a|g" >"$W/$1"
    [ -s "$W/$1" ] || fail "docs/foreknowledge.md has no example $1"
}

hints_told() {
    status_of a .counters.hints
}

# runs COMMAND...: it ends well, and no queue is left.
runs() {
    timeout 60 "$@" >"$W/run.out" 2>&1 || fail "$* ends with $?: $(cat "$W/run.out")"
    wait_for 20 no_queue || fail "$* leaves a queue"
}

# tells N COMMAND...: it runs and gives N hints, and most of them were read: what it closes last may be closed after its queue.
tells() {
    local expected=$1 before consumed
    shift
    before=$(hints_told) consumed=$(status_of a .counters.hints_consumed)
    runs "$@"
    check_equal "hints of $* ($(cat "$W/run.out"))" "$(($(hints_told) - before))" "$expected"
    consumed=$(($(status_of a .counters.hints_consumed) - consumed))
    [ "$consumed" -ge $((expected / 2)) ] || fail "of the hints of $* $consumed were read"
}
no_queue() {
    [ "$(status_of a .hints.queues)" = 0 ]
}
