#pragma once
// Reports the iterations of a run to its observers.

#include <chrono>
#include <memory>
#include <vector>

#include "core_share.h"
#include "input_waits.h"
#include "rank_times.h"
#include "tester.h"

namespace trainer {

// Used by the training thread.
class Reporter {
 public:
  // The arguments must outlive the object.
  Reporter(const SolverContext& run, TrainingModel& model, const Tester& tester,
           bool shows_numbers);

  // Called when the model was built again.
  void Attach();
  // Reports the start of the run and measures times from now on.
  void Begin();
  // Returns whether this iteration is reported, so that its loss must be known before its update.
  bool IsDue() const { return run_.IsDisplayed() || ShowsNumbers(); }
  // Returns whether the passes of this iteration log their values (debug_info).
  bool ShowsDebugInfo() const;
  // Reports what is due of this iteration, between its gradients and its update, which has learning
  // rate `rate`. Collective.
  void Report(float rate);
  // Reports the pass after the last update; `loss` is averaged.
  void ReportAfterLast(float loss);

  // Null unless the times of several ranks are measured.
  RankTimes* times() { return times_.get(); }

 private:
  void Display(float rate);
  void AddLossScale(IterationReport* report) const;
  bool ShowsNumbers() const;
  void ShowNumbers();
  void ShowBatch() const;

  const SolverContext& run_;
  TrainingModel& model_;
  const Tester& tester_;
  const bool shows_numbers_;
  bool showed_batch_ = false;
  std::vector<ReportedValue> first_outputs_;  // of virtual rank 0, if this rank computes several
  // The state at the last report or the start of the run.
  std::chrono::steady_clock::time_point last_time_ = std::chrono::steady_clock::now();
  int last_iter_ = 0;
  double data_waited_ = 0;  // seconds waited for data until then
  CoreShare cores_;
  InputWaits input_waits_;
  std::unique_ptr<RankTimes> times_;
};

}  // namespace trainer
