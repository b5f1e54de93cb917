#include "tester.h"

#include <glog/logging.h>

#include <algorithm>

#include "sharded_model.h"
#include "snapshot_manager.h"
#include "trainer/base/text/text.h"
#include "trainer/net/data_layers.h"
#include "trainer/net/debug_info.h"
#include "trainer/net/learning.h"
#include "trainer/net/output_counts.h"

namespace trainer {
namespace {

// One test of one net, in rounds: in each round every rank that shares the test computes one batch.
class TestRun {
 public:
  TestRun(const SolverContext& run, RunControl& control, const SolverTest& test, int number)
      : run_(run),
        control_(control),
        test_(test),
        number_(number),
        has_rest_(test.nets->rest_records() > 0),
        weight_(has_rest_ ? static_cast<float>(test.nets->batch_records()) : 1.0f),
        total_(static_cast<float>(has_rest_ ? test.nets->data().records : test.batches)),
        passes_(test.net == nullptr ? 0 : test.net->passes()) {
    if (test.metrics != nullptr) test.metrics->Begin();
  }

  bool IsDone() const { return done_ >= test_.batches + (has_rest_ ? 1 : 0); }

  // Runs the next round. Returns the strongest request that any rank made during it.
  Request Round() {
    if (run_.pipeline != nullptr) return RoundOfStages();
    if (done_ == test_.batches) return RoundOfRest();
    const int rank = run_.rank.rank;
    const int count = test_.shared ? std::min(run_.rank.size, test_.batches - done_) : 1;
    numbers_.clear();
    if (test_.metrics != nullptr) test_.metrics->BeginRound(test_.shared ? count : 0);
    if (test_.shared) {
      test_.net->SetPasses(passes_ + static_cast<uint32_t>(done_ + rank));
      numbers_.resize(Width() * static_cast<size_t>(count), -0.0f);  // x + -0 is x, whatever x is
      if (rank < count) Compute(static_cast<size_t>(rank) * Width(), rank);
      test_.net->SetPasses(passes_ + static_cast<uint32_t>(done_ + count));
    } else if (test_.net != nullptr) {
      numbers_.resize(Width());
      Compute(0, 0);
    }
    return Exchange(count);
  }

  // The loss and the mean of every output element over all records of the test so far; after the
  // means the metrics.
  float loss() const { return loss_; }
  std::vector<ReportedValue> Results() {
    std::vector<ReportedValue> results = Means();
    if (test_.metrics == nullptr || run_.rank.rank != 0) return results;
    for (const ReportedValue& metric : test_.metrics->Values()) results.push_back(metric);
    return results;
  }

 private:
  const std::vector<ReportedValue>& Means() {
    for (size_t i = 0; i < values_.size(); ++i) {
      const bool in_rest = i < is_in_rest_.size() && is_in_rest_[i];
      const bool lacks = has_rest_ && !in_rest;
      values_[i].value = sums_[i] / (lacks ? weight_ * static_cast<float>(test_.batches) : total_);
    }
    return values_;
  }

  // Runs the last batch of an exact pass, which is smaller than the others, on rank 0 alone.
  Request RoundOfRest() {
    Net* const net = test_.nets->rest();
    ++done_;
    if (net != nullptr && control_.WaitForInput(*net, 1)) {
      loss_ += net->Forward() * static_cast<float>(test_.nets->rest_records()) / total_;
      AddRest(ReadOutputs(run_, *net, number_));
      if (test_.metrics != nullptr) test_.metrics->AddRest();
      ReduceBadRecords(*net, ReduceOver(nullptr));
    }
    return control_.Agree(control_.Local(true));
  }

  // Adds the outputs of the smaller batch. An output with elements for each record has fewer
  // elements there: the first ones of a whole batch.
  void AddRest(const std::vector<ReportedValue>& rest) {
    is_in_rest_.resize(values_.size());
    size_t i = 0;
    for (const ReportedValue& value : rest) {
      while (i < values_.size() && values_[i].name != value.name) ++i;
      if (i >= values_.size()) return;
      sums_[i] += value.value * static_cast<float>(test_.nets->rest_records());
      is_in_rest_[i++] = true;
    }
  }

