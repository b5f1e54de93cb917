#include <glog/logging.h>

#include <iomanip>
#include <iostream>

#include "shared_flags.h"
#include "stopwatch.h"
#include "table.h"
#include "trainer/backend/device.h"
#include "trainer/base/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/data/prefetcher.h"
#include "trainer/net/load_weights.h"
#include "trainer/net/net.h"
#include "trainer/solver/solver.h"
#include "verb.h"

namespace trainer {
namespace {

struct LayerTimes {
  Samples forward, backward;
};

struct Times {
  std::vector<LayerTimes> layers;
  Samples forward, backward;  // all layers, one by one
  Samples pass;               // forward and backward with no clock between the layers
  Samples step;               // a solver's whole iteration; empty without a solver
  double wait_ms = 0;         // per pass, for data
};

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
    const double ms = TimeMs([&] { net.ForwardLayer(i); });
    times.layers[static_cast<size_t>(i)].forward.Add(ms);
    forward += ms;
  }
  for (int i = net.NumLayers(); subject.backward && i-- > 0;) {
    const double ms = TimeMs([&] { net.BackwardLayer(i); });
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
    if (subject.solver != nullptr) times.step.Add(TimeMs([&] { subject.solver->Step(); }));
    times.pass.Add(TimeMs([&] { RunPass(subject); }));
    const double ms = MeasureLayers(subject, times);
    ClearGradients(subject);
    LOG(INFO) << "Iteration: " << i + 1 << " forward-backward time: " << ms << " ms.";
  }
  const int passes = subject.solver != nullptr ? 3 : 2;
  times.wait_ms = 1e3 * (WaitSeconds(*subject.net) - waited) / (passes * iterations);
  return times;
}

// The lines that readers of Caffe's log know.
void LogTimes(const Net& net, const Times& times, int iterations) {
  LOG(INFO) << "Average time per layer: ";
  for (int i = 0; i < net.NumLayers(); ++i) {
    const LayerTimes& layer = times.layers[static_cast<size_t>(i)];
    const std::string& name = net.LayerAt(i).name();
    LOG(INFO) << std::setw(10) << name << "\tforward: " << layer.forward.Mean() << " ms.";
    LOG(INFO) << std::setw(10) << name << "\tbackward: " << layer.backward.Mean() << " ms.";
  }
  const double both = times.forward.Mean() + times.backward.Mean();
  LOG(INFO) << "Average Forward pass: " << times.forward.Mean() << " ms.";
  LOG(INFO) << "Average Backward pass: " << times.backward.Mean() << " ms.";
  LOG(INFO) << "Average Forward-Backward: " << both << " ms.";
  LOG(INFO) << "Total Time: " << both * iterations << " ms.";
  LOG(INFO) << "*** Benchmark ends ***";
}

// Billions of multiplications and additions per second.
std::string Rate(int64_t macs, double ms) {
  return macs == 0 || ms <= 0 ? "" : Fixed(2e-6 * static_cast<double>(macs) / ms, 1);
}

// Backward computes the gradient of the weights and, if something before learns, that of the input.
int64_t BackwardMacs(const Net& net, int i) {
  const caffe::LayerParameter& layer = net.LayerAt(i).proto();
  const bool input = layer.bottom_size() > 0 && net.Gradient(layer.bottom(0)).data != nullptr;
  return net.GetLayer(i).Macs() * (input ? 2 : 1);
}

void PrintLayers(const Net& net, const Times& times) {
  const double whole = times.forward.Median() + times.backward.Median();
  Table table({"layer", "type", "fwd min", "fwd med", "bwd min", "bwd med", "share", "fwd GFLOP/s",
               "bwd GFLOP/s", "implementation"});
  for (int i = 0; i < net.NumLayers(); ++i) {
    const LayerTimes& layer = times.layers[static_cast<size_t>(i)];
    const double forward = layer.forward.Median(), backward = layer.backward.Median();
    const double share = whole > 0 ? 100 * (forward + backward) / whole : 0;
    table.Add({net.LayerAt(i).name(), net.LayerAt(i).type(), Fixed(layer.forward.Min(), 3),
               Fixed(forward, 3), Fixed(layer.backward.Min(), 3), Fixed(backward, 3),
               Fixed(share, 1) + "%", Rate(net.GetLayer(i).Macs(), forward),
               net.RunsBackward(i) ? Rate(BackwardMacs(net, i), backward) : "",
               net.GetLayer(i).Implementation()});
  }
  std::cout << table.ToString() << "\n";
}

