#include <iostream>
#include <vector>

#include "run_flags.h"
#include "trainer/analysis/communication/all_reduce_bench.h"
#include "trainer/analysis/communication/all_reduce_results.h"
#include "trainer/base/error/error.h"
#include "trainer/cli/verb.h"
#include "trainer/parallel/launch.h"
#include "trainer/run/ranks/compression.h"
#include "trainer/run/ranks/join.h"

namespace trainer {
namespace {

class BenchComm final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kCluster,
        .summary = "measure how fast ranks sum gradients",
        .usage = "trainer bench-comm --ranks=N [flags], or mpirun -np N trainer bench-comm",
        .text =
            "Sums buffers of several sizes over all ranks and prints the median time and the bytes "
            "of gradients per second. Ranks of one machine use shared memory; ranks of different "
            "machines send messages. The buffers are written again before each sum.\n"
            "Under mpirun, MPI_Allreduce of the MPI library is measured in turns with it. On a "
            "slow link, a size gets fewer rounds than --rounds. --json writes the results to a "
            "file for 'trainer plan --ranks'.",
        .examples =
            "trainer bench-comm --ranks=2\n"
            "mpirun -np 2 trainer bench-comm --mib=64\n"
            "mpirun --host a,b trainer bench-comm --mib=16 --json=link.json",
        .flags = AllFlags(),
    };
  }

  int Run(const Flags& flags) override {
    if (const int ranks = RanksToStart(RankOptionsOf(flags))) return LaunchRanks(ranks);
    World* const world = JoinRanks(RankOptionsOf(flags));
    if (world == nullptr) {
      throw Error(
          ErrorCode::kUsage,
          "bench-comm needs several ranks: give --ranks=2, or start it with mpirun or srun");
    }
    AllReduceBenchOptions options;
    options.max_bytes = static_cast<size_t>(flags.Whole("mib")) << 20;
    options.rounds = flags.Whole("rounds");
    options.wire = RequestedCompression(RankOptionsOf(flags)).value_or(WireType::kF32);
    const AllReduceBenchReport report = BenchAllReduce(*world, options);
    world->Finish();
    if (world->group().replica().rank != 0) return 0;
    std::cout << ToText(report);
    if (flags.Has("json")) {
      WriteAllReduceResults(flags.Text("json"), report.results, report.MpiSeconds());
    }
    return 0;
  }

 private:
  static std::vector<Flag> AllFlags() {
    std::vector<Flag> flags = {
        {.name = "mib",
         .kind = FlagKind::kWhole,
         .value = "N",
         .fallback = "256",
         .help = "the largest size, in MiB",
         .min = 1,
         .max = 16384},
        {.name = "rounds",
         .kind = FlagKind::kWhole,
         .value = "N",
         .fallback = "15",
         .help = "how many sums of each size",
         .min = 1},
        {.name = "json",
         .value = "FILE",
         .help = "write the results to FILE, for 'trainer plan --link=FILE'"}};
    const std::vector<Flag> more = RankFlags();
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
};

const RegisterVerb<BenchComm> kBenchComm("bench-comm");

}  // namespace
}  // namespace trainer
