# What slurm-up.sh and oar-up.sh share: a cluster of "nodes" on one machine. To be sourced.
#
# A node is a set of namespaces: network, host name, mounts, processes, System V IPC and, where the machine has
# hierarchies of control groups v1, control groups. Its pid 1 is the cluster's own script, called again with
# `inside NAME`, which starts the daemons and then reaps orphans; killing it kills all there is of the node, network
# and mounts included. Nodes are joined by a bridge that lives in the node called "head". Nothing of the machine's own
# network, files or processes is touched, but for groups below the control group we are in, named after the directory.
#
# Everything is kept below one directory, which the caller names and we mark as ours:
#   nodes        name, pid, start time of what may be killed; a pid alone might be somebody else's by now
#   enter        enter NODE COMMAND...: runs a command as root on a node
#   log/ run/    what daemons print, and what they need while they run

set -eu
PATH=$PATH:/usr/sbin:/sbin
lab_mark=.cluster-of-tests

lab_say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# This cannot be run here: 77 is what test runners take for skipped.
lab_skip() {
    lab_say "$*"
    exit 77
}

lab_need() {
    local program why
    [ "$(id -u)" = 0 ] || lab_skip "only root can make namespaces and start daemons for other users"
    for program; do
        command -v "$program" >/dev/null || lab_skip "$program is not installed"
    done
    why=$(unshare --cgroup --net --uts --ipc --mount --pid --fork --mount-proc true 2>&1) ||
        lab_skip "no namespaces can be made here: $why"
}

# lab_claim DIR: empties a directory that is ours, or makes it.
lab_claim() {
    case $1 in
    /*/*) ;;
    *)
        lab_say "the directory must be absolute and not a root directory: $1"
        exit 2
        ;;
    esac
    if [ -e "$1" ] && [ ! -e "$1/$lab_mark" ] && [ -n "$(ls -A "$1")" ]; then
        lab_say "$1 is there and not ours"
        exit 2
    fi
    rm -rf -- "${1:?}"/*
    mkdir -p "$1"/log "$1"/run
    touch "$1/$lab_mark"
    chmod 755 "$1"
}

# ---- processes ----

# The 22nd field of stat, counted from behind the name, which may hold anything.
lab_start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

lab_note() { echo "$1 $2 $(lab_start_time "$2")" >>"$D/nodes"; }

lab_lives() { # PID START_TIME; a zombie does not live
    [ "$(lab_start_time "$1")" = "$2" ] && [ "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c1)" != Z ]
}

# lab_wait WHAT COMMAND...: until the command succeeds, at most a minute.
lab_wait() {
    local what=$1 end=$((SECONDS + 60))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ]; then
            lab_say "never happened: $what"
            tail -n 20 "$D"/log/* >&2
            return 1
        fi
        sleep 0.02
    done
}

lab_nobody_lives() {
    local name pid start
    while read -r name pid start; do
        ! lab_lives "$pid" "$start" || return 1
    done <"$D/nodes"
}

# Kills the nodes, the first one (head) last, and removes their control groups.
lab_stop() {
    local name pid start group
    if [ -e "$D/nodes" ]; then
        tac "$D/nodes" | while read -r name pid start; do
            ! lab_lives "$pid" "$start" || kill -KILL "$pid"
        done
        lab_wait "nodes end" lab_nobody_lives
        rm -f "$D/nodes"
    fi
    if [ -e "$D/groups" ]; then
        while read -r group; do
            lab_wait "$group is removed" lab_remove_group "$group"
        done <"$D/groups"
        rm -f "$D/groups"
    fi
    rm -f "$D/wanted"
}

lab_remove_group() {
    [ -d "$1" ] || return 0
    find "$1" -depth -type d -exec rmdir {} + 2>/dev/null
    [ ! -d "$1" ]
}

# ---- control groups v1 ----

# Hierarchies by their controllers, as they are mounted: "cpuset", "cpu,cpuacct"... Named ones are systemd's own.
lab_hierarchies() {
    local directory
    for directory in /sys/fs/cgroup/*/; do
        directory=${directory%/}
        [ ! -L "$directory" ] && [ -e "$directory/tasks" ] && [ "${directory##*/}" != systemd ] && echo "${directory##*/}"
    done
    return 0
}

# lab_group HIERARCHY: the directory of the group we are in.
lab_group() {
    local path
    path=$(grep -E "^[0-9]+:$1:" /proc/self/cgroup | cut -d: -f3-)
    echo "/sys/fs/cgroup/$1${path%/}"
}

# A group for the cluster in each hierarchy, below the one we are in, so that all limits stay in force.
lab_make_groups() {
    local hierarchy base tag
    tag=cluster-$(echo "$D" | cksum | cut -d' ' -f1)
    : >"$D/groups"
    for hierarchy in $(lab_hierarchies); do
        base=$(lab_group "$hierarchy")
        lab_make_group "$hierarchy" "$base/$tag"
        echo "$base/$tag" >>"$D/groups"
    done
}

