#pragma once
// Runs the threads of one block, and records what they wait for.

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/emulated_gpu/block.h"
#include "support/emulated_gpu/fiber.h"

namespace emulated_gpu {

class BlockRun {
 public:
  // Prepares to run the blocks of one kernel.
  void Start(const Kernel& kernel);
  // Returns false if the block's threads waited forever.
  bool Run(dim3 block);

  // Called by the running thread.
  void Sync(Site site);
  void Warp(const WarpCall& call);

 private:
  enum class State { kNew, kReady, kAtBarrier, kInWarp, kDone };
  struct Thread {
    State state = State::kNew;
    Fiber* fiber = nullptr;
    dim3 at;
    Site barrier = {};
    const WarpCall* call = nullptr;
  };

  static void Body(void* self);
  void RunNewThreads();
  void ResumeOne();
  void Wait(State state);
  bool ReleaseBarrier();
  bool ReleaseWarps();
  bool AnyElsewhere(size_t warp) const;
  bool Complete(size_t warp);
  unsigned Members(size_t warp, unsigned mask) const;
  void CheckBarrier();
  std::string DescribeWaiting() const;
  std::string Describe(const Thread& thread) const;

  const Kernel* kernel_ = nullptr;
  dim3 block_;
  std::vector<Thread> threads_;
  std::vector<size_t> order_;  // the order in which threads start
  std::vector<size_t> ready_;  // threads that may continue
  size_t count_ = 0, next_ = 0, done_ = 0, at_barrier_ = 0, current_ = 0;
  bool sync_problem_ = false;
  std::thread::id host_thread_;
  std::deque<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber* running_ = nullptr;
};

// The call of each lane of a warp, and the set of lanes that take part.
struct WarpCalls {
  const WarpCall* call[32] = {};
  unsigned members = 0;
};
// Gives every member its result. Returns an error message, or "".
std::string CompleteWarp(const WarpCalls& calls);
// Returns the name in CUDA, for example "__shfl_xor_sync".
const char* NameOf(WarpOp op);

}  // namespace emulated_gpu
