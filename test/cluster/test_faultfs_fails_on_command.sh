#!/usr/bin/env bash
# The PFS of the other tests fails requests as it is told: by operation, by path, so many times,
# for writes also late, at the next fsync or close; what it was not told goes on; clear ends it.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
export LC_ALL=C
start_faultfs a --fault 'error EXDEV link path=dir/*'
M=$W/pfs-a

# says ERROR_TEXT COMMAND...: it fails, for that reason
says() {
    local text=$1
    shift
    ! "$@" 2>"$W/err" >/dev/null || fail "no error: $*"
    grep -q "$text" "$W/err" || fail "$*: $(cat "$W/err"), not $text"
}

mkdir "$M/dir"
echo one >"$M/dir/one"
echo two >"$M/two"
says "cross-device" ln "$M/dir/one" "$M/dir/linked"
ln "$M/two" "$M/linked"

by_path=$(tell_faultfs a error EIO read,getxattr path='dir/*')
says "Input/output error" cat "$M/dir/one"
check_equal "another path" "$(cat "$M/two")" two
echo three >"$M/dir/one" # another operation
tell_faultfs a clear "$by_path"
check_equal "after clear" "$(cat "$M/dir/one")" three

tell_faultfs a error EACCES open path='!(dir*)' times=2
says "Permission denied" cat "$M/two"
cat "$M/dir/one" >/dev/null
says "Permission denied" cat "$M/two"
check_equal "after two times" "$(cat "$M/two")" two
check_equal "the list" "$(tell_faultfs a list | grep EACCES)" \
    "3 hits=2 waiting=0 error EACCES open path=!(dir*) times=2"
tell_faultfs a clear

# Late: the write is taken, and is lost; fsync tells, once; else close.
tell_faultfs a error EDQUOT write path=late late
cat >"$W/late.py" <<'END'
import errno, os, sys
def code(fn):
    try:
        fn()
    except OSError as e:
        return errno.errorcode[e.errno]
    return 0
f = os.open(sys.argv[1] + "/late", os.O_WRONLY | os.O_CREAT)
assert os.write(f, b"lost") == 4
assert code(lambda: os.fsync(f)) == "EDQUOT"
assert code(lambda: os.fsync(f)) == 0
assert os.write(f, b"lost") == 4
assert code(lambda: os.close(f)) == "EDQUOT"
END
python3 "$W/late.py" "$M" || fail "a late error"
check_equal "bytes that a late error left" "$(stat -c %s "$PFS/late")" 0
tell_faultfs a clear
echo kept >"$M/late"
check_equal "after clear" "$(cat "$PFS/late")" kept
