#!/bin/bash
# oar-up.sh DIR N: a real OAR of N nodes, node1... nodeN, on this machine, all of it below DIR.
#
# The head has PostgreSQL and the OAR server, the nodes an sshd. Every one sees its own /dev, /run, /etc/oar,
# /var/lib/oar, and accounts with one user more: oaruser (3000), whose home is DIR/home, since OAR runs no jobs of
# root. When it is up already, nothing happens; when it does not come up, nothing is left. 77: it cannot be run here, and
# why is on stderr. Commands run with DIR/enter, jobs are submitted with DIR/oarsub; down.sh ends it.
[ "${1:-}" = inside ] && D=$3 || D=${1:-}
lab_network=10.78.0
lab_enter_env=
. "${BASH_SOURCE[0]%/*}/lab.sh"

cores=2
uid=3000
postgres=$(find /usr/lib/postgresql -path '*/bin/initdb' 2>/dev/null | sort -V | tail -1)
postgres=${postgres%/initdb}

# ---- what the nodes see instead of the machine's own files ----

make_accounts() {
    mkdir -p "$D/etc" "$D/home"
    { grep -v '^oaruser:' /etc/passwd && echo "oaruser:x:$uid:$uid:test:$D/home:/bin/bash"; } >"$D/etc/passwd"
    { grep -v '^oaruser:' /etc/group && echo "oaruser:x:$uid:"; } >"$D/etc/group"
    (umask 077 && { grep -v '^oaruser:' /etc/shadow && echo 'oaruser:*:20000::::::'; } >"$D/etc/shadow")
    touch "$D/home/.bashrc"
    chown -R "$uid:$uid" "$D/home"
}

make_configuration() {
    cp -a /etc/oar "$D/etc/oar"
    install -o oar -g oar -m 644 /dev/null "$D/log/oar"
    sed -i -e 's/^SERVER_HOSTNAME=.*/SERVER_HOSTNAME="head"/' -e 's/^DB_HOSTNAME=.*/DB_HOSTNAME="head"/' \
        -e 's/^DB_BASE_PASSWD=.*/DB_BASE_PASSWD="oar"/' -e 's/^DB_BASE_PASSWD_RO=.*/DB_BASE_PASSWD_RO="oar_ro"/' \
        -e "s|^LOG_FILE=.*|LOG_FILE=\"$D/log/oar\"|" -e 's/^LOG_LEVEL=.*/LOG_LEVEL="3"/' \
        -e 's/^SCHEDULER_JOB_SECURITY_TIME=.*/SCHEDULER_JOB_SECURITY_TIME="1"/' "$D/etc/oar/oar.conf"
    echo 'SCHEDULER_MIN_TIME_BETWEEN_2_CALLS="0"' >>"$D/etc/oar/oar.conf" # jobs start at once, not 5 s later
    # At its end a job would delete all files of its user in the machine's /tmp, /var/tmp and /dev/shm.
    sed -i 's/^my @Tmp_dir_to_clear.*/my @Tmp_dir_to_clear = ();/' "$D/etc/oar/job_resource_manager_cgroups.pl"
    # Options that today's sshd no longer knows.
    sed -i -e '/^Protocol/d' -e '/^UsePrivilegeSeparation/d' -e '/^KeepAlive/d' -e '/^XAuthLocation/d' \
        "$D/etc/oar/sshd_config"
}

make_homes_of_oar() { # NAME...
    local name
    mkdir -p "$D/varlib"
    for name; do
        cp -a /var/lib/oar "$D/varlib/$name"
        printf '%s\n' 'Host *' 'ForwardX11 no' 'StrictHostKeyChecking no' 'UserKnownHostsFile /dev/null' \
            'LogLevel ERROR' 'PasswordAuthentication no' 'AddressFamily inet' >"$D/varlib/$name/.ssh/config"
    done
}

as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }

# Data to throw away: nothing waits for the disk.
make_database() {
    mkdir -p "$D/pg"
    chown postgres "$D/pg"
    chmod 700 "$D/pg"
    as_postgres "$postgres/initdb" -D "$D/pg" -A trust --no-sync -E UTF8 --locale=C >"$D/log/initdb" 2>&1
    printf '%s\n' "listen_addresses='*'" port=5432 fsync=off synchronous_commit=off \
        "unix_socket_directories='/run/postgresql'" >>"$D/pg/postgresql.conf"
    echo "host all all $lab_network.0/24 trust" >>"$D/pg/pg_hba.conf"
}

