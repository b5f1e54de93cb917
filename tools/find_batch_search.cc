#include "find_batch_search.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/analysis/memory/memory_fit.h"
#include "trainer/backend/plan_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/run/batch_size.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

class Searcher {
 public:
  Searcher(const BatchSearch& search, const Device& device, SolverSpec* spec)
      : search_(search), device_(device), spec_(*spec), given_(BatchSizeOf(spec)) {
    SetBatchSize(std::max<uint32_t>(given_, 1), spec);  // throws where there is none
    // The plan of each batch on the GPU itself would measure its convolutions.
    if (device.RunsLater()) plan_device_ = MakePlanDevice();
    estimator_.emplace(PlanningDevice(), search.memory);
  }
  ~Searcher() { SetBatchSize(given_, &spec_); }
  Searcher(const Searcher&) = delete;
  Searcher& operator=(const Searcher&) = delete;

  BatchResults Run() {
    BatchResults report;
    report.given = given_;
    const std::chrono::duration<double> time = search_.time;
    if (time.count() > 0) progress_.EndWithin(time.count());
    BatchFigures largest = Largest();
    LimitAdvice(&report);
    report.largest = largest.batch;
    report.largest_bytes = largest.bytes;
    report.most_fits = largest.batch == search_.most;
    RunSmaller(&report);
    RunLargest(std::move(largest), &report);
    RunAgain(&report);
    return report;
  }

 private:
  const Device& PlanningDevice() const { return plan_device_ ? *plan_device_ : device_; }

