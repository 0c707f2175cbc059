#!/bin/bash
# A throw-away Slurm on this one machine: four nodes with made-up GPUs and one without, on loopback only.
#   slurmlab.sh start DIR            as root; DIR is emptied, and must be reachable for every user
#   slurmlab.sh stop DIR             cancels its jobs, then ends its daemons by their pid files
#   slurmlab.sh guard DIR PID        waits for the end of process PID, then stops what is left in DIR
# EXTRACONF: a file with more statements for slurm.conf; of a setting that is there twice, Slurm takes the last.
# BASEPORT (17000): the first of 93 free ports. CREDEXPIRE (5): a requeued job is held for one second more than that.
# What it is made of, and why: README.md.
set -euo pipefail

command=${1:?start, stop or guard}
LAB=$(realpath -m "${2:?directory}")
BASEPORT=${BASEPORT:-17000}
CREDEXPIRE=${CREDEXPIRE:-5}
NODES="gpu001 gpu002 gpu003 gpu004 c1-1"
USERS="games mail news uucp"
export SLURM_CONF=$LAB/slurm.conf

program() { command -v "$1" || echo "/usr/sbin/$1"; }

database() { mariadb --no-defaults --socket="$LAB/run/mysql.sock" --user=root "$@"; }

until_true() { # SECONDS COMMAND...: fails where the command never succeeds
    local tries=$(($1 * 10)) what="${*:2}"
    shift
    until "$@" >/dev/null 2>&1; do
        ((tries-- > 0)) || { echo "slurmlab: never came true: $what" >&2; return 1; }
        sleep 0.1
    done
}

steps() { # process ids of the lab's slurmstepd, which stand in no pid file
    local process
    for process in /proc/[0-9]*; do
        if [ "$(cat "$process/comm" 2>/dev/null)" = slurmstepd ] &&
            tr '\0' '\n' <"$process/environ" 2>/dev/null | grep -qxF "SLURM_CONF=$SLURM_CONF"; then
            basename "$process"
        fi
    done
}

idle() { [ -z "$(timeout 5 squeue --noheader --states=R,CG,S,CF)" ]; }

none_left() { ! kill -0 "$@"; } 2>/dev/null

