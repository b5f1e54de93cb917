#pragma once
// Runs the tests of a run. Several ranks share the batches of a test where possible.

#include <memory>
#include <string>
#include <vector>

#include "early_stopping.h"
#include "run_control.h"
#include "test_metrics.h"
#include "trainer/net/test_nets.h"
#include "training_model.h"

namespace trainer {

class SnapshotManager;

// A test net and how it is run on this rank.
struct SolverTest {
  std::unique_ptr<Net> net;  // for whole batches; null on ranks other than 0 if rank 0 tests alone
  std::unique_ptr<TestNets> nets;
  int batches = 0;      // whole batches of a test
  bool shared = false;  // whether the ranks divide the batches
  // Computes the metrics of test_metric. Null for every test net but the first, without
  // test_metric, and on a rank that does not run this test net.
  std::unique_ptr<TestMetrics> metrics;
};

// Used by the training thread.
class Tester {
 public:
  // Builds the test nets. The arguments must outlive the object. Collective if the nets are divided
  // into stages. Throws kConfig if `patience`, best_output or test_metric do not fit the test nets.
  Tester(const SolverContext& run, TrainingModel& model, RunControl& control,
         const SolverOptions& options);

  // Builds the test nets again. Called when the model is built again: FreeNets before that, then
  // BuildNets.
  void FreeNets() { tests_.clear(); }
  void BuildNets(const SolverOptions& options);

  // Returns whether this rank takes part in a test at this iteration: because test_interval is
  // over, before the next step, and at the end of the run.
  bool IsAtInterval() const;
  bool IsDue() const {
    return IsAtInterval() && (run_.iter > 0 || run_.proto.test_initialization());
  }
  bool IsDueAtEnd() const;
  // Runs all tests, with the averaged weights if there are any, and reports them. Starts snapshots
  // that are requested meanwhile. Returns false if the run was asked to stop during a test.
  // Collective unless the ranks are asynchronous. The loss of the last step must be taken.
  bool Run(SnapshotManager& snapshots);
  // Returns whether `patience` ends the run now, and says so. Collective, because only rank 0 knows
  // the scores.
  bool PatienceIsOver();

  // The tests, in the order of the solver's fields.
  const std::vector<SolverTest>& tests() const { return tests_; }
  // Returns the names of the outputs and metrics of the first test net.
  std::vector<std::string> OutputNames() const;
  // Returns the parameters of shared test nets that `training` does not have.
  std::vector<Param*> ParamsBeyond(const Net& training) const;
  // Null on ranks other than 0 and without tests.
  EarlyStopping* early_stopping() { return early_stopping_.get(); }

 private:
  void BuildTest(int index, const SolverOptions& options);
  void BuildMetrics(SolverTest& test) const;
  int BatchesOfStages(int index, const Net& net) const;
  void NoteTestData(int index) const;
  void NoteMissingAverages(int index) const;
  bool RunTest(int index, SnapshotManager& snapshots);

  const SolverContext& run_;
  TrainingModel& model_;
  RunControl& control_;
  const bool test_at_end_;
  std::vector<SolverTest> tests_;
  std::unique_ptr<EarlyStopping> early_stopping_;
};

}  // namespace trainer
