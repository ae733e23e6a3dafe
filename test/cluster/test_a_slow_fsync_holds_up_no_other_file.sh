#!/usr/bin/env bash
# With one writer for write-back, a file is written to the PFS while the one before it waits for the PFS's fsync; as many as there
# are writers may wait so, no more. Bytes go to a PFS that is a FUSE mount in whole requests.
# timeout: 60
# both-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
start_faultfs a
start_node a "$W/pfs-a" --flush end --flush-writers 1
for name in first second third; do
    head -c 4M /dev/urandom >"$W/$name"
    cp "$W/$name" "$W/mnt-a/$name"
done

hangs=()
for name in first second; do
    hangs+=("$(tell_faultfs a hang fsync path="$name")")
done
in_background eddy flush "$W/mnt-a"
flusher=$!
wait_for 20 fault_waits a "${hangs[0]}" || fail "the first file's fsync does not hang"
wait_for 20 fault_waits a "${hangs[1]}" || fail "the second file waits for the first one's fsync"
check_same "$PFS/second" "$W/second"
check_equal "requests for 4 MiB" "$(stat_of a writes second)" 4
check_equal "what is said of it" "$(status_of a .flush.state)" "flushing now"

# the second has the writer's place still
check_equal "writes of the third" "$(stat_of a writes third)" 0
kill -0 "$flusher" || fail "eddy flush did not wait"
tell_faultfs a clear
wait "$flusher" || fail "eddy flush failed"
for name in first second third; do
    check_same "$PFS/$name" "$W/$name"
done
stop_node a
