#!/usr/bin/env bash
# --rdma-memory: what nodes read again and again is read from other nodes' memory, and the owner sends nothing; another version is
# never taken for the one that is asked for; the owner may even be stopped. What a killed daemon leaves of it goes.
# timeout: 120
# sanitize-long
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq
room=$(df --output=avail -B1M /dev/shm | tail -1)
[ "$room" -ge 512 ] || skip "/dev/shm has $room MiB"
names=(n1 n2 n3 n4 n5)
MIB=1048576
MEMORY=(--rdma-memory 32M)
head -c $((12 * MIB)) /dev/urandom >"$PFS/first"
head -c $((12 * MIB)) /dev/urandom >"$PFS/hot"
head -c $((12 * MIB)) /dev/urandom >"$PFS/later"
for n in "${names[@]}"; do start_node "$n" "$PFS" "${MEMORY[@]}"; done

has_members() { [ "$(status_of "$1" '.members | length')" = "$2" ]; }
reads() { # NODE FILE: it has the PFS's bytes
    cmp "$W/mnt-$1/$2" "$PFS/$2" || fail "$1 has other bytes of $2"
}
for n in "${names[@]}"; do wait_for 30 has_members "$n" 5 || fail "not all are members"; done
counter() { status_of "$1" ".counters.$2"; }

# ---- the fourth and fifth reader need no owner's processor ----
connected() { [ "$(status_of "$1" '.onesided.nodes | length')" -ge 3 ]; }
for n in "${names[@]}"; do reads "$n" first; done # who reads for the first time asks for the others' memory
# Of 12 chunks a node may own none: who has asked too few nodes reads others, which nobody else reads.
connects() {
    local more
    for more in 1 2 3 4 5; do
        ! wait_for 2 connected "$1" || return 0
        head -c $((8 * MIB)) /dev/urandom >"$PFS/$1-$more"
        reads "$1" "$1-$more"
    done
    wait_for 10 connected "$1"
}
for n in "${names[@]}"; do connects "$n" || fail "$n reads nothing one-sided"; done
for n in n1 n2 n5; do reads "$n" hot; done # each chunk is asked for twice or more
shelves_used() {
    local n used=0
    for n in "${names[@]}"; do used=$((used + $(status_of "$n" .onesided.shelves_used))); done
    echo $used
}
are_put() { # an owner puts a chunk on its shelf after it has answered
    local used
    used=$(shelves_used)
    [ "$used" -ge 12 ] && sleep 0.2 && [ "$(shelves_used)" = "$used" ]
}
wait_for 20 are_put || fail "hot chunks are not put on shelves: $(shelves_used)"
onesided=$(($(counter n3 onesided_bytes) + $(counter n4 onesided_bytes)))
served=0
for n in "${names[@]}"; do served=$((served + $(counter "$n" served_bytes))); done
for n in n3 n4; do reads "$n" hot; done
for n in "${names[@]}"; do served=$((served - $(counter "$n" served_bytes))); done
onesided=$(($(counter n3 onesided_bytes) + $(counter n4 onesided_bytes) - onesided))
echo "one-sided: $onesided bytes; by messages meanwhile: $((-served))"
[ $onesided -ge $((12 * MIB)) ] || fail "few of 24 MiB were read one-sided: $onesided bytes"
[ $((-served)) -le $((4 * MIB)) ] || fail "owners sent $((-served)) bytes all the same"
for n in n3 n4; do check_equal "shelves of $n's peers with other bytes" "$(counter "$n" onesided_bounced)" 0; done
check_equal "UCX's transports" "$(status_of n4 .onesided.transports)" posix
[[ $(eddy status "$W/mnt-n4") = *"one-sided"*"reads from"* ]] || fail "eddy status does not tell people"

# ---- another version ----
head -c $((12 * MIB)) /dev/urandom >"$W/new"
cp "$W/new" "$W/mnt-n2/hot"
for n in "${names[@]}"; do cmp "$W/mnt-$n/hot" "$W/new" || fail "$n has bytes of an older version"; done
eddy flush "$W/mnt-n2"
for n in "${names[@]}"; do cmp "$W/mnt-$n/hot" "$W/new" || fail "$n has bytes of an older version after the flush"; done
check_same "$PFS/hot" "$W/new"

# ---- an owner that is stopped ----
reads n1 later
reads n2 later
reads n3 later
settled() { # all that were asked for twice are on shelves
    local used
    used=$(shelves_used)
    sleep 0.3
    [ "$(shelves_used)" = "$used" ]
}
wait_for 20 settled || fail "chunks are put on shelves without end"
exec 7<"$W/mnt-n5/later"
eddy ring "$W/mnt-n5/later" >"$W/ring"
home=$(awk '$1 == "home" { sub(",", "", $2); print $2 }' "$W/ring")
reads_from=$(status_of n5 '.onesided.nodes | join(" ")')
stopped=
for n in n4 n3 n2 n1; do
    if [ "$n" != "$home" ] && [[ " $reads_from " = *" $n "* ]] && awk -v n="$n" '$1 ~ /^[0-9]+$/ && $2 == n { f = 1 } END { exit !f }' "$W/ring"; then stopped=$n; fi
done
[ -n "$stopped" ] || fail "of $reads_from no node but the home owns a chunk"
chunk=$(awk -v n="$stopped" '$1 ~ /^[0-9]+$/ && $2 == n { print $1; exit }' "$W/ring")
before=$(counter n5 onesided_reads)
pause "${NODE_PID[$stopped]}"
begun=$(date +%s%N)
dd bs=$MIB skip="$chunk" count=1 iflag=fullblock status=none <&7 >"$W/got"
took=$((($(date +%s%N) - begun) / 1000000))
kill -CONT "${NODE_PID[$stopped]}"
exec 7<&-
cmp "$W/got" <(dd if="$PFS/later" bs=$MIB skip="$chunk" count=1 status=none) || fail "other bytes than the stopped owner's"
[ "$(counter n5 onesided_reads)" -gt "$before" ] || fail "it was not read one-sided"
echo "chunk $chunk of $stopped, stopped: $took ms"
[ $took -lt 2500 ] || fail "it waited for the stopped owner: $took ms"

# ---- what a killed daemon leaves ----
shm=/dev/shm/eddyfs-rdma-$(id -u)
left=$(find "$shm" -mindepth 1 -maxdepth 1 | wc -l)
[ "$left" -ge 5 ] || fail "five daemons have $left directories in $shm"
kill_node n5
wait_for 40 has_members n1 4 || fail "n5 is still a member"
start_node n5 "$PFS" "${MEMORY[@]}"
wait_for 30 has_members n5 5 || fail "n5 does not come back"
check_equal "directories of shared memory" "$(find "$shm" -mindepth 1 -maxdepth 1 | wc -l)" "$left"
reads n5 later
for n in "${names[@]}"; do stop_node "$n"; done
check_equal "what is left in $shm" "$({ find "$shm" -mindepth 1 2>/dev/null || true; } | wc -l)" $((left - 5))
