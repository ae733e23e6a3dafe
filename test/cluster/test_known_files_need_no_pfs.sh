#!/usr/bin/env bash
# A file that is in the cache is opened without the PFS while it is known (--attr-timeout), and still exactly: what
# another node has written is seen at the next open, flushed or not, also after a node has joined. What is open so
# is read, looked at and locked after another node, or this one, has renamed or removed it.
# timeout: 180
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a" --session-dir "$W/session" --attr-timeout 60 --flush-wait 3600
start_node b "$W/pfs-b" --session-dir "$W/session" --attr-timeout 60 --flush-wait 3600 --wait-nodes 2
A=$W/mnt-a
B=$W/mnt-b

opens() { stat_of b open; }
# read_known WHAT EXPECTED: at the third time without the PFS
read_known() {
    local before
    sleep 0.05 # its version is not racy any more
    check_equal "$1" "$(cat "$B/file")" "$2"
    check_equal "$1, again" "$(cat "$B/file")" "$2"
    before=$(opens)
    check_equal "$1, known" "$(cat "$B/file")" "$2"
    check_equal "PFS opens of a known file, $1" "$(($(opens) - before))" 0
}
for n in $(seq 20); do
    echo "unflushed $n" >"$A/file"
    check_equal "unflushed $n" "$(cat "$B/file")" "unflushed $n"
    eddy flush "$A"
    read_known "flushed $n" "unflushed $n"
    # the other node's own kernel knows nothing of this one
    printf 'x' | dd of="$A/file" bs=1 conv=notrunc status=none
    check_equal "changed $n" "$(cat "$B/file")" "xnflushed $n"
    eddy flush "$A"
    read_known "changed and flushed $n" "xnflushed $n"
    [ "$n" != 10 ] || start_node c "$PFS" --session-dir "$W/session" --wait-nodes 3
done
chmod 600 "$A/file"
read_known "after a chmod" "xnflushed 20"
touch "$B/file"
gives_back() { [ "$(status_of b .claims)" = 0 ]; }
wait_for 30 gives_back || fail "b keeps its claim after a touch" # it is known anew after that
read_known "after a touch" "xnflushed 20"

# What a flush of this node has seen tells a stat as well, which the kernel asks for after each write and read through
# it, until another node has changed the file.
asked() { echo $(($(stat_of b lookup) + $(stat_of b getattr))); }
for n in 1 2 3; do
    echo "of b" >"$B/stat$n"
    eddy flush "$B"
    wait_for 30 gives_back || fail "b keeps its claim after a flush"
    stat "$B" >/dev/null # the kernel forgot the directory's attributes when the name was made
    before=$(asked)
    check_equal "stat of what was flushed" "$(stat -c '%s %a' "$B/stat$n")" "5 644"
    check_equal "requests for it" "$(($(asked) - before))" 0
    cat "$B/stat$n" >/dev/null # and the access time
    case $n in
        1) chmod 600 "$A/stat$n" && expected="5 600" ;;
        2) printf 'and of a' >>"$A/stat$n" && expected="13 644" ;;
        3) printf 'and of a' >>"$A/stat$n" && eddy flush "$A" && expected="13 644" ;;
    esac
    cat "$B/stat$n" >/dev/null
    check_equal "after a's change $n" "$(stat -c '%s %a' "$B/stat$n")" "$expected"
done

# All that goes with a size: of a file that is opened, but not looked at, when another node has filled it.
: >"$A/filled"
eddy flush "$A"
stat "$B/filled" >/dev/null
head -c 1M /dev/urandom >"$A/filled"
eddy flush "$A"
read -r size blocks <<<"$(stat -L -c '%s %b' /dev/stdin <"$B/filled")"
check_equal "size of an open file that another node has filled" "$size" 1048576
[ "$blocks" -ge 2048 ] || fail "... has $blocks blocks"

cat >"$W/hold.py" <<'END'
import fcntl, os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
print("open", flush=True)
sys.stdin.readline()
size = os.fstat(f).st_size
fcntl.lockf(f, fcntl.LOCK_SH)
data = b""
while chunk := os.read(f, 4096):
    data += chunk
assert size == len(data), (size, len(data))
print(data.decode().strip(), flush=True)
END
# held WHAT COMMAND...: a file that is open on b is read after the command, which gets its name.
held() {
    local what=$1 said pid before name
    shift
    CASE=$((CASE + 1)) # a name that the other node uses again is seen within the attribute time-out only
    name=held$CASE
    echo "of $what" >"$A/$name"
    eddy flush "$A"
    for _ in 1 2 3; do
        sleep 0.05
        check_equal "before" "$(cat "$B/$name")" "of $what"
    done
    before=$(opens)
    coproc HOLD { exec python3 "$W/hold.py" "$B/$name"; }
    record_process "$W" "$HOLD_PID"
    pid=$HOLD_PID
    read -r said <&"${HOLD[0]}"
    check_equal "$what" "$said" open
    check_equal "PFS opens for $what" "$(($(opens) - before))" 0
    "$@" "$name"
    exec 7<&"${HOLD[0]}"
    echo >&"${HOLD[1]}"
    said=
    read -r said <&7 || true
    check_equal "$what" "$said" "of $what"
    wait "$pid" || fail "$what: what is open cannot be used any more"
    exec 7<&-
}
CASE=0
remove() { rm "$1/$2"; }
move() { mv "$1/$2" "$1/moved$2"; }
replace() { echo another >"$1/new$2" && mv "$1/new$2" "$1/$2"; }
for change in remove move replace; do
    held "$change on the other node" $change "$A"
    held "$change on this node" $change "$B"
done
stop_node c
stop_node b
stop_node a
