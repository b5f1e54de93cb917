#pragma once
// Early stopping by `patience`: a run ends when so many tests in a row were not better than the
// best one before them. A test at iteration 0 does not count.

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

  // Reads the best test so far from a snapshot; if it has none, the next test is the first.
  void Resume(const caffe::SolverState& state);
  void NoteTest(const TestReport& report);
  // Writes the best test into a snapshot, among the scores of keep_best.
  void ToState(caffe::SolverState* state) const;

  // Whether the last test was at least the `patience`-th after the best one. Tests are counted by
  // their iterations, so a resumed run counts the tests of the run before.
  bool IsFinished() const;
  // The best test and the last one, for the log.
  std::string Describe() const;
  // Nothing before the first test after iteration 0.
  std::optional<int> BestIter() const { return best_ ? std::optional(best_->iter) : std::nullopt; }
  // The best test, which there must be, and the file of its weights where it exists.
  std::string DescribeBest(const std::string& weights) const;

 private:
  struct Test {
    int iter = 0;
    float value = 0;
  };
  int TestsWithoutBetter() const;

  const int patience_, interval_;
  const TestScore score_;
  std::optional<Test> best_, last_;
};

}  // namespace trainer
