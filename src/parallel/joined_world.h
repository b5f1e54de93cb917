#pragma once
// The world of a process that other ranks have joined.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "bucket_size.h"
#include "host_communicator.h"
#include "join/join_ranks.h"
#include "mpi/inter_node_all_reduce.h"
#include "mpi/mpi_rpc.h"
#include "mpi/mpi_thread.h"
#include "node/memfd_window.h"
#include "node/node_all_reduce.h"
#include "node/waiter.h"
#include "node/watchdog.h"
#include "thread_progress.h"
#include "trainer/base/error/error.h"
#include "trainer/parallel/world.h"

namespace trainer {

// The ranks of a node communicate in shared memory, nodes through MPI.
class JoinedWorld final : public World {
 public:
  JoinedWorld(JoinedRank joined, std::unique_ptr<MpiThread> thread, std::unique_ptr<Mpi> mpi,
              const World::Options& settings);
  ~JoinedWorld() override { StopProgress(); }

  Communicator& group() override { return *communicator_; }
  SharedWindow* window() override { return &memory_; }
  const Topology& topology() const override { return joined_.topology; }
  std::string Describe() const override;
  const std::string& warning() const override { return warning_; }
  std::string SetCompression(CompressionType type) override;
  std::string DescribeSent() const override;
  void ResetErrorFeedback() override {
    if (link_ != nullptr) link_->ResetErrorFeedback();
  }
  size_t bucket_floats() const override { return BucketFloats(); }
  void Poll() override { progress_->Poll(); }
  std::optional<double> AllReduceByMpi(std::span<float> values) override;
  bool mpi_takes_gpu_memory() const override { return takes_gpu_memory_; }
  void SumByMpi(std::span<float> values, const std::function<void()>& use_gpu) override;
  void Finish() override;

  // Returns the world that this process has joined, or null.
  static std::unique_ptr<JoinedWorld>& Current();
  // Does the part of the construction that exchanges data with other ranks.
  void Begin(const World::Options& settings);
  const ControlBlock& block() const { return *joined_.block; }
  bool finished() const { return finished_; }
  // Ends the ranks of all nodes, after a failure.
  void Abort(int code);

 private:
  RankStatus& status() const { return block().status(topology().local_rank); }
  // These return null on one node.
  std::unique_ptr<MpiRpc> MakeRpc() const;
  std::unique_ptr<InterNodeAllReduce> MakeLink();
  // Returns the MPI thread's engine if there are several nodes, else the training thread's own.
  std::unique_ptr<ProgressEngine> MakeProgress();
  size_t BucketFloats() const { return std::max<size_t>(1, bucket_bytes_ / sizeof(float)); }
  void ShareCores();
  void RunOnMpi(const std::function<void()>& task);
  void StartProgress();
  void StopProgress();
  void ReportError(const Error& error) const;

  JoinedRank joined_;
  std::unique_ptr<MpiThread> thread_;  // null without MPI
  std::unique_ptr<Mpi> mpi_;
  Waiter waiter_;
  GradientMemory gradients_;
  std::unique_ptr<MpiRpc> rpc_;               // null on one node
  std::unique_ptr<InterNodeAllReduce> link_;  // null on one node
  NodeAllReduce sum_;
  ThreadProgress* thread_progress_ = nullptr;  // progress_ if there are several nodes, else null
  std::unique_ptr<ProgressEngine> progress_;
  std::unique_ptr<HostCommunicator> communicator_;
  MemfdWindow memory_;
  Watchdog watch_;
  AllReduceSpeed speed_;
  size_t bucket_bytes_ = 0;
  std::string mpi_version_, warning_;
  bool takes_gpu_memory_ = false;
  bool finished_ = false;
  bool serving_ = false;
};

}  // namespace trainer
