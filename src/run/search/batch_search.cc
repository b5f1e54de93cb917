#include "trainer/run/search/batch_search.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "batch_size.h"
#include "record_count.h"
#include "resolved_file.h"
#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/analysis/memory/memory_fit.h"
#include "trainer/analysis/memory/memory_room.h"
#include "trainer/backend/device/available_memory.h"
#include "trainer/backend/device/meta_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

// One search. Changes the batch of `spec` and restores it in the destructor. With options.time of
// 0, it only finds the largest batch that fits.
class BatchSearcher {
 public:
  BatchSearcher(const BatchSearchOptions& options, const Device& device, SolverSpec* spec)
      : options_(options), device_(device), spec_(*spec), given_(BatchSizeOf(spec)) {
    SetBatchSize(std::max<uint32_t>(given_, 1), spec);  // throws if there is none
    // Planning each batch on the GPU itself would measure its convolutions.
    if (device.IsAsync()) plan_device_ = MakeMetaDevice();
    estimator_.emplace(PlanningDevice(), options.memory_mode);
  }
  ~BatchSearcher() { SetBatchSize(given_, &spec_); }
  BatchSearcher(const BatchSearcher&) = delete;
  BatchSearcher& operator=(const BatchSearcher&) = delete;

  // Plans to find the largest batch that fits, then measures smaller ones, the largest one, and the
  // fastest ones again.
  BatchSearchResult Run() {
    BatchSearchResult result;
    result.given = given_;
    const std::chrono::duration<double> time = options_.time;
    if (time.count() > 0) progress_.EndWithin(time.count());
    BatchTrial largest = FindLargest();
    LimitAdvice(&result);
    result.largest = largest.batch;
    result.largest_bytes = largest.bytes;
    result.max_fits = largest.batch == options_.max_batch;
    RunSmaller(&result);
    RunLargest(std::move(largest), &result);
    RunAgain(&result);
    return result;
  }

 private:
  // Returns the device on which batches are planned: for a GPU, one that computes nothing.
  const Device& PlanningDevice() const { return plan_device_ ? *plan_device_ : device_; }

  // Estimates on the device that the batches run on.
  MemoryEstimator& RunEstimator() {
    if (!plan_device_) return *estimator_;
    if (!run_estimator_) run_estimator_.emplace(device_, options_.memory_mode);
    return *run_estimator_;
  }

