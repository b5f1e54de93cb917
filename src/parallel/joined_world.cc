#include "joined_world.h"

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "bucket_size.h"
#include "caller_progress.h"
#include "join/cpu_sets.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/spin.h"
#include "trainer/base/thread/threads.h"
#include "trainer/parallel/all_reduce_limits.h"
#include "trainer/parallel/failure.h"

namespace trainer {

JoinedWorld::JoinedWorld(JoinedRank joined, std::unique_ptr<MpiThread> thread,
                         std::unique_ptr<Mpi> mpi, const World::Options& settings)
    : joined_(std::move(joined)),
      thread_(std::move(thread)),
      mpi_(std::move(mpi)),
      waiter_(block(), topology().local_rank),
      gradients_(block(), topology().local_rank, [this] { communicator_->Barrier(); }),
      rpc_(MakeRpc()),
      link_(MakeLink()),
      sum_(block(), topology().local_rank, gradients_, link_.get()),
      progress_(MakeProgress()),
      communicator_(
          std::make_unique<HostCommunicator>(topology(), *progress_, status(), gradients_)),
      memory_(block(), topology(), waiter_, rpc_.get(), settings.peer_timeout,
              [this] { communicator_->Barrier(); }),
      watch_(block(), topology().local_rank, topology().names,
             {settings.warn_after, settings.peer_timeout}) {}

std::unique_ptr<JoinedWorld>& JoinedWorld::Current() {
  static std::unique_ptr<JoinedWorld> world;
  return world;
}

std::unique_ptr<MpiRpc> JoinedWorld::MakeRpc() const {
  if (topology().nodes() < 2) return nullptr;
  return std::make_unique<MpiRpc>(
      *mpi_, status(), [this] { block().Notify(topology().local_rank); },
      [this] { block().ThrowIfFailed(); });
}

// The link also runs RPC handlers while it waits, so ranks of other nodes get replies meanwhile.
std::unique_ptr<InterNodeAllReduce> JoinedWorld::MakeLink() {
  if (topology().nodes() < 2) return nullptr;
  return std::make_unique<InterNodeAllReduce>(
      *mpi_, block(), topology().local_rank, topology().Rails(), topology().node,
      [this] { return !thread_progress_->IsAwaited(); },
      [this] {
        block().ThrowIfFailed();
        if (rpc_->IsOpen()) rpc_->Poll();
      });
}

std::unique_ptr<ProgressEngine> JoinedWorld::MakeProgress() {
  if (link_ == nullptr) return std::make_unique<CallerProgress>(sum_, waiter_);
  auto progress = std::make_unique<ThreadProgress>(
      block(), topology().local_rank, sum_, [this]() -> std::chrono::nanoseconds {
        link_->Beat();
        return rpc_->IsOpen() ? rpc_->Poll() : Waiter::kLongestSleep;
      });
  thread_progress_ = progress.get();
  return progress;
}

void JoinedWorld::Begin(const World::Options& settings) {
  if (mpi_ != nullptr) {
    thread_->Run([&] {
      mpi_version_ = mpi_->Version();
      takes_gpu_memory_ = mpi_->TakesGpuMemory();
    });
  }
  StartProgress();
  ShareCores();
  speed_ = MeasureAllReduce(*communicator_);
  bucket_bytes_ = settings.bucket_bytes > 0 ? settings.bucket_bytes
                                            : BucketBytes(speed_.seconds, speed_.bytes_per_second);
  communicator_->SetBucket(BucketFloats());
}

// Prints an error of the thread that calls MPI, unless another rank of this node failed first.
void JoinedWorld::ReportError(const Error& error) const {
  if (!block().ReportFailure({static_cast<int>(error.code()), topology().rank.rank})) return;
  std::fprintf(stderr, "error: %s%s\n", RankPrefix().c_str(), error.what());
}

// Publishes the cores of this rank, then divides threads and memory among the ranks of the node.
void JoinedWorld::ShareCores() {
  const CoreSet own = OwnCores();
  for (size_t i = 0; i < own.size(); ++i) status().cores[i] = own[i];
  communicator_->Barrier();
  std::vector<CoreSet> of_ranks(topology().node_ranks().size());
  for (size_t local = 0; local < of_ranks.size(); ++local) {
    for (size_t i = 0; i < own.size(); ++i) {
      of_ranks[local][i] = block().status(static_cast<int>(local)).cores[i];
    }
  }
  ShareThreads(RanksOnCoresOf(of_ranks, topology().local_rank), block().local_size());
  ShareMemory(topology().host_local_size);
  warning_ = OversubscriptionWarning(of_ranks, topology().node_ranks());
  if (warning_.empty()) warning_ = QuotaWarning(ReadThreadFacts().quota, block().local_size());
  if (!warning_.empty()) waiter_.SetOversubscribed();
}

std::string JoinedWorld::Describe() const {
  const int nodes = topology().nodes();
  const bool shares = block().local_size() > 1;
  return Join(topology().rank.size, " ranks on ", nodes, nodes == 1 ? " machine" : " machines",
              "; sums through ",
              nodes == 1 ? "shared memory"
              : shares   ? "shared memory within a machine and " + mpi_version_ + " between them"
                         : mpi_version_,
              " (", trainer::Describe(speed_), "), gradients in buckets of ",
              DescribeBytes(bucket_bytes_));
}

// Needs no lock: the mutex that hands all-reduces to the MPI thread publishes the type, too.
std::string JoinedWorld::SetCompression(CompressionType type) {
  if (link_ == nullptr) {
    return type == CompressionType::kF32
               ? ""
               : Join("exchange_type ", NameOf(type),
                      " has no effect: these ranks share the memory of one "
                      "machine, so nothing is sent");
  }
  link_->SetCompression(type);
  const double bytes = static_cast<double>(CompressedBytes(type, 1024)) / 1024;
  return Join("Gradients are sent between machines as ", NameOf(type), ", ", bytes,
              " bytes per number in each direction",
              type == CompressionType::kF32 ? "" : ", with error feedback");
}

std::string JoinedWorld::DescribeSent() const {
  if (link_ == nullptr || link_->plain_bytes() == 0) return "";
  return Join(DescribeBytes(link_->sent_bytes()), " (", DescribeBytes(link_->plain_bytes()),
              " as f32)");
}

// The MPI thread does not reduce anything else meanwhile.
std::optional<double> JoinedWorld::AllReduceByMpi(std::span<float> values) {
  if (mpi_ == nullptr) return std::nullopt;
  int64_t time = 0;
  RunOnMpi([&] {
    const int64_t begin = MonotonicNs();
    mpi_->AllReduce(values);
    time = MonotonicNs() - begin;
  });
  return static_cast<double>(time) * 1e-9;
}

void JoinedWorld::SumByMpi(std::span<float> values, const std::function<void()>& use_gpu) {
  RunOnMpi([&] {
    use_gpu();
    mpi_->AllReduce(values);
  });
}

// Runs a task on the MPI thread, between all-reduces; none of host memory may be pending.
void JoinedWorld::RunOnMpi(const std::function<void()>& task) {
  StopProgress();
  thread_->Run(task);
  StartProgress();
}

// Lets the MPI thread run all-reduces; nothing on one node, where the caller runs them.
void JoinedWorld::StartProgress() {
  if (link_ == nullptr) return;
  serving_ = true;
  thread_->Start([this] { thread_progress_->Serve([this](const Error& e) { ReportError(e); }); });
}

// Ends the loop of all-reduces on the MPI thread and waits for that.
void JoinedWorld::StopProgress() {
  if (!serving_) return;
  thread_progress_->Stop();
  thread_->Run([] {});  // Waits until Serve has returned.
  serving_ = false;
}

// Waits for asynchronous ranks of one node without a barrier, because some may have died.
void JoinedWorld::Finish() {
  if (memory_.IsAsync() && rpc_ == nullptr) {
    status().state = RankState::kFinished;
    memory_.AwaitOthers();
  } else {
    communicator_->Barrier();
    status().state = RankState::kFinished;
  }
  finished_ = true;
  StopProgress();
  if (mpi_ == nullptr) return;
  thread_->Run([&] {
    if (rpc_ != nullptr) rpc_->Drain();
    if (link_ != nullptr) link_->DrainHeartbeats();
    mpi_->Finish();
  });
}

// Does not return if mpirun ends this process at once.
void JoinedWorld::Abort(int code) {
  StopProgress();
  if (mpi_ == nullptr) return;
  // The other ranks of this node see the failure in shared memory and end by themselves.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  thread_->Run([&] { mpi_->Abort(code); });
}

}  // namespace trainer
