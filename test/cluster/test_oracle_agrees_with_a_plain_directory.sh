#!/usr/bin/env bash
# The oracle finds nothing wrong where all nodes' mounts are one plain directory, and neither do the programs of invariants: what
# they find in mounts is the file system's doing.
# timeout: 400
# long
# busy
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires cmd python3
ORACLE=$(dirname "$SCRIPT")/oracle
python3 "$ORACLE/oracle.py" --native --all --work "$W/oracle" --seeds "${SEEDS:-48}" --ops 150 || fail "see above"
for list in "$ORACLE"/replays/*.ops; do
    python3 "$ORACLE/oracle.py" --native --all --work "$W/oracle" --replay "$list" || fail "$list: see above"
done

D=$W/directory
mkdir "$D"
for lock in fcntl flock; do
    for how in seek counter append; do
        python3 "$ORACLE/records.py" --lock $lock --how $how "$D" "$D" || fail "see above"
    done
done
python3 "$ORACLE/lines.py" "$D" "$D" || fail "see above"
python3 "$ORACLE/publish.py" --seconds 3 "$D" "$D" || fail "see above"
for how in read stat seek; do
    python3 "$ORACLE/follow.py" --seconds 3 --how $how "$D" "$D" || fail "see above"
done
