#!/usr/bin/env bash
# The examples of docs/foreknowledge.md, as they are there, on a mount: each does what it says, the daemon gets the hints that
# it gives, and they end with it. (That in Fortran: libeddy_from_fortran.) No example is left out.
# timeout: 240
. "$(dirname "$0")/lib.sh"
requires fuse cmd cc cmd meson cmd pkg-config cmd python3 cmd jq
# shellcheck source-path=SCRIPTDIR source=foresight/examples.sh
. "$(dirname "$SCRIPT")/foresight/examples.sh"

check_equal "the examples" "$(sed -n 's/^<!-- example \(.*\) -->$/\1/p' "$SOURCE/docs/foreknowledge.md" | tr '\n' ' ')" \
    "restore.c restore.f90 restore.py train.py restore.sh results.sh stage.sh stage.sbatch "
check_equal "blocks without a name" \
    "$(awk '/^```[a-z]/ && before !~ /^<!-- example/ { print before $0 } { before = $0 }' "$SOURCE/docs/foreknowledge.md")" ""
install_here
start_mount

example restore.c
# shellcheck disable=SC2046 # words
cc -Wall -Wextra -Werror -o "$W/restore" "$W/restore.c" $(pkg-config --cflags --libs libeddy)
tells 16 "$W/restore"

example restore.py
tells 16 python3 "$W/restore.py"

example train.py
if ! python3 -c 'import torch' 2>/dev/null; then
    echo "torch is not here: its loader is replaced by a stand-in"
    PYTHONPATH=$PYTHONPATH:$HERE/standin
fi
tells 32 python3 "$W/train.py"

example restore.sh
runs bash -eu -o pipefail "$W/restore.sh" # the reader may be faster than the hints

example results.sh
runs bash -eu -o pipefail "$W/results.sh"
cmp "$W/mnt-a/results/finished" "$PFS/results/finished"

example stage.sh
runs bash -eu -o pipefail "$W/stage.sh"
grep -q "step-15: .*: all at a" "$W/run.out" || fail "eddy stage --check: $(cat "$W/run.out")"

example stage.sbatch
printf '#!/bin/sh\nexec "$@"\n' >"$W/srun" # on one node
chmod +x "$W/srun"
PATH=$W:$PATH runs bash -eu -o pipefail "$W/stage.sbatch"
grep -q " of 3.1 MiB, 16 files, 0 failed" "$W/run.out" || fail "the stage of the job: $(cat "$W/run.out")"
stop_node a
