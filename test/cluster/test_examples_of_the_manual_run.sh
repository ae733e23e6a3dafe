#!/usr/bin/env bash
# The examples of the pages for users (docs/getting-started.md, tuning, containers, troubleshooting, and a page for each kind of job), as they
# are there: each ends as the page says, and leaves on the PFS what it should. A job script keeps the application's exit code, ends with
# that of the flush if that fails, and all of them have the same beginning and end. No block is left out.
# timeout: 240
# both-long
. "$(dirname "$0")/lib.sh"
in_namespaces
requires fuse root cmd jq cmd setfattr cmd setcap cmd make cmd python3
# shellcheck source-path=SCRIPTDIR source=manual/pages.sh
. "$(dirname "$SCRIPT")/manual/pages.sh"
export W PFS USER=ada HOME=$W/home TMPDIR=$W/tmp XDG_RUNTIME_DIR=$W/run EDDY_LISTEN=127.0.0.1
[ "${EDDY_TEST_OPTIONS-}" != --no-passthrough ] || export EDDY_NO_PASSTHROUGH=yes
unset SLURM_JOB_ID
STANDINS=$SOURCE/test/cluster/manual
# "eddy status --all" is to show this test's mounts, since one of another test may be in trouble: here, in a mount namespace of
# its own, there are no others, and no list of mounts names them.
awk '$3 == "fuse.eddyfs" { print $2 }' /proc/mounts | while read -r mount; do umount -l "$mount"; done
install -d -m 700 "$W/none" "/tmp/eddyfs-run-$(id -u)"
for lists in "/tmp/eddyfs-run-$(id -u)" "/run/user/$(id -u)"; do
    [ ! -d "$lists" ] || mount --bind "$W/none" "$lists"
done

for page in "${PAGES[@]}"; do
    check_equal "blocks of $page.md that nothing runs" "$(blocks_not_run "$page")" ""
done

# --- The programs, and the files that the examples use ---
mkdir -p "$W/bin" "$W/work" "$W/tmp" "$W/run" "$HOME/parameters" "$W/local" "$PFS/input" "$PFS/train" "$PFS/checkpoints" "$PFS/src"
cp "$EDDY_BUILD/eddyfs" "$EDDY_BUILD/eddy" "$STANDINS/srun" "$STANDINS/python3" "$W/bin/" # copies: one is given a capability
for name in apptainer podman; do cp "$STANDINS/container" "$W/bin/$name"; done
printf '#!/bin/sh\nexec "$@"\n' >"$W/bin/sudo"
chmod +x "$W/bin/sudo"
PATH=$W/bin:$PATH
unset -f eddy eddyfs # lib.sh's
for name in application simulation train.py; do cp "$STANDINS/program.py" "$W/work/$name"; done
cp "$STANDINS/program.py" "$PFS/analyse.py"
cp "$STANDINS/Makefile" "$PFS/src/"
echo one >"$PFS/src/one.src"
echo two >"$PFS/src/two.src"
for i in 1 2 3; do
    head -c 300000 /dev/urandom | tee "$PFS/input/part-$i" >"$PFS/train/sample-$i"
done
echo 1 >"$HOME/parameters/first"

# page PAGE: its examples of the shell
page() {
    shell_of "$1" | here >"$W/page.sh"
    [ -s "$W/page.sh" ] || fail "docs/$1.md has no example"
    (cd "$W/work" && timeout 100 bash -eu -o pipefail "$W/page.sh") >"$W/page.out" 2>&1 ||
        fail "the examples of docs/$1.md end with $?: $(tail -n 25 "$W/page.out")"
}

no_mount_is_left() {
    check_equal "mounts after $1" "$(grep " $W/.* fuse.eddyfs " /proc/mounts || true)" ""
}

# --- Pages that begin without a mount ---
page getting-started
no_mount_is_left getting-started.md
check_same "$PFS/input/part-1" "$PFS/results/part-1"
check_same "$PFS/input/part-1" "$HOME/results/part-1"
check_same "$HOME/parameters/first" "$PFS/parameters/first"
page containers
no_mount_is_left containers.md
check_equal "what a container has written" "$(cat "$PFS/output/result")" "None read 3 files"
page jobs/python-environments

# --- Pages with a mount ---
start_node a "$PFS"
page jobs/pytorch
page jobs/mpi-checkpoints
check_same "$PFS/input/part-1" "$PFS/steps/0002"
start_node b "$PFS" --flush end
echo precious >"$W/mnt-b/last"
is_listed() { { eddy check "$PFS" 2>/dev/null || true; } | grep -q "^last: "; }
wait_for 20 is_listed || fail "eddy check does not name what b has"
kill_node b
mkdir -p "$W/local/job-4711"
mv "$W/cache-b" "$W/local/job-4711/eddyfs"
page troubleshooting
check_equal "what a killed job had written" "$(cat "$PFS/last")" precious
page tuning
stop_node a

# --- Job scripts ---
# job CODE PROGRAM_ENDS PAGE NAME: it ends with that code
job() {
    local code=0
    example "$3" "$4" | here >"$W/job.sbatch"
    export PROGRAM_ENDS=$2
    (cd "$W/work" && SLURM_JOB_ID=$JOB_ID SLURM_NNODES=1 timeout 60 bash -u "$W/job.sbatch") >"$W/job.out" 2>&1 || code=$?
    check_equal "exit code of $4 of docs/$3.md: $(tail -n 25 "$W/job.out")" "$code" "$1"
    no_mount_is_left "$4"
}

# What all job scripts have in common: they differ in the application and its preparation only.
mounting_of() {
    example "$1" "$2" | awk '/^on_each_node\(\)/ { on = 1 } on; / exit 1$/ { on = 0 } /^# The end/ { on = 1; print }'
}

JOB_ID=4711
for page in "${PAGES[@]}"; do
    for name in $(job_scripts "$page"); do
        check_equal "what $name of docs/$page.md has in common with others" "$(mounting_of "$page" "$name")" "$(mounting_of getting-started first.sbatch)"
        for ends in 0 7; do
            JOB_ID=$((JOB_ID + 1))
            expected=$ends
            [ "$name$ends" != build.sbatch7 ] || expected=2 # make's own
            job "$expected" "$ends" "$page" "$name"
            written=$(grep -rl --include=result "^$JOB_ID" "$PFS") || fail "$name has written nothing to the PFS: $(cat "$W/job.out")"
            check_equal "caches after $name" "$(ls "$W/local")" ""
            check_equal "mount points after $name" "$(find "$W/tmp" -maxdepth 1 -name "ada-$JOB_ID")" ""
            echo "$name: $expected, ${written#"$PFS/"}"
        done
    done
done
[ ! -e "$PFS/build" ] || [ -e "$PFS/build/one.o" ] || fail "a build that failed has left half of it"

# The application ends well, and its result cannot be flushed.
start_faultfs f
REAL=$PFS PFS=$W/pfs-f
tell_faultfs f error ENOSPC write path=output/result >/dev/null
JOB_ID=4799
job 3 0 getting-started first.sbatch
grep -q "output/result: .*No space left on device" "$W/job.out" || fail "what is not on the PFS is not named: $(cat "$W/job.out")"
tell_faultfs f clear >/dev/null
eddy recover "$W/local/ada-4799/eddyfs" >/dev/null
check_equal "the result, recovered" "$(cat "$REAL/output/result")" "4799 read 3 files"