stop() {
    local file pids=() jobs
    if [ -s "$LAB/run/slurmctld.pid" ]; then
        jobs=$(timeout 5 squeue --noheader --format=%A 2>/dev/null | sort -u) || true
        [ -z "$jobs" ] || timeout 10 scancel $jobs 2>/dev/null || true
        until_true 8 idle 2>/dev/null || true
    fi
    for file in "$LAB"/run/*.pid; do
        if [ -s "$file" ]; then pids+=("$(cat "$file")"); fi
    done
    mapfile -t -O ${#pids[@]} pids < <(steps)
    [ ${#pids[@]} -gt 0 ] || return 0
    kill "${pids[@]}" 2>/dev/null || true
    until_true 4 none_left "${pids[@]}" 2>/dev/null || kill -9 "${pids[@]}" 2>/dev/null || true
    rm -f "$LAB"/run/*.pid
}

write_slurm_conf() {
    local number=0 node
    cat <<C
ClusterName=lab
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$((BASEPORT + 92))
AuthType=auth/munge
AuthInfo=socket=$LAB/munge/s,cred_expire=$CREDEXPIRE
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$LAB/state
SlurmdSpoolDir=$LAB/spool/%n
SlurmctldPidFile=$LAB/run/slurmctld.pid
SlurmdPidFile=$LAB/run/slurmd.%n.pid
SlurmctldLogFile=$LAB/log/slurmctld.log
SlurmdLogFile=$LAB/log/slurmd.%n.log
SlurmctldDebug=verbose
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
ReturnToService=1
SlurmdTimeout=20
InactiveLimit=0
KillWait=1
CompleteWait=0
EpilogMsgTime=0
JobRequeue=1
RequeueExit=99
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,bf_resolution=1,batch_sched_delay=0,sched_interval=1,sched_min_interval=200000,bf_continue
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
TopologyPlugin=topology/tree
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightQOS=5000
PreemptType=preempt/qos
PreemptMode=REQUEUE
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((BASEPORT + 91))
AccountingStoragePass=$LAB/munge/s
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:v100
AccountingStoreFlags=job_comment
JobCompType=jobcomp/filetxt
JobCompLoc=$LAB/log/jobcomp.log
PropagateResourceLimits=NONE
DefMemPerCPU=1000
C
    for node in $NODES; do
        number=$((number + 1))
        printf 'NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d Sockets=2 ThreadsPerCore=1 State=UNKNOWN ' \
            "$node" "$(hostname -s)" $((BASEPORT + number))
        case $number in
            1 | 2) echo "Gres=gpu:a100:8 CPUs=64 CoresPerSocket=32 RealMemory=500000 Feature=a100 Weight=20" ;;
            3 | 4) echo "Gres=gpu:v100:4 CPUs=32 CoresPerSocket=16 RealMemory=250000 Feature=v100 Weight=10" ;;
            *) echo "CPUs=32 CoresPerSocket=16 RealMemory=120000 Weight=1" ;;
        esac
    done
    echo "PartitionName=gpu Nodes=gpu[001-004] Default=YES MaxTime=1-0 DefaultTime=5 State=UP"
    echo "PartitionName=a100 Nodes=gpu[001-002] MaxTime=1-0 DefaultTime=5 State=UP"
    echo "PartitionName=v100 Nodes=gpu[003-004] MaxTime=1-0 DefaultTime=5 State=UP"
    echo "PartitionName=cpu Nodes=c1-1 MaxTime=1-0 DefaultTime=5 State=UP"
}

write_other_conf() {
    # character devices, or Slurm gives no GPU numbers
    for i in 0 1 2 3 4 5 6 7; do ln -s /dev/null "$LAB/dev/gpu$i"; done
    printf 'NodeName=gpu[001-002] Name=gpu Type=a100 File=%s Cores=0-31\n' "$LAB/dev/gpu[0-3]" >"$LAB/gres.conf"
    printf 'NodeName=gpu[001-002] Name=gpu Type=a100 File=%s Cores=32-63\n' "$LAB/dev/gpu[4-7]" >>"$LAB/gres.conf"
    printf 'NodeName=gpu[003-004] Name=gpu Type=v100 File=%s\n' "$LAB/dev/gpu[0-3]" >>"$LAB/gres.conf"
    cat >"$LAB/topology.conf" <<C
SwitchName=leaf1 Nodes=gpu[001-002]
SwitchName=leaf2 Nodes=gpu003
SwitchName=leaf3 Nodes=gpu004,c1-1
SwitchName=spine Switches=leaf[1-3]
C
    echo "ConstrainRAMSpace=no" >"$LAB/cgroup.conf"
    # from 23.02 on Slurm looks for cgroups unless told not to; before, it does not know the word
    local version
    version=$("$(program slurmctld)" -V | grep -oE '[0-9]+\.[0-9]+' | head -1)
    if [ "$(printf '%s\n23.02\n' "$version" | sort -V | head -1)" = 23.02 ]; then
        echo "CgroupPlugin=disabled" >>"$LAB/cgroup.conf"
    fi
    cat >"$LAB/slurmdbd.conf" <<C
AuthType=auth/munge
AuthInfo=socket=$LAB/munge/s
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((BASEPORT + 91))
SlurmUser=root
LogFile=$LAB/log/slurmdbd.log
PidFile=$LAB/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((BASEPORT + 90))
StorageUser=slurm
StoragePass=lab
StorageLoc=slurm_acct_db
C
    chmod 600 "$LAB/slurmdbd.conf"
}

start_munge() {
    dd if=/dev/urandom bs=1024 count=1 of="$LAB/munge.key" status=none
    chmod 400 "$LAB/munge.key"
    "$(program munged)" --force --key-file="$LAB/munge.key" --socket="$LAB/munge/s" --pid-file="$LAB/run/munged.pid" \
        --log-file="$LAB/log/munged.log" --seed-file="$LAB/munge/seed"
}

start_database() {
    mariadb-install-db --no-defaults --user=root --datadir="$LAB/mysql" --auth-root-authentication-method=normal \
        --skip-test-db >"$LAB/log/mariadb-install.log" 2>&1
    "$(program mariadbd)" --no-defaults --user=root --datadir="$LAB/mysql" --socket="$LAB/run/mysql.sock" \
        --port=$((BASEPORT + 90)) --bind-address=127.0.0.1 --pid-file="$LAB/run/mariadb.pid" \
        --log-error="$LAB/log/mariadb.log" --innodb-buffer-pool-size=128M --innodb-lock-wait-timeout=900 \
        --innodb-flush-log-at-trx-commit=0 >/dev/null 2>&1 &
    until_true 30 database --execute="select 1"
    database --execute="create database slurm_acct_db; create user slurm@'127.0.0.1' identified by 'lab';
        create user slurm@localhost identified by 'lab'; grant all on slurm_acct_db.* to slurm@'127.0.0.1';
        grant all on slurm_acct_db.* to slurm@localhost;"
}

account() { sacctmgr --immediate "$@" >>"$LAB/log/sacctmgr.log"; }

add_accounts() {
    account add qos low Priority=10
    account add qos high Priority=1000 Preempt=low
    account add account vision Description=vision Organization=lab
    account add account nlp Description=nlp Organization=lab
    for user in games mail; do account add user $user account=vision qos=normal,low,high defaultqos=normal; done
    for user in news uucp; do account add user $user account=nlp qos=normal,low,high defaultqos=normal; done
}

all_idle() { [ "$(sinfo --noheader --Node --format='%N %t' | sort -u | grep -c ' idle$')" = 5 ]; }

start() {
    for user in $USERS; do id "$user" >/dev/null; done
    rm -rf "$LAB"
    mkdir -p "$LAB"/{run,log,spool,state,mysql,dev,jobs,munge}
    chmod 755 "$LAB" "$LAB"/{run,munge}
    chmod 1777 "$LAB/jobs"
    start_munge
    start_database
    write_slurm_conf >"$SLURM_CONF"
    [ -z "${EXTRACONF:-}" ] || cat "$EXTRACONF" >>"$SLURM_CONF"
    write_other_conf
    "$(program slurmdbd)"
    until_true 30 sacctmgr --noheader list cluster
    account add cluster lab
    "$(program slurmctld)" -f "$SLURM_CONF" -c
    until_true 30 scontrol show partition gpu
    add_accounts
    for node in $NODES; do "$(program slurmd)" -f "$SLURM_CONF" -N "$node"; done
    until_true 40 all_idle
}

case $command in
    start) start ;;
    stop) stop ;;
    guard) while kill -0 "${3:?process id}" 2>/dev/null; do sleep 1; done; stop; rm -rf "$LAB" ;;
    *) echo "slurmlab: start, stop or guard, not $command" >&2; exit 2 ;;
esac
