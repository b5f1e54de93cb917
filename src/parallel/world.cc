#include "trainer/parallel/world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "bucket_size.h"
#include "exchange.h"
#include "futex.h"
#include "mpi_link.h"
#include "mpi_post.h"
#include "mpi_server.h"
#include "mpi_thread.h"
#include "node_memory.h"
#include "own_pump.h"
#include "place.h"
#include "rank_cores.h"
#include "thread_pump.h"
#include "trainer/base/error/error.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/spin.h"
#include "trainer/base/thread/threads.h"
#include "trainer/parallel/environment.h"
#include "trainer/parallel/failure.h"
#include "watch.h"

namespace trainer {
namespace {

class WorldOfRanks final : public World {
 public:
  WorldOfRanks(Place place, std::unique_ptr<MpiThread> thread, std::unique_ptr<MpiLibrary> mpi,
               const WorldSettings& settings);
  ~WorldOfRanks() override { StopPump(); }

  Communicator& group() override { return *exchange_; }
  SharedWindow* peers() override { return &memory_; }
  const std::vector<std::string>& names() const override { return place_.names; }
  RankSeat seat() const override {
    return {place_.map.node, place_.map.local, place_.block->locals(), place_.map.nodes()};
  }
  std::string Describe() const override;
  const std::string& warning() const override { return warning_; }
  const Locals& locals() const override { return place_.locals; }
  std::string SetWire(WireType type) override;
  std::string DescribeSent() const override;
  void ForgetResiduals() override {
    if (link_ != nullptr) link_->ClearResiduals();
  }
  size_t bucket_floats() const override { return BucketFloats(); }
  void Poll() override { pump().Poll(); }
  std::optional<double> AllReduceByMpi(std::span<float> values) override;
  bool mpi_takes_gpu_memory() const override { return takes_gpu_memory_; }
  void SumByMpi(std::span<float> values, const std::function<void()>& use_gpu) override;
  void Finish() override;

  // Does the part of the construction that exchanges data with other ranks.
  void Begin(const WorldSettings& settings);
  const NodeBlock& block() const { return *place_.block; }
  const Place& place() const { return place_; }
  bool finished() const { return finished_; }
  void Abort(int code);

 private:
  RankSlot& slot() const { return place_.block->slot(place_.map.local); }
  Pump& pump() { return link_ == nullptr ? static_cast<Pump&>(own_pump_) : thread_pump_; }
  size_t BucketFloats() const { return std::max<size_t>(1, bucket_bytes_ / sizeof(float)); }
  // Returns when all ranks have called it.
  void Barrier() {
    float one = 1;
    exchange_->Sum({&one, 1});
  }
  void ShareCores();
  void RunOnMpi(const std::function<void()>& task);
  void StartPump();
  void StopPump();
  void Tell(const Error& error) const;

