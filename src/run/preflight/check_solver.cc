#include "check_solver.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "batch_size.h"
#include "check_data.h"
#include "check_nets.h"
#include "check_pass.h"
#include "class_weights.h"
#include "epochs.h"
#include "preflight/lints.h"
#include "rescue.h"
#include "trainer/analysis/memory/memory_fit.h"
#include "trainer/analysis/memory/memory_room.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/checkpoint/snapshot_lock.h"
#include "trainer/config/epochs.h"
#include "trainer/config/overrides.h"
#include "trainer/optim/optimizer.h"
#include "trainer/run/search/batch_search.h"
#include "trainer/run/start_point.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

// One check of a run. After an error it continues with every step that does not depend on the
// failed one, so that one check finds as many errors as possible.
class SolverCheck {
 public:
  SolverCheck(const TrainRequest& request, PreflightReport* report, Json* passes)
      : request_(request), report_(*report), passes_(*passes), diagnostics_(report->diagnostics) {}

  // Makes all checks in an order in which later ones can use what earlier ones found.
  void Run() {
    if (!diagnostics_.Collect([&] { Load(); })) return;
    DeviceChoice choice;
    diagnostics_.Collect([&] { choice = ChooseDevice(request_.device, spec_); });
    device_ = MakePreflightDevice(choice, &diagnostics_);
    diagnostics_.Collect([&] { rule_ = MakeOptimizer(spec_); });
    const bool uses_epochs = UsesEpochs(spec_.proto);  // which depend on the batch
    if (!uses_epochs) CheckSchedule();
    diagnostics_.Collect([&] { FindStart(); });
    if (sound_ && rule_) fits_limit_ = ApplySize();
    if (uses_epochs) {
      if (sound_) diagnostics_.Collect([&] { FindLength(); });
      CheckSchedule();
    }
    if (sound_) diagnostics_.Collect([&] { ResolveClassWeights(nullptr, &spec_); });
    ListNets();
    const PlannedNets planned = PlanNets(nets_, &spec_, rule_.get(), *device_.device, &report_);
    const bool fits = !planned.good() || CheckMemory(nets_, planned, device_, &report_);
    const std::vector<LayerAudit> audits = AuditNets(nets_, planned, &diagnostics_);
    std::unique_ptr<Solver> solver;
    if (planned.good() && fits && fits_limit_ && rule_ && sound_) solver = MakeSolver();
    CheckSnapshotFolder(solver ? solver->SnapshotBytes() : planned.memory.weights * (1 + States()));
    const std::set<size_t> bad = ReportDataAudits(nets_, audits, &report_);
    if (!solver) return;
    LintTrainingNet(solver->train_net(), &diagnostics_);
    ReportLearning(solver->train_net(), spec_.proto.unfreeze_at(), &report_);
    RunPasses(*solver, bad);
  }

 private:
  // Returns the update rule's states per weight; 0 if the rule has an error.
  size_t States() const { return rule_ ? static_cast<size_t>(rule_->StatesPerWeight()) : 0; }

  // Reads the solver and sets `sound_` to whether it has no errors. Throws if it cannot be read at
  // all.
  void Load() {
    ErrorCollector errors;
    Overrides overrides(request_.solver.set);
    spec_ = LoadSolver(request_.solver.file, request_.solver.state, &overrides, &errors);
    errors.Try([&] {
      if (spec_.train.net != nullptr) ApplyFreezing(request_.solver, &spec_);
    });
    diagnostics_.Add(errors.errors());
    sound_ = errors.empty();
  }

