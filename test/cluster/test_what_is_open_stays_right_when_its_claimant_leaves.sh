#!/usr/bin/env bash
# A node that has the latest bytes of a file leaves in order while another node has the file open.
# A name that is removed after that takes nothing away: the descriptor reads what was flushed. What
# had no name when the node left was not flushed, and is not replaced by the PFS's older bytes.
# timeout: 60
# both
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3

cat >"$W/read.py" <<'PY'
import errno, os, sys

fd = os.open(sys.argv[1], os.O_RDONLY)
os.pread(fd, 100, 0)
print("open", flush=True)
open(sys.argv[2]).close()  # waits until the test opens it for writing
try:
    print(os.pread(fd, 100, 0).decode())
except OSError as e:
    print(errno.errorcode[e.errno])
PY

for n in named nameless; do
    echo "older bytes" >"$PFS/$n"
done
start_node b "$PFS" --flush end
start_node c "$PFS" --flush end --wait-nodes 2
start_node a "$PFS" --flush end --wait-nodes 3
declare -A READER
mkfifo "$W/go"
for n in named nameless; do
    echo "from node a" >"$W/mnt-a/$n"
    in_background python3 -B "$W/read.py" "$W/mnt-b/$n" "$W/go" >"$W/$n"
    READER[$n]=$!
    is_open() { grep -q open "$W/$n"; }
    wait_for 10 is_open || fail "$n is not open"
    echo "and a second line" >>"$W/mnt-a/$n"
done
rm "$W/mnt-c/nameless"
stop_node a
rm "$W/mnt-c/named"
exec {GO}>"$W/go"
for n in named nameless; do
    wait "${READER[$n]}"
    text=$(tail -n +2 "$W/$n")
    case $n in
    named) check_equal named "$text" "from node a"$'\n'"and a second line" ;;
    nameless) [[ $text == ESTALE || $text == EIO ]] || fail "nameless: $text" ;;
    esac
done
