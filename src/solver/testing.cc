#include <algorithm>

#include "kept_snapshots.h"
#include "time_budget.h"
#include "trainer/net/output_counts.h"
#include "trainer/solver/solver.h"

namespace trainer {

bool Solver::TestIsDue() const {
  return !test_nets_.empty() && proto_.test_interval() > 0 &&
         state_.iter % proto_.test_interval() == 0;
}

// With the averaged weights, if there are any. False when it was time to stop meanwhile.
bool Solver::TestAll() {
  CatchUp();
  const WeightAverage::Scope averaged(average_.get(), true);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < NumTestNets(); ++i) {
    if (!RunTest(i)) return false;
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  budget_->NoteTest(passed.count());
  return true;
}

// The mean of every output element, and of the loss, over test_iter batches.
bool Solver::RunTest(int index) {
  observer_.OnTestStart(state_.iter, index);
  Net& net = test_net(index);
  const int batches = proto_.test_iter(index);
  TestReport report;
  report.iter = state_.iter;
  report.net = index;
  report.has_loss = proto_.test_compute_loss();
  std::vector<ReportedValue> sums;
  for (int batch = 0; batch < batches && !report.interrupted; ++batch) {
    report.loss += net.Forward() / static_cast<float>(batches);
    std::vector<ReportedValue> values = ReadOutputs(net);
    if (batch > 0) RequireEqualCounts(sums.size(), values.size());
    for (size_t i = 0; i < sums.size(); ++i) values[i].value += sums[i].value;
    sums = std::move(values);
    if (group_ != nullptr) group_->NoteProgress(state_.iter);
    if (group_ != nullptr) continue;  // replicas look after a step
    const Request request = OwnRequest(true);
    if (request == Request::kSnapshot) StartSnapshot();
    report.interrupted = request == Request::kStop;
  }
  for (ReportedValue& sum : sums) sum.value /= static_cast<float>(batches);
  report.outputs = sums;
  if (kept_) kept_->NoteTest(report);
  observer_.OnTest(report);
  return !report.interrupted;
}

}  // namespace trainer
