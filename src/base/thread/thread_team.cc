#include "trainer/base/thread/thread_team.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core_wait.h"
#include "signals_blocked.h"
#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

std::atomic<int> team_size{1};
// Counts forks in the child process, which has none of its parent's threads.
std::atomic<int> process_generation{0};

struct Region {
  int thread = 0, threads = 1;
  bool inside = false;
};
thread_local Region region;
thread_local std::vector<Region> outer_regions;  // of calls of BeginTogether that have not ended

// The states of a worker. kOffered: a part waits to be run; the worker claims it, unless the caller
// takes it back. kOfferedAwaited and kAwaited mean the same as kOffered and kClaimed, except that
// the caller sleeps until the part is done.
enum : uint32_t { kIdle, kAsleep, kQuit, kOffered, kOfferedAwaited, kClaimed, kAwaited };

// A barrier that may be reused at once. The last thread to arrive starts the next round.
class Barrier {
 public:
  // Sets how many threads must arrive. No thread may be waiting.
  void Reset(int threads) {
    threads_ = threads;
    arrived_.store(0, std::memory_order_relaxed);
  }
  // Returns when all threads have called it. Spins at first, then sleeps.
  void Wait() {
    const uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_seq_cst);
      if (sleepers_.load(std::memory_order_seq_cst) > 0) WakeAll(round_);
      return;
    }
    if (SpinWhile(round_, round)) return;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (round_.load(std::memory_order_seq_cst) == round) SleepWhile(round_, round);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  int threads_ = 1;
  std::atomic<int> arrived_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<uint32_t> round_{0};
};

// The workers of one calling thread.
class Team {
 public:
  Team() : generation_(process_generation.load()) {}
  ~Team() {
    for (auto& worker : workers_) Wake(*worker, kQuit);
    for (auto& worker : workers_) worker->thread.join();
  }
  // Returns whether the process has forked since, so that the workers do not exist in it.
  bool Stale() const { return generation_ != process_generation.load(std::memory_order_relaxed); }
  // Returns the sum over the caller and the workers, as far as these have measured it.
  double SecondsWithoutCore() const {
    double sum = std::max(0.0, trainer::SecondsWithoutCore());
    for (const auto& worker : workers_) sum += worker->waited.load(std::memory_order_relaxed);
    return sum;
  }

  // Calls call(data, p) for each p of [0, parts) on the caller and its workers, and returns when
  // all calls are done. The caller also runs parts that no worker claimed in time. The calls must
  // not throw.
  void RunParts(int parts, thread_team_internal::PartCall call, const void* data) {
    part_call_ = call;
    data_ = data;
    together_ = nullptr;
    const int helped = std::min(parts, TeamSize());
    Offer(helped);
    region.inside = true;
    call(data, 0);
    for (int p = helped; p < parts; ++p) call(data, p);
    for (int p = 1; p < helped; ++p) {
      uint32_t offered = kOffered;
      if (workers_[static_cast<size_t>(p - 1)]->word.compare_exchange_strong(
              offered, kIdle, std::memory_order_acq_rel)) {
        call(data, p);
      }
    }
    region.inside = false;
    Join(helped);
  }

  // Starts call(data) on `threads` - 1 workers and makes the calling thread number 0 of the region.
  // EndTogether waits for the workers.
  void BeginTogether(int threads, void (*call)(void*), void* data) {
    together_ = call;
    together_data_ = data;
    threads_ = threads;
    barrier_.Reset(threads);
    Offer(threads);
    region = {.thread = 0, .threads = threads, .inside = true};
    current_barrier_ = &barrier_;
  }
  // Ends the region for the calling thread and waits for the workers.
  void EndTogether() {
    region = {};
    Join(threads_);
  }

  // Waits at the barrier of the region that the calling thread is in.
  static void WaitAtBarrier() { current_barrier_->Wait(); }

 private:
  struct alignas(64) Worker {
    std::atomic<uint32_t> word{kIdle};
    std::atomic<double> waited{0};
    std::thread thread;
  };

  // Sets the worker's state, and wakes it if it slept.
  static void Wake(Worker& worker, uint32_t word) {
    if (worker.word.exchange(word, std::memory_order_acq_rel) == kAsleep) WakeAll(worker.word);
  }

  // Gives parts 1, 2, ... to the workers, and creates missing workers.
  void Offer(int parts) {
    while (static_cast<int>(workers_.size()) < parts - 1) {
      const SignalsBlocked blocked;
      auto& worker = *workers_.emplace_back(std::make_unique<Worker>());
      worker.thread = std::thread(&Team::Work, this, static_cast<int>(workers_.size()), &worker);
    }
    for (int p = 1; p < parts; ++p) Wake(*workers_[static_cast<size_t>(p - 1)], kOffered);
  }