  Place place_;
  std::unique_ptr<MpiThread> thread_;  // null without MPI
  std::unique_ptr<MpiLibrary> mpi_;
  Waiter waiter_;
  SharedGradients gradients_;
  std::unique_ptr<MpiPost> post_;  // null on one machine
  std::unique_ptr<MpiLink> link_;  // likewise
  NodeSum sum_;
  ThreadPump thread_pump_;
  OwnPump own_pump_;
  std::unique_ptr<Exchange> exchange_;
  NodeMemory memory_;
  Watch watch_;
  ExchangeSpeed speed_;
  size_t bucket_bytes_ = 0;
  std::string mpi_version_, warning_;
  bool takes_gpu_memory_ = false;
  bool finished_ = false;
  bool serving_ = false;
};

std::unique_ptr<WorldOfRanks>& Own() {
  static std::unique_ptr<WorldOfRanks> world;
  return world;
}

void ThrowIfFailed(const NodeBlock& block) {
  if (block.failure().code != 0) throw EndedByPeer(block.failure().code);
}

std::unique_ptr<MpiPost> MakePost(MpiLibrary* mpi, const Place& place) {
  if (place.map.nodes() < 2) return nullptr;
  const NodeBlock& block = *place.block;
  const int local = place.map.local;
  return std::make_unique<MpiPost>(
      *mpi, block.slot(local), [&block, local] { block.Ring(local); },
      [&block] { ThrowIfFailed(block); });
}

// The link answers ranks of other machines while it waits for sums.
std::unique_ptr<MpiLink> MakeLink(MpiLibrary* mpi, const Place& place, const ThreadPump& pump,
                                  MpiPost* post) {
  if (place.map.nodes() < 2) return nullptr;
  const NodeBlock& block = *place.block;
  return std::make_unique<MpiLink>(
      *mpi, block, place.map.local, place.map.Lanes(), place.map.node,
      [&pump] { return !pump.IsAwaited(); },
      [&block, post] {
        ThrowIfFailed(block);
        if (post->IsOpen()) post->Poll();
      });
}

WorldOfRanks::WorldOfRanks(Place place, std::unique_ptr<MpiThread> thread,
                           std::unique_ptr<MpiLibrary> mpi, const WorldSettings& settings)
    : place_(std::move(place)),
      thread_(std::move(thread)),
      mpi_(std::move(mpi)),
      waiter_(*place_.block, place_.map.local),
      gradients_(*place_.block, place_.map.local, [this] { Barrier(); }),
      post_(MakePost(mpi_.get(), place_)),
      link_(MakeLink(mpi_.get(), place_, thread_pump_, post_.get())),
      sum_(*place_.block, place_.map.local, gradients_, link_.get()),
      thread_pump_(*place_.block, place_.map.local, sum_,
                   [this]() -> std::chrono::nanoseconds {
                     link_->Beat();
                     return post_->IsOpen() ? post_->Poll() : Waiter::kLongestSleep;
                   }),
      own_pump_(sum_, waiter_),
      memory_(*place_.block, place_.map, waiter_, post_.get(), place_.names, settings.peer_timeout,
              [this] { Barrier(); }),
      watch_(*place_.block, place_.map.local, place_.names,
             {settings.warn_after, settings.peer_timeout}) {
  exchange_ = std::make_unique<Exchange>(place_.replica, pump(), slot(), gradients_, place_.names);
  exchange_->SetWhyNoTree(place_.map.WhyNoTree());
}

void WorldOfRanks::Begin(const WorldSettings& settings) {
  if (mpi_ != nullptr) {
    thread_->Run([&] {
      mpi_version_ = mpi_->Version();
      takes_gpu_memory_ = mpi_->TakesGpuMemory();
    });
  }
  StartPump();
  ShareCores();
  speed_ = MeasureExchange(*exchange_);
  bucket_bytes_ = settings.bucket_bytes > 0 ? settings.bucket_bytes : BucketBytes(speed_);
  exchange_->SetBucket(BucketFloats());
}

// Prints an error of the thread that calls MPI, unless another rank of this machine failed first.
void WorldOfRanks::Tell(const Error& error) const {
  if (!block().Claim({static_cast<int>(error.code()), place_.replica.rank})) return;
  std::fprintf(stderr, "error: %s%s\n", RankPrefix().c_str(), error.what());
}

// Publishes the cores of this rank, then shares threads and memory among the ranks of the machine.
void WorldOfRanks::ShareCores() {
  const CoreSet own = OwnCores();
  for (size_t i = 0; i < own.size(); ++i) slot().cores[i] = own[i];
  Barrier();
  std::vector<CoreSet> of_ranks(place_.map.own().size());
  for (size_t local = 0; local < of_ranks.size(); ++local) {
    for (size_t i = 0; i < own.size(); ++i) {
      of_ranks[local][i] = block().slot(static_cast<int>(local)).cores[i];
    }
  }
  ShareThreads(RanksOnCoresOf(of_ranks, place_.map.local), block().locals());
  ShareMemory(place_.locals.count);
  warning_ = CrowdWarning(of_ranks, place_.map.own());
  if (warning_.empty()) warning_ = QuotaWarning(ReadThreadFacts().quota, block().locals());
  if (!warning_.empty()) waiter_.SetCrowded();
}

std::string WorldOfRanks::Describe() const {
  const int nodes = place_.map.nodes();
  const bool shares = block().locals() > 1;
  return Join(place_.replica.size, " ranks on ", nodes, nodes == 1 ? " machine" : " machines",
              "; sums through ",
              nodes == 1 ? "shared memory"
              : shares   ? "shared memory within a machine and " + mpi_version_ + " between them"
                         : mpi_version_,
              " (", trainer::Describe(speed_), "), gradients in buckets of ",
              DescribeBytes(bucket_bytes_));
}

// The lock that hands sums to the MPI thread also publishes the type to it.
std::string WorldOfRanks::SetWire(WireType type) {
  if (link_ == nullptr) {
    return type == WireType::kF32 ? ""
                                  : Join("exchange_type ", NameOf(type),
                                         " has no effect: these ranks share the memory of one "
                                         "machine, so nothing is sent");
  }
  link_->SetWire(type);
  const double bytes = static_cast<double>(WireBytes(type, 1024)) / 1024;
  return Join("Gradients are sent between machines as ", NameOf(type), ", ", bytes,
              " bytes per number in each direction",
              type == WireType::kF32 ? "" : ", with error feedback");
}

std::string WorldOfRanks::DescribeSent() const {
  if (link_ == nullptr || link_->plain_bytes() == 0) return "";
  return Join(DescribeBytes(link_->sent_bytes()), " (", DescribeBytes(link_->plain_bytes()),
              " as f32)");
}

// The MPI thread stops serving sums meanwhile.
std::optional<double> WorldOfRanks::AllReduceByMpi(std::span<float> values) {
  if (mpi_ == nullptr) return std::nullopt;
  int64_t time = 0;
  RunOnMpi([&] {
    const int64_t begin = MonotonicNs();
    mpi_->AllReduce(values);
    time = MonotonicNs() - begin;
  });
  return static_cast<double>(time) * 1e-9;
}

void WorldOfRanks::SumByMpi(std::span<float> values, const std::function<void()>& use_gpu) {
  RunOnMpi([&] {
    use_gpu();
    mpi_->AllReduce(values);
  });
}

// Call while no sum of host memory is pending.
void WorldOfRanks::RunOnMpi(const std::function<void()>& task) {
  StopPump();
  thread_->Run(task);
  StartPump();
}

void WorldOfRanks::StartPump() {
  if (link_ == nullptr) return;
  serving_ = true;
  thread_->Start([this] { thread_pump_.Serve([this](const Error& e) { Tell(e); }); });
}

void WorldOfRanks::StopPump() {
  if (!serving_) return;
  thread_pump_.Stop();
  thread_->Run([] {});  // Waits until Serve has returned.
  serving_ = false;
}

void WorldOfRanks::Finish() {
  if (memory_.IsApart() && post_ == nullptr) {
    slot().state = RankState::kFinished;
    memory_.AwaitOthers();
  } else {
    Barrier();
    slot().state = RankState::kFinished;
  }
  finished_ = true;
  StopPump();
  if (mpi_ == nullptr) return;
  thread_->Run([&] {
    if (post_ != nullptr) post_->Drain();
    if (link_ != nullptr) link_->TakeBeats();
    mpi_->Finish();
  });
}

// Does not return if mpirun ends this process at once.
void WorldOfRanks::Abort(int code) {
  StopPump();
  if (mpi_ == nullptr) return;
  // The others of this machine see the failure in shared memory and end by themselves.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  thread_->Run([&] { mpi_->Abort(code); });
}

[[noreturn]] void FailWithoutServer(const RankEnvironment& environment) {
  throw Error(ErrorCode::kUnavailable,
              Join("the variables of mpirun or srun are set (", environment.count_variable, "=",
                   environment.count,
                   "), but mpirun or srun has already ended: this shell inherited them. Start the "
                   "ranks again with mpirun or srun; to train with one rank, unset ",
                   environment.count_variable, " and PMIX_RANK"));
}

// Without this refusal each process would train its own model and all would write the same files.
[[noreturn]] void FailAlone(const RankEnvironment& environment) {
  const std::string& variable = environment.count_variable;
  throw Error(ErrorCode::kUnavailable,
              Join(variable, " says that ", environment.count,
                   " ranks were started, but this program's MPI finds only this rank: another MPI "
                   "started them. Start them with its own mpirun -np ",
                   environment.count, ", with srun --mpi=pmix, or on one machine with --ranks=",
                   environment.count, "; to train with one rank, unset ", variable));
}

}  // namespace

World* JoinWorld(const WorldSettings& settings) {
  const RankEnvironment environment = ReadRankEnvironment();
  if (environment.launcher == RankLauncher::kNone) return nullptr;
  std::unique_ptr<MpiThread> thread;
  std::unique_ptr<MpiLibrary> mpi;
  Place place;
  if (environment.launcher == RankLauncher::kOwn) {
    place = JoinOwn(environment);
  } else {
    if (!MpiLibrary::WhyNot().empty()) throw Error(ErrorCode::kUnavailable, MpiLibrary::WhyNot());
    if (IsMpiServerGone([](const char* name) { return std::getenv(name); })) {
      FailWithoutServer(environment);
    }
    thread = std::make_unique<MpiThread>();
    thread->Run([&] {
      mpi = MpiLibrary::Start();
      if (mpi->count() > 1) {
        place = JoinMpi(*mpi);
      } else {
        mpi->Finish();
      }
    });
    if (mpi->count() == 1) {
      if (environment.count > 1) FailAlone(environment);
      return nullptr;
    }
  }
  place.block->slot(place.map.local).state = RankState::kJoined;
  Own() =
      std::make_unique<WorldOfRanks>(std::move(place), std::move(thread), std::move(mpi), settings);
  Own()->Begin(settings);
  return Own().get();
}

namespace {

// A rank that lost its peer knows less than the peer itself, which may be about to report why it
// ends.
void LetTheOtherSpeak(const NodeBlock& block) {
  constexpr std::chrono::seconds kTurn{10};
  const auto end = std::chrono::steady_clock::now() + kTurn;
  while (block.failure().code == 0 && std::chrono::steady_clock::now() < end) {
    FutexWait(block.failure_word(), 0, std::chrono::milliseconds(100));
  }
}

}  // namespace

bool IsFirstToFail(int* code) {
  // The same error may stop every machine, or every rank before it joins. Ranks other than the
  // first wait, so that the first one's message is printed and ends the run. mpirun needs seconds
  // to notice an ended process, more so on busy cores.
  constexpr std::chrono::seconds kTurn{4};
  WorldOfRanks* const world = Own().get();
  if (world == nullptr) {
    const RankEnvironment environment = ReadRankEnvironment();
    const bool waits = environment.launcher == RankLauncher::kMpi && environment.rank > 0;
    if (waits) std::this_thread::sleep_for(kTurn);
    return true;
  }
  if (world->finished()) return true;
  if (*code == static_cast<int>(ErrorCode::kPeerLost)) LetTheOtherSpeak(world->block());
  if (world->place().map.node > 0) std::this_thread::sleep_for(kTurn);
  if (world->block().Claim({*code, world->place().replica.rank})) return true;
  *code = world->block().failure().code;
  return false;
}

std::string RankPrefix() {
  const WorldOfRanks* const world = Own().get();
  if (world == nullptr) return "";
  return world->names()[static_cast<size_t>(world->place().replica.rank)] + ": ";
}

int LeaveWorld(int code) {
  if (Own() == nullptr) return code;
  if (!Own()->finished()) {
    IsFirstToFail(&code);
    Own()->Abort(code);
  }
  Own().reset();
  return code;
}

}  // namespace trainer
