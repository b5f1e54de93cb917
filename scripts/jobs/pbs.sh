#!/bin/bash
# One run on 2 nodes, as 2 ranks that train one model.
# Made by: trainer job --solver=solver.prototxt --system=pbs --nodes=2
# Submit it with qsub, in the folder from which the paths in the solver count. The run saves and
# stops when its time is nearly over; this script then submits itself again, by the name that it
# has in that folder: job.pbs, or JOB_FILE (qsub -v JOB_FILE=NAME NAME).
#PBS -N solver
#PBS -l select=2:ncpus=1:mpiprocs=1:mem=1gb
#PBS -l walltime=4:00:00
#PBS -r y
#PBS -j oe
# Torque asks in another way: -l nodes=2:ppn=1,mem=1gb
set -u
cd "$PBS_O_WORKDIR" || exit 73

trainer=${TRAINER:-trainer}
job_file=${JOB_FILE:-job.pbs}

# qdel and qrerun signal this script, too; it has to live on for the exit code.
told=
trap 'told=1' TERM

mpirun -np 2 --hostfile "$PBS_NODEFILE" --bind-to none \
  "$trainer" train --solver=solver.prototxt --resume=auto \
  --global_batch
code=$?

# 75: stopped in time, all is saved. 82: a rank was lost; the last snapshot is good.
if [[ $code == 75 || $code == 82 ]] && [[ -z $told ]]; then
  qsub -v JOB_FILE="$job_file" "$job_file"
fi
exit "$code"
