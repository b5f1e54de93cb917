#include <iostream>

#include "batch_flag.h"
#include "device_flags.h"
#include "find_batch_search.h"
#include "memory_limit.h"
#include "shared_flags.h"
#include "trainer/base/error.h"
#include "verb.h"

namespace trainer {
namespace {

class FindBatch final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kSettings,
        .summary = "find the largest batch that fits, and the fastest",
        .usage = "trainer find-batch --solver=FILE [--memory=SIZE] [flags]",
        .text =
            "Plans the memory of larger and larger batches of the training net until they do not "
            "fit, and trains for a few iterations with 1, 2, 4, ... of them until they get no "
            "faster, data and update included; then with the largest, as far as that is a matter "
            "of seconds. Those that may be the fastest are run again in two more rounds, and the "
            "best iteration of each counts, since what else the machine does only slows them "
            "down. Prints memory, images per second and how far the median iteration is above the "
            "best, the largest batch that fits and the one to take: the smallest that is nearly "
            "as fast as the fastest, and never more than a tenth of the records.\n"
            "Without --memory the run may take what there is: what is free on the GPU, or what "
            "this process may take on the CPU. With it outputs of layers are computed again in "
            "backward where that makes a batch fit, as 'trainer train --memory' does it. Nothing "
            "is written, and no file is changed.",
        .examples =
            "trainer find-batch --solver=models/lenet/solver.prototxt\n"
            "trainer find-batch --solver=s.prototxt --gpu=0\n"
            "trainer find-batch --solver=s.prototxt --gpu=0 --memory=8GiB --most=512\n"
            "trainer find-batch --solver=s.prototxt --seconds=10 --json",
        .flags = WithDeviceFlags(
            {{.name = "solver", .value = "FILE", .help = "the solver", .required = true},
             {.name = "most",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "4096",
              .help = "the largest batch that is of interest",
              .min = 1,
              .max = 1 << 24},
             {.name = "seconds",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "60",
              .help = "about how long it may take to run batches; 0: it only plans them"},
             {.name = "iterations",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "10",
              .help = "how many to measure with each batch in each round",
              .min = 1},
             LevelFlag(),
             StageFlag(),
             SetFlag(),
             MemoryLimitFlag(),
             JsonFlag()}),
    };
  }

  int Run(const Flags& flags) override {
    static_cast<void>(ChooseDevice(flags));  // before the files are read
    SolverSpec spec = SolverOf(flags);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(flags, spec));
    BatchSearch search = SearchFor(flags, *device);
    search.most = static_cast<uint32_t>(flags.Whole("most"));
    search.iterations = flags.Whole("iterations");
    search.time = std::chrono::seconds(flags.Whole("seconds"));
    const BatchResults report = SearchBatches(search, *device, &spec);
    std::cout << (flags.Switch("json") ? ToJson(report, search).ToString()
                                       : ToText(report, search, spec));
    return 0;
  }
};

const RegisterVerb<FindBatch> kFindBatch("find-batch");

}  // namespace
}  // namespace trainer
