#include "trainer/parallel/world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "bucket_size.h"
#include "caller_progress.h"
#include "host_communicator.h"
#include "join/cpu_sets.h"
#include "join/join_ranks.h"
#include "mpi/inter_node_all_reduce.h"
#include "mpi/mpi_rpc.h"
#include "mpi/mpi_server.h"
#include "mpi/mpi_thread.h"
#include "node/futex.h"
#include "node/memfd_window.h"
#include "node/watchdog.h"
#include "thread_progress.h"
#include "trainer/base/error/error.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/spin.h"
#include "trainer/base/thread/threads.h"
#include "trainer/parallel/environment.h"
#include "trainer/parallel/failure.h"

namespace trainer {
namespace {

// The ranks of a node communicate in shared memory, nodes through MPI.
class JoinedWorld final : public World {
 public:
  JoinedWorld(JoinedRank joined, std::unique_ptr<MpiThread> thread, std::unique_ptr<Mpi> mpi,
              const WorldOptions& settings);
  ~JoinedWorld() override { StopProgress(); }

  Communicator& group() override { return *communicator_; }
  SharedWindow* window() override { return &memory_; }
  const std::vector<std::string>& names() const override { return joined_.names; }
  Topology topology() const override {
    return {joined_.map.node, joined_.map.local, joined_.block->local_size(), joined_.map.nodes()};
  }
  std::string Describe() const override;
  const std::string& warning() const override { return warning_; }
  const Locals& locals() const override { return joined_.locals; }
  std::string SetCompression(CompressionType type) override;
  std::string DescribeSent() const override;
  void ResetErrorFeedback() override {
    if (link_ != nullptr) link_->ResetErrorFeedback();
  }
  size_t bucket_floats() const override { return BucketFloats(); }
  void Poll() override { progress().Poll(); }
  std::optional<double> AllReduceByMpi(std::span<float> values) override;
  bool mpi_takes_gpu_memory() const override { return takes_gpu_memory_; }
  void SumByMpi(std::span<float> values, const std::function<void()>& use_gpu) override;
  void Finish() override;

  // Does the part of the construction that exchanges data with other ranks.
  void Begin(const WorldOptions& settings);
  const ControlBlock& block() const { return *joined_.block; }
  const JoinedRank& joined() const { return joined_; }
  bool finished() const { return finished_; }
  // Ends the ranks of all nodes, after a failure.
  void Abort(int code);