  // Runs several batches, which pass through the stages one after the other.
  Request RoundOfStages() {
    constexpr int kPerRank = 4;
    const int count = std::min(kPerRank * run_.rank.size, test_.batches - done_);
    numbers_.clear();
    for (int batch = 0; batch < count; ++batch) {
      numbers_.push_back(run_.pipeline->ForwardTest(*test_.net, number_));
      values_ = OutputsOfStage(run_, *test_.net, number_);
      for (const ReportedValue& value : values_) numbers_.push_back(value.value);
    }
    return Exchange(count);
  }

  // Returns how many numbers a batch gives: the loss and all output elements.
  size_t Width() const {
    size_t width = 1;
    for (const NetOutput& output : test_.net->outputs()) {
      width += static_cast<size_t>(output.value.Count());
    }
    return width;
  }

  // Computes a batch. Its numbers begin at `at`; it is batch `batch` of the round.
  void Compute(size_t at, int batch) {
    if (!control_.WaitForInput(*test_.net, 1)) return;
    numbers_[at] = test_.net->Forward();
    if (test_.metrics != nullptr) test_.metrics->Keep(batch);
    values_ = ReadOutputs(run_, *test_.net, number_);
    // Output sizes may vary from batch to batch.
    if (!test_.shared) numbers_.resize(1 + values_.size());
    for (size_t i = 0; i < values_.size(); ++i) numbers_[at + 1 + i] = values_[i].value;
  }

  // Reduces the numbers of a round of `count` batches over the ranks, adds them up and returns what
  // the ranks request.
  Request Exchange(int count) {
    done_ += count;
    const Request own = control_.Local(true);
    if (run_.world != nullptr) run_.world->Heartbeat(run_.iter);
    const bool reduces = test_.shared || run_.pipeline != nullptr;
    if (run_.group != nullptr && reduces) {
      run_.group->AllReduce(numbers_);
      if (test_.metrics != nullptr) run_.group->AllReduce(test_.metrics->round());
    }
    if (test_.net != nullptr) {
      ReduceBadRecords(*test_.net, ReduceOver(test_.shared ? run_.group : nullptr));
    }
    const Request request = control_.Agree(own);
    AddUp(count);
    return request;
  }

