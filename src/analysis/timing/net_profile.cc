#include "trainer/analysis/timing/net_profile.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "timing/roofline.h"
#include "trainer/backend/device/graph_capture.h"
#include "trainer/base/error/error.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/net/cost.h"
#include "trainer/net/data_layers.h"
#include "trainer/net/debug_info.h"
#include "trainer/net/load_weights.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

// The net to measure, and the solver that owns it, if any.
struct ProfiledNet {
  Net* net = nullptr;
  Solver* solver = nullptr;
  const Device* device = nullptr;
  bool backward = false;
  int passes_per_step = 1;  // of the solver
};

// Clears the gradients, which passes without an update would accumulate.
void ClearGradients(const ProfiledNet& subject) {
  for (const Param* param : subject.net->params()) {
    if (param->grad == nullptr) continue;
    subject.device->Zero(param->grad, static_cast<size_t>(param->count()) * sizeof(float));
  }
}

// Returns the milliseconds until the device has finished all that `work` enqueued.
template <class F>
double DoneMs(const ProfiledNet& subject, F&& work) {
  return TimeMs([&] {
    work();
    subject.device->Synchronize();
  });
}

// Runs forward and, for a net in training, backward. Returns before the device has finished.
void RunPass(const ProfiledNet& subject) {
  subject.net->Forward();
  if (subject.backward) subject.net->Backward();
}

// Runs one pass with `hook` as the only hook.
void RunHooked(const ProfiledNet& subject, const NodeHook& hook) {
  const bool logs = subject.net->RemoveHook(DebugInfoHook());
  subject.net->AddHook(&hook);
  RunPass(subject);
  subject.net->RemoveHook(&hook);
  if (logs) subject.net->AddHook(DebugInfoHook());
}

// Times every layer of one pass. Returns the sum in milliseconds.
double MeasureLayers(const ProfiledNet& subject, NetProfile& profile) {
  double forward = 0, backward = 0;
  RunHooked(subject,
            [&](const Net& net, NodeId id, Direction direction, const std::function<void()>& run) {
              const double ms = DoneMs(subject, run);
              LayerProfile& layer = profile.layers[static_cast<size_t>(id.number)];
              if (direction == Direction::kForward) {
                layer.forward.Add(ms);
                forward += ms;
              } else {
                layer.backward.Add(net.graph().nodes[id].has_backward ? ms : 0);
                backward += ms;
              }
            });
  profile.forward.Add(forward);
  profile.backward.Add(backward);
  return forward + backward;
}

