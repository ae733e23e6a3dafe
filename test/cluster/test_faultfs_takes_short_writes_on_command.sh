#!/usr/bin/env bash
# The PFS of the other tests takes less of a write than it was given, as it is told.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
start_faultfs a
tell_faultfs a short 1000 path=short times=2
cat >"$W/short.py" <<'END'
import os, sys
m = sys.argv[1]
f = os.open(m + "/short", os.O_WRONLY | os.O_CREAT)
got = [os.write(f, b"x" * 5000), os.write(f, b"y" * 999), os.write(f, b"z" * 5000),
       os.write(f, b"w" * 5000)]
assert got == [1000, 999, 1000, 5000], got
assert os.write(os.open(m + "/other", os.O_WRONLY | os.O_CREAT), b"x" * 5000) == 5000
END
python3 "$W/short.py" "$W/pfs-a" || fail "short writes"
{ printf 'x%.0s' {1..1000}; printf 'y%.0s' {1..999}; printf 'z%.0s' {1..1000}; printf 'w%.0s' {1..5000}; } >"$W/model"
check_same "$PFS/short" "$W/model"
