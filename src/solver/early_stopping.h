#pragma once
// Early stopping by `patience`: a run ends when that many tests in a row were not better than the
// best test before them. A test at iteration 0 does not count. With `min_delta`, a test counts as
// an improvement if it beats the last improvement by more than min_delta; patience counts the tests
// since then.

#include <optional>
#include <string>
#include <vector>

#include "state.pb.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/test_score.h"

namespace trainer {

class EarlyStopping {
 public:
  // `outputs`: the names of the outputs of the first test net. Throws as ScoreFor does.
  EarlyStopping(const SolverSpec& spec, const std::vector<std::string>& outputs);

  // Reads the best test so far from a snapshot. Without one there, the next test becomes the best.
  void Resume(const caffe::SolverState& state);
  void NoteTest(const TestReport& report);
  // Writes the best test into a snapshot, among the scores of keep_best.
  void ToState(caffe::SolverState* state) const;

  // Returns whether the last test was at least the `patience`-th after the last improvement. Tests
  // are counted by their iterations, so a resumed run also counts the tests of the run before it.
  bool IsFinished() const;
  // Returns a sentence for the log about the best test and the last one.
  std::string Describe() const;
  // Returns the iteration of the best test, or nullopt before the first test after iteration 0.
  std::optional<int> BestIter() const { return best_ ? std::optional(best_->iter) : std::nullopt; }
  // Returns a sentence about the best test, with the file `weights` if it exists. Needs a best
  // test.
  std::string DescribeBest(const std::string& weights) const;

 private:
  struct Test {
    int iter = 0;
    float value = 0;
  };
  int TestsWithoutBetter() const;
  // Returns whether `value` is better than `before` by more than min_delta.
  bool Improves(float value, float before) const;

  const int patience_;
  const float min_delta_;
  const int interval_;
  const TestScore score_;
  std::optional<Test> best_, last_;
  std::optional<Test> improved_;  // the last improvement; the best test if min_delta is 0
};

}  // namespace trainer
