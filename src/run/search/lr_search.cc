#include "trainer/run/search/lr_search.h"

#include <chrono>
#include <memory>
#include <optional>

#include "batch_size.h"
#include "class_weights.h"
#include "ranks/batch_scaling.h"
#include "ranks/gpu_communicator.h"
#include "trainer/analysis/memory/memory_fit.h"
#include "trainer/analysis/timing/net_profile.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/parallel/launch.h"
#include "trainer/run/ranks/compression.h"
#include "trainer/run/ranks/join.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

// Throws kUsage unless `text` is a number from 1e-30 to 1e30.
double ParseLr(const char* flag, const std::string& text) {
  const double value = ParseNumber<double>(text).value_or(0);
  if (!(value >= 1e-30 && value <= 1e30)) {
    throw Error(ErrorCode::kUsage,
                Join(flag, "=", EscapeControl(text),
                     ": a learning rate is a number above 0, such as 1e-6 or 0.1"));
  }
  return value;
}

// Throws kUsage for options of a run that make no sense in a range test.
void RequireSearchable(const TrainRequest& request) {
  if (request.batch == kBestBatch) {
    throw Error(ErrorCode::kUsage,
                "--batch=auto: find-lr needs a number; find it with 'trainer find-batch'");
  }
  if (request.ranks.scale_lr) {
    throw Error(
        ErrorCode::kUsage,
        "--scale_lr: find-lr tries learning rates for the batch of all ranks together; leave the "
        "flag out here, and also when you train with the learning rate that find-lr finds");
  }
}

// Prepares the run on this rank as `trainer train` does, without tests and snapshots, and runs the
// test. All ranks get the same losses. `world` is null in a run alone.
LrRangeResult TestOnRank(const TrainRequest& request, const LrRange& range, World* world) {
  SolverSpec spec = WithoutTestsAndSnapshots(ReadSolver(request.solver), range.iterations);
  const CompressionType wire = ApplyCompression(request.ranks, &spec);
  const DeviceChoice choice =
      ChooseDevice(request.device, spec, LocalRankOf(world, request.ranks.share_gpu));
  SolverOptions options;
  options.saves = false;
  if (world != nullptr) options.group = &world->group();
  const Rank rank = RankOf(options);
  ApplyBatchSize(request.batch, rank, &spec);
  ScaleForRanks(request.ranks, rank, &spec);
  ResolveClassWeights(options.group, &spec);
  RaiseLr(range, &spec.proto);
  const std::unique_ptr<Device> device = MakeLoggedDevice(choice);
  std::unique_ptr<Communicator> communicator;
  if (world != nullptr) {
    communicator = ConnectRanks(request.ranks, *world, spec, *device, choice, wire, &options);
  }
  options.weights = WeightFiles(request.start, spec);
  options.reset = ResetLayers(request.start, options.weights);
  RequireFiles(options.weights);
  options.memory = request.memory_mode;
  ObserverList observers;
  Solver solver(spec, options, *device, observers);
  RequireRunFits(spec, *device, rank, solver);
  std::optional<Progress> progress;
  if (rank.rank == 0) {
    progress.emplace("Raising the learning rate", "iterations", spec.proto.max_iter(),
                     Progress::InLog::kNothing);
  }
  return RunLrRangeTest(spec, progress ? &*progress : nullptr, &solver);
}

}  // namespace

LrRange ParseLrRange(const std::string& from, const std::string& to, int iterations) {
  const LrRange range{ParseLr("--from", from), ParseLr("--to", to), iterations};
  if (range.from < range.to) return range;
  throw Error(ErrorCode::kUsage, Join("--from=", from, " --to=", to,
                                      ": the learning rate rises, so --to must be above --from"));
}

int FindLearningRate(const TrainRequest& request, const LrRange& range,
                     const std::function<void(const LrRangeResult&)>& report) {
  RequireSearchable(request);
  SetDbLock(request.input.db_lock);
  if (const int ranks = RanksToStart(request.ranks, request.device)) return LaunchRanks(ranks);
  World* const world = JoinRanks(request.ranks);
  const LrRangeResult result = TestOnRank(request, range, world);
  if (world == nullptr || world->group().rank().rank == 0) report(result);
  if (world != nullptr) world->Finish();
  return 0;
}

}  // namespace trainer
