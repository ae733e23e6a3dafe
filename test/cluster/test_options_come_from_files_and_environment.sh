#!/usr/bin/env bash
# Options of a mount come from the site's file, the user's file, the environment and the command line, in this order; --show-config
# says from where; mistakes are told with file and line, and what the site has fixed stays.
# timeout: 120
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
in_namespaces
requires fuse root cmd jq
mkdir "$W/mnt" "$W/etc" "$W/home"
cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/hosts /etc/ld.so.cache "$W/etc/" 2>/dev/null || true
mount --bind "$W/etc" /etc
export XDG_CONFIG_HOME=$W/home
SITE=/etc/eddyfs.conf USERS=$W/home/eddyfs.conf
MOUNT=("$PFS" "$W/mnt")

# refused PATTERN COMMAND...
refused() {
    local pattern=$1 code=0
    shift
    "$@" >"$W/said" 2>&1 || code=$?
    check_equal "code of $*: $(cat "$W/said")" "$code" 2
    grep -qE -- "$pattern" "$W/said" || fail "$* says: $(cat "$W/said"), expected something like $pattern"
}
# shows NAME VALUE FROM
shows() {
    grep -qE "^$1 += $2 +# $3\$" "$W/shown" || fail "no $1 = $2 # $3 in: $(cat "$W/shown")"
}

cat >"$SITE" <<CONF
listen = 127.0.0.1
cache-dir = $W/cache
flush-writers = 2
session = of-the-site
require-mount = /
[$PFS]
flush-writers = 3
flush = end
CONF
printf 'session = of-the-user\nlog-level = debug\n' >"$USERS"
export EDDY_NODE=from-env
eddyfs --no-supervise --log "$W/the.log" "${MOUNT[@]}" >/dev/null
check_equal "session, node, cache, flush" \
    "$(eddy status --json "$W/mnt" | jq -c '[.session, .node, .cache.dir, .flush.policy]')" \
    "[\"of-the-user\",\"from-env\",\"$W/cache\",\"end\"]"
eddy umount "$W/mnt"

EDDY_CACHESIZE=1G eddyfs --flush close --show-config "${MOUNT[@]}" >"$W/shown"
shows flush close "command line"
shows node from-env '\$EDDY_NODE'
shows session of-the-user "$USERS:1"
shows flush-writers 3 "$SITE:7"
shows lease 4 default
grep -q "EDDY_CACHESIZE: no such option: did you mean EDDY_CACHE_SIZE" "$W/shown" || fail "a mistyped variable is not told"
EDDY_CACHESIZE=1G eddyfs --no-supervise --log "$W/typo.log" "${MOUNT[@]}" >/dev/null 2>"$W/said"
eddy umount "$W/mnt"
grep -q "EDDY_CACHESIZE: no such option" "$W/typo.log" || fail "the log does not tell of a mistyped variable: $(cat "$W/said")"

# --- Mistakes, and what others could write ---
echo "cach-size = 1G" >>"$USERS"
refused "$USERS:3: cach-size: no such option: did you mean cache-size" eddyfs "${MOUNT[@]}"
sed -i '$d' "$USERS"
chmod 666 "$SITE"
refused "$SITE: others can write to it" eddyfs "${MOUNT[@]}"
chmod 644 "$SITE"
chown 1234 "$SITE"
refused "$SITE: belongs to user 1234" eddyfs "${MOUNT[@]}"
chown 0 "$SITE"

# --- A wrong value that another one replaces is told; who cannot change that file goes on ---
echo "slow = soon" >>"$SITE"
refused "$SITE:[0-9]+: --slow soon: give a number" eddyfs --show-config "${MOUNT[@]}"
eddyfs --slow 5 --show-config "${MOUNT[@]}" >"$W/shown" 2>"$W/said"
shows slow 5 "command line"
grep -q "$SITE:[0-9]*: slow soon is wrong; it is not used, as the command line gives another value" "$W/shown" || fail "a wrong value of the site is not told: $(cat "$W/shown" "$W/said")"
sed -i '$d' "$SITE"
eddyfs --cache-size 10% --show-config "${MOUNT[@]}" >"$W/shown"
shows cache-size 10% "command line"

