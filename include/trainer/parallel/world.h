#pragma once
// The ranks of one run: processes that train one model together, on one machine or several.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/ranks/communicator.h"
#include "trainer/base/ranks/shared_window.h"
#include "trainer/parallel/wire_type.h"

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
  int machines = 1;
};

// One per process. Made and used by the thread that trains.
class World {
 public:
  virtual ~World() = default;
  virtual Communicator& group() = 0;
  virtual SharedWindow* peers() = 0;
  // "rank 1 (node7, process 4711)", by rank.
  virtual const std::vector<std::string>& names() const = 0;
  virtual RankSeat seat() const = 0;
  // How sums travel, for the log: "2 ranks on 1 machine; sums through shared memory (latency
  // 2 us, 9.1 GB/s), gradients in buckets of 256 KiB".
  virtual std::string Describe() const = 0;
  // A sentence when ranks share too few cores; else "".
  virtual const std::string& warning() const = 0;
  // How many ranks this rank's machine has, and its number among them, also where they cannot share
  // memory: what their GPUs go by.
  struct Locals {
    int local = 0, count = 1;
    std::string machine;  // equal for the ranks of one, and for no others
  };
  virtual const Locals& locals() const = 0;

  // The form of gradients between machines from here on: all ranks call it at the same point of
  // their calls of the group. Without effect on one machine, where sums are made in the memory that
  // gradients lie in. Returns a sentence for the log.
  virtual std::string SetWire(WireType type) = 0;
  // Bytes of gradients that this rank has sent to other machines since SetWire, for the log: "12.5
  // MiB (24.2 MiB as f32)"; "" on one machine.
  virtual std::string DescribeSent() const = 0;
  // What rounding has taken from gradients is forgotten. For all ranks at once, while no sum is
  // under way.
  virtual void ForgetResiduals() = 0;

  // For a group that gathers gradients elsewhere and hands them on: neighbours are best joined to
  // so many numbers, and Poll goes on with the sums that have begun.
  virtual size_t bucket_floats() const = 0;
  virtual void Poll() = 0;

  // MPI's own sum, to compare with: the seconds that it took, or nothing where there is no MPI.
  virtual std::optional<double> AllReduceByMpi(std::span<float> values) = 0;
  // Whether MPI sums numbers that are in a GPU's memory, and that sum, over all ranks in MPI's own
  // order. `use_gpu` is called first, on the thread that calls MPI.
  virtual bool mpi_takes_gpu_memory() const = 0;
  virtual void SumByMpi(std::span<float> values, const std::function<void()>& use_gpu) = 0;
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
