#include <glog/logging.h>

#include <charconv>
#include <iostream>
#include <optional>

#include "device_flags.h"
#include "reading_flags.h"
#include "run_flags.h"
#include "shared_flags.h"
#include "trainer/analysis/memory/memory_fit.h"
#include "trainer/analysis/timing/net_profile.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/parallel/launch.h"
#include "trainer/run/batch_size.h"
#include "trainer/run/ranks/batch_scaling.h"
#include "trainer/run/ranks/compression.h"
#include "trainer/run/ranks/gpu_communicator.h"
#include "trainer/run/ranks/join.h"
#include "trainer/run/ranks/record_server_start.h"
#include "trainer/run/search/lr_range_test.h"
#include "trainer/run/search/lr_report.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

// A rate that a flag names.
double RateAt(const Flags& flags, const char* name) {
  const std::string& text = flags.Text(name);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(value >= 1e-30 && value <= 1e30)) {
    throw Error(ErrorCode::kUsage,
                Join("--", name, "=", EscapeControl(text),
                     ": a learning rate is a number above 0, such as 1e-6 or 0.1"));
  }
  return value;
}

void CheckFlags(const Flags& flags) {
  if (RateAt(flags, "from") >= RateAt(flags, "to")) {
    throw Error(ErrorCode::kUsage, Join("--from=", flags.Text("from"), " --to=", flags.Text("to"),
                                        ": the learning rate rises, so --to must be above --from"));
  }
  if (flags.Text("batch") == kBestBatch) {
    throw Error(ErrorCode::kUsage,
                "--batch=auto: find-lr needs a number; find it with 'trainer find-batch'");
  }
  if (flags.Switch("scale_lr")) {
    throw Error(
        ErrorCode::kUsage,
        "--scale_lr: find-lr tries learning rates for the batch of all ranks together; leave the "
        "flag out here, and also when you train with the learning rate that find-lr finds");
  }
  const std::string& out = flags.Text("out");
  if (out.empty()) return;
  if (!out.ends_with(".svg") && !out.ends_with(".csv")) {
    throw Error(ErrorCode::kUsage, Join("--out=", EscapeControl(out),
                                        " must end in .svg, for a picture, or .csv, for a table"));
  }
  RefuseToReplace(flags);
}

class FindLr final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kSettings,
        .summary = "find the learning rate to start with",
        .usage = "trainer find-lr --solver=FILE [--from=RATE --to=RATE] [flags]",
        .text =
            "Trains with a learning rate that grows by a constant factor in each iteration, from "
            "--from to --to, until the loss diverges. Prints the loss, smoothed over neighbouring "
            "iterations, and a good base_lr: the learning rate at which it falls fastest, or a "
            "tenth of the highest learning rate of a low loss if that is more. The solver's "
            "base_lr, lr_policy and warm-up have no effect. Everything else is as in training: "
            "momentum, batch, ranks, GPU. No snapshot is written.",
        .examples =
            "trainer find-lr --solver=models/lenet/solver.prototxt\n"
            "trainer find-lr --solver=s.prototxt --from=1e-4 --to=10 --iterations=400\n"
            "trainer find-lr --solver=s.prototxt --out=rates.svg\n"
            "trainer find-lr --solver=s.prototxt --ranks=4 --global_batch",
        .flags = WithReadingFlags(WithRankFlags(WithDeviceFlags(
            {{.name = "solver", .value = "FILE", .help = "the solver", .required = true},
             {.name = "from",
              .value = "RATE",
              .fallback = "1e-6",
              .help = "the first learning rate"},
             {.name = "to", .value = "RATE", .fallback = "1", .help = "the last learning rate"},
             {.name = "iterations",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "200",
              .help = "number of iterations from the first learning rate to the last",
              .min = LrRangeTest::kFewest},
             {.name = "out",
              .value = "FILE",
              .help = "also write the curve to FILE: a picture (.svg) or a table (.csv)"},
             ForceFlag(),
             StartWeightsFlag(),
             LevelFlag(),
             StageFlag(),
             SetFlag(),
             BatchFlag(),
             MemoryFlag(),
             JsonFlag()}))),
    };
  }

  int Run(const Flags& flags) override {
    ApplyReadingFlags(flags);
    CheckFlags(flags);
    const RankOptions of_ranks = TrainingRankOptionsOf(flags);
    if (const int ranks = RanksToStart(of_ranks, DeviceOptionsOf(flags))) {
      return LaunchRanks(ranks);
    }
    World* const world = JoinRanks(of_ranks);
    const auto host = world == nullptr
                          ? nullptr
                          : StartRecordServer(*world, std::chrono::seconds(of_ranks.peer_timeout));
    const LrRangeResult result = Measure(flags, world);
    if (world == nullptr || world->group().replica().rank == 0) Print(flags, result);
    if (world != nullptr) world->Finish();
    return 0;
  }

 private:
  // As `train` does it, on every rank; the losses are those of all.
  static LrRangeResult Measure(const Flags& flags, World* world) {
    SolverSpec spec = WithoutTestsAndSnapshots(SolverOf(flags), flags.Whole("iterations"));
    const RankOptions of_ranks = TrainingRankOptionsOf(flags);
    const WireType wire = ApplyCompression(of_ranks, &spec);
    const DeviceChoice choice = ChooseDevice(flags, spec, LocalRankOf(world, of_ranks.share_gpu));
    TrainOptions options;
    options.saves = false;
    if (world != nullptr) options.group = &world->group();
    const Rank replica = ReplicaOf(options);
    ApplyBatchSize(flags.Text("batch"), replica, &spec);
    ScaleForRanks(of_ranks, replica, &spec);
    RaiseLr({RateAt(flags, "from"), RateAt(flags, "to"), flags.Whole("iterations")}, &spec.proto);
    const std::unique_ptr<Device> device = MakeLoggedDevice(choice);
    std::unique_ptr<Communicator> group;
    if (world != nullptr)
      group = ConnectRanks(of_ranks, *world, spec, *device, choice, wire, &options);
    options.weights = WeightFiles(WeightOptionsOf(flags), spec);
    RequireFiles(options.weights);
    options.memory = ParseMemoryMode(flags);
    ObserverList nobody;
    Solver solver(spec, options, *device, nobody);
    RequireRunFits(spec, *device, replica, solver);
    std::optional<Progress> progress;
    if (replica.rank == 0) {
      progress.emplace("Raising the learning rate", "iterations", spec.proto.max_iter(),
                       Progress::InLog::kNothing);
    }
    return RunLrRangeTest(spec, progress ? &*progress : nullptr, &solver);
  }

  static void Print(const Flags& flags, const LrRangeResult& result) {
    const std::string& out = flags.Text("out");
    if (!out.empty()) WriteWhole(out, out.ends_with(".svg") ? ToSvg(result) : ToCsv(result));
    std::cout << (flags.Switch("json") ? ToJson(result).ToString() : ToText(result));
  }
};

const RegisterVerb<FindLr> kFindLr("find-lr");

}  // namespace
}  // namespace trainer