  // Applies --batch and --memory as a run does. Returns false if they cannot be applied. Ignores
  // other errors, which planning the nets will find.
  bool ApplySize() {
    try {
      ApplyBatchSize(request_.batch, {}, &spec_);
      const Device& device = *device_.device;
      if (request_.batch == kBestBatch) {
        ApplyBestBatch(MakeBatchSearchOptions(request_.memory, request_.memory_mode, device),
                       device, !state_.empty(), &spec_);
      }
      const std::optional<size_t> limit = ParseMemoryLimit(request_.memory, device);
      if (limit) activation_budget_bytes_ = ActivationBudget(*limit, spec_, device);
    } catch (const Error& error) {
      const bool of_size =
          error.code() == ErrorCode::kResource || error.code() == ErrorCode::kUsage;
      if (of_size) diagnostics_.Add(error);
      return !of_size;
    }
    return true;
  }

  // Counts the records and replaces times in epochs by iterations.
  void FindLength() {
    const std::string line = ApplyEpochs({}, {}, nullptr, &spec_);
    report_.lines.emplace_back("epochs", EscapeControl(line));
    report_.figures.Set("length", Json::Object().Set("max_iter", spec_.proto.max_iter()));
  }

  // Checks the learning rates and warns of settings that spoil the result.
  void CheckSchedule() {
    if (sound_) CheckLearningRates();
    diagnostics_.Collect([&] { LintSolver(spec_, &diagnostics_); });
  }

  // Reports the first, the last and the highest learning rate, unless they are unknown.
  void CheckLearningRates() {
    const RateRange range = LintRates(spec_, &diagnostics_);
    if (range.most == 0 && range.first == 0 && range.last == 0) return;
    report_.lines.emplace_back(
        "rate", Join(range.first, " at first, ", range.last, " at last, ", range.most, " at most"));
    report_.figures.Set(
        "rate",
        Json::Object().Set("first", range.first).Set("last", range.last).Set("most", range.most));
  }

  // Finds the snapshot to resume from and reads it, so that a damaged one is an error of the check.
  // Sets `start_ok_` if both succeed.
  void FindStart() {
    state_ = FindResumePoint(request_.start, spec_, RescueFolders("")).state;
    if (!state_.empty()) ReadState(state_, request_.start.allow_outside);
    start_ok_ = true;
  }

  // Fills `nets_`: the training net first, then the test nets, with the options that a run gives
  // them.
  void ListNets() {
    const int batches = std::max(1, spec_.proto.iter_size()) *  // virtual ranks have one each
                        std::max(1, spec_.proto.virtual_ranks());
    PreflightNet train{"training net", spec_.train.net, {}, 0, batches};
    train.options.state = spec_.train.state;
    train.options.training = true;
    train.options.keeps_frozen = spec_.proto.unfreeze_at() <= 0;  // the most memory of the run
    train.options.activation_budget_bytes = activation_budget_bytes_;
    if (rule_) AdaptNetOptions(*rule_, &train.options);
    if (state_.empty()) train.options.output_files = OutputFiles::kCheckOnly;
    train.options.snapshot_folder = FolderOf(spec_.proto.snapshot_prefix());
    train.batches = int64_t{spec_.proto.max_iter()} * batches;
    nets_.push_back(train);
    for (size_t i = 0; i < spec_.tests.size(); ++i) {
      PreflightNet test{Join("test net #", i), spec_.tests[i].net, {}, 0, 1};
      test.options.output_files = train.options.output_files;
      test.options.snapshot_folder = train.options.snapshot_folder;
      test.options.state = spec_.tests[i].state;
      const auto number = static_cast<int>(i);
      if (number < spec_.proto.test_iter_size()) test.batches = spec_.proto.test_iter(number);
      test.one_exact_pass = test.batches == 0;
      test.tests_at_start = spec_.proto.test_initialization();
      nets_.push_back(test);
    }
  }

