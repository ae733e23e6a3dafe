#!/usr/bin/env bash
# Under a real Slurm with prolog and epilog of packaging/slurm: a job that ends normally, by its time
# limit, by scancel, whose daemon is killed, whose node dies, and whose PFS hangs: what is on the PFS
# after the epilog, as a table; no node is drained. And the batch script for users without them.
# timeout: 900
# long
. "$(dirname "$0")/lib.sh"
requires fuse root user cmd jq cmd slurmd cmd slurmctld cmd munged cmd sbatch cmd logger
in_namespaces

SLURM_SCRIPTS=$(realpath "$(dirname "$SCRIPT")/../../packaging/slurm")
JOB_USER=nobody
JOB_UID=$(id -u $JOB_USER)
export SLURM_CONF=$W/slurm/slurm.conf
mkdir -p "$W/slurm/state" "$W/tmp" "$W/sums" "$W/out" "$W/jobs" "$W/caches-n1" "$W/caches-n2" "$W/local" \
    "$W/pfs-here"
chmod 777 "$W/tmp" "$W/sums" "$W/out"
chown "$JOB_UID" "$PFS"
mknod -m 600 "$W/fuse" c 10 229
mount --bind "$W/fuse" /dev/fuse
ip addr add 10.77.0.254/24 dev br0
hostname ctl

cat >"$W/eddyfs.conf" <<CONF
eddyfs_pfs=$W/pfs-\$(hostname)
eddyfs_mount=$W/jobs/\$(hostname)-\$SLURM_JOB_ID
eddyfs_caches=$W/caches-\$(hostname)
eddyfs_cache=\$eddyfs_caches/\$SLURM_JOB_UID-\$SLURM_JOB_ID
eddyfs_options="--flush-wait 3600 --cache-size 200M"
eddyfs_start_limit=60 eddyfs_flush_limit=8 eddyfs_recover_limit=30
eddyfs_wanted() { [ ! -e "$W/no-prolog" ]; }
export TMPDIR=$W/tmp PATH=$EDDY_BUILD:\$PATH
CONF
for script in prolog epilog task-prolog; do
    printf '#!/bin/bash\nexport EDDYFS_SLURM_CONF=%q\nexec %q\n' "$W/eddyfs.conf" \
        "$SLURM_SCRIPTS/$script" >"$W/slurm/$script"
    chmod 755 "$W/slurm/$script"
