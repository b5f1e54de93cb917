#!/usr/bin/env bash
# scripts/bench/exchange.sh TRAINER [RANKS] [MIB]: sums gradients over the ranks of this machine and
# alternates with MPI_Allreduce, with each of Open MPI's algorithms (0: its own choice). Each sum
# has newly written buffers. Prints medians.
set -euo pipefail
trainer="$1"
ranks="${2:-2}"
mib="${3:-256}"
export OMPI_MCA_coll_tuned_use_dynamic_rules=1

for algorithm in 0 1 2 3 4 5 6; do
  echo "coll_tuned_allreduce_algorithm $algorithm"
  OMPI_MCA_coll_tuned_allreduce_algorithm=$algorithm \
    mpirun --allow-run-as-root --bind-to core -np "$ranks" \
    "$trainer" bench-comm "--mib=$mib" --minloglevel=1
done
