#pragma once

namespace trainer {

// Which of the replicas that train one model together this process is. Given once, to the solver
// (see replica_group.h); who logs is the log's business (see log.h), and who writes snapshots the
// solver's.
struct Replica {
  int rank = 0;
  int count = 1;
};

}  // namespace trainer
