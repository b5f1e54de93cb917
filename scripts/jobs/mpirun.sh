#!/bin/bash
# One run on 2 nodes, as 2 ranks that train one model.
# Made by: trainer job --solver=solver.prototxt --system=mpirun --nodes=2
# Without a queue: run it on one of the machines. The first argument is a file of hosts, with a
# line "host slots=1" for each. The first reaches all others by ssh without a password, and all
# share this folder.
set -u

trainer=${TRAINER:-trainer}
hosts=${1:-hosts}

# A lost rank (82) ends all; the run goes on from the last snapshot, some times.
for try in 1 2 3 4 5; do
  mpirun --hostfile "$hosts" -np 2 --bind-to none "$trainer" train --solver=solver.prototxt --resume=auto \
    --global_batch
  code=$?
  [[ $code == 82 ]] || break
  echo "try $try ended with 82: a rank was lost" >&2
  sleep 30
done
exit "$code"
