#!/usr/bin/env bash
# The page that eddy report makes of three nodes that computed, read and wrote in phases is one that a browser draws without a complaint:
# each chart has its size, something in it, and words at its axes that lie neither on each other nor outside; each source of bytes has its colour.
# timeout: 300
# busy
. "$(dirname "$0")/lib.sh"
requires fuse cmd python3 cmd chromium
HERE=$(dirname "$SCRIPT")

NODES=(a b c)
PHASES=4
mkdir "$W/reports" "$PFS/input" "$PFS/output"
for i in $(seq "$PHASES"); do
    head -c 16M /dev/urandom >"$PFS/input/part$i"
done
for node in "${NODES[@]}"; do
    start_faultfs "$node"
    start_node "$node" "$W/pfs-$node" --no-passthrough --flush-wait 0.5 --report "$W/reports"
done

all_is_flushed() {
    local node
    for node in "${NODES[@]}"; do
        [ "$(status_of "$node" .cache.dirty)" = 0 ] || return 1
    done
}

# Each node reads what is new, and what it has read before; writes; and computes, while what it wrote is flushed.
for i in $(seq "$PHASES"); do
    for node in "${NODES[@]}"; do
        cat "$W/mnt-$node/input/part$i" "$W/mnt-$node/input/part1" >/dev/null
        sleep 0.4 # computes, and so the nodes do not read all at once
    done
    for node in "${NODES[@]}"; do
        head -c 8M /dev/urandom >"$W/mnt-$node/output/$node-$i"
    done
    wait_for 60 all_is_flushed || fail "phase $i is not flushed"
    sleep 1
done
for node in "${NODES[@]}"; do
    stop_node "$node"
done
check_equal "reports" "$(find "$W/reports" -name '*.json' | wc -l)" 3

eddy report --html "$W/page.html" "$W/reports"
python3 "$HERE/report_page.py" "$W/page.html" "$W/page.png" 2>"$W/said" || fail "the page: $(cat "$W/said")"
[ -z "${KEEP_PICTURE-}" ] || cp "$W/page.html" "$W/page.png" "$KEEP_PICTURE"

# It finds what it looks for: a page whose charts are empty, and one whose words lie on each other.
sed 's/<path[^>]*>/<path d="M0,0">/g' "$W/page.html" >"$W/empty.html"
python3 "$HERE/report_page.py" "$W/empty.html" "$W/empty.png" 2>"$W/said" && fail "empty charts are found good"
sed 's/svg text{font:11px/svg text{font:40px/' "$W/page.html" >"$W/large.html"
python3 "$HERE/report_page.py" "$W/large.html" "$W/large.png" 2>"$W/said" && fail "words that lie on each other are found good"
true