write_oarsub() {
    cat >"$D/oarsub" <<END
#!/bin/bash
# oarsub ...: as oaruser, in its home, on the head. It wants to find PWD in its environment.
cd "$D/home" && exec "$D/enter" head setpriv --reuid $uid --regid $uid --clear-groups env -i PWD="$D/home" \
    HOME="$D/home" USER=oaruser LOGNAME=oaruser SHELL=/bin/bash PATH=/usr/local/bin:/usr/bin:/bin /usr/bin/oarsub "\$@"
END
    chmod 755 "$D/oarsub"
}

# ---- inside a node ----

# OAR makes links in /dev, so it is a private one, with the machine's harmless devices.
make_dev() { # NAME
    local dev=$D/run/dev.$1 file
    mkdir "$dev"
    mount -t tmpfs -o mode=755 tmpfs "$dev"
    for file in null zero full random urandom tty; do
        touch "$dev/$file"
        mount --bind "/dev/$file" "$dev/$file"
    done
    mkdir "$dev/pts" "$dev/shm"
    ln -s pts/ptmx "$dev/ptmx"
    ln -s /proc/self/fd "$dev/fd"
    ln -s /proc/self/fd/0 "$dev/stdin"
    ln -s /proc/self/fd/1 "$dev/stdout"
    ln -s /proc/self/fd/2 "$dev/stderr"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$dev/shm"
    mount --rbind "$dev" /dev
}

database_answers() { PGHOST=127.0.0.1 "$postgres/pg_isready" -q -U postgres; }

start_head() {
    local node core resource=0
    as_postgres "$postgres/postgres" -D "$D/pg" >"$D/log/postgres" 2>&1 &
    lab_wait "PostgreSQL answers" database_answers
    export PGHOST=127.0.0.1 PGUSER=postgres
    psql -q -c "CREATE ROLE oar LOGIN PASSWORD 'oar'" -c "CREATE ROLE oar_ro LOGIN PASSWORD 'oar_ro'"
    psql -q -c "CREATE DATABASE oar OWNER oar ENCODING 'UTF8' TEMPLATE template0"
    PGUSER=oar psql -q oar <<<"$(cat /usr/lib/oar/database/{pg_structure,default_data,pg_default_admission_rules}.sql)"
    PGUSER=oar psql -q oar -c "GRANT SELECT ON ALL TABLES IN SCHEMA public TO oar_ro"
    setsid /usr/sbin/Almighty >"$D/log/almighty" 2>&1 </dev/null &
    oarproperty -a core
    for node in $(sed -n 's/.* \(node[0-9]*\)$/\1/p' "$D/hosts"); do
        for ((core = 0; core < cores; core++)); do
            resource=$((resource + 1))
            oarnodesetting -a -h "$node" -p cpuset="$((core % $(nproc)))" -p core="$resource" -s Alive
        done
    done
}

inside() { # NAME
    local file
    lab_node_begin "$1"
    make_dev "$1"
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/sshd /run/lock
    install -d -o postgres /run/postgresql
    for file in passwd group shadow oar; do mount --bind "$D/etc/$file" "/etc/$file"; done
    mount --bind "$D/varlib/$1" /var/lib/oar
    lab_node_ready "$1"
    if [ "$1" = head ]; then
        start_head
    else
        /usr/sbin/sshd -D -e -f /etc/oar/sshd_config -o PidFile=/run/oar-sshd.pid >"$D/log/sshd.$1" 2>&1 &
    fi
    lab_node_reap
}

# ---- outside ----

is_up() { # N
    [ "$(timeout 20 "$D/enter" head oarnodes -s 2>/dev/null | grep -c Alive)" = $(($1 * cores)) ]
}

main() {
    local nr=${2:-1} names
    lab_need ip unshare nsenter setpriv Almighty oarsub oarnodesetting sshd psql "${postgres:-PostgreSQL}/initdb"
    [ -e /sys/fs/cgroup/cpuset/tasks ] || lab_skip "OAR 2.5 needs cpusets of control groups v1, and this machine has none"
    if [ "$(cat "$D/wanted" 2>/dev/null)" = "$nr" ] && is_up "$nr"; then return; fi
    [ ! -e "$D/$lab_mark" ] || lab_stop
    lab_claim "$D"
    trap '[ $? = 0 ] || lab_stop' EXIT
    names=$(seq -f node%g "$nr")
    lab_write_hosts $names
    make_accounts
    make_configuration
    make_homes_of_oar head $names
    make_database
    write_oarsub
    lab_run_nodes head $names
    lab_wait "all nodes are alive" is_up "$nr"
    echo "$nr" >"$D/wanted"
}

if [ "${1:-}" = inside ]; then
    inside "$2"
else
    main "$@"
fi
