// Runs the tests. Several ranks share the batches of a test where possible.

#include <glog/logging.h>

#include <algorithm>

#include "all_reduce_over.h"
#include "deadline_reserve.h"
#include "early_stopping.h"
#include "rank_times.h"
#include "snapshot_retention.h"
#include "trainer/base/text/text.h"
#include "trainer/net/data_layers.h"
#include "trainer/net/debug_info.h"
#include "trainer/net/learning.h"
#include "trainer/net/output_counts.h"
#include "trainer/solver/solver.h"

namespace trainer {
void Solver::BuildTestNets(const SolverOptions& options) {
  for (size_t i = 0; i < spec_.tests.size(); ++i) BuildTestNet(i, options);
}

void Solver::BuildTestNet(size_t i, const SolverOptions& options) {
  NetOptions net_options = CommonOptions(options, static_cast<int>(i) + 1);
  LOG(INFO) << "Creating test net (#" << i << ") specified by "
            << EscapeControl(spec_.tests[i].description);
  net_options.state = spec_.tests[i].state;
  const int test_iter = proto_.test_iter(static_cast<int>(i));
  // With a pipeline only some ranks have data layers, so TestNets cannot count the batches of an
  // exact pass; BatchesOfStages does.
  const int batches = partition_ == nullptr ? test_iter : std::max(test_iter, 1);
  auto nets =
      std::make_unique<TestNets>(*spec_.tests[i].net, net_options, device_, params_, batches);
  test_batches_.push_back(partition_ != nullptr && test_iter == 0 ? BatchesOfStages(i, nets->net())
                                                                  : nets->batches());
  NoteTestData(i, *nets);
  std::unique_ptr<Net> net = nets->TakeNet();
  if (proto_.debug_info() && rank_.rank == 0) net->AddHook(DebugInfoHook());
  const TestShard share{.rank = rank_.rank,
                        .count = rank_.size,
                        .period = test_batches_[i],
                        .skip_after = nets->skips()};
  const bool divides_tests =
      rank_.size > 1 && !strategy_->IsAsynchronous() && partition_ == nullptr;
  shared_tests_.push_back(divides_tests && ShardTestBatches(*net, share));
  const bool computes = shared_tests_[i] || partition_ != nullptr || rank_.rank == 0;
  test_nets_.push_back(computes ? std::move(net) : nullptr);
  if (rank_.rank != 0) nets->DropRest();
  tests_.push_back(std::move(nets));
  if (!divides_tests || shared_tests_[i]) return;
  LOG(INFO) << "Test net (#" << i
            << ") runs on rank 0 only, because its results depend on earlier batches, or because "
               "it writes files";
}

// Returns the number of batches of an exact pass over the data, for a net whose stages are on
// several ranks: only some of them read data.
int Solver::BatchesOfStages(size_t test, const Net& net) const {
  const TestData data = TestDataOf(net.graph(), true);
  const bool reads = data.records > 0;
  const bool fits = reads && data.records % data.batch == 0;
  float sums[] = {reads ? 1.0f : 0.0f, fits ? 1.0f : 0.0f,
                  fits ? static_cast<float>(data.records / data.batch) : 0.0f};
  group_->AllReduce(sums);
  if (sums[0] == 0 || sums[1] < sums[0]) {
    spec_.Fail("test_iter",
               "a test of one exact pass over the data needs batches of equal size if the net is "
               "divided among ranks: give the test net a batch_size that divides the number of its "
               "records, or give test_iter",
               proto_.test_iter_size() > static_cast<int>(test) ? static_cast<int>(test) : -1);
  }
  return static_cast<int>(sums[2] / sums[1]);
}

// Logs what a test reads if it is an exact pass over the data, and warns if test_iter does not fit
// the data.
void Solver::NoteTestData(size_t test, const TestNets& nets) const {
  const std::string net = Join("Test net (#", test, "): ");
  const int test_iter = proto_.test_iter(static_cast<int>(test));
  if (test_iter > 0) {
    const std::string misfit = MisfitOfTest(nets.data(), test_iter, "test_iter");
    if (!misfit.empty()) LOG(WARNING) << EscapeControl(net + misfit);
  } else if (nets.data().records > 0) {
    LOG(INFO) << EscapeControl(
        Join(net, "a test is one pass over the ", nets.data().records, " records of layer '",
             nets.data().layer, "', in ", test_batches_[test],
             test_batches_[test] == 1 ? " batch of " : " batches of ", nets.batch_records(),
             nets.rest_records() > 0 ? Join(" and one of ", nets.rest_records()) : std::string()));
  }
}

bool Solver::TestIsDue() const {
  return !spec_.tests.empty() && IsDue(proto_.test_interval()) && TestsAndSaves();
}

// Runs all tests, with the averaged weights if there are any. Returns false if the run was asked to
// stop during a test.
bool Solver::TestAll() {
  Synchronize();
  const RankTimes::Pause pause(times_.get());
  const ConsensusScope consensus(*strategy_);
  const EmaWeights::Scope averaged(ema_.get(), true);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < static_cast<int>(spec_.tests.size()); ++i) {
    if (!RunTest(i)) return false;
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  budget_->NoteTest(passed.count());
  return true;
}

// Returns whether `patience` ends the run now. Collective, because only rank 0 knows the scores.
bool Solver::PatienceIsOver() {
  if (proto_.patience() == 0 || !BroadcastBool(patience_ && patience_->IsFinished())) return false;
  if (patience_) observer_.OnNote(patience_->Describe());
  return true;
}

// Explains why the loss of a test before the first iteration may be 70, for example, although the
// net is sound.
void Solver::NoteMissingAverages(int index) {
  const Net* const net = test_nets_[static_cast<size_t>(index)].get();
  if (state_.iter > 0 || net == nullptr) return;
  const std::vector<std::string> layers = LayersWithoutAverages(*net);
  if (layers.empty()) return;
  const std::string which = layers.size() == 1
                                ? "its BatchNorm layer has"
                                : Join("its ", layers.size(), " BatchNorm layers have");
  observer_.OnNote(Join("Test net #", index, ": ", which,
                        " no moving averages before the first iteration ('", layers.front(),
                        "' is the first), so this test's results are meaningless; "
                        "test_initialization: false skips this test"));
}

// One test of one net, in rounds: in each round every rank that shares the test computes one batch.
class Solver::TestRun {
 public:
  TestRun(Solver& solver, int index)
      : solver_(solver),
        number_(index + 1),
        net_(solver.test_nets_[static_cast<size_t>(index)].get()),
        shared_(solver.shared_tests_[static_cast<size_t>(index)]),
        nets_(*solver.tests_[static_cast<size_t>(index)]),
        batches_(solver.test_batches_[static_cast<size_t>(index)]),
        has_rest_(nets_.rest_records() > 0),
        weight_(has_rest_ ? static_cast<float>(nets_.batch_records()) : 1.0f),
        total_(has_rest_ ? static_cast<float>(nets_.data().records) : static_cast<float>(batches_)),
        passes_(net_ == nullptr ? 0 : net_->passes()) {}