  // Sets the batch. Returns false if the ratio of the layers' batches does not allow it.
  bool TrySetBatch(uint32_t batch) {
    try {
      SetBatchSize(batch, &spec_);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // Sets the number of records, and most_advised so that an epoch has at least ten iterations.
  void LimitAdvice(BatchSearchResult* result) {
    constexpr int64_t kLeastSteps = 10;  // of an epoch
    result->records = FindEpochLayer(&spec_).records;
    if (result->records == 0) return;
    const int64_t most = result->records / (kLeastSteps * Passes());
    auto batch = static_cast<uint32_t>(std::clamp<int64_t>(most, smallest_, 1 << 24));
    while (batch > smallest_ && !TrySetBatch(batch)) --batch;
    result->most_advised = batch;
  }
  // Returns how many batches an iteration reads.
  int64_t Passes() const {
    return int64_t{std::max(1, spec_.proto.iter_size())} * std::max(1, spec_.proto.virtual_ranks());
  }

  // Estimates the memory of a batch. Returns nothing if it does not fit, or if the net cannot have
  // it.
  std::optional<BatchTrial> Plan(uint32_t batch) {
    if (!TrySetBatch(batch)) return std::nullopt;
    const WarningsOnly warnings_only;
    try {
      return PlanOrThrow(batch);
    } catch (const Error& error) {
      why_not_ = error.what();
      const bool expected =
          error.code() == ErrorCode::kResource || error.code() == ErrorCode::kConfig;
      if (!expected) throw;
      return std::nullopt;
    }
  }

  // Estimates the memory of the batch that is set, and throws the errors of planning. Returns
  // nothing if the estimate exceeds the room.
  std::optional<BatchTrial> PlanOrThrow(uint32_t batch) {
    const MemoryRoom kind = UnlimitedRoom(PlanningDevice());
    MemoryEstimate memory = estimator_->Estimate(spec_);
    if (options_.recomputes) {
      const size_t budget = ActivationBudget(options_.room, memory, kind);
      if (budget > 0) memory = estimator_->Estimate(spec_, budget);
    }
    const size_t bytes = TotalBytes(memory.Items(kind));
    if (bytes > options_.room) return std::nullopt;
    return BatchTrial{.batch = batch, .bytes = bytes, .recomputed = memory.recomputed};
  }

  // Finds the largest batch that fits: doubles the smallest possible batch until one does not fit,
  // then bisects between the last two, to an eighth of a power of two or finer.
  BatchTrial FindLargest() {
    std::optional<BatchTrial> fits;
    uint32_t below = 0, above = 0;
    for (uint32_t batch = 1; batch <= options_.max_batch; batch *= 2) {
      if (!TrySetBatch(batch)) continue;
      if (smallest_ == 0) smallest_ = batch;
      const std::optional<BatchTrial> planned = Plan(batch);
      if (!planned) {
        above = batch;
        break;
      }
      fits = planned;
      below = batch;
      if (batch > options_.max_batch / 2) break;
    }
    if (!fits) FailForAll();
    if (above == 0) above = options_.max_batch + 1;
    if (const auto most = above > options_.max_batch ? Plan(options_.max_batch) : std::nullopt)
      return *most;
    const uint32_t step = std::max<uint32_t>(1, below / 8);
    while (above - below > step) {
      const uint32_t middle = below + (above - below) / 2 / step * step;
      if (middle == below) break;
      if (const auto planned = Plan(middle)) {
        fits = planned;
        below = middle;
      } else {
        above = middle;
      }
    }
    return *fits;
  }

  // Throws kResource, and says why not even the smallest batch can run.
  [[noreturn]] void FailForAll() const {
    throw Error(ErrorCode::kResource,
                smallest_ == 0 ? Join("no batch up to ", options_.max_batch,
                                      " fits the batch sizes of all data layers of the net")
                               : Join("not even a batch of ", smallest_, " fits: ",
                                      why_not_.empty() ? "the run needs more memory than available "
                                                         "('trainer plan' shows what uses it)"
                                                       : why_not_));
  }

  // Trains as `trainer train` does, and times each iteration after two that warm up. If the memory
  // does not suffice, sets `ran_out` instead of throwing.
  void Measure(BatchTrial* trial) {
    if (!TrySetBatch(trial->batch)) return;
    SolverOptions options;
    options.saves = false;
    options.memory = options_.memory_mode;
    ObserverList nobody;
    const WarningsOnly warnings_only;
    const int unfreeze_at = spec_.proto.unfreeze_at();
    try {
      if (options_.recomputes) {
        options.activation_budget_bytes =
            ActivationBudget(options_.room, RunEstimator().Estimate(spec_), UnlimitedRoom(device_));
      }
      spec_.proto.clear_unfreeze_at();  // the net must stay the same while it is measured
      Solver solver(spec_, options, device_, nobody);
      solver.Step();
      solver.Step();
      device_.Synchronize();
      for (int i = 0; i < options_.iterations; ++i) {
        trial->samples.Add(TimeMs([&] {
          solver.Step();
          device_.Synchronize();
        }));
      }
      trial->records = BatchSizeOf(solver.train_net().graph()) * Passes();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kResource) throw;
      trial->ran_out = true;
    }
    if (unfreeze_at > 0) spec_.proto.set_unfreeze_at(unfreeze_at);
  }

  // Estimates the seconds for a batch from a trial that was run, including building its net.
  double SecondsFor(uint32_t batch, const BatchTrial& run) const {
    return 1e-3 * run.samples.Median() * batch / run.batch * (options_.iterations + 2) + building_;
  }
  // Returns whether that much of options.time is left.
  bool HasSeconds(double seconds) const {
    const std::chrono::duration<double> left = options_.time - (Clock::now() - begin_);
    return seconds < left.count();
  }
  // Estimates the time from the last batch that was run. The first one needs no estimate.
  bool HasTimeFor(uint32_t batch, const BatchSearchResult& result) const {
    return HasSeconds(result.trials.empty() ? 0 : SecondsFor(batch, result.trials.back()));
  }

  // Measures a trial, with progress and a line in the log, and notes how long building its net
  // took.
  void RunTimed(BatchTrial* trial) {
    const auto begin = Clock::now();
    progress_.SetDoing(Join("Running batches of ", trial->batch));
    Measure(trial);
    progress_.Add(1);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    building_ = std::max(0.0, seconds - 1e-3 * trial->samples.Median() * (options_.iterations + 2));
    LOG(INFO) << "Batch " << trial->batch << ": "
              << (trial->ran_out ? "out of memory" : Join(trial->ImagesPerSecond(), " images/s"));
  }

  // Measures a trial and appends it to the result. Returns false if it ran out of memory.
  bool RunOne(BatchTrial trial, BatchSearchResult* result) {
    RunTimed(&trial);
    result->trials.push_back(std::move(trial));
    return !result->trials.back().ran_out;
  }

  // Runs the candidates for the fastest batch again, in rounds, while there is time. Another
  // program that slows a round down slows all candidates down, and rarely slows every round.
  void RunAgain(BatchSearchResult* result) {
    constexpr int kRounds = 2;
    constexpr double kCandidate = 0.7;  // of the fastest's images per second
    for (int round = 0; round < kRounds; ++round) {
      const BatchTrial* const fastest = result->Fastest();
      if (fastest == nullptr) return;
      const double slowest = kCandidate * fastest->ImagesPerSecond();
      for (BatchTrial& trial : result->trials) {
        if (!trial.runs() || trial.ImagesPerSecond() < slowest) continue;
        if (!HasSeconds(SecondsFor(trial.batch, trial))) return;
        RunTimed(&trial);
      }
    }
  }

  // Measures batches below the largest one, doubling from the smallest until three in a row are
  // hardly faster than the best before them.
  void RunSmaller(BatchSearchResult* result) {
    constexpr double kGain = 1.03;
    constexpr int kPatience = 3;
    int slow = 0;
    double fastest = 0;
    for (uint32_t batch = smallest_; batch < result->largest && slow < kPatience; batch *= 2) {
      if (!HasTimeFor(batch, *result)) break;
      const std::optional<BatchTrial> planned = Plan(batch);
      if (!planned) continue;
      if (!RunOne(*planned, result)) {
        ran_out_ = true;
        return;
      }
      const double now = result->trials.back().ImagesPerSecond();
      slow = now > kGain * fastest ? 0 : slow + 1;
      fastest = std::max(fastest, now);
    }
  }

  // Takes the largest batch that was run, after a smaller one than estimated ran out of memory.
  void TakeLargestRun(BatchSearchResult* result) const {
    const BatchTrial* largest = nullptr;
    for (const BatchTrial& trial : result->trials) {
      if (!trial.ran_out) largest = &trial;
    }
    if (largest == nullptr) FailForAll();
    result->largest = largest->batch;
    result->largest_bytes = largest->bytes;
    result->max_fits = false;
    result->proved = true;
  }

  // Runs the largest batch, and smaller ones if it runs out of memory: a GPU's memory may be
  // fragmented, and its libraries use memory that no estimate knows.
  void RunLargest(BatchTrial largest, BatchSearchResult* result) {
    constexpr int kTries = 4;
    if (ran_out_) return TakeLargestRun(result);
    for (int i = 0; i < kTries; ++i) {
      result->largest = largest.batch;
      result->largest_bytes = largest.bytes;
      if (!HasTimeFor(largest.batch, *result)) return;
      if (RunOne(largest, result)) {
        result->proved = true;
        return;
      }
      result->max_fits = false;
      const uint32_t less = largest.batch - std::max<uint32_t>(1, largest.batch / 10);
      const std::optional<BatchTrial> planned = less > 0 ? Plan(less) : std::nullopt;
      if (!planned) FailForAll();
      largest = *planned;
    }
  }

  const BatchSearchOptions& options_;
  const Device& device_;
  SolverSpec& spec_;
  const uint32_t given_;
  std::unique_ptr<Device> plan_device_;
  std::optional<MemoryEstimator> estimator_;      // on PlanningDevice()
  std::optional<MemoryEstimator> run_estimator_;  // on the GPU itself
  uint32_t smallest_ = 0;
  bool ran_out_ = false;
  double building_ = 0;
  std::string why_not_;
  const Clock::time_point begin_ = Clock::now();
  Progress progress_{"Planning batches", "measurements", 0, Progress::InLog::kNothing};
};

}  // namespace

