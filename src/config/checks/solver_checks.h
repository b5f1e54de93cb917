#pragma once
// Checks the fields of a solver before any net is built.

#include <initializer_list>
#include <string>

#include "lr_policies.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Checks the fields of one solver that can be checked without its nets. Each check throws kConfig
// at the field's line, or kUnavailable for a setting that this build does not support, at its first
// error.
class SolverChecks {
 public:
  // `solver` must outlive the object.
  explicit SolverChecks(const SolverSpec& solver) : solver_(solver), proto_(solver.proto) {}

  // Makes all checks. If `errors` is given, the errors of all checks are added to it, and later
  // checks run after one that failed.
  void Run(ErrorCollector* errors) const;
  // Checks that only one kind of warm-up is given, and that a decay by cosine, poly or plateau ends
  // at or below base_lr. Calls CheckLength, unless the length is missing or given in epochs, whose
  // iterations are unknown.
  void CheckWarmup() const;

 private:
  // Returns whether the solver gives a field, for a list at least one element.
  bool Given(const char* name) const;
  // Throws if a field that every solver must give is missing. `value` is an example.
  void Needs(const char* name, const char* what, const char* value) const;
  // Throws if an int32 field, or its default, is below `least`.
  void AtLeast(const char* name, int least) const;
  // Throws unless a float field, or its default, is at least 0 and below 1.
  void InUnit(const char* name) const;
  // Throws with the nearest name if a text field has a value that is not known.
  void OneOf(const char* field, const std::string& value,
             std::initializer_list<std::string> known) const;

  // Checks that base_lr is given, and that floats such as base_lr, weight_decay and delta are 0 or
  // more.
  void CheckReals() const;
  // Checks that max_iter or max_epoch is given, that integer fields such as iter_size and display
  // are in their ranges, and that virtual_ranks is a power of two.
  void CheckIntegers() const;
  // Checks text fields: snapshot_prefix, and fields that choose by name. eval_type must be
  // "classification".
  void CheckNames() const;
  // Checks larc_eta. Throws kUnavailable for larc_turbo.
  void CheckLarc() const;
  // Checks default_forward_type and the loss scale of training with small types.
  void CheckStorage() const;
  // Checks when snapshots are written and which are kept, and that something uses min_delta.
  void CheckSnapshots() const;
  // Checks that there are tests for best_output and test_metric, and that test_metric_layer has a
  // metric.
  void CheckTestMetrics() const;
  // Checks the type in which gradients are sent. A smaller type than FLOAT excludes virtual_ranks.
  void CheckExchange() const;
  // Checks clip_value, and that clip_gradients is not given as well.
  void CheckClipping() const;
  // Logs a warning for each given field that changes no weight and that nothing here reads.
  void WarnOfUnused() const;

  // Times in epochs: solver_checks_epochs.cc.
  // Checks that a time is not given twice, in epochs and in iterations, and that the numbers of
  // epochs are in their ranges.
  void CheckEpochs() const;
  // Throws if a time in epochs is given and not above 0.
  void CheckEpochTime(const char* name, bool given, float value) const;

  // Learning rate and momentum: solver_checks_schedule.cc.
  // Checks that lr_policy is given and known, and that the solver has the fields that the policy
  // needs.
  void CheckPolicy() const;
  // Throws if the solver lacks a field of the policy. The message says what the policy does and
  // what to write.
  void RequireFieldsOf(const std::string& name, const LrPolicy& policy) const;
  // Checks gamma of lr_policy "plateau", and that each plateau_winsize is at least 1.
  void CheckPlateau() const;
  // Checks that the warm-up and each window of lr_policy "plateau" fit into max_iter, and that a
  // decay by cosine has iterations left after the warm-up.
  void CheckLength() const;
  // Checks that stepvalue starts at 0 or more and increases.
  void CheckSteps() const;
  // Checks that the momentums and ema_decay are at least 0 and below 1, and the steps of
  // momentum_policy.
  void CheckMomentum() const;
  // Checks that momentum_stepvalue and momentum_value are as many and that the steps increase;
  // without the policy "multistep", that neither is given.
  void CheckMomentumSteps() const;

  const SolverSpec& solver_;
  const caffe::SolverParameter& proto_;
};

}  // namespace trainer