  bool IsDone() const { return done_ >= batches_ + (has_rest_ ? 1 : 0); }

  // Runs the next round. Returns the strongest request that any rank made during it.
  Request Round() {
    if (solver_.partition_ != nullptr) return RoundOfStages();
    if (done_ == batches_) return RoundOfRest();
    const int rank = solver_.rank_.rank;
    const int count = shared_ ? std::min(solver_.rank_.size, batches_ - done_) : 1;
    numbers_.clear();
    if (shared_) {
      net_->SetPasses(passes_ + static_cast<uint32_t>(done_ + rank));
      numbers_.resize(Width() * static_cast<size_t>(count), -0.0f);  // x + -0 is x, whatever x is
      if (rank < count) Compute(static_cast<size_t>(rank) * Width());
      net_->SetPasses(passes_ + static_cast<uint32_t>(done_ + count));
    } else if (net_ != nullptr) {
      numbers_.resize(Width());
      Compute(0);
    }
    done_ += count;
    const Request request = Exchange();
    AddUp(count);
    return request;
  }

  // The loss and the mean of every output element over all records of the test so far.
  float loss() const { return loss_; }
  const std::vector<ReportedValue>& Means() {
    for (size_t i = 0; i < values_.size(); ++i) {
      const bool in_rest = i < is_in_rest_.size() && is_in_rest_[i];
      const bool lacks = has_rest_ && !in_rest;
      values_[i].value = sums_[i] / (lacks ? weight_ * static_cast<float>(batches_) : total_);
    }
    return values_;
  }

 private:
  // Runs the last batch of an exact pass, which is smaller than the others, on rank 0 alone.
  Request RoundOfRest() {
    Net* const net = nets_.rest();
    ++done_;
    if (net != nullptr && solver_.WaitForInput(*net, 1)) {
      loss_ += net->Forward() * static_cast<float>(nets_.rest_records()) / total_;
      AddRest(solver_.ReadOutputs(*net, number_));
      ReduceBadRecords(*net, ReduceOver(nullptr));
    }
    return solver_.Agree(solver_.LocalRequest(true));
  }

