#include "early_stopping.h"

#include <algorithm>
#include <cmath>

#include "score_field.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {

EarlyStopping::EarlyStopping(const SolverSpec& spec, const std::vector<std::string>& outputs)
    : patience_(spec.proto.patience()),
      min_delta_(spec.proto.min_delta()),
      interval_(std::max(spec.proto.test_interval(), 1)),
      score_(ScoreFor(patience_ > 0 ? "patience" : "best_output", spec, outputs)) {}

void EarlyStopping::Resume(const caffe::SolverState& state) {
  for (const caffe::ScoredSnapshot& one : state.best()) {
    const bool first = !best_ || score_.Better(one.value(), best_->value) ||
                       (one.value() == best_->value && one.iter() < best_->iter);
    if (first) best_ = Test{one.iter(), one.value()};
  }
  improved_ = best_;
  if (min_delta_ > 0 && state.has_improved()) {
    improved_ = Test{state.improved().iter(), state.improved().value()};
  }
}

void EarlyStopping::NoteTest(const TestReport& report) {
  const ReportedValue* const value = score_.In(report);
  if (value == nullptr || report.iter == 0) return;  // at iteration 0 this run has trained nothing
  last_ = Test{report.iter, value->value};
  const bool first = !best_ || std::isnan(best_->value);
  if (first || score_.Better(last_->value, best_->value)) best_ = last_;
  const bool first_improvement = !improved_ || std::isnan(improved_->value);
  if (first_improvement || Improves(last_->value, improved_->value)) improved_ = last_;
}

bool EarlyStopping::Improves(float value, float before) const {
  return score_.Better(value, before) && std::fabs(value - before) > min_delta_;
}

void EarlyStopping::ToState(caffe::SolverState* state) const {
  if (!best_) return;
  if (min_delta_ > 0 && improved_) {
    state->mutable_improved()->set_iter(improved_->iter);
    state->mutable_improved()->set_value(improved_->value);
  }
  const bool there = std::ranges::any_of(
      state->best(), [this](const auto& one) { return one.iter() == best_->iter; });
  if (there) return;
  caffe::ScoredSnapshot* const entry = state->add_best();
  entry->set_iter(best_->iter);
  entry->set_value(best_->value);
}

int EarlyStopping::TestsWithoutBetter() const {
  return last_->iter / interval_ - improved_->iter / interval_;
}

bool EarlyStopping::IsFinished() const {
  return patience_ > 0 && last_ && improved_ && TestsWithoutBetter() >= patience_;
}

std::string EarlyStopping::DescribeBest(const std::string& weights) const {
  return EscapeControl(
      Join("Best test: ", score_.output, " ", best_->value, " at iteration ", best_->iter,
           Exists(weights) ? Join(", saved in ", weights)
                           : std::string("; it has no snapshot (to keep the best: set keep_best: "
                                         "1, with a snapshot at each test)")));
}

std::string EarlyStopping::Describe() const {
  const int tests = TestsWithoutBetter();
  return EscapeControl(Join(
      "The last ", tests == 1 ? std::string("test") : Join(tests, " tests"), " did not improve ",
      score_.output, min_delta_ > 0 ? Join(" by more than ", min_delta_) : "",
      " (patience: ", patience_, "): the best was ", best_->value, " at iteration ", best_->iter,
      ", the last ", last_->value, " at iteration ", last_->iter, ". The run stops here"));
}

}  // namespace trainer