void PrintTotals(const Times& times) {
  Table table({"whole net", "min", "median"});
  auto add = [&](const char* name, const Samples& samples) {
    table.Add({name, Fixed(samples.Min(), 3), Fixed(samples.Median(), 3)});
  };
  add("forward", times.forward);
  add("backward", times.backward);
  add("forward and backward", times.pass);
  if (!times.step.empty()) {
    table.Add({"update", "-", Fixed(std::max(0.0, times.step.Median() - times.pass.Median()), 3)});
    add("training iteration", times.step);
  }
  const double layers = times.forward.Median() + times.backward.Median();
  table.Add({"between layers", "-", Fixed(std::max(0.0, times.pass.Median() - layers), 3)});
  table.Add({"waiting for data", "-", Fixed(times.wait_ms, 3)});
  std::cout << table.ToString() << "\nTimes in milliseconds.\n";
}

void Report(const Subject& subject, int iterations) {
  const Times times = Measure(subject, iterations);
  LogTimes(*subject.net, times, iterations);
  PrintLayers(*subject.net, times);
  PrintTotals(times);
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
            "measured too. Nothing is saved.",
        .examples =
            "trainer time --solver=models/lenet/solver.prototxt --iterations=20\n"
            "trainer time --model=models/lenet/train_test.prototxt --phase=TEST",
        .flags = {{.name = "solver", .value = "FILE", .help = "measure this solver's iteration"},
                  {.name = "model", .value = "FILE", .help = "measure this net"},
                  {.name = "weights", .value = "FILE", .help = "a .caffemodel to load first"},
                  IterationsFlag(),
                  PhaseFlag(),
                  LevelFlag(),
                  StageFlag(),
                  SetFlag(),
                  GpuFlag(),
                  MemoryFlag()},
    };
  }

  int Run(const Flags& flags) override {
    if (flags.Has("solver") == flags.Has("model")) {
      throw Error(ErrorCode::kUsage, "'trainer time' needs either --solver=FILE or --model=FILE");
    }
    RefuseGpu(flags);
    LOG(INFO) << "Use CPU.";
    const std::unique_ptr<Device> device = MakeCpuDevice();
    if (flags.Has("solver")) {
      TimeSolver(flags, *device);
    } else {
      TimeModel(flags, *device);
    }
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

  static void TimeSolver(const Flags& flags, const Device& device) {
    const SolverSpec spec = TrainingOnly(flags);
    TrainOptions options;
    options.weights = flags.List("weights");
    options.memory = ParseMemoryMode(flags);
    ObserverList nobody;
    Solver solver(spec, options, device, nobody);
    Report({&solver.train_net(), &solver, &device, true}, flags.Whole("iterations"));
  }

  static void TimeModel(const Flags& flags, const Device& device) {
    const NetSpec spec = ModelOf(flags);
    ParamStore params(device);
    NetOptions options;
    options.training = flags.Text("phase") == "TRAIN";
    options.state = NetStateOf(flags, options.training ? caffe::TRAIN : caffe::TEST);
    options.memory = ParseMemoryMode(flags);
    options.log = false;
    Net net(spec, options, device, params);
    Net* const nets[] = {&net};
    WeightLoading loading(nets);
    for (const std::string& file : flags.List("weights")) loading.Copy(ReadModel(file), file);
    if (flags.Has("weights")) loading.Finish();
    Report({&net, nullptr, &device, options.training}, flags.Whole("iterations"));
  }
};

const RegisterVerb<Time> kTime("time");

}  // namespace
}  // namespace trainer
