#!/usr/bin/env bash
# Prolog, epilog and recover-left of packaging/slurm, run by root for a job: the cache is made, flushed and removed; a user
# who exchanges what is in it for a link or a FIFO makes root create nothing, remove nothing elsewhere, and wait for
# nothing; settings that others can write are not read.
# timeout: 180
. "$(dirname "$0")/lib.sh"
requires fuse root user cmd setpriv cmd flock
in_namespaces

scripts=$(realpath "$(dirname "$SCRIPT")/../../packaging/slurm")
user=$(id -u nobody)
unset XDG_RUNTIME_DIR
mkdir -m 1777 "$W/tmp"
mkdir -m 755 "$W/jobs" "$W/caches"
export TMPDIR=$W/tmp
chmod 777 "$PFS"
cat >"$W/eddyfs.conf" <<CONF
eddyfs_pfs=$PFS
eddyfs_mount=$W/jobs/\$SLURM_JOB_ID
eddyfs_caches=$W/caches
eddyfs_cache=\$eddyfs_caches/\$SLURM_JOB_UID-\$SLURM_JOB_ID
eddyfs_options="--flush-wait 3600 --cache-size 200M --listen 127.0.0.1"
eddyfs_start_limit=60 eddyfs_flush_limit=30 eddyfs_recover_limit=30
export PATH=$EDDY_BUILD:\$PATH
CONF
# run SCRIPT JOB
run() {
    EDDYFS_SLURM_CONF=$W/eddyfs.conf SLURM_JOB_ID=$2 SLURM_JOB_UID=$user SLURM_JOB_USER=nobody SLURMD_NODENAME=n1 \
        timeout 120 "$scripts/$1" >>"$W/said" 2>&1 || fail "$1 ends with $?: $(cat "$W/said")"
}
as_user() { run_as "$user" "$@"; }

record_mount "$W" "$W/jobs/1"
run prolog 1
as_user sh -c "echo data >$W/jobs/1/file" || fail "the job has no eddyfs: $(cat "$W/said")"
run epilog 1
check_equal "the file on the PFS" "$(cat "$PFS/file")" data
[ ! -e "$W/caches/$user-1" ] || fail "the cache is left: $(cat "$W/said")"
[ ! -e "$W/jobs/1" ] || fail "the mount point is left"

# A daemon that was killed, and what is in its cache exchanged for something else.
job=1
exchanged() { # COMMAND, in the cache
    job=$((job + 1))
    record_mount "$W" "$W/jobs/$job"
    run prolog $job
    as_user sh -c "echo $job >$W/jobs/$job/file$job" || fail "job $job has no eddyfs: $(cat "$W/said")"
    run epilog $job
    run prolog $job
    as_user sh -c "echo $job >$W/jobs/$job/file$job" # an empty cache would not stay
    as_user "$EDDY_BUILD/eddy" umount "$W/jobs/$job" || fail "job $job's own eddy umount ended with $?"
    as_user sh -c "cd $W/caches/$user-$job && $1"
    : >"$W/said"
    run epilog $job
    run recover-left $job
}
mkdir -m 700 "$W/precious"
echo precious >"$W/precious/file"
exchanged "rm lock && ln -s $W/created lock"
[ ! -e "$W/created" ] || fail "root made what a user's link leads to"
exchanged "rm lock && mkfifo lock"
exchanged "rm -r data && ln -s $W/precious data && ln -s $W/precious/file more"
check_equal "a file of root's" "$(cat "$W/precious/file")" precious

chmod 666 "$W/eddyfs.conf"
: >"$W/said"
run prolog 9
grep -q "others than root can write to it" "$W/said" || fail "the scripts say: $(cat "$W/said")"
[ ! -e "$W/jobs/9" ] || fail "settings that others can write are read"
