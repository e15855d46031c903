#!/bin/bash
# slurm-up.sh DIR N [MODE [PLUGIN]]: a real SLURM of N nodes, node1... nodeN, on this machine, all of it below DIR.
#
# MODE is none (SLURM follows processes by their parents; preset) or v1 (in control groups). PLUGIN is the line of
# plugstack.conf. When it is up already,
# nothing happens; when it does not come up, nothing is left. 77: it cannot be run here, and why is on stderr.
# Commands run with DIR/enter: `enter head sbatch job.sh`, `enter node1 ps -e`. down.sh ends it.
[ "${1:-}" = inside ] && D=$3 || D=${1:-}
lab_network=10.77.0
lab_enter_env="SLURM_CONF='$D/slurm.conf'"
. "${BASH_SOURCE[0]%/*}/lab.sh"

configure() { # N MODE PLUGIN
    local i
    printf '%s\n' "$3" >"$D/plugstack.conf"
    {
        cat <<END
ClusterName=test
SlurmctldHost=head($lab_network.1)
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$D/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$D/state
SlurmdSpoolDir=$D/spool/%n
SlurmctldPidFile=$D/run/slurmctld.pid
SlurmdPidFile=$D/run/slurmd.%n.pid
SlurmctldLogFile=$D/log/slurmctld
SlurmdLogFile=$D/log/slurmd.%n
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,batch_sched_delay=0,sched_interval=1
ReturnToService=2
KillWait=30
Waittime=0
JobAcctGatherFrequency=task=1
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
TmpFS=$D/tmp/%n
# A node may claim more CPUs than the machine has.
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
PlugStackConfig=$D/plugstack.conf
END
        if [ "$2" = v1 ]; then
            printf '%s\n' ProctrackType=proctrack/cgroup TaskPlugin=task/cgroup JobAcctGatherType=jobacct_gather/cgroup
        else
            printf '%s\n' ProctrackType=proctrack/linuxproc TaskPlugin=task/none JobAcctGatherType=jobacct_gather/linux
        fi
        for ((i = 1; i <= $1; i++)); do
            echo "NodeName=node$i NodeAddr=$lab_network.$((10 + i)) CPUs=$cpus RealMemory=1000 State=UNKNOWN"
            mkdir -p "$D/spool/node$i" "$D/tmp/node$i"
        done
        echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=FORCE:8 State=UP"
    } >"$D/slurm.conf"
    printf '%s\n' CgroupPlugin=cgroup/v1 CgroupMountpoint=/sys/fs/cgroup CgroupAutomount=no >"$D/cgroup.conf"
    [ "$2" != v1 ] || printf '%s\n' ConstrainCores=yes ConstrainRAMSpace=yes >>"$D/cgroup.conf"
}

inside() { # NAME
    export SLURM_CONF=$D/slurm.conf
    lab_node_begin "$1"
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    lab_node_ready "$1"
    # One munged serves all nodes: they share the directory of its socket.
    if [ "$1" = head ]; then
        munged -F --socket="$D/munge/socket" --key-file="$D/munge/key" --pid-file="$D/munge/pid" \
            --log-file="$D/log/munged" --seed-file="$D/munge/seed" >"$D/log/munged.out" 2>&1 &
        lab_wait "munged listens" test -S "$D/munge/socket"
        slurmctld -D >"$D/log/slurmctld.out" 2>&1 &
    else
        lab_wait "munged listens" test -S "$D/munge/socket"
        slurmd -D -N "$1" >"$D/log/slurmd.$1.out" 2>&1 &
    fi
    lab_node_reap
}

is_up() { # N
    [ "$(timeout 10 "$D/enter" head sinfo -h -N -o '%N %T' 2>/dev/null | grep -cE ' (idle|mixed|allocated)$')" = "$1" ]
}

main() {
    local nr=${2:-1} mode=${3:-none} plugin=${4:-} names
    lab_need slurmctld slurmd munged srun ip unshare nsenter
    case $mode in
    none) cpus=8 ;;
    v1)
        cpus=$(nproc)
        [ -e /sys/fs/cgroup/freezer/tasks ] && [ -e /sys/fs/cgroup/cpuset/tasks ] && [ -e /sys/fs/cgroup/memory/tasks ] ||
            lab_skip "no control groups v1 on this machine"
        ;;
    *)
        lab_say "the mode is none or v1, not $mode"
        exit 2
        ;;
    esac
    if [ "$(cat "$D/wanted" 2>/dev/null)" = "$nr $mode $plugin" ] && is_up "$nr"; then return; fi
    [ ! -e "$D/$lab_mark" ] || lab_stop
    lab_claim "$D"
    trap '[ $? = 0 ] || lab_stop' EXIT
    mkdir -p "$D"/munge "$D"/state "$D"/spool
    (umask 077 && head -c 128 /dev/urandom >"$D/munge/key")
    names=$(seq -f node%g "$nr")
    lab_write_hosts $names
    configure "$nr" "$mode" "$plugin"
    lab_run_nodes head $names
    lab_wait "all nodes are idle" is_up "$nr"
    echo "$nr $mode $plugin" >"$D/wanted"
}

if [ "${1:-}" = inside ]; then
    inside "$2"
else
    main "$@"
fi