# --- In a user namespace that has no number for the machine's root, his file is read; one that cannot be told from a user's is not ---
sed -i 's/^cache-dir.*/&\nflush-wait = 7/' "$SITE"
inner() {
    XDG_CONFIG_HOME=$W/none unshare --user "$@" "$EDDY_BUILD/eddyfs" --show-config "${MOUNT[@]}" >"$W/shown" 2>"$W/said" ||
        fail "eddyfs in a user namespace ($*): $(cat "$W/said")"
}
chown 1234 "$SITE" # outside of the inner namespace's numbers, as 0 is
inner --map-root-user
shows flush-wait 7 "$SITE:[0-9]+"
if unshare --user --map-users 65534,65534,1 true 2>/dev/null; then
    inner --map-users 65534,65534,1
    grep -q "$SITE: belongs to user 65534.*: it is not used" "$W/shown" || fail "a file of nobody knows whom: $(cat "$W/shown" "$W/said")"
fi
chown 0 "$SITE"
sed -i '/^flush-wait = 7$/d' "$SITE"

# --- What the site has fixed, and what is set in its place ---
eddyfs --require-mount /proc --show-config "${MOUNT[@]}" >"$W/shown"
grep -q "^# require-mount /proc is set in place of this site's / ($SITE:5)" "$W/shown" || fail "a weakened require-mount is not shown: $(cat "$W/shown")"
sed -i 's/^require-mount/fixed require-mount/' "$SITE"
refused "this site has fixed require-mount = / \($SITE:5\)" eddyfs --require-mount /proc "${MOUNT[@]}"
eddyfs --require-mount / --show-config "${MOUNT[@]}" >"$W/shown"
shows require-mount / "command line, fixed"
echo "fixed flush = end" >>"$USERS"
refused "only the site's file" eddyfs "${MOUNT[@]}"

# --- Root that mounts for a user takes nothing of a home directory ---
eddyfs --user 1234 --show-config "${MOUNT[@]}" >"$W/shown"
shows session of-the-site "$SITE:4"

# --- What this user may not look at is not used, and told ---
chmod 711 "$W"
chmod 700 "$W/home"
if run_as 1234 "$EDDY_BUILD/eddyfs" --version >/dev/null 2>&1; then
    run_as 1234 "$EDDY_BUILD/eddyfs" --show-config >"$W/shown"
    grep -q "^# $USERS: Permission denied: it is not used" "$W/shown" || fail "it says nothing of another user's file: $(cat "$W/shown")"
fi

# --- Another user's file, where the variables still name it ---
chown 1234 "$USERS"
eddyfs --show-config "${MOUNT[@]}" >"$W/shown"
grep -q "^# $USERS: belongs to user 1234, not to root: it is not used" "$W/shown" || fail "it says nothing of another user's file: $(cat "$W/shown")"
chown 0 "$USERS"

# --- A supervised daemon that is started again has the same values, whatever the files have become ---
printf 'session = of-the-user\ndirty-low = 33%%\n' >"$USERS"
values() {
    eddy status --json "$W/mnt" | jq -c '[.session, .node, .cache.dir, .flush.policy]'
}
EDDY_CACHESIZE=1G eddyfs --supervise --log "$W/again.log" "${MOUNT[@]}" >/dev/null
values >"$W/values.1"
first=$(eddy status --json "$W/mnt" | jq .pid)
printf 'session = another\nflush = close\n' >"$USERS"
kill -SEGV "$first"
is_another() {
    local pid
    pid=$(eddy status --json "$W/mnt" 2>/dev/null | jq .pid) && [ -n "$pid" ] && [ "$pid" != "$first" ]
}
wait_for 300 is_another || fail "the daemon was not started again: $(tail "$W/again.log")"
values >"$W/values.2"
eddy umount "$W/mnt"
check_same "$W/values.1" "$W/values.2"
check_equal "notes in the log, of two daemons" "$(grep -c "EDDY_CACHESIZE: no such option" "$W/again.log")" 2

# --- For scripts ---
check_equal "JSON" "$(EDDY_FLUSH=immediate eddyfs --show-config --json "${MOUNT[@]}" | jq -c '.options[] | select(.name == "flush")')" \
    '{"name":"flush","value":"immediate","from":"$EDDY_FLUSH","fixed":false}'

# --- The table ---
eddyfs --list-options >"$W/options.list"
grep -q $'^cache-dir\tDIR\tEDDY_CACHE_DIR\t[^\t]*\t[^\t]*$' "$W/options.list" || fail "cache-dir in the table: $(cat "$W/options.list")"
code=0; eddyfs --list-options >/dev/full 2>/dev/null || code=$?
check_equal "code when the table cannot be written" "$code" 1
grep -q $'^supervise\t\tEDDY_SUPERVISE\t\t' "$W/options.list" || fail "supervise in the table: $(cat "$W/options.list")"
