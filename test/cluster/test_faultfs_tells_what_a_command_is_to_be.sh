#!/usr/bin/env bash
# A command that the PFS of the other tests does not understand is refused with what to write
# instead, and changes nothing; bandwidth and delays can be set while it runs.
# timeout: 60
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
start_faultfs a

# refused WHAT_IT_SAYS COMMAND...
refused() {
    local text=$1 code=0
    shift
    tell_faultfs a "$@" >"$W/answer" 2>"$W/err" || code=$?
    check_equal "code of: $*" "$code" 1
    grep -q -- "$text" "$W/err" || fail "$*: $(cat "$W/err")"
}
refused "no command is named hangs: write one of these" hangs write
refused "no error is named EWRONG: write it as errno(3) does" error EWRONG write
refused "no operation is named wirte: write all, data, .* lookup, getattr" error EIO read,wirte
refused "no operation is named nothing" hang
refused "this command does not take quickly" hang write quickly
refused "this command does not take late" hang write late
refused "only errors of write can be late" error EIO fsync late
refused "not a number: 1M" full 1M
refused "not a number: nothing" short
refused "there is no fault 7: list tells" clear 7
refused "too many words" error EIO write 1 2 3 4 5 6 7
check_equal "faults that these made" "$(tell_faultfs a list)" ""
! "$EDDY_BUILD/test/faultfs" --tell "$W/nobody" list 2>"$W/err" || fail "nobody answered"
grep -q "is a faultfs --control .*nobody running" "$W/err" || fail "$(cat "$W/err")"
code=0
"$EDDY_BUILD/test/faultfs" --fault 'hang' "$PFS" "$W" 2>"$W/err" || code=$?
check_equal "code of a bad --fault" "$code" 2

tell_faultfs a bandwidth 5000000
start=${EPOCHREALTIME/[.,]/}
head -c 5000000 /dev/zero >"$W/pfs-a/file"
took=$(((${EPOCHREALTIME/[.,]/} - start) / 1000))
[ "$took" -ge 900 ] || fail "5 MB at 5 MB/s took only $took ms"
tell_faultfs a bandwidth 0
echo small >"$W/pfs-a/small"
tell_faultfs a delay-us 300000
start=${EPOCHREALTIME/[.,]/}
cat "$W/pfs-a/small" >/dev/null
took=$(((${EPOCHREALTIME/[.,]/} - start) / 1000))
[ "$took" -ge 600 ] || fail "open and read with a delay of 0.3 s each took only $took ms"
tell_faultfs a delay-us 0
