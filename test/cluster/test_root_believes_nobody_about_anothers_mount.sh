#!/usr/bin/env bash
# Root's eddy is not misled by another user: not by an entry for a mount that is not theirs, not by a link in place of
# their control socket, not by a path that leads elsewhere when the mount is removed, not by control characters in
# what their daemon or processes say, and not by a directory of sessions that is not that user's.
# timeout: 240
. "$(dirname "$0")/lib.sh"
requires fuse root user cmd jq
python=$(PATH=/usr/bin:/bin command -v python3) || skip "needs a python3 that every user may run"
in_namespaces

unset XDG_RUNTIME_DIR
mkdir -m 1777 "$W/tmp"
export TMPDIR=$W/tmp
victim=$(id -u nobody) stranger=$(id -u daemon)
chmod 711 "$W"
chmod 1777 "$PFS"
for u in "$victim" "$stranger"; do
    mkdir -m 755 "$W/$u" "$W/$u/mnt" "$W/$u/cache"
    chown -R "$u:$u" "$W/$u"
done

# mount_for UID PFS [OPTION...]
mount_for() {
    local uid=$1 pfs=$2
    shift 2
    record_mount "$W" "$W/$uid/mnt"
    eddyfs --user "$uid" --node "n$uid" --session test --listen 127.0.0.1 --cache-dir "$W/$uid/cache/c" \
        --flush-wait 3600 --no-supervise "$@" "$pfs" "$W/$uid/mnt" >>"$W/$uid.out" 2>&1 ||
        fail "no mount for $uid: $(cat "$W/$uid.out")"
    PID_OF=$(eddy status --json "$W/$uid/mnt" | jq .pid)
    record_process "$W" "$PID_OF"
}
# control_characters FILE: has it bytes that a terminal may take for a command?
control_characters() {
    "$python" - "$1" <<'END'
import sys
text = open(sys.argv[1], 'rb').read().decode('utf-8', 'surrogateescape')
sys.exit(not any((ord(c) < 32 and c != '\n') or 0x7f <= ord(c) < 0xa0 or 0xd800 <= ord(c) < 0xe000 for c in text))
END
}

# --- an entry of somebody else's for the victim's mount ---
mount_for "$victim" "$PFS"
mount_for "$stranger" "$PFS"
run_as "$victim" sh -c "echo data >$W/$victim/mnt/file"
entry=$(grep -lx "$W/$victim/mnt" "$TMPDIR/eddyfs-run-$victim/eddyfs/"*)
forge() { # the same entry, newer, with the stranger's cache directory
    # shellcheck disable=SC2094 # two directories
    run_as "$stranger" sh -c "sed 's|$W/$victim/cache/c|$W/$stranger/cache/c|' >$TMPDIR/eddyfs-run-$stranger/eddyfs/$(basename "$entry")" <"$entry"
}
forge
check_equal "node at the victim's mount" "$(eddy status --json "$W/$victim/mnt" | jq -r .node)" "n$victim"
check_equal "mounts that --all shows" \
    "$(eddy status --json --all | jq -c --arg w "$W/" '[.[] | select(.mountpoint | startswith($w)) | [.mountpoint, .node, .user]] | sort')" \
    "$(jq -nc --arg w "$W" --argjson v "$victim" --argjson s "$stranger" \
        '[[$w + "/\($v)/mnt", "n\($v)", $v], [$w + "/\($s)/mnt", "n\($s)", $s]] | sort')"
eddy flush "$W/$victim/mnt" || fail "eddy flush ended with $?"
check_equal "the victim's file" "$(cat "$PFS/file")" data

# --- a link in place of the stranger's control socket ---
run_as "$stranger" sh -c "cd $W/$stranger/cache/c && rm control && ln -s $W/$victim/cache/c/control control"
code=0
eddy status "$W/$stranger/mnt" 2>"$W/said" || code=$?
check_equal "code of eddy status at a link to another's socket" "$code" 1
grep -q "another user's" "$W/said" || fail "eddy says: $(cat "$W/said")"
run_as "$stranger" sh -c "exec sleep 60 <$W/$stranger/mnt" &
record_process "$W" $!
timeout 60 "$EDDY_BUILD/eddy" umount --timeout 1 "$W/$stranger/mnt" >"$W/said" 2>&1 || true
run_as "$victim" cat "$W/$victim/mnt/file" >/dev/null || fail "the victim's mount was taken away"
is_mounted "$W/$victim/mnt" || fail "the victim's mount is gone"
is_mounted "$W/$stranger/mnt" && fail "the stranger's mount is still there: $(cat "$W/said")"