  // Adds the outputs of the smaller batch. An output with elements for each record has fewer
  // elements there: the first ones of a whole batch.
  void AddRest(const std::vector<ReportedValue>& rest) {
    is_in_rest_.resize(values_.size());
    size_t i = 0;
    for (const ReportedValue& value : rest) {
      while (i < values_.size() && values_[i].name != value.name) ++i;
      if (i >= values_.size()) return;
      sums_[i] += value.value * static_cast<float>(nets_.rest_records());
      is_in_rest_[i++] = true;
    }
  }

  // Runs several batches, which pass through the stages one after the other.
  Request RoundOfStages() {
    constexpr int kPerRank = 4;
    const int count = std::min(kPerRank * solver_.rank_.size, batches_ - done_);
    numbers_.clear();
    for (int batch = 0; batch < count; ++batch) {
      numbers_.push_back(solver_.partition_->ForwardTest(*net_, number_));
      values_ = solver_.LayOutOutputs(*net_, number_);
      for (const ReportedValue& value : values_) numbers_.push_back(value.value);
    }
    done_ += count;
    const Request request = Exchange();
    AddUp(count);
    return request;
  }

  // Returns how many numbers a batch gives: the loss and all output elements.
  size_t Width() const {
    size_t width = 1;
    for (const NetOutput& output : net_->outputs()) {
      width += static_cast<size_t>(output.value.Count());
    }
    return width;
  }

  void Compute(size_t at) {
    if (!solver_.WaitForInput(*net_, 1)) return;
    numbers_[at] = net_->Forward();
    values_ = solver_.ReadOutputs(*net_, number_);
    if (!shared_) numbers_.resize(1 + values_.size());  // output sizes may vary from batch to batch
    for (size_t i = 0; i < values_.size(); ++i) numbers_[at + 1 + i] = values_[i].value;
  }

  // Reduces the numbers of the round over the ranks and returns what the ranks request.
  Request Exchange() {
    const Request own = solver_.LocalRequest(true);
    Communicator* const group = solver_.group_;
    if (solver_.context_) solver_.context_->group.Heartbeat(solver_.state_.iter);
    if (group != nullptr && (shared_ || solver_.partition_ != nullptr)) group->AllReduce(numbers_);
    if (net_ != nullptr) {
      ReduceBadRecords(*net_, ReduceOver(shared_ ? group : nullptr));
    }
    return solver_.Agree(own);
  }

  // Adds one batch after the other, in the same order as a single rank does.
  void AddUp(int count) {
    if (!solver_.input_error_.empty()) return;  // the test ends here
    const size_t width = numbers_.size() / static_cast<size_t>(count);
    for (int batch = 0; batch < count && width > 0; ++batch) {
      const float* const of_batch = numbers_.data() + static_cast<size_t>(batch) * width;
      loss_ += of_batch[0] * weight_ / total_;
      if (has_sums_) RequireEqualCounts(sums_.size(), width - 1);
      if (!has_sums_) sums_.assign(width - 1, -0.0f);
      has_sums_ = true;
      for (size_t i = 0; i + 1 < width; ++i) sums_[i] += of_batch[1 + i] * weight_;
    }
  }

  Solver& solver_;
  int number_;
  Net* net_;  // null on other ranks if rank 0 tests alone
  bool shared_;
  TestNets& nets_;
  int batches_, done_ = 0;      // whole batches in total; batches done
  bool has_rest_;               // whether a smaller batch follows them
  float weight_, total_;        // of a whole batch, of all; in records if has_rest_, else 1 each
  uint32_t passes_;             // net_->passes() before the test
  std::vector<float> numbers_;  // of the round: Width() per batch
  std::vector<ReportedValue> values_;  // the outputs of the last batch
  float loss_ = 0;
  bool has_sums_ = false;
  std::vector<float> sums_;
  std::vector<bool> is_in_rest_;  // by output element
};

// Runs one test and reports the means of the loss and of every output element over its records.
// Rank 0 reports.
bool Solver::RunTest(int index) {
  if (rank_.rank == 0) observer_.OnTestStart(state_.iter, index);
  TestRun run(*this, index);
  Request request = Request::kNone;
  while (!run.IsDone() && request != Request::kStop) {
    request = run.Round();
    if (request == Request::kSnapshot) StartSnapshot();
  }
  TestReport report;
  report.iter = state_.iter;
  report.net = index;
  report.has_loss = proto_.test_compute_loss();
  report.loss = run.loss();
  report.interrupted = request == Request::kStop;
  report.outputs = run.Means();
  if (kept_) kept_->NoteTest(report);
  if (patience_) {
    patience_->NoteTest(report);
    report.is_best = !report.interrupted && index == 0 && patience_->BestIter() == report.iter;
  }
  if (rank_.rank == 0) observer_.OnTest(report);
  if (rank_.rank == 0 && !report.interrupted) NoteMissingAverages(index);
  return !report.interrupted;
}

}  // namespace trainer
