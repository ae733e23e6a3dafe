#!/usr/bin/env bash
# Five nodes, two of them cut off from the other three for 30 s, while all ask for claims and locks: no two ever hold the
# same one, and afterwards all are in one view again and everything can be had. The clocks are seconds apart.
# PARTITIONS=50 for more of them; SEED for others.
# timeout: 240
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
in_namespaces
: "${SEED:=1}" "${PARTITIONS:=1}"

pids=
for i in 0 1 2 3 4; do
    add_host "n$i"
    pids+=,${HOST_PID[n$i]}
done
ip link add br1 type bridge forward_delay 0
ip link set br1 up
skew=()
if unshare --time --boottime 5 --monotonic 5 true 2>/dev/null; then
    skew=(--skew 5)
else
    echo "no time namespaces here: all clocks are the same"
fi

echo "seed $SEED, $PARTITIONS partitions"
code=0
in_background "$EDDY_BUILD/test/protosoak" --protonode "$EDDY_BUILD/test/protonode" --work "$W" --pfs "$PFS" \
    --seed "$SEED" --nodes 5 --seconds 0 --hosts "${pids#,}" --partitions "$PARTITIONS" ${skew[@]+"${skew[@]}"}
wait "$!" || code=$?
fenced=$(cat "$W"/n[0-4].log | grep -c "it is fenced" || true)
echo "$fenced times a node was fenced"
check_equal "code" "$code" 0
[ "$fenced" -ge "$PARTITIONS" ] || fail "nobody was fenced: the nodes were not cut off"
