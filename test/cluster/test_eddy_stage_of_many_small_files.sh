#!/usr/bin/env bash
# 10,000 small files are staged over three nodes: each is read from the PFS once, the memory that this takes is counted and bounded, and
# too many files are refused before anything is fetched.
# timeout: 400
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd python3
FILES=10000

python3 - "$PFS" $FILES <<'END'
import os, sys
pfs, count = sys.argv[1], int(sys.argv[2])
for i in range(count):
    directory = f"{pfs}/many/{i // 500:03d}"
    os.makedirs(directory, exist_ok=True)
    with open(f"{directory}/{i:05d}", "wb") as f:
        f.write(os.urandom(1 + i % 700))
END
bytes=$(find "$PFS/many" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
for node in a b c; do
    start_faultfs $node
    start_node $node "$W/pfs-$node" --cache-size 256M
done

many_read() {
    local node sum=0
    for node in a b c; do
        stat_of $node read_bytes >/dev/null # they are up to date
        sum=$((sum + $(jq '[.files | to_entries[] | select(.key | startswith("many/")).value.read_bytes] | add // 0' "$W/pfs-$node.json")))
    done
    echo "$sum"
}
memory() {
    status_of a .hints.memory_bytes
}

hang=$(tell_faultfs c hang read path='many/*')
id=$("$EDDY_BUILD/eddy" stage --spread "$W/mnt-a/many")
wait_for 60 fault_waits c "$hang" || fail "c is not asked"
[ "$(memory)" -ge $((FILES * 100)) ] || fail "the memory of the stage is not counted: $(memory)"
[ "$(memory)" -le $((FILES * 320)) ] || fail "it takes more than 320 bytes a file: $(memory)"
tell_faultfs c clear
has_ended() {
    "$EDDY_BUILD/eddy" stage --status "$id" | grep -q ": ended: .*, $FILES files, 0 failed"
}
wait_for 200 has_ended || fail "it does not end: $("$EDDY_BUILD/eddy" stage --status "$id")"
check_equal "bytes read from the PFS" "$(many_read)" "$bytes"
check_equal "memory that is left" "$(memory)" 0
check_equal "what --check says" "$("$EDDY_BUILD/eddy" stage --check --spread --json "$W/mnt-b/many" | jq -c '[.files, .bytes, .here, .fits, ([.has[].nodes[].bytes] | add)]')" \
    "[$FILES,$bytes,$bytes,true,$bytes]"
"$EDDY_BUILD/eddy" stage --spread --wait "$W/mnt-c/many" || fail "a second stage ends with $?"
(cd "$PFS/many" && find . -type f) >"$W/list"
(cd "$W/mnt-b/many" && "$EDDY_BUILD/eddy" stage --spread --wait --json -f "$W/list") >"$W/said" || fail "a stage of a list ends with $?"
check_equal "the files of the list" "$(jq -c '[.files, .bytes, .code]' "$W/said")" "[$FILES,$bytes,0]"
diff -r "$W/mnt-b/many" "$PFS/many" || fail "b has wrong bytes"
check_equal "bytes read from the PFS, after a second stage and a reader" "$(many_read)" "$bytes"
for node in a b c; do
    stop_node $node
done

# --- Too many for the memory ---

start_node small "$W/pfs-a" --memory 32M --cache-size 256M
for copy in $(seq 8); do cp -rl "$PFS/many" "$PFS/copy$copy"; done
mkdir "$PFS/copies"
mv "$PFS"/copy? "$PFS/copies"
before=$(stat_of a read)
code=0
"$EDDY_BUILD/eddy" stage --wait "$W/mnt-small/copies" >"$W/said" 2>&1 || code=$?
check_equal "code of too many files ($(cat "$W/said"))" "$code" 1
grep -q "no memory for so many paths" "$W/said" || fail "it is not said why: $(cat "$W/said")"
[ "$(($(stat_of a read) - before))" -lt 100 ] || fail "files were read"
check_equal "memory that is left" "$(status_of small .hints.memory_bytes)" 0
stop_node small
