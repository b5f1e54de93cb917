#!/usr/bin/env bash
# Trains in a real Slurm on this machine, as its users do, and compares each run byte for byte with
# an uninterrupted run.
#   scripts/jobs/check_slurm.sh build/release/trainer [CASE...]
# Cases: chain, requeue, cancel, preempt, drain, array, ranks, mpirun, gpu, container; by default
# all. Needs root. Sets up its own Slurm with local_slurm.sh and removes it. Needs about five
# minutes.
# shellcheck disable=SC2317 # the cases are called by their names
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
[[ $# -ge 1 ]] || {
  echo "usage: $0 TRAINER [CASE...]" >&2
  exit 64
}
program="$(realpath "$1")"
shift
cases=("$@")
((${#cases[@]})) || cases=(chain requeue cancel preempt drain array ranks mpirun gpu container)

work="$(mktemp -d)"
export SLURM_CONF="$work/slurm/slurm.conf" PATH="$PATH:/usr/sbin:/sbin"
# One thread, because sums depend on the number of threads. mpirun must accept root and more ranks
# than cores, which it refuses by default.
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PROGRAM="$program" SLOT=600
failed=0

finish() {
  "$here/local_slurm.sh" down "$work/slurm" >/dev/null 2>&1 || true
  if ((failed)); then
    echo "kept: $work" >&2
  else
    rm -rf "$work"
  fi
}
trap finish EXIT

say() { printf '%(%T)T %s\n' -1 "$*"; }
problem() {
  say "FAILED $*"
  failed=1
}

# Makes a trainer whose jobs end after SLOT seconds, because Slurm's limits are whole minutes.
make_trainer() {
  cat >"$work/trainer" <<'SLOT'
#!/bin/bash
[[ -z "${SLURM_JOB_ID:-}" ]] || export SLURM_JOB_END_TIME=$(($(date +%s) + SLOT))
exec "$PROGRAM" "$@"
SLOT
  # Replaces Apptainer: runs "exec IMAGE trainer ..." without the image.
  mkdir -p "$work/bin"
  cat >"$work/bin/apptainer" <<'APPTAINER'
#!/bin/bash
while [[ "$1" != trainer ]]; do shift; done
shift
exec "$TRAINER" "$@"
APPTAINER
  chmod +x "$work/trainer" "$work/bin/apptainer"
  export TRAINER="$work/trainer" PATH="$work/bin:$PATH"
}

make_solver() {
  mkdir -p "$work/data"
  (cd "$work" && "$program" dataset digits data >/dev/null 2>&1)
  sed "s#data/digits/#$work/data/#" "$here/../../models/lenet/train_test.prototxt" \
    >"$work/net.prototxt"
  cat >"$work/solver.prototxt" <<SOLVER
net: "$work/net.prototxt"
test_iter: 2
test_interval: 200
base_lr: 0.01
momentum: 0.9
weight_decay: 0.0005
lr_policy: "inv"
gamma: 0.0001
power: 0.75
display: 50
max_iter: ${ITERATIONS:-1500}
snapshot: 300
snapshot_prefix: "snap"
random_seed: 1
SOLVER
}

# whole FOLDER COMMAND...: the uninterrupted run.
whole() {
  local folder="$work/$1"
  shift
  [[ ! -d "$folder" ]] || return 0
  mkdir -p "$folder"
  cp "$work/solver.prototxt" "$folder"
  (cd "$folder" && "$@" >log 2>&1) || {
    problem "the run in $folder that nothing interrupts"
    tail -n 3 "$folder/log" >&2
  }
}

# submit FOLDER FLAG...: submits, in the new folder, the script that `trainer job` prints with these
# flags. Prints the job's number.
submit() {
  mkdir -p "$work/$1"
  cp "$work/solver.prototxt" "$work/$1"
  (cd "$work/$1" &&
    "$program" job --solver=solver.prototxt --cores=1 --time=10 "${@:2}" 2>job.err >job.sh &&
    sbatch --parsable --mem=0 job.sh)
}

state_of() { scontrol -o show job "$1" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p;q'; }
count_of() { scontrol -o show job "$1" 2>/dev/null | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p;q'; }

# Waits until job $1 is in state $2, at most $3 seconds.
await_state() {
  local i state=
  for ((i = 0; i < ${3:-300} * 2; ++i)); do
    state="$(state_of "$1")"
    [[ "$state" != "$2" ]] || return 0
    case "$state" in
      FAILED | CANCELLED | TIMEOUT | NODE_FAIL | OUT_OF_MEMORY | COMPLETED)
        [[ "$2" != DONE ]] || return 0
        break
        ;;
    esac
    sleep 0.5
  done
  problem "job $1 is $state, not $2"
}

# Waits until the logs of case $1 have $3 (1) lines with $2.
await_line() {
  local i
  for ((i = 0; i < 240; ++i)); do
    (($(cat "$work/$1"/*.log 2>/dev/null | grep -c -- "$2") >= ${3:-1})) && return 0
    sleep 0.25
  done
  problem "$1: no line '$2'"
}

# Checks that the last weights of case $1 equal the weights in folder $2.
compare() {
  local name="${3:-snap}_iter_${ITERATIONS:-1500}"
  local file
  for file in "$name.caffemodel" "$name.solverstate"; do
    cmp "$work/$1/$file" "$work/$2/$file" || problem "$1: $file differs from that of $2"
  done
  ((failed)) || say "passed $1"
}

one() { whole whole "$program" train --solver=solver.prototxt; }

case_chain() {
  one
  local job
  job="$(SLOT=${CHAIN_SLOT:-9} submit chain)"
  await_state "$job" COMPLETED 600
  (($(count_of "$job") >= 2)) || problem "chain: $(count_of "$job") restarts; make slots shorter"
  compare chain whole
}

case_requeue() {
  one
  local job
  job="$(submit requeue)"
  await_line requeue "Iteration 50 "
  scontrol requeue "$job"
  await_line requeue "Resuming from"
  await_state "$job" COMPLETED
  compare requeue whole
}

case_cancel() {
  one
  local job
  job="$(submit cancel)"
  await_line cancel "Iteration 50 "
  scancel "$job"
  await_state "$job" CANCELLED 60
  await_line cancel "SIGTERM stopped the run"
  sleep 8
  [[ "$(state_of "$job")" == CANCELLED ]] || problem "cancel: the job came back"
  job="$(submit cancel)"
  await_line cancel "Resuming from"
  await_state "$job" COMPLETED
  compare cancel whole
}

case_preempt() {
  one
  local job
  job="$(submit preempt --preemptable --partition=main)"
  await_line preempt "Iteration 50 "
  sbatch --parsable -p urgent --nodes=2 --exclusive -t 1 -o /dev/null --wrap "sleep 4" >/dev/null
  await_line preempt "stopped the run at"
  await_line preempt "Resuming from"
  await_state "$job" COMPLETED
  compare preempt whole
}

# A drained node lets its job continue. A requeued job moves to the other node.
case_drain() {
  one
  local job node
  job="$(submit drain)"
  await_line drain "Iteration 50 "
  node="$(squeue -h -j "$job" -o %N)"
  scontrol update nodename="$node" state=drain reason=test
  scontrol requeue "$job"
  await_line drain "Resuming from"
  [[ "$(squeue -h -j "$job" -o %N)" != "$node" ]] || problem "drain: still on $node"
  await_state "$job" COMPLETED
  scontrol update nodename="$node" state=resume
  compare drain whole
}

case_array() {
  local job seed
  job="$(SLOT=${CHAIN_SLOT:-9} submit array --seeds=4)"
  for seed in 1 2 3 4; do await_state "${job}_$seed" COMPLETED 900; done
  whole whole_3 "$program" train --solver=solver.prototxt --set random_seed=3 \
    --set snapshot_prefix=snap_seed_3
  local last="_iter_${ITERATIONS:-1500}.caffemodel"
  for seed in 1 2 4; do
    ! cmp -s "$work/array/snap_seed_$seed$last" "$work/array/snap_seed_3$last" ||
      problem "array: the seeds 3 and $seed gave the same weights"
  done
  compare array whole_3 snap_seed_3
}

two() { whole whole_2 "$program" train --solver=solver.prototxt --ranks=2 --global_batch; }

# srun joins ranks by PMIx. It cannot join ranks of two virtual nodes on one machine, so this case
# uses one node.
case_ranks() {
  two
  local job
  job="$(SLOT=${CHAIN_SLOT:-12} submit ranks --ranks_per_node=2)"
  await_state "$job" COMPLETED 600
  (($(count_of "$job") >= 1)) || problem "ranks: never queued again"
  compare ranks whole_2
}

case_mpirun() {
  two
  local job
  job="$(SLOT=${CHAIN_SLOT:-12} submit mpirun --nodes=2 --mpirun)"
  await_line mpirun "rank 1 ("
  await_state "$job" COMPLETED 600
  (($(count_of "$job") >= 1)) || problem "mpirun: never queued again"
  compare mpirun whole_2
}

# Without a GPU the run exits with code 69, and the script does not requeue the job.
case_gpu() {
  local job
  job="$(submit gpu --gpu)"
  await_state "$job" DONE 120
  if "$program" device_query 2>/dev/null | grep '^GPU 0' >/dev/null; then
    [[ "$(state_of "$job")" == COMPLETED ]] || problem "gpu: $(state_of "$job")"
  else
    scontrol -o show job "$job" | grep 'ExitCode=69:0' >/dev/null || problem "gpu: exit code is not 69"
    [[ "$(count_of "$job")" == 0 ]] || problem "gpu: queued again"
  fi
  ((failed)) || say "passed gpu"
}

case_container() {
  one
  local job
  job="$(submit container --container=trainer.sif)"
  await_state "$job" COMPLETED
  compare container whole
}

"$here/local_slurm.sh" up "$work/slurm"
make_trainer
make_solver
for name in "${cases[@]}"; do
  declare -F "case_$name" >/dev/null || {
    echo "there is no case '$name'" >&2
    exit 64
  }
  "case_$name"
done
((failed == 0)) && say "all passed: ${cases[*]}"
exit "$failed"
