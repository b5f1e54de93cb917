#pragma once
// The ranks of one run: processes that train one model together, on one machine or several.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/replica_group.h"

namespace trainer {

struct WorldSettings {
  size_t bucket_bytes = 0;                          // 0: by measured latency and speed
  std::chrono::milliseconds warn_after{60'000};     // of a silent rank
  std::chrono::milliseconds peer_timeout{600'000};  // after which the run ends
};

// Where a rank is: ranks of one machine share its memory.
struct RankSeat {
  int machine = 0;  // from 0, in the order of their first ranks
  int local = 0;    // its number on the machine
  int locals = 1;   // ranks of the machine
};

// One per process. Made and used by the thread that trains.
class World {
 public:
  virtual ~World() = default;
  // Null in a run alone.
  static World* Get();

  virtual ReplicaGroup& group() = 0;
  // "rank 1 (node7, process 4711)", by rank.
  virtual const std::vector<std::string>& names() const = 0;
  virtual RankSeat seat() const = 0;
  // How sums travel, for the log: "2 ranks on 1 machine; sums through shared memory (latency
  // 2 us, 9.1 GB/s), gradients in buckets of 256 KiB".
  virtual std::string Describe() const = 0;
  // A sentence when ranks share too few cores; else "".
  virtual const std::string& warning() const = 0;
  // MPI's own sum, to compare with: the seconds that it took, or nothing where there is no MPI.
  virtual std::optional<double> AllReduceByMpi(std::span<float> values) = 0;
  // On how many machines the ranks are, and how many are on this one.
  virtual int machines() const = 0;
  virtual int ranks_here() const = 0;
  // Returns when all ranks have called it: what they had to do is done. Without it LeaveWorld (see
  // failure.h) ends the others.
  virtual void Finish() = 0;
};

// Joins the ranks that mpirun, srun or LaunchRanks started with this one, and shares the cores
// among those of one machine, which must come before the first question for the number of threads.
// Null, and nothing is touched, where there are none. Throws kUnavailable where they need MPI and
// there is none.
World* JoinWorld(const WorldSettings& settings);

}  // namespace trainer
