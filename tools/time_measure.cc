#include "time_measure.h"

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "trainer/backend/recording.h"
#include "trainer/base/error/error.h"
#include "trainer/layers/works_on_host.h"
#include "trainer/net/data_waits.h"

namespace trainer {
namespace {

// So that gradients of passes without an update do not pile up.
void ClearGradients(const Subject& subject) {
  for (const Param* param : subject.net->params()) {
    if (param->grad == nullptr) continue;
    subject.device->Zero(param->grad, static_cast<size_t>(param->count()) * sizeof(float));
  }
}

// The milliseconds until all that `work` queued is done.
template <class F>
double DoneMs(const Subject& subject, F&& work) {
  return TimeMs([&] {
    work();
    subject.device->Synchronize();
  });
}

void RunPass(const Subject& subject) {
  subject.net->Forward();
  if (subject.backward) subject.net->Backward();
}

// One pass with a clock around every layer.
double MeasureLayers(const Subject& subject, Times& times) {
  Net& net = *subject.net;
  double forward = 0, backward = 0;
  net.BeginPass();
  for (int i = 0; i < net.NumLayers(); ++i) {
    const double ms = DoneMs(subject, [&] { net.ForwardLayer(i); });
    times.layers[static_cast<size_t>(i)].forward.Add(ms);
    forward += ms;
  }
  for (int i = net.NumLayers(); subject.backward && i-- > 0;) {
    const double ms = DoneMs(subject, [&] { net.BackwardLayer(i); });
    times.layers[static_cast<size_t>(i)].backward.Add(net.RunsBackward(i) ? ms : 0);
    backward += ms;
  }
  times.forward.Add(forward);
  times.backward.Add(backward);
  return forward + backward;
}

// By recording once more what was measured, without doing it. Nothing where the device does not
// record, or the layer waits for it.
std::optional<int> CountOperations(const Subject& subject, const std::function<void()>& queue) {
  const Recorder* const recorder = RecorderOf(*subject.device);
  if (recorder == nullptr) return std::nullopt;
  try {
    return recorder->Record(queue)->NumOperations();
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Data layers bring batches by queues of their own.
void CountOperations(const Subject& subject, Times& times) {
  Net& net = *subject.net;
  for (int i = 0; i < net.NumLayers(); ++i) {
    const bool on_host = dynamic_cast<const WorksOnHost*>(&net.GetLayer(i)) != nullptr;
    if (on_host || net.LayerAt(i).proto().bottom_size() == 0) continue;
    LayerTimes& layer = times.layers[static_cast<size_t>(i)];
    layer.forward_operations = CountOperations(subject, [&] { net.ForwardLayer(i); });
    if (!subject.backward || !net.RunsBackward(i)) continue;
    layer.backward_operations = CountOperations(subject, [&] { net.BackwardLayer(i); });
  }
}

}  // namespace

Times MeasureTimes(const Subject& subject, int iterations) {
  Times times;
  times.layers.resize(static_cast<size_t>(subject.net->NumLayers()));
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
      times.step.Add(DoneMs(subject, [&] { subject.solver->Step(); }));
    }
    times.pass.Add(DoneMs(subject, [&] { RunPass(subject); }));
    const double ms = MeasureLayers(subject, times);
    ClearGradients(subject);
    LOG(INFO) << "Iteration: " << i + 1 << " forward-backward time: " << ms << " ms.";
  }
  const int passes = subject.solver != nullptr ? 3 : 2;
  times.wait_ms = 1e3 * (SecondsWaitedForData(*subject.net) - waited) / (passes * iterations);
  CountOperations(subject, times);
  return times;
}

SolverSpec TrainingOnly(SolverSpec spec, int iterations) {
  spec.tests.clear();
  spec.proto.set_keep_best(0);  // it compares tests, and so does patience
  spec.proto.set_patience(0);
  spec.proto.set_snapshot(0);
  spec.proto.set_snapshot_after_train(false);
  spec.proto.set_display(0);
  spec.proto.set_strategy("synchronous");  // whose steps are those of every strategy
  spec.proto.set_max_iter(std::max(spec.proto.max_iter(), iterations));
  return spec;
}

}  // namespace trainer