 private:
  RankStatus& status() const { return joined_.block->status(joined_.map.local); }
  // Returns the MPI thread's engine if there are several nodes, else the training thread's own.
  ProgressEngine& progress() {
    return link_ == nullptr ? static_cast<ProgressEngine&>(caller_progress_) : thread_progress_;
  }
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
  ThreadProgress thread_progress_;
  CallerProgress caller_progress_;
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

// Returns the world of this process; null until JoinWorld has found one.
std::unique_ptr<JoinedWorld>& OwnWorld() {
  static std::unique_ptr<JoinedWorld> world;
  return world;
}

// Throws PeerFailed if a rank has reported a failure.
void ThrowIfFailed(const ControlBlock& block) {
  if (block.failure().code != 0) throw PeerFailed(block.failure().code);
}

// Returns null on one node.
std::unique_ptr<MpiRpc> MakeRpc(Mpi* mpi, const JoinedRank& joined) {
  if (joined.map.nodes() < 2) return nullptr;
  const ControlBlock& block = *joined.block;
  const int local = joined.map.local;
  return std::make_unique<MpiRpc>(
      *mpi, block.status(local), [&block, local] { block.Notify(local); },
      [&block] { ThrowIfFailed(block); });
}

// Returns null on one node. The link also runs RPC handlers while it waits, so ranks of other nodes
// get replies meanwhile.
std::unique_ptr<InterNodeAllReduce> MakeLink(Mpi* mpi, const JoinedRank& joined,
                                             const ThreadProgress& progress, MpiRpc* rpc) {
  if (joined.map.nodes() < 2) return nullptr;
  const ControlBlock& block = *joined.block;
  return std::make_unique<InterNodeAllReduce>(
      *mpi, block, joined.map.local, joined.map.Rails(), joined.map.node,
      [&progress] { return !progress.IsAwaited(); },
      [&block, rpc] {
        ThrowIfFailed(block);
        if (rpc->IsOpen()) rpc->Poll();
      });
}

JoinedWorld::JoinedWorld(JoinedRank joined, std::unique_ptr<MpiThread> thread,
                         std::unique_ptr<Mpi> mpi, const WorldOptions& settings)
    : joined_(std::move(joined)),
      thread_(std::move(thread)),
      mpi_(std::move(mpi)),
      waiter_(*joined_.block, joined_.map.local),
      gradients_(*joined_.block, joined_.map.local, [this] { communicator_->Barrier(); }),
      rpc_(MakeRpc(mpi_.get(), joined_)),
      link_(MakeLink(mpi_.get(), joined_, thread_progress_, rpc_.get())),
      sum_(*joined_.block, joined_.map.local, gradients_, link_.get()),
      thread_progress_(*joined_.block, joined_.map.local, sum_,
                       [this]() -> std::chrono::nanoseconds {
                         link_->Beat();
                         return rpc_->IsOpen() ? rpc_->Poll() : Waiter::kLongestSleep;
                       }),
      caller_progress_(sum_, waiter_),
      memory_(*joined_.block, joined_.map, waiter_, rpc_.get(), joined_.names,
              settings.peer_timeout, [this] { communicator_->Barrier(); }),
      watch_(*joined_.block, joined_.map.local, joined_.names,
             {settings.warn_after, settings.peer_timeout}) {
  communicator_ = std::make_unique<HostCommunicator>(joined_.rank, progress(), status(), gradients_,
                                                     joined_.names);
  communicator_->SetWhyNotTreeOrder(joined_.map.WhyNotTreeOrder());
}

void JoinedWorld::Begin(const WorldOptions& settings) {
  if (mpi_ != nullptr) {
    thread_->Run([&] {
      mpi_version_ = mpi_->Version();
      takes_gpu_memory_ = mpi_->TakesGpuMemory();
    });
  }
  StartProgress();
  ShareCores();
  speed_ = MeasureAllReduce(*communicator_);
  bucket_bytes_ = settings.bucket_bytes > 0 ? settings.bucket_bytes : BucketBytes(speed_);
  communicator_->SetBucket(BucketFloats());
}

// Prints an error of the thread that calls MPI, unless another rank of this node failed first.
void JoinedWorld::ReportError(const Error& error) const {
  if (!block().ReportFailure({static_cast<int>(error.code()), joined_.rank.rank})) return;
  std::fprintf(stderr, "error: %s%s\n", RankPrefix().c_str(), error.what());
}

// Publishes the cores of this rank, then divides threads and memory among the ranks of the node.
void JoinedWorld::ShareCores() {
  const CoreSet own = OwnCores();
  for (size_t i = 0; i < own.size(); ++i) status().cores[i] = own[i];
  communicator_->Barrier();
  std::vector<CoreSet> of_ranks(joined_.map.own().size());
  for (size_t local = 0; local < of_ranks.size(); ++local) {
    for (size_t i = 0; i < own.size(); ++i) {
      of_ranks[local][i] = block().status(static_cast<int>(local)).cores[i];
    }
  }
  ShareThreads(RanksOnCoresOf(of_ranks, joined_.map.local), block().local_size());
  ShareMemory(joined_.locals.count);
  warning_ = OversubscriptionWarning(of_ranks, joined_.map.own());
  if (warning_.empty()) warning_ = QuotaWarning(ReadThreadFacts().quota, block().local_size());
  if (!warning_.empty()) waiter_.SetOversubscribed();
}

std::string JoinedWorld::Describe() const {
  const int nodes = joined_.map.nodes();
  const bool shares = block().local_size() > 1;
  return Join(joined_.rank.size, " ranks on ", nodes, nodes == 1 ? " machine" : " machines",
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
  thread_->Start([this] { thread_progress_.Serve([this](const Error& e) { ReportError(e); }); });
}

// Ends the loop of all-reduces on the MPI thread and waits for that.
void JoinedWorld::StopProgress() {
  if (!serving_) return;
  thread_progress_.Stop();
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

// Throws if the variables of mpirun or srun are set although it has ended.
[[noreturn]] void FailWithoutServer(const LaunchEnvironment& environment) {
  throw Error(ErrorCode::kUnavailable,
              Join("the variables of mpirun or srun are set (", environment.count_variable, "=",
                   environment.count,
                   "), but mpirun or srun has already ended: this shell inherited them. Start the "
                   "ranks again with mpirun or srun; to train with one rank, unset ",
                   environment.count_variable, " and PMIX_RANK"));
}

// Throws for a launcher of another MPI. Otherwise each process would train its own model, and all
// would write the same files.
[[noreturn]] void FailAlone(const LaunchEnvironment& environment) {
  const std::string& variable = environment.count_variable;
  throw Error(ErrorCode::kUnavailable,
              Join(variable, " says that ", environment.count,
                   " ranks were started, but this program's MPI finds only this rank: another MPI "
                   "started them. Start them with its own mpirun -np ",
                   environment.count, ", with srun --mpi=pmix, or on one machine with --ranks=",
                   environment.count, "; to train with one rank, unset ", variable));
}

}  // namespace

World* JoinWorld(const WorldOptions& settings) {
  const LaunchEnvironment environment = ReadLaunchEnvironment();
  if (environment.launcher == RankLauncher::kNone) return nullptr;
  std::unique_ptr<MpiThread> thread;
  std::unique_ptr<Mpi> mpi;
  JoinedRank joined;
  if (environment.launcher == RankLauncher::kFork) {
    joined = JoinForked(environment);
  } else {
    if (!Mpi::WhyNot().empty()) throw Error(ErrorCode::kUnavailable, Mpi::WhyNot());
    if (IsMpiServerGone([](const char* name) { return std::getenv(name); })) {
      FailWithoutServer(environment);
    }
    thread = std::make_unique<MpiThread>();
    thread->Run([&] {
      mpi = Mpi::Start();
      if (mpi->count() > 1) {
        joined = JoinMpi(*mpi);
      } else {
        mpi->Finish();
      }
    });
    if (mpi->count() == 1) {
      if (environment.count > 1) FailAlone(environment);
      return nullptr;
    }
  }
  joined.block->status(joined.map.local).state = RankState::kJoined;
  OwnWorld() =
      std::make_unique<JoinedWorld>(std::move(joined), std::move(thread), std::move(mpi), settings);
  OwnWorld()->Begin(settings);
  return OwnWorld().get();
}

namespace {

// Waits up to 10 s for the lost peer's own report, because the peer knows why it ends.
void AwaitPeerReport(const ControlBlock& block) {
  constexpr std::chrono::seconds kTurn{10};
  const auto end = std::chrono::steady_clock::now() + kTurn;
  while (block.failure().code == 0 && std::chrono::steady_clock::now() < end) {
    FutexWait(block.failure_word(), 0, std::chrono::milliseconds(100));
  }
}

}  // namespace

bool MayReportFailure(int* code) {
  // Every node, or every rank before it joins, may fail with the same error. Ranks other than the
  // first one wait, so that its message alone is printed and ends the run. mpirun needs seconds to
  // notice an ended process, more so on busy cores.
  constexpr std::chrono::seconds kTurn{4};
  JoinedWorld* const world = OwnWorld().get();
  if (world == nullptr) {
    const LaunchEnvironment environment = ReadLaunchEnvironment();
    const bool waits = environment.launcher == RankLauncher::kMpi && environment.rank > 0;
    if (waits) std::this_thread::sleep_for(kTurn);
    return true;
  }
  if (world->finished()) return true;
  if (*code == static_cast<int>(ErrorCode::kPeerLost)) AwaitPeerReport(world->block());
  if (world->joined().map.node > 0) std::this_thread::sleep_for(kTurn);
  if (world->block().ReportFailure({*code, world->joined().rank.rank})) return true;
  *code = world->block().failure().code;
  return false;
}

std::string RankPrefix() {
  const JoinedWorld* const world = OwnWorld().get();
  if (world == nullptr) return "";
  return world->names()[static_cast<size_t>(world->joined().rank.rank)] + ": ";
}

int LeaveWorld(int code) {
  if (OwnWorld() == nullptr) return code;
  if (!OwnWorld()->finished()) {
    MayReportFailure(&code);
    OwnWorld()->Abort(code);
  }
  OwnWorld().reset();
  return code;
}

}  // namespace trainer
