#!/usr/bin/env bash
# Every error that a PFS can give to a flush, at write, only at fsync or only at close, and a PFS
# that hangs: what fsync and close said, to each descriptor once; what eddy status says; exit
# codes; and that all bytes are there when the fault is over (the table: errors/each_error.py).
# timeout: 300
# both
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
start_faultfs a
start_node a "$W/pfs-a" --flush end --session-dir "$W/session"
python3 -B "$(dirname "$SCRIPT")/errors/each_error.py" "$EDDY_BUILD/eddy" "$EDDY_BUILD/test/faultfs" \
    "$W/pfs-a.control" "$W/mnt-a" "$PFS" ${HANG_SECONDS:+"$HANG_SECONDS"} || fail "see above"
stop_node a
