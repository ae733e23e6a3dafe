#!/usr/bin/env bash
# The PFS is full in the middle of the flush of 300 files: eddy flush and eddy umount say 3 and
# list exactly the files that are not there; those that are, are right; nothing is lost: when
# there is room a new start flushes the rest, and all 300 are right. Quota the same.
# timeout: 180
# busy
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
start_faultfs a

# make DIR: 300 files of 1 byte to 100 kB, about 15 MB, the same in a plain directory
make() {
    python3 - "$W/mnt-a/$1" "$W/plain/$1" <<'PY'
import os, random, sys
rnd = random.Random(sys.argv[1])
for d in sys.argv[1:]:
    os.makedirs(d)
for n in range(300):
    data = rnd.randbytes(1 + rnd.randrange(100_000))
    for d in sys.argv[1:]:
        with open(f"{d}/f{n}", "wb") as f:
            f.write(data)
PY
}
# missing DIR: paths of the files that the PFS has not got as they are
missing() { (cd "$W/plain" && for f in "$1"/*; do cmp -s "$f" "$PFS/$f" || echo "$f"; done) | sort; }
# check_code WHAT CODE COMMAND...: its output goes to $W/listed
check_code() {
    local what=$1 expected=$2 code=0
    shift 2
    "$@" >"$W/listed" || code=$?
    check_equal "code of $what" "$code" "$expected"
}
listed() { sed 's/: .*//' "$W/listed" | sort; }

for fault in full quota; do
    start_node a "$W/pfs-a" --flush end --session-dir "$W/session-$fault"
    make "$fault"
    number=$(tell_faultfs a "$fault" 7000000 path="$fault/*")
    check_code "eddy flush" 3 eddy flush "$W/mnt-a"
    missing "$fault" >"$W/missing"
    n=$(wc -l <"$W/missing")
    if [ "$n" -lt 50 ] || [ "$n" -gt 250 ]; then
        fail "$n of 300 files are not on the PFS: that is not the middle"
    fi
    diff "$W/missing" <(listed) || fail "eddy flush lists other files than those that are missing"
    check_equal "failed files" "$(status_of a .flush.failed_count)" "$n"
    (cd "$W/plain" && for f in "$fault"/*; do cmp "$f" "$W/mnt-a/$f" || exit 1; done) ||
        fail "wrong bytes in the mount"
    check_code "eddy umount" 3 eddy umount "$W/mnt-a"
    missing "$fault" >"$W/missing"
    diff "$W/missing" <(listed) || fail "eddy umount lists other files than those that are missing"
    echo "$fault: $n of 300 files did not fit, $(wc -l <"$W/missing") at the end"
    tell_faultfs a clear "$number"
    start_node a "$W/pfs-a" --flush end --session-dir "$W/session-$fault"
    stop_node a
    check_equal "files that are not right on the PFS" "$(missing "$fault")" ""
done
