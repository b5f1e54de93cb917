#!/usr/bin/env bash
# Runs a real Slurm on this machine, for tests: controller, two virtual nodes n1 and n2, a partition
# `main`, and a partition `urgent` whose jobs preempt the jobs of `main` and requeue them.
#   scripts/jobs/local_slurm.sh up DIR      installs Slurm if it is missing (Debian 12), starts it
#   scripts/jobs/local_slurm.sh run DIR COMMAND...    runs a command in Slurm's environment
#   scripts/jobs/local_slurm.sh down DIR    ends all its jobs and daemons
# Needs root. Keeps keys, sockets, state and logs in DIR only, and does not touch an installed
# Slurm. Slurm's time limits are whole minutes.
set -euo pipefail

fail() {
  printf 'local_slurm: %s\n' "$@" >&2
  exit 1
}

# Slurm's programs are in sbin as well.
export PATH="$PATH:/usr/sbin:/sbin"

install_slurm() {
  command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null &&
    return
  # Keeps the packages from starting the system's daemons when they are installed.
  local policy=/usr/sbin/policy-rc.d made=
  if [[ ! -e "$policy" ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    made=1
  fi
  apt-get update >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends slurm-wlm munge \
    >/dev/null || fail "apt-get could not install slurm-wlm and munge"
  [[ -z "$made" ]] || rm -f "$policy"
}

# The cluster uses the ports from $1 on.
write_config() {
  local port=$1 host cpus memory
  host="$(hostname -s)"
  cpus="$(nproc --all)" # nproc alone heeds OMP_NUM_THREADS
  memory="$(awk '/^MemTotal/ {print int($2 / 1024 * 0.8)}' /proc/meminfo)"
  # cred_expire is also the time that a requeued job waits before it may start (default 120).
  cat >"$dir/slurm.conf" <<CONF
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
JobRequeue=1
KillWait=20
MinJobAge=3600
InactiveLimit=0
SlurmdTimeout=300
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=$cpus RealMemory=$memory Gres=gpu:1 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=$cpus RealMemory=$memory Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=20 OverSubscribe=NO
PartitionName=urgent Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
CONF
  # Slurm assigns these GPUs to jobs; the machine need not have them.
  printf 'Name=gpu File=/dev/zero\n' >"$dir/gres.conf"
  # Nothing here uses this plugin, so it has no effect. The plugin for version 2 needs a systemd.
  printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=%s/cgroup\n' "$dir" >"$dir/cgroup.conf"
}

start_munge() {
  mkdir -p "$dir/munge"
  chmod 0755 "$dir" "$dir/munge"
  dd if=/dev/urandom of="$dir/munge/key" bs=1024 count=1 status=none
  chmod 0400 "$dir/munge/key"
  munged --force --socket="$dir/munge/socket" --key-file="$dir/munge/key" \
    --pid-file="$dir/munge/pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
    2>"$dir/munge/errors" || fail "munged does not start: $(cat "$dir/munge/errors")"
}

up() {
  [[ "$(id -u)" == 0 ]] || fail "needs root"
  install_slurm
  [[ ! -e "$dir/slurm.conf" ]] || fail "'$dir' has a cluster already; end it with: $0 down $dir"
  mkdir -p "$dir/state"
  write_config "${LOCAL_SLURM_PORT:-16817}"
  start_munge
  slurmctld -c || fail "slurmctld does not start: see $dir/slurmctld.log"
  local node
  for node in n1 n2; do
    mkdir -p "$dir/spool.$node"
    slurmd -N "$node" || fail "slurmd of $node does not start: see $dir/slurmd.$node.log"
  done
  local i
  for ((i = 0; i < 60; ++i)); do
    [[ "$(sinfo -h -p main -t idle -o %D 2>/dev/null)" == 2 ]] && return
    sleep 0.5
  done
  sinfo -R >&2 || true
  down
  fail "the nodes do not answer"
}

# Ends the process named in a file, and waits for it.
end_process() {
  local pid
  [[ -e "$1" ]] || return 0
  pid="$(cat "$1")"
  kill "$pid" 2>/dev/null || return 0
  local i
  for ((i = 0; i < 100; ++i)); do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -9 "$pid" 2>/dev/null || true
}

down() {
  [[ -e "$dir/slurm.conf" ]] || return 0
  local i
  scancel --state=PENDING -u "$(id -un)" 2>/dev/null || true
  scancel -u "$(id -un)" 2>/dev/null || true
  for ((i = 0; i < 60; ++i)); do
    [[ -z "$(squeue -h 2>/dev/null)" ]] && break
    sleep 0.5
  done
  for i in slurmd.n1 slurmd.n2 slurmctld; do end_process "$dir/$i.pid"; done
  end_process "$dir/munge/pid"
  mv -f "$dir/slurm.conf" "$dir/slurm.conf.ended"
}

[[ $# -ge 2 ]] || fail "usage: $0 up|down DIR, or $0 run DIR COMMAND..."
command=$1
mkdir -p "$2"
dir="$(cd "$2" && pwd)"
shift 2
export SLURM_CONF="$dir/slurm.conf"
case "$command" in
  up) up ;;
  down) down ;;
  run) "$@" ;;
  *) fail "usage: $0 up|down DIR, or $0 run DIR COMMAND..." ;;
esac
