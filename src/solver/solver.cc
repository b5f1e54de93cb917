#include "trainer/solver/solver.h"

#include <glog/logging.h>

#include <optional>
#include <random>

#include "clock.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

// Of several replicas that of rank 0, in parts that floats hold exactly.
uint64_t FreshSeed(ReplicaGroup* group) {
  std::random_device device;
  const uint64_t own = (uint64_t{device()} << 32) | device();
  if (group == nullptr) return own;
  float parts[4] = {};
  for (int i = 0; i < 4 && group->replica().rank == 0; ++i) {
    parts[i] = static_cast<float>(own >> (16 * i) & 0xffff);
  }
  group->Sum(parts);
  uint64_t seed = 0;
  for (int i = 0; i < 4; ++i) seed |= static_cast<uint64_t>(parts[i]) << (16 * i);
  return seed;
}

// Where replicas sum gradients in memory of the host: of a device that is done when a call returns,
// so that they see what it computed.
std::pmr::memory_resource* GradientMemory(const TrainOptions& options, const Device& device) {
  if (options.group == nullptr || device.RunsLater()) return nullptr;
  return options.group->memory();
}

}  // namespace

Replica ReplicaOf(const TrainOptions& options) {
  return options.group == nullptr ? Replica{} : options.group->replica();
}

Solver::Solver(const SolverSpec& spec, const TrainOptions& options, const Device& device,
               Observer& observer)
    : spec_(spec),
      proto_(spec.proto),
      device_(device),
      observer_(observer),
      signals_(options.signals),
      group_(options.group),
      before_snapshot_(options.before_snapshot),
      replica_(ReplicaOf(options)),
      params_(device, GradientMemory(options, device)),
      rule_(MakeStepRule(spec)),
      clock_(std::make_unique<Clock>()) {
  std::optional<LoadedState> loaded;
  if (!options.snapshot.empty()) loaded = ReadState(options.snapshot, options.allow_outside);
  if (proto_.random_seed() >= 0) {
    seed_ = static_cast<uint64_t>(proto_.random_seed());
  } else {
    seed_ =
        loaded && loaded->state.has_random_seed() ? loaded->state.random_seed() : FreshSeed(group_);
  }
  BuildTrainNet(options);
  objective_ =
      std::make_unique<Objective>(device_, *train_net_, params_, proto_.iter_size(), group_);
  rule_->Prepare(*objective_);
  BuildTestNets(options);
  LOG(INFO) << "Solver scaffolding done.";
  if (proto_.ema_decay() > 0 && replica_.rank == 0) {
    average_ = std::make_unique<WeightAverage>(proto_.ema_decay(), device_, *train_net_);
  }
  if (loaded) {
    LOG(INFO) << "Resuming from " << options.snapshot;
    Restore(*loaded, options.snapshot);
  } else {
    LoadWeights(options.weights);
  }
  if (group_ != nullptr) ShareWeights();
  if (!SavesSnapshots(proto_) || replica_.rank != 0) return;
  CheckSnapshotForm();
  if (options.saves) CheckSnapshotFolder();
}

Solver::~Solver() = default;

NetOptions Solver::CommonOptions(const TrainOptions& options) const {
  NetOptions net_options;
  net_options.seed = seed_;
  net_options.memory = options.memory;
  if (options.saves && replica_.rank == 0) {
    net_options.output_files = options.snapshot.empty() ? OutputFiles::kNew : OutputFiles::kResume;
  }
  return net_options;
}

void Solver::BuildTrainNet(const TrainOptions& options) {
  NetOptions net_options = CommonOptions(options);
  net_options.state = spec_.train.state;
  net_options.training = true;
  net_options.replica = replica_;
  net_options.keeps_batch = rule_->EvaluatesAgain();
  net_options.states_per_weight = rule_->StatesPerWeight() + (proto_.ema_decay() > 0 ? 1 : 0);
  LOG(INFO) << "Creating training net from " << spec_.train.description;
  train_net_ = std::make_unique<Net>(*spec_.train.net, net_options, device_, params_);
}

