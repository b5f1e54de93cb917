#include <glog/logging.h>

#include <iostream>

#include "device_flags.h"
#include "shared_flags.h"
#include "time_report.h"
#include "trainer/base/text.h"
#include "trainer/data/prefetcher.h"
#include "trainer/net/net.h"
#include "trainer/solver/solver.h"
#include "verb.h"

namespace trainer {
namespace {

// What is measured: a net, and perhaps the solver that owns it.
struct Subject {
  Net* net = nullptr;
  Solver* solver = nullptr;
  const Device* device = nullptr;
  bool backward = false;
};

// So that gradients of passes without an update do not pile up.
void ClearGradients(const Subject& subject) {
  for (const Param* param : subject.net->params()) {
    if (param->grad == nullptr) continue;
    subject.device->Zero(param->grad, static_cast<size_t>(param->count()) * sizeof(float));
  }
}

double WaitSeconds(const Net& net) {
  double seconds = 0;
  for (int i = 0; i < net.NumLayers(); ++i) {
    const WaitCounters* waits = net.GetLayer(i).Waits();
    if (waits != nullptr) seconds += waits->wait_seconds;
  }
  return seconds;
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

Times Measure(const Subject& subject, int iterations) {
  Times times;
  times.layers.resize(static_cast<size_t>(subject.net->NumLayers()));
  LOG(INFO) << "Performing Forward";
  LOG(INFO) << "Initial loss: " << subject.net->Forward();
  LOG(INFO) << "Performing Backward";
  if (subject.backward) subject.net->Backward();
  ClearGradients(subject);
  LOG(INFO) << "*** Benchmark begins ***";
  LOG(INFO) << "Testing for " << iterations << " iterations.";
  const double waited = WaitSeconds(*subject.net);
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
  times.wait_ms = 1e3 * (WaitSeconds(*subject.net) - waited) / (passes * iterations);
  return times;
}

void Report(const Subject& subject, const Flags& flags) {
  const int iterations = flags.Whole("iterations");
  Times times = Measure(subject, iterations);
  times.peak = MeasurePeak(*subject.device);
  if (subject.solver != nullptr) times.update_bytes = subject.solver->UpdateBytes();
  const Net& net = *subject.net;
  LogTimes(net, times, iterations);
  std::cout << (flags.Has("json") ? TimesToJson(net, times, iterations).ToString()
                                  : TimesToText(net, times));
}

class Time final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .summary = "measure how long each layer of a net takes",
        .usage = "trainer time (--solver=FILE | --model=FILE [--phase=TEST]) [flags]",
        .text =
            "Prints one line per layer, with the least and the median time of a forward and a "
            "backward step, and then the times of the whole net. With --solver the update is "
            "measured too. Nothing is saved. With --v=1 the log and the report name the "
            "implementations that were asked before the chosen ones, and why they declined.",
        .examples =
            "trainer time --solver=models/lenet/solver.prototxt --iterations=20\n"
            "trainer time --model=models/lenet/train_test.prototxt --phase=TEST",
        .flags = WithDeviceFlags(
            {{.name = "solver", .value = "FILE", .help = "measure this solver's iteration"},
             {.name = "model", .value = "FILE", .help = "measure this net"},
             {.name = "weights", .value = "FILE", .help = "a .caffemodel to load first"},
             IterationsFlag(),
             PhaseFlag(),
             LevelFlag(),
             StageFlag(),
             SetFlag(),
             MemoryFlag(),
             JsonFlag()}),
    };
  }

  int Run(const Flags& flags) override {
    if (flags.Has("solver") == flags.Has("model")) {
      throw Error(ErrorCode::kUsage, "'trainer time' needs either --solver=FILE or --model=FILE");
    }
    static_cast<void>(ChooseDevice(flags));  // before the files are read
    flags.Has("solver") ? TimeSolver(flags) : TimeModel(flags);
    return 0;
  }

 private:
  // The solver without what is no part of a plain iteration.
  static SolverSpec TrainingOnly(const Flags& flags) {
    SolverSpec spec = SolverOf(flags);
    spec.tests.clear();
    spec.proto.set_snapshot(0);
    spec.proto.set_snapshot_after_train(false);
    spec.proto.set_display(0);
    spec.proto.set_max_iter(std::max(spec.proto.max_iter(), flags.Whole("iterations") + 1));
    return spec;
  }

  static void TimeSolver(const Flags& flags) {
    const SolverSpec spec = TrainingOnly(flags);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(flags, spec));
    TrainOptions options;
    options.saves = false;
    options.weights = flags.List("weights");
    options.memory = ParseMemoryMode(flags);
    ObserverList nobody;
    Solver solver(spec, options, *device, nobody);
    Report({&solver.train_net(), &solver, device.get(), true}, flags);
  }

  static void TimeModel(const Flags& flags) {
    const NetSpec spec = ModelOf(flags);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(flags, spec));
    ParamStore params(*device);
    NetOptions options;
    options.training = PhaseOf(flags) == caffe::TRAIN;
    options.state = NetStateOf(flags, options.training ? caffe::TRAIN : caffe::TEST);
    options.memory = ParseMemoryMode(flags);
    options.log = false;
    Net net(spec, options, *device, params);
    Net* const nets[] = {&net};
    LoadWeights(flags, nets);
    Report({&net, nullptr, device.get(), options.training}, flags);
  }
};

const RegisterVerb<Time> kTime("time");

}  // namespace
}  // namespace trainer
