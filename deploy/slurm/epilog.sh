#!/bin/bash
# Epilog of Slurm (slurm.conf: Epilog=/etc/slurm/gpurest-epilog.sh), or a part of yours: when a job ends on this machine, however it ends, a service
# that has outlived it is drained, and its node goes out of the router's list.
#
# FLEET_NODES: the folder of the list, as in gpurest.sbatch; in slurmd's environment, or this default.
nodes=${FLEET_NODES:-/shared/gpurest/nodes}

for line in "$nodes"/*-"${SLURM_JOB_ID:?is set by slurmd}"; do
    [ -f "$line" ] || continue
    # Where Slurm tracks processes, none of the job is left. Others, started by a daemon, are found by the node's name; until they end, the machine
    # takes no new job.
    service="gpurestd .*--node $(basename "$line")( |\$)"
    pkill -TERM -f -- "$service"
    for ((seconds = 0; seconds < 120; seconds++)); do
        pgrep -f -- "$service" >/dev/null || break
        sleep 1
    done
    rm -f "$line"
done
exit 0 # an error would take the machine out of service