done
cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=ctl(10.77.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$W/slurm/munge.socket
CryptoType=crypto/munge
StateSaveLocation=$W/slurm/state
SlurmdSpoolDir=$W/slurm/spool-%n
SlurmctldPidFile=$W/slurm/ctld.pid
SlurmdPidFile=$W/slurm/%n.pid
SlurmctldLogFile=$W/slurmctld.log
SlurmdLogFile=$W/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdTimeout=10
ReturnToService=2
KillWait=2
MailProg=/bin/true
PrologFlags=Alloc
Prolog=$W/slurm/prolog
Epilog=$W/slurm/epilog
TaskProlog=$W/slurm/task-prolog
NodeName=n1 NodeAddr=10.77.0.1 CPUs=2
NodeName=n2 NodeAddr=10.77.0.2 CPUs=2
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF

start_slurm_node() { # NAME
    start_faultfs "$1"
    start_daemon "$1" "$W/slurmd-$1.out" slurmd -D -f "$SLURM_CONF" -N "$1"
}
node_state() { sinfo -h -N -n "$1" -o %T; }
is_idle() { [ "$(node_state "$1")" = idle ]; }
all_idle() { is_idle n1 && is_idle n2; }

head -c 1024 /dev/urandom >"$W/slurm/munge.key"
chmod 400 "$W/slurm/munge.key"
munged --force --foreground --socket="$W/slurm/munge.socket" --key-file="$W/slurm/munge.key" \
    --pid-file="$W/slurm/munge.pid" --log-file="$W/munge.log" --seed-file="$W/slurm/munge.seed" >/dev/null 2>&1 &
record_process "$W" $!
wait_for 20 test -S "$W/slurm/munge.socket" || fail "munged does not start: $(cat "$W/munge.log")"
start_daemon - "$W/slurmctld.out" slurmctld -D -f "$SLURM_CONF"
for n in n1 n2; do
    add_host "$n"
    start_slurm_node "$n"
done
wait_for 60 all_idle || fail "Slurm does not start: $(sinfo -N -l)"

# The job: on each node a file; when its close has returned its sum is noted where eddyfs is not.
cat >"$W/task" <<'TASK'
#!/bin/bash
[ -n "$EDDYFS" ] || { echo "no EDDYFS" >&2; exit 9; }
name=$1-$SLURMD_NODENAME
head -c 2000000 /dev/urandom >"/tmp/$name.$$"
cp "/tmp/$name.$$" "$EDDYFS/$name" || exit 8
(cd /tmp && sha256sum <"$name.$$") >"$2/.$name" && mv "$2/.$name" "$2/$name"
rm "/tmp/$name.$$"
[ "$3" = ends ] || sleep 600
TASK
chmod 755 "$W/task"

# submit CASE ends|stays [SBATCH_OPTION...]: the job's number in JOB_ID
submit() {
    local name=$1 how=$2
    shift 2
    printf '#!/bin/bash\nsrun %q %q %q %q\n' "$W/task" "$name" "$W/sums" "$how" >"$W/slurm/$name.sh"
    JOB_ID=$(run_as "$JOB_UID" sbatch --parsable --nodes=2 --ntasks-per-node=1 --no-requeue \
        --chdir=/ --output="$W/out/$name" "$@" "$W/slurm/$name.sh")
}
has_written() { [ -e "$W/sums/$1-n1" ] && [ -e "$W/sums/$1-n2" ]; }
is_over() { ! squeue -h -j "$1" 2>/dev/null | grep -q .; }
job_state() { scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }

on_the_pfs() { # NAME NODE: is what was acknowledged there?
    [ -f "$W/sums/$1-$2" ] && [ "$(sha256sum <"$PFS/$1-$2")" = "$(cat "$W/sums/$1-$2")" ]
}
both_on_the_pfs() { on_the_pfs "$1" n1 && on_the_pfs "$1" n2; }
word() { if "$@"; then echo yes; else echo no; fi; }
drained() { sinfo -h -N -o %T | grep -q drain; }

printf '%-18s %-11s %-18s %-18s %-10s %s\n' case "job" "n1 after epilog" "n2 after epilog" later drained >"$W/table"
# row CASE STATE N1 N2 [LATER]
row() {
    printf '%-18s %-11s %-18s %-18s %-10s %s\n' "$1" "$2" "$3" "$4" "${5--}" "$(word drained)" >>"$W/table"
    tail -n 1 "$W/table"
}

# ended CASE STATE: the job is over, its epilogs, too; all of it is there.
ended() {
    local n1 n2
    wait_for 200 is_over "$JOB_ID" || fail "$1: the job is not over: $(squeue)"
    wait_for 90 all_idle || fail "$1: nodes are not idle: $(sinfo -N -l)"
    n1=$(word on_the_pfs "$1" n1) n2=$(word on_the_pfs "$1" n2)
    row "$1" "$(job_state "$JOB_ID")" "$n1" "$n2"
    check_equal "$1: state of the job" "$(job_state "$JOB_ID")" "$2"
    check_equal "$1: on the PFS" "$n1 $n2" "yes yes"
    check_equal "$1: caches that are left" "$(find "$W"/caches-n? -mindepth 1 -maxdepth 1 -name "*-$JOB_ID")" ""
    check_equal "$1: mount points that are left" "$(ls "$W/jobs")" ""
    check_equal "$1: owner" "$(stat -c %u "$PFS/$1-n1")" "$JOB_UID"
    drained && fail "$1: a node is drained: $(sinfo -R)"
    return 0
}
written() {
    wait_for 60 has_written "$1" || fail "$1: the job writes nothing: $(cat "$W/out/$1" 2>/dev/null; scontrol show job "$JOB_ID")"
    both_on_the_pfs "$1" && fail "$1: flushed too early for this test to show anything"
    return 0
}

submit normal ends
ended normal COMPLETED

submit cancelled stays
written cancelled
run_as "$JOB_UID" scancel "$JOB_ID"
ended cancelled CANCELLED

submit daemon-killed stays
written daemon-killed
pid=$(on n1 env TMPDIR="$W/tmp" "$EDDY_BUILD/eddy" status --json "$W/jobs/n1-$JOB_ID" | jq .pid)
on n1 kill -KILL "$pid"
run_as "$JOB_UID" scancel "$JOB_ID"
ended daemon-killed CANCELLED

submit time-limit stays --time=1
written time-limit
ended time-limit TIMEOUT

# The PFS hangs on n1 from before the job's end until after the epilog's limit.
submit pfs-hangs stays
written pfs-hangs
stop_faultfs n1
start=$SECONDS
run_as "$JOB_UID" scancel "$JOB_ID"
wait_for 100 is_over "$JOB_ID" || fail "pfs-hangs: the job is not over"
wait_for 100 all_idle || fail "pfs-hangs: nodes are not idle: $(sinfo -N -l)"
[ $((SECONDS - start)) -ge 8 ] || fail "the epilog did not wait for its limit"
n1=$(word on_the_pfs pfs-hangs n1) n2=$(word on_the_pfs pfs-hangs n2)
continue_faultfs n1
later=$(word wait_for 60 both_on_the_pfs pfs-hangs)
row pfs-hangs "$(job_state "$JOB_ID")" "$n1" "$n2" "$later"
check_equal "pfs-hangs: on the PFS after the epilog, and later" "$n1 $n2 $later" "no yes yes"
no_daemon() { on n1 flock -n -s "$W/caches-n1/$JOB_UID-$JOB_ID/lock" true; }
wait_for 60 no_daemon || fail "the daemon does not end"
on n1 env EDDYFS_SLURM_CONF="$W/eddyfs.conf" "$SLURM_SCRIPTS/recover-left"
check_equal "caches that recover-left leaves" "$(ls "$W/caches-n1")" ""
drained && fail "pfs-hangs: a node is drained: $(sinfo -R)"

# n2 dies, and comes back: its disk has what was not flushed.
submit node-dies stays
written node-dies
named() { { eddy check "$PFS" 2>/dev/null || true; } | grep -q '^node-dies-n2: only on node n2'; }
wait_for 15 named || fail "eddy check does not name it: $(eddy check "$PFS" 2>&1 || true)"
kill_host n2
wait_for 120 is_over "$JOB_ID" || fail "node-dies: the job is not over: $(squeue; sinfo -N -l)"
wait_for 60 is_idle n1 || fail "node-dies: n1 is not idle: $(sinfo -N -l)"
n1=$(word on_the_pfs node-dies n1) n2=$(word on_the_pfs node-dies n2)
named || fail "after the epilog eddy check names: $(eddy check "$PFS" 2>&1 || true)"
HOST_COUNT=1 # the same address
add_host n2
start_faultfs n2
on n2 env EDDYFS_SLURM_CONF="$W/eddyfs.conf" "$SLURM_SCRIPTS/recover-left"
later=$(word both_on_the_pfs node-dies)
start_daemon n2 "$W/slurmd-n2.out" slurmd -D -f "$SLURM_CONF" -N n2
wait_for 60 all_idle || fail "node-dies: n2 does not come back: $(sinfo -N -l)"
row node-dies "$(job_state "$JOB_ID")" "$n1" "$n2" "$later"
check_equal "node-dies: on the PFS after the epilog, and when the node is back" "$n1 $n2 $later" "yes no yes"
check_equal "caches that recover-left leaves" "$(ls "$W/caches-n2")" ""
eddy check "$PFS" || fail "eddy check still names files"
drained && fail "node-dies: a node is drained: $(sinfo -R)"

submit again ends
ended again COMPLETED

# The batch script for users without prolog and epilog, with two tasks instead of 120.
: >"$W/no-prolog"
chmod 666 "$W/fuse"
for n in n1 n2; do # what each node has of its own
    mkdir -m 777 "$W/local-$n"
    on "$n" mkdir -p "$W/local" /run/user
    on "$n" mount --bind "$W/local-$n" "$W/local"
    on "$n" mount -t tmpfs tmpfs /run/user
    on "$n" install -d -m 700 -o "$JOB_UID" "/run/user/$JOB_UID"
    on "$n" mount --bind "$W/pfs-$n" "$W/pfs-here"
done
cat >"$W/application" <<'TASK'
#!/bin/bash
name=$2-$SLURMD_NODENAME sum=$3-$SLURMD_NODENAME
head -c 2000000 /dev/urandom >"$name" && sha256sum <"$name" >"$sum.new" && mv "$sum.new" "$sum"
[ -z "$4" ] || sleep 600
TASK
chmod 755 "$W/application"
submit_example() { # NAME [stays]
    sed -e "s|--nodes=8 --ntasks-per-node=15|--nodes=2 --ntasks-per-node=1|; s|--ntasks-per-node=15|--ntasks-per-node=1|" \
        -e "s|^DATA=[^ ]*|DATA=$W/pfs-here|; s|^CACHE=/local|CACHE=$W/local|" \
        -e "s|^MNT=/tmp/|MNT=$W/local/mnt-|" \
        -e "s|-f --cache-dir|-f --flush-wait 3600 --cache-dir|" \
        -e "s|./application .*output\"|$W/application - \"\$MNT\"/$1 $W/sums/$1 ${2-}|" \
        "$SLURM_SCRIPTS/job.sbatch" >"$W/slurm/$1.sh"
    JOB_ID=$(run_as "$JOB_UID" env PATH="$EDDY_BUILD:$PATH" USER="$JOB_USER" sbatch --parsable \
        --no-requeue --chdir=/ --output="$W/out/$1" "$W/slurm/$1.sh")
}
example_ended() { # NAME STATE
    wait_for 120 is_over "$JOB_ID" || fail "$1: the job is not over: $(cat "$W/out/$1")"
    wait_for 60 all_idle || fail "$1: nodes are not idle: $(sinfo -N -l)"
    row "$1" "$(job_state "$JOB_ID")" "$(word on_the_pfs "$1" n1)" "$(word on_the_pfs "$1" n2)"
    both_on_the_pfs "$1" || fail "$1: not all is on the PFS: $(cat "$W/out/$1")"
    check_equal "$1: state of the job" "$(job_state "$JOB_ID")" "$2"
    check_equal "$1: caches that are left" "$(find "$W/local-n1" "$W/local-n2" -mindepth 1 -maxdepth 1 -name "*$JOB_USER*")" ""
}
submit_example example ''
example_ended example COMPLETED
submit_example example-signal stays
written example-signal
run_as "$JOB_UID" scancel --batch --signal=TERM "$JOB_ID" # as before the time limit
example_ended example-signal FAILED
cat "$W/table"
