#include "run_flags.h"

namespace trainer {

Flag MaxWallFlag() {
  return {.name = "max_wall",
          .value = "TIME",
          .help =
              "save a snapshot and exit with code 75 before the process has run for this long: "
              "4:00:00, 1-12:00:00, 90 (minutes), 90m; none: no limit. Default: the time limit of "
              "the Slurm or PBS job, if there is one"};
}

Flag RunFolderFlag() {
  return {
      .name = "run",
      .value = "DIR",
      .help =
          "keep a record of the run in this folder (created if needed): solver, net, environment, "
          "log, metrics.jsonl and .csv, TensorBoard events; without DIR: in <snapshot_prefix>_run",
      .bare = "auto"};
}

}  // namespace trainer