BatchSearchOptions MakeBatchSearchOptions(const std::string& memory, BufferReuse mode,
                                          const Device& device) {
  BatchSearchOptions options;
  const std::optional<size_t> limit = ParseMemoryLimit(memory, device);
  options.recomputes = limit.has_value();
  options.memory_mode = mode;
  options.room = limit ? *limit : FindAvailableMemory(device).bytes;
  return options;
}

BatchSearchResult SearchBatchSize(const BatchSearchOptions& options, const Device& device,
                                  SolverSpec* spec) {
  return BatchSearcher(options, device, spec).Run();
}

void ApplyBestBatch(const BatchSearchOptions& options, const Device& device, bool resumes,
                    SolverSpec* spec) {
  const std::string before = ResolvedPath(*spec);
  if (resumes && Exists(before)) {
    SolverSpec resolved = LoadSolver(before);
    return ChangeBatchSize(BatchSizeOf(&resolved), Join(", which ", before, " has,"), spec);
  }
  BatchSearchOptions brief = options;
  brief.max_batch = std::max(uint32_t{1024}, BatchSizeOf(spec));
  brief.time = std::chrono::seconds(20);
  brief.iterations = 5;
  const BatchSearchResult result = SearchBatchSize(brief, device, spec);
  const BatchTrial* const best = result.Best();
  if (best == nullptr) {
    return ChangeBatchSize(std::min(result.largest, result.most_advised),
                           ", the largest that fits and is at most a tenth of the records,", spec);
  }
  ChangeBatchSize(best->batch, Join(", the best with ", best->ImagesPerSecond(), " images/s,"),
                  spec);
}

const BatchTrial* BatchSearchResult::Fastest() const {
  return FastestUpTo(std::numeric_limits<uint32_t>::max());
}

const BatchTrial* BatchSearchResult::FastestUpTo(uint32_t most) const {
  const BatchTrial* fastest = nullptr;
  for (const BatchTrial& trial : trials) {
    if (!trial.runs() || trial.batch > most) continue;
    if (fastest == nullptr || trial.ImagesPerSecond() > fastest->ImagesPerSecond()) {
      fastest = &trial;
    }
  }
  return fastest;
}

const BatchTrial* BatchSearchResult::Best() const {
  constexpr double kNearly = 0.97;
  const BatchTrial* const fastest = FastestUpTo(most_advised);
  if (fastest == nullptr) return nullptr;
  for (const BatchTrial& trial : trials) {
    if (!trial.runs() || trial.batch > most_advised) continue;
    if (trial.ImagesPerSecond() >= kNearly * fastest->ImagesPerSecond()) return &trial;
  }
  return fastest;
}

}  // namespace trainer