lab_make_group() { # HIERARCHY DIRECTORY
    mkdir -p "$2"
    [ "$1" = cpuset ] || return 0
    cat "${2%/*}/cpuset.cpus" >"$2/cpuset.cpus" # without CPUs and memory nothing may enter a new cpuset
    cat "${2%/*}/cpuset.mems" >"$2/cpuset.mems"
}

# ---- nodes ----

# lab_run_nodes NAME...: the first is the head. Each runs "$0 inside NAME", which calls lab_node_ready and then waits
# for our word.
lab_run_nodes() {
    local name number=0 pid
    lab_make_groups
    lab_write_enter
    for name; do
        mkfifo "$D/run/$name.go"
        lab_start_node "$name" </dev/null >"$D/log/node.$name" 2>&1 &
        lab_note "unshare-$name" $!
        echo $! >"$D/run/$name.unshare"
    done
    for name; do
        pid=$(cat "$D/run/$name.unshare")
        lab_wait "$name is ready" lab_is_ready_or_dead "$name" "$pid"
        if [ ! -e "$D/run/$name.ready" ]; then
            lab_say "$name does not start:" "$(tail -n 5 "$D/log/node.$name")"
            return 1
        fi
        pid=$(cut -d' ' -f1 "/proc/$pid/task/$pid/children")
        lab_note "$name" "$pid"
        echo "$pid" >"$D/run/$name.pid"
    done
    for name in "${@:2}"; do
        number=$((number + 1))
        lab_connect "$number" "$name" "$1"
    done
    for name; do echo go >"$D/run/$name.go"; done
}

lab_is_ready_or_dead() { [ -e "$D/run/$1.ready" ] || ! kill -0 "$2" 2>/dev/null; }

# Becomes the node, so that the pid that was noted is that of unshare.
lab_start_node() {
    local hierarchy group
    while read -r group; do
        hierarchy=${group#/sys/fs/cgroup/}
        lab_make_group "${hierarchy%%/*}" "$group/$1"
        echo $BASHPID >"$group/$1/cgroup.procs"
    done <"$D/groups"
    exec unshare --cgroup --net --uts --ipc --mount --pid --fork --kill-child=KILL --mount-proc \
        "$0" inside "$1" "$D"
}

# An end of a pair of virtual Ethernet devices is the node's eth0, the other hangs on the head's bridge.
lab_connect() { # NUMBER NAME HEAD
    local pid
    pid=$(cat "$D/run/$2.pid")
    printf '%s\n' "link add v$1 type veth peer name eth0 netns $pid" "link set v$1 master br0" "link set v$1 up" |
        nsenter -t "$(cat "$D/run/$3.pid")" -n ip -batch -
    printf '%s\n' "addr add $lab_network.$((10 + $1))/24 dev eth0" "link set eth0 up" | nsenter -t "$pid" -n ip -batch -
}

# Inside: the node's own host name, /sys, control groups, /dev/shm and addresses.
lab_node_begin() { # NAME
    local hierarchy controller
    hostname "$1"
    mount -t sysfs sysfs /sys
    if [ -s "$D/groups" ]; then
        mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
        for hierarchy in $(cut -d/ -f5 "$D/groups"); do
            mkdir "/sys/fs/cgroup/$hierarchy"
            mount -t cgroup -o "$hierarchy" cgroup "/sys/fs/cgroup/$hierarchy"
            for controller in ${hierarchy//,/ }; do
                [ "$controller" = "$hierarchy" ] || ln -s "$hierarchy" "/sys/fs/cgroup/$controller"
            done
        done
    else
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
    fi
    mount --bind "$D/hosts" /etc/hosts
    ip link set lo up
    if [ "$1" = head ]; then
        ip link add br0 type bridge
        ip addr add "$lab_network.1/24" dev br0
        ip link set br0 up
    fi
}

# The network is there when this returns.
lab_node_ready() { # NAME
    touch "$D/run/$1.ready"
    read -r _ <"$D/run/$1.go"
    cd /
}

# bash reaps every orphan while it waits.
lab_node_reap() {
    set +e
    while :; do
        wait
        sleep 3600 &
    done
}

lab_write_hosts() { # NODE...
    local name number=10
    {
        echo "127.0.0.1 localhost"
        echo "$lab_network.1 head"
        for name; do
            number=$((number + 1))
            echo "$lab_network.$number $name"
        done
    } >"$D/hosts"
}

lab_write_enter() {
    cat >"$D/enter" <<END
#!/bin/bash
# enter NODE COMMAND...: runs a command as root on that node, in its namespaces and control groups.
name=\$1
shift
pid=\$(cat "$D/run/\$name.pid") || exit 1
while read -r group; do echo \$\$ >"\$group/\$name/cgroup.procs"; done <"$D/groups"
exec nsenter -t "\$pid" -r -C -n -u -m -p -i --wd="\$PWD" env $lab_enter_env "\$@"
END
    chmod 755 "$D/enter"
}