  // Waits until the workers have done parts 1 to `parts` - 1: spins at first, then sleeps.
  void Join(int parts) {
    for (int p = 1; p < parts; ++p) {
      std::atomic<uint32_t>& word = workers_[static_cast<size_t>(p - 1)]->word;
      for (uint32_t now = word.load(std::memory_order_acquire); now >= kOffered;
           now = word.load(std::memory_order_acquire)) {
        if (SpinWhile(word, now)) continue;
        const uint32_t awaited = now <= kOfferedAwaited ? kOfferedAwaited : kAwaited;
        if (now == awaited ||
            word.compare_exchange_strong(now, awaited, std::memory_order_acq_rel)) {
          SleepWhile(word, awaited);
        }
      }
    }
    NoteCoreWait(cores_, 0);
  }

  // Runs in a worker's thread: claims and runs what is offered, until the state is kQuit.
  void Work(int thread, Worker* worker) {
    for (;;) {
      uint32_t now = worker->word.load(std::memory_order_acquire);
      if (now == kQuit) return;
      if (now < kOffered) {
        if (SpinWhile(worker->word, now)) continue;
        Sleep(worker->word);
        LeaveCallersCore(cores_, thread);
        continue;
      }
      const uint32_t claimed = now == kOffered ? kClaimed : kAwaited;
      if (!worker->word.compare_exchange_strong(now, claimed, std::memory_order_acq_rel)) continue;
      RunOffered(thread);
      LeaveCallersCore(cores_, thread);
      if (const double waited = NoteCoreWait(cores_, thread); waited >= 0) worker->waited = waited;
      if (worker->word.exchange(kIdle, std::memory_order_acq_rel) == kAwaited) {
        WakeAll(worker->word);
      }
    }
  }

  // Runs this worker's part of the current region: of RunTogether if `together_` is set, else of
  // RunParts.
  void RunOffered(int thread) {
    region = {.thread = together_ != nullptr ? thread : 0,
              .threads = together_ != nullptr ? threads_ : 1,
              .inside = true};
    if (together_ != nullptr) {
      current_barrier_ = &barrier_;
      together_(together_data_);
    } else {
      part_call_(data_, thread);
    }
    region = {};
  }

  // Sleeps until the state changes; returns at once if a part was offered in the meantime.
  static void Sleep(std::atomic<uint32_t>& word) {
    uint32_t idle = kIdle;
    word.compare_exchange_strong(idle, kAsleep, std::memory_order_acq_rel);
    if (idle == kIdle || idle == kAsleep) SleepWhile(word, kAsleep);
  }

  static thread_local Barrier* current_barrier_;

  const int generation_;
  TeamCores cores_;
  std::vector<std::unique_ptr<Worker>> workers_;
  // The current region. It is written before it is offered.
  thread_team_internal::PartCall part_call_ = nullptr;
  const void* data_ = nullptr;
  void (*together_)(void*) = nullptr;
  void* together_data_ = nullptr;
  int threads_ = 1;
  Barrier barrier_;
};

thread_local Barrier* Team::current_barrier_ = nullptr;

// A team whose threads did not survive a fork is leaked, because its threads cannot be joined.
struct TeamHolder {
  ~TeamHolder() {
    if (team != nullptr && team->Stale()) static_cast<void>(team.release());
  }
  std::unique_ptr<Team> team;
};

// Returns the calling thread's team. The first call makes it, and so does the first in a forked
// child.
Team& MyTeam() {
  thread_local TeamHolder mine;
  [[maybe_unused]] static const int once =
      pthread_atfork(nullptr, nullptr, [] { process_generation.fetch_add(1); });
  if (mine.team != nullptr && mine.team->Stale()) static_cast<void>(mine.team.release());
  if (mine.team == nullptr) mine.team = std::make_unique<Team>();
  return *mine.team;
}

}  // namespace

int TeamSize() { return team_size.load(std::memory_order_relaxed); }
void SetTeamSize(int threads) { team_size.store(std::max(1, threads), std::memory_order_relaxed); }
bool InParallelRegion() { return region.inside; }
int RegionThread() { return region.thread; }
int RegionThreads() { return region.threads; }

void thread_team_internal::RunParts(int parts, PartCall call, const void* data) {
  if (parts < 2 || TeamSize() < 2 || region.inside) {
    for (int p = 0; p < parts; ++p) call(data, p);
    return;
  }
  MyTeam().RunParts(parts, call, data);
}

void RunTogether(int threads, void (*call)(void*), void* data) {
  BeginTogether(threads, call, data);
  call(data);
  EndTogether();
}

// As in OpenMP, a region of one thread or inside of another region has one thread, whose number is
// 0.
void BeginTogether(int threads, void (*call)(void*), void* data) {
  outer_regions.push_back(region);
  if (threads > 1 && !region.inside) return MyTeam().BeginTogether(threads, call, data);
  region = {.thread = 0, .threads = 1, .inside = region.inside};
}

void EndTogether() {
  if (region.threads > 1) MyTeam().EndTogether();
  region = outer_regions.back();
  outer_regions.pop_back();
}

void RegionBarrier() {
  if (region.threads > 1) Team::WaitAtBarrier();
}

double TeamSecondsWithoutCore() { return MyTeam().SecondsWithoutCore(); }

}  // namespace trainer
