#!/usr/bin/env bash
# Bad input gives a clear message that says what to do, an exit code, and neither a crash nor a hang.
# timeout: 240
. "$(dirname "$0")/lib.sh"
requires fuse
mkdir "$W/mnt" "$PFS/below" "$W/cache"

# refused CODE PATTERN ARGUMENT...: eddyfs ends with that code and says something like that, within 20 s
refused() {
    local expected=$1 pattern=$2 code=0
    shift 2
    timeout 30 "$EDDY_BUILD/eddyfs" -f --listen 127.0.0.1 --session bad "$@" >"$W/said" 2>&1 || code=$?
    check_equal "code of eddyfs $*" "$code" "$expected"
    grep -qiE -- "$pattern" "$W/said" || fail "eddyfs $* says: $(cat "$W/said"), expected something like $pattern"
    ! grep -q "eddyfs" /proc/self/mountinfo || ! grep "$W/mnt " /proc/self/mountinfo || fail "mounted all the same"
}
C=(--cache-dir "$W/cache")

refused 2 "two directories" "${C[@]}" "$PFS"
refused 2 "no such option" --no-such-thing "$PFS" "$W/mnt"
refused 2 "neither" -o nonsense=1 "$PFS" "$W/mnt"
refused 2 "power of two" --chunk-size 100K "$PFS" "$W/mnt"
refused 2 "64" --chunk-size 1K "$PFS" "$W/mnt"
refused 2 "size" --cache-size lots "$PFS" "$W/mnt"
refused 2 "number" --cache-size 101% "$PFS" "$W/mnt"
refused 2 "seconds" --flush-wait -1 "$PFS" "$W/mnt"
refused 2 "give idle" --flush sometimes "$PFS" "$W/mnt"
refused 2 "name" --node "a/b" "$PFS" "$W/mnt"
refused 2 "size" --memory 1K "$PFS" "$W/mnt"

: >"$W/file"
refused 1 "not a directory" "${C[@]}" "$W/file" "$W/mnt"
refused 1 "No such file" "${C[@]}" "$W/nowhere" "$W/mnt"
refused 1 "No such file|make the directory" "${C[@]}" "$PFS" "$W/nomnt"
refused 1 "below the PFS" "${C[@]}" "$PFS" "$PFS/below"
refused 1 "below the mount" "${C[@]}" "$PFS/below" "$PFS"
refused 1 "cannot|assign|address|listen" "${C[@]}" --listen 192.0.2.1 "$PFS" "$W/mnt"
if [ "$(id -u)" != 0 ]; then
    mkdir -m 0 "$W/unreadable"
    refused 1 "ermission" "${C[@]}" "$W/unreadable" "$W/mnt"
    mkdir -m 500 "$W/nowrite"
    refused 1 "ermission" --cache-dir "$W/nowrite/cache" "$PFS" "$W/mnt"
fi

mkdir "$W/other" && : >"$W/other/precious"
refused 1 "cache" --cache-dir "$W/other" "$PFS" "$W/mnt"
[ -e "$W/other/precious" ] || fail "the user's file is gone"
mkdir -m 700 "$W/old" && printf 'eddyfs-cache 0\nchunk 1048576\n' >"$W/old/format"
refused 1 "format" --cache-dir "$W/old" "$PFS" "$W/mnt"
ln -s "$W/cache" "$W/linked"
refused 1 "link|directory" --cache-dir "$W/linked" "$PFS" "$W/mnt"

start_node a "$PFS"
refused 1 "in use|another|lock" --cache-dir "$W/cache-a" "$PFS" "$W/mnt"
code=0
timeout 30 "$EDDY_BUILD/eddyfs" -f --listen 127.0.0.1 --session test --node b --chunk-size 2M "${C[@]}" "$PFS" "$W/mnt" >"$W/said" 2>&1 || code=$?
check_equal "code with another chunk size" "$code" 1
check_equal "times that another chunk size is said" "$(grep -c "give --chunk-size" "$W/said")" 1
code=0
timeout 30 "$EDDY_BUILD/eddyfs" --listen 127.0.0.1 --node e --cache-dir "$W/cache-a" "$PFS" "$W/mnt" >"$W/said" 2>&1 || code=$?
check_equal "code with a cache in use, in the background" "$code" 1
check_equal "lines said of a cache in use, in the background" "$(wc -l <"$W/said")" 1
code=0
timeout 80 "$EDDY_BUILD/eddyfs" -f --listen 127.0.0.1 --session test --node a --wait-timeout 5 --cache-dir "$W/cache3" "$PFS" "$W/mnt" >"$W/said" 2>&1 || code=$?
check_equal "code with a name that is taken" "$code" 1
grep -qi -- "--node" "$W/said" || fail "a taken name: $(cat "$W/said")"
mkdir "$W/pfs2"
start_node c "$PFS" --session-dir "$W/session2"
code=0
timeout 30 "$EDDY_BUILD/eddyfs" -f --listen 127.0.0.1 --session test --session-dir "$W/session2" --node d --cache-dir "$W/cache5" "$W/pfs2" "$W/mnt" >"$W/said" 2>&1 || code=$?
check_equal "code with another PFS directory" "$code" 1
grep -qi "another PFS directory" "$W/said" || fail "another PFS directory: $(cat "$W/said")"
stop_node c
refused 1 "joined|nodes" --cache-dir "$W/cache4" --session lonely --wait-nodes 2 --wait-timeout 2 "$PFS" "$W/mnt"

# garbage on the port: 1,000 connects, and it serves
port=$(status_of a '.members[0].address' | sed 's/.*://')
head -c 65536 /dev/urandom >"$W/noise"
for i in $(seq 1 1000); do
    { head -c $((i * 61 % 65536)) "$W/noise" >&9; } 9<>"/dev/tcp/127.0.0.1/$port" 2>/dev/null || true
done
echo alive >"$W/mnt-a/alive"
check_equal "after the garbage" "$(cat "$W/mnt-a/alive")" alive
stop_node a

# records of a larger cache
start_node a "$PFS" --cache-size 1M
grep -q "records alone take .* --cache-size" "$W/a.log" || fail "no word on a cache that its records fill"
cat "$W/mnt-a/alive" >/dev/null || fail "a cache without room does not serve"
stop_node a
