#include "trainer/solver/solver.h"

#include <glog/logging.h>

#include <chrono>
#include <cmath>
#include <random>

#include "clock.h"
#include "trainer/base/text.h"
#include "trainer/solver/lr_policy.h"

namespace trainer {
namespace {

uint64_t FreshSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

Solver::Solver(const SolverSpec& spec, const TrainOptions& options, const Device& device,
               Observer& observer)
    : spec_(spec),
      proto_(spec.proto),
      device_(device),
      observer_(observer),
      signals_(options.signals),
      params_(device),
      clock_(std::make_unique<Clock>()) {
  std::unique_ptr<Rule> rule = MakeRule(spec);
  std::optional<LoadedState> loaded;
  if (!options.snapshot.empty()) loaded = ReadState(options.snapshot, options.allow_outside);
  if (proto_.random_seed() >= 0) {
    seed_ = static_cast<uint64_t>(proto_.random_seed());
  } else {
    seed_ = loaded && loaded->state.has_random_seed() ? loaded->state.random_seed() : FreshSeed();
  }
  BuildNets(options);
  update_ = std::make_unique<WeightUpdate>(spec, std::move(rule), device_, train_net_->params(),
                                           params_.Gradients());
  if (proto_.ema_decay() > 0) {
    average_ = std::make_unique<WeightAverage>(proto_.ema_decay(), device_, *train_net_);
  }
  if (loaded) {
    LOG(INFO) << "Resuming from " << options.snapshot;
    Restore(*loaded, options.snapshot);
  } else {
    LoadWeights(options.weights);
  }
  if (!SavesSnapshots(proto_)) return;
  CheckSnapshotForm();
  if (options.saves) CheckSnapshotFolder();
}

Solver::~Solver() = default;

void Solver::BuildNets(const TrainOptions& options) {
  NetOptions net_options;
  net_options.state = spec_.train.state;
  net_options.training = true;
  net_options.seed = seed_;
  net_options.memory = options.memory;
  if (options.saves) {
    net_options.output_files = options.snapshot.empty() ? OutputFiles::kNew : OutputFiles::kResume;
  }
  LOG(INFO) << "Creating training net from " << spec_.train.description;
  train_net_ = std::make_unique<Net>(*spec_.train.net, net_options, device_, params_);
  net_options.training = false;
  for (size_t i = 0; i < spec_.tests.size(); ++i) {
    LOG(INFO) << "Creating test net (#" << i << ") specified by " << spec_.tests[i].description;
    net_options.state = spec_.tests[i].state;
    test_nets_.push_back(std::make_unique<Net>(*spec_.tests[i].net, net_options, device_, params_));
    if (proto_.debug_info()) test_nets_.back()->SetDebugInfo(true);
  }
  LOG(INFO) << "Solver scaffolding done.";
}

SolveResult Solver::Solve() {
  observer_.OnStart({train_net_->name(), proto_.lr_policy(), state_.iter, proto_.max_iter()});
  clock_->Restart();
  if (signals_ != nullptr) signals_->BeginRun();
  while (state_.iter < proto_.max_iter()) {
    if (TestIsDue() && (state_.iter > 0 || proto_.test_initialization()) && !TestAll()) break;
    if (signals_ != nullptr && signals_->StopRequested()) break;
    Step();
    const Request request = signals_ == nullptr ? Request::kNone : signals_->Poll();
    const bool scheduled = proto_.snapshot() > 0 && state_.iter % proto_.snapshot() == 0;
    if (request == Request::kStop) break;
    if (scheduled || request == Request::kSnapshot) TrySnapshot();
  }
  const bool stopped = signals_ != nullptr && signals_->StopRequested();
  const bool saved = saved_iter_ == state_.iter;
  if (!saved && (stopped || proto_.snapshot_after_train())) Snapshot();
  if (!stopped) Finish();
  observer_.OnEnd(stopped);
  return stopped ? SolveResult::kStopped : SolveResult::kFinished;
}

// What Caffe does after the last update: one more forward pass and one more test, when due.
void Solver::Finish() {
  if (proto_.display() > 0 && state_.iter % proto_.display() == 0) {
    IterationReport report;
    report.iter = state_.iter;
    report.loss = SmoothLoss(train_net_->Forward());
    report.after_last = true;
    observer_.OnIteration(report);
  }
  if (TestIsDue()) TestAll();
}

float Solver::Step() {
  const bool display = proto_.display() > 0 && state_.iter % proto_.display() == 0;
  train_net_->SetDebugInfo(display && (proto_.debug_info() || spec_.train.net->proto.debug_info()));
  const float loss = AccumulateGradients();
  if (!std::isfinite(loss) || (display && !WeightsAreFinite())) Diverge(loss);
  state_.smoothed_loss = SmoothLoss(loss);
  if (TakesStep(proto_, state_.iter, state_.current_step)) {
    ++state_.current_step;
    observer_.OnNote(
        Join("MultiStep Status: Iteration ", state_.iter, ", step = ", state_.current_step));
  }
  const float rate = LearningRate(proto_, state_.iter, state_.current_step);
  if (display) Report(rate);
  const std::string note = update_->Apply(state_.iter, rate);
  if (!note.empty()) observer_.OnNote(note);
  ++state_.iter;
  if (average_) average_->Add(state_.iter);
  return loss;
}

float Solver::AccumulateGradients() {
  float loss = 0;
  if (proto_.snapshot_diff()) params_.ClearGradients();
  for (int pass = 0; pass < proto_.iter_size(); ++pass) {
    loss += train_net_->Forward();
    train_net_->Backward();
  }
  return loss / static_cast<float>(proto_.iter_size());
}

// The mean of the last average_loss losses.
float Solver::SmoothLoss(float loss) {
  const auto window = static_cast<size_t>(proto_.average_loss());
  if (state_.recent_losses.capacity() < window) state_.recent_losses.reserve(window);
  if (state_.recent_losses.size() < window) {
    state_.recent_losses.push_back(loss);
  } else {
    state_.recent_losses[state_.loss_position] = loss;
    state_.loss_position = (state_.loss_position + 1) % window;
  }
  float sum = 0;
  for (const float recent : state_.recent_losses) sum += recent;
  return sum / static_cast<float>(state_.recent_losses.size());
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

// Says which layer broke first, as far as the weights tell.
void Solver::Diverge(float loss) {
  const std::string where = FirstNonFiniteParam();
  throw Error(ErrorCode::kDiverged,
              Join("iteration ", state_.iter, ": the loss is ", loss,
                   where.empty() ? "" : "; the weights of " + where + " are not finite",
                   saved_iter_ < 0 ? std::string(". There is no snapshot yet")
                                   : Join(". The newest snapshot is of iteration ", saved_iter_),
                   ". Try a lower base_lr or clip_gradients, and check the data's scale"));
}

// A loss may hide them: oneDNN's ReLU after a convolution makes 0 of what is not a number.
bool Solver::WeightsAreFinite() const {
  return std::isfinite(update_->Norm(params_.Weights())) || FirstNonFiniteParam().empty();
}

std::string Solver::FirstNonFiniteParam() const {
  std::vector<float> host;
  for (const Param* param : train_net_->params()) {
    host.resize(static_cast<size_t>(param->count()));
    device_.CopyToHost(host.data(), param->weight, host.size() * sizeof(float));
    for (const float weight : host) {
      if (!std::isfinite(weight)) {
        return Join("layer '", param->layer, "' (parameter ", param->index, ")");
      }
    }
  }
  return "";
}

}  // namespace trainer
