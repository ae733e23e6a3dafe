#!/usr/bin/env bash
# The power of a node is cut at random instants: its cache is on an ext4 that is shut down with
# what got to its disk. After the restart every fsynced byte is there, every file that lost
# something else is named, and nothing is served that was not written, no zeros either.
# timeout: 400
# long
# both
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse cmd jq cmd python3 cmd mkfs.ext4
in_namespaces
truncate -s 8M "$W/try"
mkfs.ext4 -q "$W/try"
mkdir "$W/try-mount"
mount -o loop "$W/try" "$W/try-mount" 2>/dev/null || skip "no loop device can be mounted"
umount "$W/try-mount"
# What the daemons take for the boot id: each power cut gives another one.
cat /proc/sys/kernel/random/uuid >"$W/boot-id"
mount --bind "$W/boot-id" /proc/sys/kernel/random/boot_id
# shellcheck disable=SC2086 # words
python3 "$(dirname "$SCRIPT")/crash/run.py" --work "$W" --pfs "$PFS" --eddyfs "$EDDY_BUILD/eddyfs" \
    --eddy "$EDDY_BUILD/eddy" --power-cut --boot-id "$W/boot-id" --rounds "${ROUNDS:-50}" \
    ${SEED:+--seed "$SEED"} -- ${EDDY_TEST_OPTIONS-}