  // Returns a solver with the weights or the snapshot to start from, or without them if they cannot
  // be used; null if even that fails. Adds the errors.
  std::unique_ptr<Solver> MakeSolver() {
    SolverOptions options;
    options.snapshot = state_;
    options.allow_outside = request_.start.allow_outside;
    diagnostics_.Collect([&] {
      if (!state_.empty()) return;
      options.weights = WeightFiles(request_.start, spec_);
      options.reset = ResetLayers(request_.start, options.weights);
    });
    options.saves = false;
    options.activation_budget_bytes = activation_budget_bytes_;
    std::unique_ptr<Solver> solver;
    const auto make = [&] {
      solver = std::make_unique<Solver>(spec_, options, *device_.device, nobody_);
      fresh_ = options.snapshot.empty() && options.weights.empty();
    };
    if (start_ok_ && diagnostics_.Collect(make)) return solver;
    options.snapshot.clear();
    options.weights.clear();
    diagnostics_.Collect(make);
    return solver;
  }

  // Checks that the run can write and lock its snapshots, and that the disk has room for all of
  // them. `bytes` is the size of one snapshot.
  void CheckSnapshotFolder(uint64_t bytes) {
    const caffe::SolverParameter& proto = spec_.proto;
    if (!SavesSnapshots(proto)) {
      diagnostics_.Warn(Join(spec_.file,
                             ": the run saves no snapshot: snapshot is 0 and "
                             "snapshot_after_train is false"));
      return;
    }
    const std::string& prefix = proto.snapshot_prefix();
    const bool writable = diagnostics_.Collect([&] { CheckWritable(prefix, bytes); });
    if (writable) diagnostics_.Collect([&] { CheckSnapshotPaths(proto); });
    diagnostics_.Collect([&] { CheckSnapshotLock(prefix); });
    const int every = proto.snapshot();
    const int64_t count = every > 0 ? (int64_t{proto.max_iter()} + every - 1) / every : 1;
    const uint64_t all = bytes * static_cast<uint64_t>(count);
    uint64_t free = 0;
    if (writable && FileOps::Posix().FreeBytes(FolderOf(prefix), &free) == 0 && free < all) {
      diagnostics_.Warn(Join(
          AbsolutePath(FolderOf(prefix)), ": all ", count, " snapshots need ", Bytes(all), " and ",
          Bytes(free),
          " are free; raise `snapshot`, or set keep_last to delete old snapshots during the run"));
    }
    const std::string size = bytes == 0 ? "" : Join("of ", Bytes(bytes), " ");
    report_.lines.emplace_back("snapshots",
                               EscapeControl(Join(count, " ", size, "as ", prefix, "_iter_...")));
    report_.snapshots = "snapshots " + size;
    report_.snapshots.pop_back();
    report_.figures.Set("snapshot", Json::Object()
                                        .Set("bytes", size_t{bytes})
                                        .Set("count", count)
                                        .Set("prefix", prefix)
                                        .Set("free_bytes", size_t{free}));
  }

  // Runs the first pass of each net, except for nets whose data are `bad`.
  void RunPasses(Solver& solver, const std::set<size_t>& bad) {
    for (size_t i = 1; i <= nets_.size(); ++i) {  // tests first, as in a run
      const size_t at = i % nets_.size();
      Net& net = at == 0 ? solver.train_net() : solver.test_net(static_cast<int>(at) - 1);
      if (bad.contains(at)) {
        report_.lines.emplace_back("first pass", nets_[at].title + ": not run on bad data");
        continue;
      }
      diagnostics_.Collect(
          [&] { RunFirstPass(nets_[at], net, *device_.device, fresh_, &report_, &passes_); });
    }
  }

  const TrainRequest& request_;
  PreflightDevice device_;
  PreflightReport& report_;
  Json& passes_;
  Diagnostics& diagnostics_;
  ObserverList nobody_;
  SolverSpec spec_;
  std::vector<PreflightNet> nets_;
  std::string state_;                   // the .solverstate to resume from, or ""
  std::unique_ptr<Optimizer> rule_;     // null if it has an error
  size_t activation_budget_bytes_ = 0;  // of --memory
  bool fits_limit_ = true;
  bool sound_ = false, start_ok_ = false, fresh_ = true;
};

}  // namespace

void CheckSolverRun(const TrainRequest& request, PreflightReport* report, Json* passes) {
  SolverCheck(request, report, passes).Run();
}

}  // namespace trainer