  // Adds one batch after the other, in the same order as a single rank does.
  void AddUp(int count) {
    if (control_.HasLostInput()) return;  // the test ends here
    if (test_.metrics != nullptr && run_.rank.rank == 0) test_.metrics->AddRound();
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

  const SolverContext& run_;
  RunControl& control_;
  const SolverTest& test_;
  int number_;                  // Pipeline's
  int done_ = 0;                // batches
  bool has_rest_;               // whether a smaller batch follows the whole ones
  float weight_, total_;        // of a whole batch, of all; in records if has_rest_, else 1 each
  uint32_t passes_;             // of the net before the test
  std::vector<float> numbers_;  // of the round: Width() per batch
  std::vector<ReportedValue> values_;  // the outputs of the last batch
  float loss_ = 0;
  bool has_sums_ = false;
  std::vector<float> sums_;
  std::vector<bool> is_in_rest_;  // by output element
};

}  // namespace

Tester::Tester(const SolverContext& run, TrainingModel& model, RunControl& control,
               const SolverOptions& options)
    : run_(run), model_(model), control_(control), test_at_end_(options.test_at_end) {
  BuildNets(options);
  if (run.rank.rank == 0 && (run.proto.patience() > 0 || !tests_.empty())) {
    early_stopping_ = std::make_unique<EarlyStopping>(run.spec, OutputNames());
  }
}

void Tester::BuildNets(const SolverOptions& options) {
  for (size_t i = 0; i < run_.spec.tests.size(); ++i) BuildTest(static_cast<int>(i), options);
}

void Tester::BuildTest(int index, const SolverOptions& options) {
  const NetUse& use = run_.spec.tests[static_cast<size_t>(index)];
  NetOptions net_options = run_.OptionsOfNet(index + 1, options);
  LOG(INFO) << "Creating test net (#" << index << ") specified by "
            << EscapeControl(use.description);
  net_options.state = use.state;
  const int test_iter = run_.proto.test_iter(index);
  // With a pipeline only some ranks have data layers, so TestNets cannot count the batches of an
  // exact pass; BatchesOfStages does.
  const int batches = run_.pipeline == nullptr ? test_iter : std::max(test_iter, 1);
  SolverTest& test = tests_.emplace_back();
  test.nets =
      std::make_unique<TestNets>(*use.net, net_options, run_.device, model_.params, batches);
  test.batches = run_.pipeline != nullptr && test_iter == 0
                     ? BatchesOfStages(index, test.nets->net())
                     : test.nets->batches();
  NoteTestData(index);
  test.net = test.nets->TakeNet();
  if (run_.proto.debug_info() && run_.rank.rank == 0) test.net->AddHook(DebugInfoHook());
  const TestShard shard{.rank = run_.rank.rank,
                        .count = run_.rank.size,
                        .period = test.batches,
                        .skip_after = test.nets->skips()};
  const bool divides_tests =
      run_.rank.size > 1 && !run_.strategy.traits().asynchronous && run_.pipeline == nullptr;
  test.shared = divides_tests && ShardTestBatches(*test.net, shard);
  if (run_.rank.rank != 0) test.nets->DropRest();
  if (index == 0 && run_.proto.test_metric_size() > 0) BuildMetrics(test);
  if (!test.shared && run_.pipeline == nullptr && run_.rank.rank != 0) {
    test.metrics = nullptr;  // it refers to the net
    test.net = nullptr;
  }
  if (!divides_tests || test.shared) return;
  LOG(INFO) << "Test net (#" << index
            << ") runs on rank 0 only, because its results depend on earlier batches, or because "
               "it writes files";
}

void Tester::BuildMetrics(SolverTest& test) const {
  if (run_.pipeline != nullptr) {
    run_.spec.Fail("test_metric",
                   "the strategy divides the net among ranks, and then metrics cannot be computed: "
                   "remove the line, or use another strategy",
                   0);
  }
  test.metrics = std::make_unique<TestMetrics>(run_.spec, *test.net, test.nets->rest());
}

// Returns the number of batches of an exact pass over the data, for a net whose stages are on
// several ranks: only some of them read data.
int Tester::BatchesOfStages(int index, const Net& net) const {
  const TestData data = TestDataOf(net.graph(), true);
  const bool reads = data.records > 0;
  const bool fits = reads && data.records % data.batch == 0;
  float sums[] = {reads ? 1.0f : 0.0f, fits ? 1.0f : 0.0f,
                  fits ? static_cast<float>(data.records / data.batch) : 0.0f};
  run_.group->AllReduce(sums);
  if (sums[0] == 0 || sums[1] < sums[0]) {
    run_.spec.Fail("test_iter",
                   "a test of one exact pass over the data needs batches of equal size if the net "
                   "is divided among ranks: give the test net a batch_size that divides the number "
                   "of its records, or give test_iter",
                   run_.proto.test_iter_size() > index ? index : -1);
  }
  return static_cast<int>(sums[2] / sums[1]);
}

// Logs what a test reads if it is an exact pass over the data, and warns if test_iter does not fit
// the data.
void Tester::NoteTestData(int index) const {
  const SolverTest& test = tests_[static_cast<size_t>(index)];
  const TestNets& nets = *test.nets;
  const std::string net = Join("Test net (#", index, "): ");
  const int test_iter = run_.proto.test_iter(index);
  if (test_iter > 0) {
    const std::string misfit = MisfitOfTest(nets.data(), test_iter, "test_iter");
    if (!misfit.empty()) LOG(WARNING) << EscapeControl(net + misfit);
  } else if (nets.data().records > 0) {
    LOG(INFO) << EscapeControl(
        Join(net, "a test is one pass over the ", nets.data().records, " records of layer '",
             nets.data().layer, "', in ", test.batches,
             test.batches == 1 ? " batch of " : " batches of ", nets.batch_records(),
             nets.rest_records() > 0 ? Join(" and one of ", nets.rest_records()) : std::string()));
  }
}

std::vector<std::string> Tester::OutputNames() const {
  std::vector<std::string> names;
  if (tests_.empty()) return names;
  if (run_.pipeline != nullptr) {
    for (const StageOutput& output : run_.pipeline->WholeNet(1).outputs)
      names.push_back(output.name);
  } else {
    for (const NetOutput& output : tests_[0].net->outputs()) names.push_back(output.name);
  }
  const auto& metrics = run_.proto.test_metric();
  names.insert(names.end(), metrics.begin(), metrics.end());
  return names;
}

std::vector<Param*> Tester::ParamsBeyond(const Net& training) const {
  std::vector<Param*> params;
  for (const SolverTest& test : tests_) {
    if (!test.shared) continue;
    for (Param* param : test.net->params()) {
      const bool known = std::ranges::find(training.params(), param) != training.params().end() ||
                         std::ranges::find(params, param) != params.end();
      if (!known) params.push_back(param);
    }
  }
  return params;
}

bool Tester::IsAtInterval() const {
  return !tests_.empty() && run_.IsDue(run_.proto.test_interval()) && run_.TestsAndSaves();
}

bool Tester::IsDueAtEnd() const {
  const bool wants_test = test_at_end_ && run_.proto.test_interval() > 0 && !tests_.empty();
  return IsAtInterval() || (wants_test && run_.TestsAndSaves());
}

bool Tester::Run(SnapshotManager& snapshots) {
  const Strategy::ConsensusScope consensus(run_.strategy);
  const EmaWeights::Scope averaged(model_.ema.get(), true);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < static_cast<int>(tests_.size()); ++i) {
    if (!RunTest(i, snapshots)) return false;
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  control_.reserve().NoteTest(passed.count());
  return true;
}

// Runs one test and reports the means of the loss and of every output element over its records, and
// the metrics.
// Rank 0 reports.
bool Tester::RunTest(int index, SnapshotManager& snapshots) {
  if (run_.rank.rank == 0) run_.observer.OnTestStart(run_.iter, index);
  TestRun test(run_, control_, tests_[static_cast<size_t>(index)], index + 1);
  Request request = Request::kNone;
  while (!test.IsDone() && request != Request::kStop) {
    request = test.Round();
    if (request == Request::kSnapshot) snapshots.Start();
  }
  TestReport report;
  report.iter = run_.iter;
  report.net = index;
  report.has_loss = run_.proto.test_compute_loss();
  report.loss = test.loss();
  report.interrupted = request == Request::kStop;
  const std::vector<ReportedValue> results = test.Results();
  report.outputs = results;
  if (snapshots.retention() != nullptr) snapshots.retention()->NoteTest(report);
  if (early_stopping_) {
    early_stopping_->NoteTest(report);
    report.is_best =
        !report.interrupted && index == 0 && early_stopping_->BestIter() == report.iter;
  }
  if (run_.rank.rank == 0) run_.observer.OnTest(report);
  if (run_.rank.rank == 0 && !report.interrupted) NoteMissingAverages(index);
  return !report.interrupted;
}

bool Tester::PatienceIsOver() {
  if (run_.proto.patience() == 0) return false;
  if (!run_.BroadcastBool(early_stopping_ && early_stopping_->IsFinished())) return false;
  if (early_stopping_) run_.observer.OnNote(early_stopping_->Describe());
  return true;
}

// Explains why the loss of a test before the first iteration may be 70, for example, although the
// net is sound.
void Tester::NoteMissingAverages(int index) const {
  const Net* const net = tests_[static_cast<size_t>(index)].net.get();
  if (run_.iter > 0 || net == nullptr) return;
  const std::vector<std::string> layers = LayersWithoutAverages(*net);
  if (layers.empty()) return;
  const std::string which = layers.size() == 1
                                ? "its BatchNorm layer has"
                                : Join("its ", layers.size(), " BatchNorm layers have");
  run_.observer.OnNote(Join("Test net #", index, ": ", which,
                            " no moving averages before the first iteration ('", layers.front(),
                            "' is the first), so this test's results are meaningless; "
                            "test_initialization: false skips this test"));
}

}  // namespace trainer
