#!/bin/bash
# 4 runs with seeds of their own, each on one node.
# Made by: trainer job --solver=solver.prototxt --seeds=4
# Submit it with sbatch, in the folder from which the paths in the solver count. The run saves and
# stops when its time is nearly over, and the job is queued again until the run is finished.
#SBATCH --job-name=solver
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
#SBATCH --time=4:00:00
#SBATCH --signal=USR1@60
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x_%A_%a.log
#SBATCH --array=1-4
set -u

trainer=${TRAINER:-trainer}
seed=$SLURM_ARRAY_TASK_ID
prefix=snap_seed_$seed

# Who cancels or preempts the job signals this script, too; it has to live on for the exit code.
trap : TERM

srun "$trainer" train --solver=solver.prototxt --resume=auto \
  --set random_seed="$seed" --set snapshot_prefix="$prefix"
code=$?

# 75: stopped in time, all is saved. 82: a rank was lost; the last snapshot is good. Any other code
# ends the job: 0 is success, the rest would only come again. A job that is being cancelled, or was
# queued again by Slurm itself, is not RUNNING any more.
if [[ $code == 75 || $code == 82 ]] && ((${SLURM_RESTART_COUNT:-0} < 1000)) &&
  [[ $(squeue -h -j "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" -o %T) == RUNNING ]]; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
