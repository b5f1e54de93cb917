#include <glog/logging.h>

#include <iostream>
#include <memory>
#include <utility>

#include "device_flags.h"
#include "reading_flags.h"
#include "shared_flags.h"
#include "trainer/analysis/timing/net_profile.h"
#include "trainer/analysis/timing/profile_report.h"
#include "trainer/base/file/file.h"
#include "trainer/cli/verb.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

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
    const NetProfile profile = flags.Has("solver") ? ProfileSolverOf(flags) : ProfileModelOf(flags);
    LogProfile(profile);
    std::cout << (flags.Has("json") ? ToJson(profile).ToString() : ToText(profile, VLOG_IS_ON(1)));
    return 0;
  }

 private:
  static NetProfile ProfileSolverOf(const Flags& flags) {
    SolverSpec spec = SolverOf(flags);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(flags, spec));
    RequireFiles(flags.List("weights"));
    return ProfileSolver(std::move(spec), *device,
                         {.iterations = flags.Whole("iterations"),
                          .weights = flags.List("weights"),
                          .memory = ParseMemoryMode(flags),
                          .peak = true,
                          .inspect = {}});
  }

  static NetProfile ProfileModelOf(const Flags& flags) {
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
    return ProfileNetAndPeak({&net, nullptr, device.get(), options.training},
                             flags.Whole("iterations"));
  }
};

const RegisterVerb<Time> kTime("time");

}  // namespace
}  // namespace trainer