# --- what the stranger's own program says ---
mount_for "$stranger" "$PFS"
kill -KILL "$PID_OF"
wait_for 10 test ! -e "/proc/$PID_OF"
cat >"$W/liar.py" <<'END'
import json, os, socket, sys
os.chdir(sys.argv[1])
if os.path.lexists('control'): os.remove('control')
s = socket.socket(socket.AF_UNIX)
s.bind('control'); s.listen(8)
print('ready', os.getpid(), flush=True)
bad = 'a\x1b[2J\u009b5n\x7f\nb'
while True:
    c, _ = s.accept()
    f = c.makefile('rw', encoding='utf-8')
    if json.loads(f.readline())['do'] == 'status':
        f.write(json.dumps({'end': True, 'pid': 1, 'mountpoint': sys.argv[2], 'node': bad, 'session': bad, 'pfs': bad,
            bad: bad, 'passthrough': False, 'passthrough_why': bad, 'cache': {'dir': sys.argv[2]},
            'members': [{'name': bad, 'address': bad, 'state': bad}],
            'flush': {'failed_files': [{'path': bad, 'error': bad, 'bytes': 1}]}}, ensure_ascii=False) + '\n')
    else:
        try:
            while True: # for ever
                f.write('{"file": {"path": "x", "bytes": 1}}\n')
        except OSError: pass
    try: f.close(); c.close()
    except OSError: pass
END
run_as "$stranger" "$python" "$W/liar.py" "$W/$stranger/cache/c" "$W/$victim/mnt" >"$W/liar.out" 2>&1 &
record_process "$W" $!
wait_for 20 grep -q ready "$W/liar.out" || fail "the liar does not start: $(cat "$W/liar.out")"
liar=$(awk '{ print $2 }' "$W/liar.out")
record_process "$W" "$liar"
eddy status --json "$W/$stranger/mnt" >"$W/said.json" || fail "eddy status ended with $?"
check_equal "what root is told of mountpoint, process, cache and user" \
    "$(jq -c '[.mountpoint, .pid, .cache.dir, .user]' "$W/said.json")" \
    "$(jq -nc --arg m "$W/$stranger/mnt" --argjson p "$liar" --arg c "$W/$stranger/cache/c" --argjson u "$stranger" '[$m, $p, $c, $u]')"
! control_characters "$W/said.json" || fail "control characters are in the JSON"
jq -r '.. | strings, (objects | keys[])' "$W/said.json" >"$W/strings"
! control_characters "$W/strings" || fail "control characters are in its strings"
eddy status "$W/$stranger/mnt" >"$W/said" 2>&1 || fail "eddy status ended with $?"
! control_characters "$W/said" || fail "control characters are in eddy status"
code=0
timeout 60 "$EDDY_BUILD/eddy" flush "$W/$stranger/mnt" >"$W/said" 2>&1 || code=$?
check_equal "code of eddy flush with a list without end" "$code" 1
kill "$liar"

# --- a process with a name that is a command to a terminal ---
cp "$(command -v sleep)" "$W/$(printf 'x\033[2J\302\233y')"
run_as "$victim" sh -c 'exec "$0" 60 <"$1"' "$W/$(printf 'x\033[2J\302\233y')" "$W/$victim/mnt/file" &
sleeper=$!
record_process "$W" "$sleeper"
is_seen() {
    code=0
    eddy umount "$W/$victim/mnt" 2>"$W/said" || code=$?
    [ "$code" = 1 ] && grep -q 'process .*x.*y' "$W/said"
}
wait_for 20 is_seen || fail "the process is not named: $(cat "$W/said")"
! control_characters "$W/said" || fail "control characters are in the name of a process"
kill "$sleeper"

# --- a path that leads elsewhere when it is unmounted ---
mkdir -p "$W/precious/mnt"
mount -t tmpfs tmpfs "$W/precious/mnt"
umount -l "$W/$stranger/mnt"
start_faultfs slow
chmod 1777 "$W/pfs-slow"
mount_for "$stranger" "$W/pfs-slow" --session-dir "$PFS/.eddyfs-$stranger"
run_as "$stranger" sh -c "head -c 3000000 /dev/zero >$W/$stranger/mnt/big"
hang=$(tell_faultfs slow hang write)
chown "$stranger" "$W"
eddy umount "$W/$stranger/mnt" >"$W/said" 2>&1 &
ending=$!
record_process "$W" "$ending"
wait_for 20 fault_waits slow "$hang" || fail "it is not flushed: $(cat "$W/said")"
run_as "$stranger" sh -c "mv $W/$stranger $W/moved && ln -s $W/precious $W/$stranger"
tell_faultfs slow clear
wait "$ending" || true
is_mounted "$W/precious/mnt" || fail "root unmounted what a user's link led to"
is_mounted "$W/moved/mnt" || fail "the moved mount is gone"
umount "$W/precious/mnt"
umount -l "$W/moved/mnt"

# --- eddy check, and a directory of sessions that is not of the user in its name ---
other=$(id -u bin)
run_as "$stranger" mkdir -m 777 "$PFS/.eddyfs-$other"
code=0
eddy check "$PFS" >"$W/checked" 2>"$W/said" || code=$?
check_equal "code of eddy check" "$code" 1
grep -q "eddyfs-$other: belongs to another user" "$W/said" || fail "eddy check says: $(cat "$W/said")"
