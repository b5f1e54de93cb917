#include <iostream>
#include <string>

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

// Measures all-reduces of growing sizes between the ranks. Rank 0 prints the results.
class BenchComm final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&mib_, "mib", "N", "the largest size, in MiB").Range(1, 16384);
    flags.Bind(&options_.rounds, "rounds", "N", "how many sums of each size").Range(1);
    flags.Bind(&json_, "json", "FILE", "write the results to FILE, for 'trainer plan --link=FILE'");
    DeclareRanks(flags, &ranks_);
  }

  int Run() override {
    if (const int ranks = RanksToStart(ranks_)) return LaunchRanks(ranks);
    World* const world = JoinRanks(ranks_);
    if (world == nullptr) {
      throw Error(
          ErrorCode::kUsage,
          "bench-comm needs several ranks: give --ranks=2, or start it with mpirun or srun");
    }
    options_.max_bytes = static_cast<size_t>(mib_) << 20;
    options_.wire = RequestedCompression(ranks_).value_or(CompressionType::kF32);
    const AllReduceBenchReport report = BenchAllReduce(*world, options_);
    world->Finish();
    if (world->group().rank().rank != 0) return 0;
    std::cout << ToText(report);
    if (!json_.empty()) WriteAllReduceResults(json_, report.results, report.MpiSeconds());
    return 0;
  }

 private:
  AllReduceBenchOptions options_;
  RankOptions ranks_;
  int mib_ = 256;
  std::string json_;
};

const RegisterVerb<BenchComm> kBenchComm("bench-comm");

}  // namespace
}  // namespace trainer
