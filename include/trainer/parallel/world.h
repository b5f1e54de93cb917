#pragma once
// The ranks of one run: processes that train one model together, on one node or several.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trainer/base/ranks/communicator.h"
#include "trainer/base/ranks/shared_window.h"
#include "trainer/parallel/compression_type.h"
#include "trainer/parallel/topology.h"

namespace trainer {

// One object per process, created and used by the training thread.
class World {
 public:
  struct Options {
    size_t bucket_bytes = 0;                          // 0: chosen by measured latency and speed
    std::chrono::milliseconds warn_after{60'000};     // time until a silent rank is reported
    std::chrono::milliseconds peer_timeout{600'000};  // time until a silent rank ends the run
  };

  virtual ~World() = default;
  // Returns the communicator of all ranks, for collective calls.
  virtual Communicator& group() = 0;
  // Returns the window for strategies without collective calls; null if the ranks have none.
  virtual SharedWindow* window() = 0;
  virtual const Topology& topology() const = 0;
  // Returns a description for the log: "2 ranks on 1 machine; sums through shared memory (latency 2
  // us, 9.1 GB/s), gradients in buckets of 256 KiB".
  virtual std::string Describe() const = 0;
  // Returns a warning if ranks share too few cores; else "".
  virtual const std::string& warning() const = 0;

  // Sets the number type in which gradients are sent between nodes, and returns a sentence for the
  // log. Collective. Has no effect on one node, which reduces gradients in place.
  virtual std::string SetCompression(CompressionType type) = 0;
  // Returns the bytes of gradients that this rank has sent to other nodes since SetCompression, for
  // the log: "12.5 MiB (24.2 MiB as f32)"; "" on one node.
  virtual std::string DescribeSent() const = 0;
  // Sets the error feedback of compressed gradients to zero. Collective, while no all-reduce is in
  // progress.
  virtual void ResetErrorFeedback() = 0;

  // Returns the best size of a bucket, for a communicator that collects gradients elsewhere (in the
  // memory of a GPU) and passes buckets on to group().
  virtual size_t bucket_floats() const = 0;
  // Continues the all-reduces that were started, as far as possible without waiting. A communicator
  // of a GPU calls it while it waits.
  virtual void Poll() = 0;

  // Runs MPI's own all-reduce on `values`, in place, for comparison. Collective. Returns its
  // seconds, or nullopt without MPI.
  virtual std::optional<double> AllReduceByMpi(std::span<float> values) = 0;
  // Returns whether MPI can reduce numbers in a GPU's memory.
  virtual bool mpi_takes_gpu_memory() const = 0;
  // Replaces `values`, which may be in a GPU's memory, by their sums over all ranks, in MPI's own
  // order of additions. First calls `use_gpu` on the thread that calls MPI, to select the GPU
  // there. Collective.
  virtual void SumByMpi(std::span<float> values, const std::function<void()>& use_gpu) = 0;
  // Returns when all ranks have called it, and leaves MPI. If a rank does not call it, LeaveWorld
  // (failure.h) ends the others.
  virtual void Finish() = 0;
};

// Joins the ranks that mpirun, srun or LaunchRanks started with this one, and divides the cores
// among the ranks of a node. Called before anything reads the number of threads. Returns null and
// has no effect in a process without other ranks. Throws kUnavailable if the ranks need MPI and it
// is not installed.
World* JoinWorld(const World::Options& settings);

}  // namespace trainer
