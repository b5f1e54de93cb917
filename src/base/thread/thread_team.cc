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

  // Calls call(data, part, thread) for each part of [0, parts) on the caller and its workers,
  // `threads` in all, and returns when all calls are done. The calls must not throw.
  void RunParts(int parts, int threads, thread_team_internal::PartCall call, const void* data) {
    part_call_ = call;
    data_ = data;
    together_ = nullptr;
    parts_ = parts;
    threads_ = threads;
    AddWorkers();
    for (int t = 0; t < threads_; ++t) {
      ShareOf(t).Set(static_cast<int>(int64_t{parts} * t / threads_),
                     static_cast<int>(int64_t{parts} * (t + 1) / threads_));
    }
    Offer();
    region.inside = true;
    RunShares(0);
    region.inside = false;
    // Workers that have not started yet need not start.
    for (int t = 1; t < threads_; ++t) {
      uint32_t offered = kOffered;
      WorkerOf(t).word.compare_exchange_strong(offered, kIdle, std::memory_order_acq_rel);
    }
    Join();
  }

  // Starts call(data) on `threads` - 1 workers and makes the calling thread number 0 of the region.
  // EndTogether waits for the workers.
  void BeginTogether(int threads, void (*call)(void*), void* data) {
    together_ = call;
    together_data_ = data;
    threads_ = threads;
    barrier_.Reset(threads);
    AddWorkers();
    Offer();
    region = {.thread = 0, .threads = threads, .inside = true};
    current_barrier_ = &barrier_;
  }
  // Ends the region for the calling thread and waits for the workers.
  void EndTogether() {
    region = {};
    Join();
  }

  // Waits at the barrier of the region that the calling thread is in.
  static void WaitAtBarrier() { current_barrier_->Wait(); }

 private:
  // The parts of a region that one thread runs, unless another one takes them over.
  class Share {
   public:
    void Set(int begin, int end) {
      range_.store(Range(static_cast<uint32_t>(begin), static_cast<uint32_t>(end)),
                   std::memory_order_relaxed);
    }
    // Takes the first part. Returns -1 if there is none.
    int TakeFirst() {
      return Take([](uint32_t& begin, uint32_t&) { return begin++; });
    }
    // Takes the last part. Returns -1 if there is none.
    int TakeLast() {
      return Take([](uint32_t&, uint32_t& end) { return --end; });
    }

   private:
    static uint64_t Range(uint32_t begin, uint32_t end) { return uint64_t{begin} << 32 | end; }
    template <class F>
    int Take(F take) {
      uint64_t now = range_.load(std::memory_order_relaxed);
      for (;;) {
        auto begin = static_cast<uint32_t>(now >> 32), end = static_cast<uint32_t>(now);
        if (begin == end) return -1;
        const uint32_t part = take(begin, end);
        if (range_.compare_exchange_weak(now, Range(begin, end), std::memory_order_relaxed)) {
          return static_cast<int>(part);
        }
      }
    }

    std::atomic<uint64_t> range_{0};
  };

  struct alignas(64) Worker {
    std::atomic<uint32_t> word{kIdle};
    Share share;
    std::atomic<double> waited{0};
    std::thread thread;
  };

  // Sets the worker's state, and wakes it if it slept.
  static void Wake(Worker& worker, uint32_t word) {
    if (worker.word.exchange(word, std::memory_order_acq_rel) == kAsleep) WakeAll(worker.word);
  }

  // Returns the worker that is thread number `thread`, at least 1.
  Worker& WorkerOf(int thread) { return *workers_[static_cast<size_t>(thread - 1)]; }
  // Returns the share of any thread.
  Share& ShareOf(int thread) { return thread == 0 ? callers_share_ : WorkerOf(thread).share; }

  // Creates the workers that a region of threads_ threads still needs.
  void AddWorkers() {
    while (static_cast<int>(workers_.size()) < threads_ - 1) {
      const SignalsBlocked blocked;
      auto& worker = *workers_.emplace_back(std::make_unique<Worker>());
      worker.thread = std::thread(&Team::Work, this, static_cast<int>(workers_.size()), &worker);
    }
  }
  // Starts the workers of a region of threads_ threads.
  void Offer() {
    for (int t = 1; t < threads_; ++t) Wake(WorkerOf(t), kOffered);
  }

  // Waits until the workers of the region are done: spins at first, then sleeps.
  void Join() {
    for (int t = 1; t < threads_; ++t) {
      std::atomic<uint32_t>& word = WorkerOf(t).word;
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

  // Runs the parts of a thread's share, then parts that other threads have not begun. The caller
  // looks at all shares, because some workers may not have started. A worker looks at a few, and
  // only if shares have several parts: with many threads, reading all shares takes microseconds.
  void RunShares(int thread) {
    constexpr int kNeighbours = 8;
    for (int part; (part = ShareOf(thread).TakeFirst()) >= 0;) part_call_(data_, part, thread);
    int others = threads_ - 1;
    if (thread > 0) others = parts_ > threads_ ? std::min(others, kNeighbours) : 0;
    for (int i = 1; i <= others; ++i) {
      Share& other = ShareOf((thread + i) % threads_);
      for (int part; (part = other.TakeLast()) >= 0;) part_call_(data_, part, thread);
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
      RunShares(thread);
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
  alignas(64) Share callers_share_;
  // The current region. It is written before it is offered.
  thread_team_internal::PartCall part_call_ = nullptr;
  const void* data_ = nullptr;
  void (*together_)(void*) = nullptr;
  void* together_data_ = nullptr;
  int parts_ = 1, threads_ = 1;
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

void thread_team_internal::RunParts(int parts, int max_threads, PartCall call, const void* data) {
  const int threads = std::min({parts, max_threads, TeamSize()});
  if (threads < 2 || region.inside) {
    for (int part = 0; part < parts; ++part) call(data, part, 0);
    return;
  }
  MyTeam().RunParts(parts, threads, call, data);
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