  // Whether the layers' ratio allows the batch.
  bool Set(uint32_t batch) {
    try {
      SetBatchSize(batch, &spec_);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  void LimitAdvice(BatchResults* report) {
    constexpr int64_t kLeastSteps = 10;  // of an epoch
    report->records = CountTrainingRecords(&spec_);
    if (report->records == 0) return;
    const int64_t most = report->records / (kLeastSteps * Passes());
    auto batch = static_cast<uint32_t>(std::clamp<int64_t>(most, smallest_, 1 << 24));
    while (batch > smallest_ && !Set(batch)) --batch;
    report->most_advised = batch;
  }
  // Batches of an iteration.
  int64_t Passes() const {
    return int64_t{std::max(1, spec_.proto.iter_size())} * std::max(1, spec_.proto.virtual_ranks());
  }

  // Nothing where it does not fit, or the net cannot have it.
  std::optional<BatchFigures> Plan(uint32_t batch) {
    if (!Set(batch)) return std::nullopt;
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

  std::optional<BatchFigures> PlanOrThrow(uint32_t batch) {
    const MemoryRoom kind = UnlimitedRoom(PlanningDevice());
    MemoryEstimate memory = estimator_->Estimate(spec_);
    if (search_.recomputes) {
      const size_t budget = ActivationBudget(search_.room, memory, kind);
      if (budget > 0) memory = estimator_->Estimate(spec_, budget);
    }
    const size_t bytes = TotalBytes(memory.Items(kind));
    if (bytes > search_.room) return std::nullopt;
    return BatchFigures{.batch = batch, .bytes = bytes, .computed_again = memory.recomputed};
  }

  // By doubling from the smallest that the net can have, then between the last two, to an eighth of
  // a power of two at least.
  BatchFigures Largest() {
    std::optional<BatchFigures> fits;
    uint32_t below = 0, above = 0;
    for (uint32_t batch = 1; batch <= search_.most; batch *= 2) {
      if (!Set(batch)) continue;
      if (smallest_ == 0) smallest_ = batch;
      const std::optional<BatchFigures> planned = Plan(batch);
      if (!planned) {
        above = batch;
        break;
      }
      fits = planned;
      below = batch;
      if (batch > search_.most / 2) break;
    }
    if (!fits) FailForAll();
    if (above == 0) above = search_.most + 1;
    if (const auto most = above > search_.most ? Plan(search_.most) : std::nullopt) return *most;
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

  [[noreturn]] void FailForAll() const {
    throw Error(ErrorCode::kResource,
                smallest_ == 0 ? Join("no batch up to ", search_.most,
                                      " fits the batch sizes of all data layers of the net")
                               : Join("not even a batch of ", smallest_, " fits: ",
                                      why_not_.empty() ? "the run needs more memory than available "
                                                         "('trainer plan' shows what uses it)"
                                                       : why_not_));
  }

  // As `train` does it.
  void Measure(BatchFigures* figures) {
    if (!Set(figures->batch)) return;
    TrainOptions options;
    options.saves = false;
    options.memory = search_.memory;
    ObserverList nobody;
    const WarningsOnly warnings_only;
    try {
      if (search_.recomputes) {
        options.activation_budget_bytes = ActivationBudget(search_.room, spec_, device_);
      }
      Solver solver(spec_, options, device_, nobody);
      solver.Step();
      solver.Step();
      device_.Synchronize();
      for (int i = 0; i < search_.iterations; ++i) {
        figures->samples.Add(TimeMs([&] {
          solver.Step();
          device_.Synchronize();
        }));
      }
      figures->records = BatchSizeOf(solver.train_net()) * Passes();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kResource) throw;
      figures->ran_out = true;
    }
  }

  // How long a batch would take, by one that was run, its net's making included.
  double SecondsFor(uint32_t batch, const BatchFigures& run) const {
    return 1e-3 * run.samples.Median() * batch / run.batch * (search_.iterations + 2) + making_;
  }
  bool HasSeconds(double seconds) const {
    const std::chrono::duration<double> left = search_.time - (Clock::now() - begin_);
    return seconds < left.count();
  }
  bool HasTimeFor(uint32_t batch, const BatchResults& report) const {
    return HasSeconds(report.batches.empty() ? 0 : SecondsFor(batch, report.batches.back()));
  }

  void RunTimed(BatchFigures* figures) {
    const auto begin = Clock::now();
    progress_.SetDoing(Join("Running batches of ", figures->batch));
    Measure(figures);
    progress_.Add(1);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    making_ = std::max(0.0, seconds - 1e-3 * figures->samples.Median() * (search_.iterations + 2));
    LOG(INFO) << "Batch " << figures->batch << ": "
              << (figures->ran_out ? "out of memory"
                                   : Join(figures->ImagesPerSecond(), " images/s"));
  }

  bool RunOne(BatchFigures figures, BatchResults* report) {
    RunTimed(&figures);
    report->batches.push_back(std::move(figures));
    return !report->batches.back().ran_out;
  }

  // Those that a busy machine may have kept from being the fastest, in rounds, as long as there is
  // time: what slows one down then slows all of them down, and none in every round.
  void RunAgain(BatchResults* report) {
    constexpr int kRounds = 2;
    constexpr double kMayBeFastest = 0.7;  // of the fastest's images per second
    for (int round = 0; round < kRounds; ++round) {
      const BatchFigures* const fastest = report->Fastest();
      if (fastest == nullptr) return;
      const double least = kMayBeFastest * fastest->ImagesPerSecond();
      for (BatchFigures& figures : report->batches) {
        if (!figures.runs() || figures.ImagesPerSecond() < least) continue;
        if (!HasSeconds(SecondsFor(figures.batch, figures))) return;
        RunTimed(&figures);
      }
    }
  }

  // Until twice the batch was hardly faster three times.
  void RunSmaller(BatchResults* report) {
    constexpr double kGain = 1.03;
    constexpr int kPatience = 3;
    int slow = 0;
    double fastest = 0;
    for (uint32_t batch = smallest_; batch < report->largest && slow < kPatience; batch *= 2) {
      if (!HasTimeFor(batch, *report)) break;
      const std::optional<BatchFigures> planned = Plan(batch);
      if (!planned) continue;
      if (!RunOne(*planned, report)) {
        ran_out_ = true;
        return;
      }
      const double now = report->batches.back().ImagesPerSecond();
      slow = now > kGain * fastest ? 0 : slow + 1;
      fastest = std::max(fastest, now);
    }
  }

  // Where less than was planned to fit did not.
  void TakeLargestRun(BatchResults* report) const {
    const BatchFigures* largest = nullptr;
    for (const BatchFigures& figures : report->batches) {
      if (!figures.ran_out) largest = &figures;
    }
    if (largest == nullptr) FailForAll();
    report->largest = largest->batch;
    report->largest_bytes = largest->bytes;
    report->most_fits = false;
    report->proved = true;
  }

  // A GPU's memory may be in pieces, and its libraries take what no plan knows: then a little less.
  void RunLargest(BatchFigures largest, BatchResults* report) {
    constexpr int kTries = 4;
    if (ran_out_) return TakeLargestRun(report);
    for (int i = 0; i < kTries; ++i) {
      report->largest = largest.batch;
      report->largest_bytes = largest.bytes;
      if (!HasTimeFor(largest.batch, *report)) return;
      if (RunOne(largest, report)) {
        report->proved = true;
        return;
      }
      report->most_fits = false;
      const uint32_t less = largest.batch - std::max<uint32_t>(1, largest.batch / 10);
      const std::optional<BatchFigures> planned = less > 0 ? Plan(less) : std::nullopt;
      if (!planned) FailForAll();
      largest = *planned;
    }
  }

  const BatchSearch& search_;
  const Device& device_;
  SolverSpec& spec_;
  const uint32_t given_;
  std::unique_ptr<Device> plan_device_;
  std::optional<MemoryEstimator> estimator_;
  uint32_t smallest_ = 0;
  bool ran_out_ = false;
  double making_ = 0;
  std::string why_not_;
  const Clock::time_point begin_ = Clock::now();
  Progress progress_{"Planning batches", "measurements", 0, Progress::InLog::kNothing};
};

}  // namespace

BatchResults SearchBatches(const BatchSearch& search, const Device& device, SolverSpec* spec) {
  return Searcher(search, device, spec).Run();
}

}  // namespace trainer
