#!/bin/bash
# down.sh DIR: ends what slurm-up.sh or oar-up.sh started there, and nothing else. What it wrote stays, until the cluster
# is started again.
D=${1:-}
. "${BASH_SOURCE[0]%/*}/lab.sh"
[ ! -e "$D/$lab_mark" ] || lab_stop