// Counts what `run` enqueues by capturing it without running it. Empty where the device does not
// capture, or the layer waits for the device.
std::optional<int> CountEnqueued(const Device& device, const std::function<void()>& run) {
  if (device.capture() == nullptr) return std::nullopt;
  try {
    return device.capture()->Capture(run)->NumOperations();
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Counts the operations of each layer. Data layers are left out, because their threads copy batches
// through their own streams.
void CountLayerOperations(const ProfiledNet& subject, NetProfile& profile) {
  RunHooked(subject,
            [&](const Net& net, NodeId id, Direction direction, const std::function<void()>& run) {
              const Node& node = net.graph().nodes[id];
              if (node.signature.runs_on_host || node.spec.proto().bottom_size() == 0) return;
              LayerProfile& layer = profile.layers[static_cast<size_t>(id.number)];
              if (direction == Direction::kForward) {
                layer.forward_operations = CountEnqueued(*subject.device, run);
              } else if (node.has_backward) {
                layer.backward_operations = CountEnqueued(*subject.device, run);
              }
            });
}

// Returns whether the layer's kernel computes fewer products than are counted.
bool IsWinograd(const Layer& layer) { return layer.kernel().find("Winograd") != std::string::npos; }

// Returns the work of a layer's forward step, with two operations per multiply-add.
OpCost ForwardCost(const Net& net, int i) {
  const Layer& layer = *net.graph().nodes[NodeId(i)].layer;
  return {2.0 * static_cast<double>(layer.Macs()),
          static_cast<double>(BytesMoved(net.graph(), i).forward), IsWinograd(layer)};
}

// Returns the work of a layer's backward step: as many products as forward for the gradient of the
// weights, if they learn, and as many for the gradient of the inputs, if an earlier layer learns.
// In a layer without weights (MatMul), as many for the gradient of each input.
OpCost BackwardCost(const Net& net, int i) {
  const Node& node = net.graph().nodes[NodeId(i)];
  if (!node.has_backward) return {};
  auto gradients = std::ranges::count(node.input_needs_grad, true);
  if (!node.params.empty()) {
    const auto learns = [](const Param* param) { return param->grad != nullptr; };
    gradients = (gradients > 0 ? 1 : 0) + (std::ranges::any_of(node.params, learns) ? 1 : 0);
  }
  return {2.0 * static_cast<double>(node.layer->Macs()) * static_cast<double>(gradients),
          static_cast<double>(BytesMoved(net.graph(), i).backward), IsWinograd(*node.layer)};
}

// Sets everything in `to` except the times and the numbers of operations.
void DescribeLayer(const Net& net, int i, LayerProfile* to) {
  LayerProfile& layer = *to;
  const Node& node = net.graph().nodes[NodeId(i)];
  layer.name = node.spec.name();
  layer.type = node.spec.type();
  layer.implementation = node.layer->kernel();
  layer.declined = node.layer->skipped_kernels();
  if (node.fused_into) layer.computed_by = net.graph().nodes[node.fused_into].spec.name();
  layer.forward_cost = ForwardCost(net, i);
  layer.backward_cost = BackwardCost(net, i);
}

// Times whole iterations (with a solver), passes, and passes with a clock around every layer, in
// turns. Leaves `peak` empty.
NetProfile ProfileNet(const ProfiledNet& subject, int iterations) {
  NetProfile profile;
  profile.net = subject.net->graph().name;
  profile.iterations = iterations;
  profile.passes_per_step = subject.passes_per_step;
  profile.layers.resize(static_cast<size_t>(subject.net->graph().nodes.size()));
  LOG(INFO) << "Performing Forward";
  LOG(INFO) << "Initial loss: " << subject.net->Forward();
  LOG(INFO) << "Performing Backward";
  if (subject.backward) subject.net->Backward();
  ClearGradients(subject);
  LOG(INFO) << "*** Benchmark begins ***";
  LOG(INFO) << "Testing for " << iterations << " iterations.";
  const double waited = SecondsWaitedForData(*subject.net);
  for (int i = 0; i < iterations; ++i) {
    if (subject.solver != nullptr) {
      profile.step.Add(DoneMs(subject, [&] { subject.solver->Step(); }));
    }
    profile.pass.Add(DoneMs(subject, [&] { RunPass(subject); }));
    const double ms = MeasureLayers(subject, profile);
    ClearGradients(subject);
    LOG(INFO) << "Iteration: " << i + 1 << " forward-backward time: " << ms << " ms.";
  }
  const int passes = 2 + (subject.solver != nullptr ? subject.passes_per_step : 0);
  profile.wait_ms = 1e3 * (SecondsWaitedForData(*subject.net) - waited) / (passes * iterations);
  if (subject.solver != nullptr) profile.update_bytes = subject.solver->UpdateBytes();
  CountLayerOperations(subject, profile);
  for (int i = 0; i < subject.net->graph().nodes.size(); ++i) {
    DescribeLayer(*subject.net, i, &profile.layers[static_cast<size_t>(i)]);
  }
  return profile;
}

// Measures the machine's peak before and after the net.
NetProfile ProfileNetAndPeak(const ProfiledNet& subject, int iterations) {
  const MachinePeak before = MeasurePeak(*subject.device);
  NetProfile profile = ProfileNet(subject, iterations);
  const MachinePeak after = MeasurePeak(*subject.device);
  profile.peak = {std::max(before.gflops, after.gflops), std::max(before.gbytes, after.gbytes)};
  RaisePeak(&profile);
  return profile;
}

// Measures as the options say, and calls options.inspect while the net still exists.
NetProfile Profile(const ProfiledNet& subject, const ProfileOptions& options) {
  NetProfile profile = options.peak ? ProfileNetAndPeak(subject, options.iterations)
                                    : ProfileNet(subject, options.iterations);
  if (options.inspect) options.inspect(*subject.net, profile);
  return profile;
}

}  // namespace

double NetProfile::UpdateMs() const {
  return std::max(0.0, step.Median() - passes_per_step * pass.Median());
}

NetProfile ProfileModel(const NetSpec& spec, const caffe::NetState& state, const Device& device,
                        const ProfileOptions& options) {
  ParamStore params(device);
  NetOptions net_options;
  net_options.state = state;
  net_options.training = state.phase() == caffe::TRAIN;
  net_options.memory = options.memory;
  net_options.log = false;
  Net net(spec, net_options, device, params);
  if (!options.weights.empty()) {
    Net* const nets[] = {&net};
    WeightLoader loading(nets);
    for (const std::string& file : options.weights)
      loading.Copy(ReadModel(file, loading.net_file()), file);
    loading.Finish();
  }
  return Profile({&net, nullptr, &device, net_options.training}, options);
}

NetProfile ProfileSolver(SolverSpec spec, const Device& device, const ProfileOptions& options) {
  SolverOptions train;
  train.saves = false;
  train.weights = options.weights;
  train.memory = options.memory;
  ObserverList no_observers;
  // The solver keeps references to its specification.
  const SolverSpec plain = WithoutTestsAndSnapshots(std::move(spec), options.iterations + 1);
  Solver solver(plain, train, device, no_observers);
  return Profile({&solver.train_net(), &solver, &device, true, plain.proto.iter_size()}, options);
}

SolverSpec WithoutTestsAndSnapshots(SolverSpec spec, int iterations) {
  spec.tests.clear();
  spec.proto.set_keep_best(0);  // keep_best and patience compare the results of tests
  spec.proto.set_patience(0);
  spec.proto.set_snapshot(0);
  spec.proto.set_snapshot_after_train(false);
  spec.proto.set_display(0);
  spec.proto.clear_unfreeze_at();          // the net must stay the same while it is measured
  spec.proto.set_strategy("synchronous");  // each rank takes the same steps under every strategy
  spec.proto.set_max_iter(std::max(spec.proto.max_iter(), iterations));
  return spec;
}

}  // namespace trainer
