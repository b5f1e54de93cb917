#include <glog/logging.h>

#include <algorithm>
#include <iostream>

#include "device_flags.h"
#include "reading_flags.h"
#include "shared_flags.h"
#include "time_measure.h"
#include "time_work.h"
#include "trainer/cli/verb.h"
#include "trainer/net/net.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

void ReportTimes(const Subject& subject, const Flags& flags) {
  const int iterations = flags.Whole("iterations");
  const MachinePeak before = MeasurePeak(*subject.device);
  Times times = MeasureTimes(subject, iterations);
  const MachinePeak after = MeasurePeak(*subject.device);
  times.peak = {std::max(before.gflops, after.gflops), std::max(before.gbytes, after.gbytes)};
  RaisePeak(*subject.net, &times);
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
        .task = VerbTask::kLook,
        .summary = "measure how long each layer of a net takes",
        .usage = "trainer time (--solver=FILE | --model=FILE [--phase=TEST]) [flags]",
        .text =
            "Prints the minimum and the median time of each layer, forward and backward, and the "
            "times of the whole net. Then prints rates (GFLOP/s, GB/s), percentages of the "
            "machine's peak, and the implementation of each layer; on a GPU also the numbers of "
            "kernels, copies and fills. With --solver, the update is measured as well. No file is "
            "written. With --v=1, the log and the report also name the implementations that were "
            "not chosen, and why.",
        .examples =
            "trainer time --solver=models/lenet/solver.prototxt --iterations=20\n"
            "trainer time --model=models/lenet/train_test.prototxt --phase=TEST",
        .flags = WithReadingFlags(WithDeviceFlags(
            {{.name = "solver", .value = "FILE", .help = "measure this solver's iteration"},
             {.name = "model", .value = "FILE", .help = "measure this net"},
             {.name = "weights", .value = "FILE", .help = "a .caffemodel to load first"},
             IterationsFlag(),
             PhaseFlag(),
             LevelFlag(),
             StageFlag(),
             SetFlag(),
             MemoryFlag(),
             JsonFlag()})),
    };
  }

  int Run(const Flags& flags) override {
    ApplyReadingFlags(flags);
    if (flags.Has("solver") == flags.Has("model")) {
      throw Error(ErrorCode::kUsage, "'trainer time' needs either --solver=FILE or --model=FILE");
    }
    static_cast<void>(ChooseDevice(flags));  // before the files are read
    flags.Has("solver") ? TimeSolver(flags) : TimeModel(flags);
    return 0;
  }

 private:
  static void TimeSolver(const Flags& flags) {
    const SolverSpec spec = TrainingOnly(SolverOf(flags), flags.Whole("iterations") + 1);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(flags, spec));
    RequireFiles(flags.List("weights"));
    TrainOptions options;
    options.saves = false;
    options.weights = flags.List("weights");
    options.memory = ParseMemoryMode(flags);
    ObserverList nobody;
    Solver solver(spec, options, *device, nobody);
    ReportTimes({&solver.train_net(), &solver, device.get(), true}, flags);
  }

  static void TimeModel(const Flags& flags) {
    RequireFiles(flags.List("weights"));
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
    ReportTimes({&net, nullptr, device.get(), options.training}, flags);
  }
};

const RegisterVerb<Time> kTime("time");

}  // namespace
}  // namespace trainer
