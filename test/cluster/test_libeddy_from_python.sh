#!/usr/bin/env bash
# eddy.py: each method of a queue does on a mount what eddy.h says, with its errors; the sampler tells each epoch's order
# before it, and all that it told is read; a process that is killed takes its queue along.
# timeout: 180
. "$(dirname "$0")/lib.sh"
requires fuse cmd meson cmd python3 cmd jq
# shellcheck source-path=SCRIPTDIR source=foresight/examples.sh
. "$(dirname "$SCRIPT")/foresight/examples.sh"

install_here
python3 "$HERE/check_sampler.py" || fail "see above" # without a mount
start_mount
timeout 100 python3 "$HERE/check_queue.py" "$W/mnt-a" "$W" || fail "see above"
wait_for 20 no_queue || fail "a queue is left"

python3 -c 'import eddy, signal, sys
queue = eddy.open(sys.argv[1], required=True)
queue.append(sys.argv[1] + "/run/never")
print("told", flush=True)
signal.pause()' "$W/mnt-a" >"$W/killed.out" &
job=$!
record_process "$W" "$job"
wait_for 20 grep -q told "$W/killed.out" || fail "no hint is given"
check_equal "queues" "$(status_of a .hints.queues)" 1
kill -KILL "$job"
wait "$job" 2>/dev/null || true
wait_for 20 no_queue || fail "the queue of a process that was killed is left"
stop_node a
