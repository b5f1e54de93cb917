#include <iostream>

#include "batch_flag.h"
#include "device_flags.h"
#include "memory_flags.h"
#include "shared_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/cli/verb.h"

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
            "First plans the memory of larger and larger batches of the training net, until a "
            "batch does not fit. Then trains for a few iterations with batches of 1, 2, 4, ... "
            "until the speed no longer grows, and with the largest batch if that needs only "
            "seconds. The time includes data and update. The fastest candidates run in two more "
            "rounds, and the best iteration of each counts, because other programs can only slow "
            "it down.\n"
            "Prints for each batch size the memory, the images per second, and how far the median "
            "iteration is above the best. Then names the largest batch that fits and the "
            "recommended one: the smallest that is nearly as fast as the fastest, and at most a "
            "tenth of the records.\n"
            "Without --memory, the run may use all available memory: the free memory of the GPU, "
            "or the memory that this process may use on the CPU. With --memory, outputs of layers "
            "are computed again in the backward pass if a batch fits only that way, as in 'trainer "
            "train --memory'. No file is written or changed.",
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
              .help = "the largest batch to try",
              .min = 1,
              .max = 1 << 24},
             {.name = "seconds",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "60",
              .help = "about how long to run batches; 0: only plan them"},
             {.name = "iterations",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "10",
              .help = "how many iterations to measure with each batch in each round",
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
    BatchSearchOptions options =
        MakeBatchSearchOptions(flags.Text("memory"), ParseMemoryMode(flags), *device);
    options.max_batch = static_cast<uint32_t>(flags.Whole("most"));
    options.iterations = flags.Whole("iterations");
    options.time = std::chrono::seconds(flags.Whole("seconds"));
    const BatchSearchResult result = SearchBatchSize(options, *device, &spec);
    std::cout << (flags.Switch("json") ? ToJson(result, options).ToString()
                                       : ToText(result, options, spec));
    return 0;
  }
};

const RegisterVerb<FindBatch> kFindBatch("find-batch");

}  // namespace
}  // namespace trainer
