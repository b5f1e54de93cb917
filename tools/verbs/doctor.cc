#include <iostream>
#include <memory>
#include <utility>

#include "device_flags.h"
#include "reading_flags.h"
#include "shared_flags.h"
#include "trainer/analysis/input/input_report.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

class Doctor final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kCluster,
        .summary = "find out why training waits for data",
        .usage = "trainer doctor --solver=FILE [flags]",
        .text =
            "Measures how many records per second the training net uses, and how fast its data can "
            "be read from the disk, read from memory, and decoded. It shows the file system of "
            "each source, and the number of stripes on Lustre. Then it gives advice, with the "
            "expected gain. It writes no file. 'read cold' means: the system was first told to "
            "drop the files from its cache; a file server may still have them in its own cache.",
        .examples =
            "trainer doctor --solver=models/lenet/solver.prototxt\n"
            "srun trainer doctor --solver=s.prototxt --gpu=0",
        .flags = WithReadingFlags(WithDeviceFlags(
            {{.name = "solver", .value = "FILE", .help = "the solver", .required = true},
             {.name = "iterations",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "10",
              .help = "how many iterations to measure",
              .min = 1},
             {.name = "seconds",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "2",
              .help = "the longest time of each reading measurement",
              .min = 1,
              .max = 3600},
             LevelFlag(),
             StageFlag(),
             SetFlag(),
             MemoryFlag()})),
    };
  }

  int Run(const Flags& flags) override {
    ApplyReadingFlags(flags);
    SolverSpec spec = SolverOf(flags);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(flags, spec));
    DiagnosisOptions options;
    options.seconds = flags.Whole("seconds");
    options.iterations = flags.Whole("iterations");
    options.memory = ParseMemoryMode(flags);
    std::cout << ToText(DiagnoseInput(std::move(spec), *device, options));
    return 0;
  }
};

const RegisterVerb<Doctor> kDoctor("doctor");

}  // namespace
}  // namespace trainer