// Rank 0 tests on the whole data set.
void Solver::BuildTestNets(const TrainOptions& options) {
  NetOptions net_options = CommonOptions(options);
  for (size_t i = 0; i < spec_.tests.size() && replica_.rank == 0; ++i) {
    LOG(INFO) << "Creating test net (#" << i << ") specified by " << spec_.tests[i].description;
    net_options.state = spec_.tests[i].state;
    test_nets_.push_back(std::make_unique<Net>(*spec_.tests[i].net, net_options, device_, params_));
    if (proto_.debug_info()) test_nets_.back()->SetDebugInfo(true);
  }
}

SolveResult Solver::Solve() {
  observer_.OnStart({train_net_->name(), proto_.lr_policy(), state_.iter, proto_.max_iter()});
  clock_->Restart();
  if (signals_ != nullptr) signals_->BeginRun();
  bool stopped = false;
  while (state_.iter < proto_.max_iter()) {
    if (TestIsDue() && (state_.iter > 0 || proto_.test_initialization()) && !TestAll()) break;
    if (StopsNow()) break;
    StepAhead();
    const Request request = PollAll();
    const bool scheduled = proto_.snapshot() > 0 && state_.iter % proto_.snapshot() == 0;
    stopped = request == Request::kStop;
    if (stopped) break;
    if (scheduled || request == Request::kSnapshot) TrySnapshot();
  }
  CatchUp();
  stopped = stopped || StopsNow();
  const bool saved = OfRank0(saved_iter_ == state_.iter);
  if (!saved && (stopped || proto_.snapshot_after_train())) Snapshot();
  if (!stopped) Finish();
  observer_.OnEnd(stopped);
  return stopped ? SolveResult::kStopped : SolveResult::kFinished;
}

// Several replicas stop after a step, when all know of it.
bool Solver::StopsNow() const {
  return group_ == nullptr && signals_ != nullptr && signals_->StopRequested();
}

// The strongest request of any replica.
Request Solver::PollAll() {
  const Request own = signals_ == nullptr ? Request::kNone : signals_->Poll();
  if (group_ == nullptr) return own;
  float wishes[] = {own == Request::kSnapshot ? 1.0f : 0.0f, own == Request::kStop ? 1.0f : 0.0f};
  group_->Sum(wishes);
  if (wishes[1] > 0) return Request::kStop;
  return wishes[0] > 0 ? Request::kSnapshot : Request::kNone;
}

// What rank 0 thinks of it.
bool Solver::OfRank0(bool value) {
  if (group_ == nullptr) return value;
  float said = replica_.rank == 0 && value ? 1.0f : 0.0f;
  group_->Sum({&said, 1});
  return said > 0;
}

// What Caffe does after the last update: one more forward pass and one more test, when due.
void Solver::Finish() {
  if (IsDisplayed()) {
    IterationReport report;
    report.iter = state_.iter;
    report.loss = SmoothLoss(objective_->Loss(NetBatch::kNext));
    report.after_last = true;
    observer_.OnIteration(report);
  }
  if (TestIsDue()) TestAll();
}

bool Solver::IsDisplayed() const {
  return proto_.display() > 0 && state_.iter % proto_.display() == 0;
}

void Solver::Report(float rate) {
  IterationReport report;
  report.iter = state_.iter;
  report.loss = state_.smoothed_loss;
  report.rate = rate;
  report.seconds = clock_->Lap();
  report.iterations = clock_->IterationsSince(state_.iter);
  const std::vector<ReportedValue> outputs = ReadOutputs(*train_net_);
  report.outputs = outputs;
  observer_.OnIteration(report);
  const std::string note = clock_->cores().Note(report.seconds);
  if (!note.empty()) observer_.OnNote(note);
}

// Every element of every output, in Caffe's numbering.
std::vector<ReportedValue> Solver::ReadOutputs(const Net& net) const {
  std::vector<ReportedValue> values;
  std::vector<float> host;
  for (const NetOutput& output : net.outputs()) {
    host.resize(static_cast<size_t>(output.value.Count()));
    net.ReadPlain(output.value, host);
    for (const float value : host) values.push_back({output.name, value, output.loss_weight});
  }
  return values;
}

}  // namespace trainer
