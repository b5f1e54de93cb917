#include <iostream>

#include "rank_flags.h"
#include "stopwatch.h"
#include "table.h"
#include "trainer/base/error.h"
#include "trainer/base/log.h"
#include "trainer/base/text.h"
#include "trainer/parallel/launch.h"
#include "verb.h"

namespace trainer {
namespace {

// Numbers in memory for gradients, and what they are to be.
class Values {
 public:
  Values(ReplicaGroup& group, size_t bytes)
      : group_(group), bytes_(bytes), data_(group.memory()->allocate(bytes, kAlignment)) {}
  ~Values() { group_.memory()->deallocate(data_, bytes_, kAlignment); }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  std::span<float> span() { return {static_cast<float*>(data_), bytes_ / sizeof(float)}; }

  // As a backward pass does: buffers that stay in a cache flatter whoever sums them.
  void Write(int round) {
    const std::span<float> values = span();
    const auto rank = static_cast<float>(group_.replica().rank + round % 16);
    for (size_t i = 0; i < values.size(); ++i) values[i] = rank + static_cast<float>(i % 8);
  }
  void Check(int round) {
    const std::span<float> values = span();
    const auto ranks = static_cast<size_t>(group_.replica().count);
    const size_t of_ranks = ranks * (ranks - 1) / 2 + ranks * static_cast<size_t>(round % 16);
    for (const size_t i : {size_t{0}, values.size() / 2, values.size() - 1}) {
      if (values[i] == static_cast<float>(of_ranks + ranks * (i % 8))) continue;
      throw Error(ErrorCode::kInternal, Join("number ", i, " of a sum over ranks is wrong"));
    }
  }

 private:
  static constexpr size_t kAlignment = 64;

  ReplicaGroup& group_;
  size_t bytes_;
  void* data_;
};

class BenchComm final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .summary = "measure how fast ranks sum gradients",
        .usage = "trainer bench-comm --ranks=N [flags]; mpirun -np N trainer bench-comm [flags]",
        .text =
            "Sums buffers of several sizes over all ranks, written anew before each sum, and "
            "prints the median time and bytes of gradients per second. On one machine under "
            "mpirun, MPI's own MPI_Allreduce is measured in turns with it.",
        .examples =
            "trainer bench-comm --ranks=2\n"
            "mpirun -np 2 trainer bench-comm --mib=64",
        .flags = AllFlags(),
    };
  }

  int Run(const Flags& flags) override {
    if (const int ranks = RanksToStart(flags)) return LaunchRanks(ranks);
    World* const world = JoinRanks(flags);
    if (world == nullptr) {
      throw Error(ErrorCode::kUsage, "bench-comm needs ranks: --ranks=2, mpirun or srun");
    }
    const std::string wire = world->SetWire(WireOf(flags).value_or(WireType::kF32));
    Table table({"size", "sum, us", "GB/s", "MPI_Allreduce, us", "ratio"});
    const size_t most = static_cast<size_t>(flags.Whole("mib")) << 20;
    for (size_t bytes = 4; bytes <= most; bytes *= bytes < (1 << 20) ? 8 : 4) {
      table.Add(Measure(*world, bytes, flags.Whole("rounds")));
    }
    world->Finish();
    if (world->group().replica().rank == 0) {
      std::cout << world->Describe() << "\n"
                << wire << (wire.empty() ? "" : "\n") << table.ToString();
    }
    return 0;
  }

 private:
  static std::vector<Flag> AllFlags() {
    std::vector<Flag> flags = {{.name = "mib",
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
                                .help = "sums of each size",
                                .min = 1}};
    const std::vector<Flag> more = RankFlags();
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  static std::vector<std::string> Measure(World& world, size_t bytes, int rounds) {
    ReplicaGroup& group = world.group();
    Values values(group, bytes);
    Samples own, mpi;
    bool has_mpi = true;
    const auto meet = [&] {
      float one = 1;
      group.Sum({&one, 1});
    };
    for (int round = -2; round < rounds; ++round) {
      values.Write(round + 2);
      meet();
      const double time = TimeMs([&] { group.Sum(values.span()); });
      values.Check(round + 2);
      if (round >= 0) own.Add(time);
      if (!has_mpi) continue;
      values.Write(round + 2);
      meet();
      const double mpi_time = TimeMs([&] { has_mpi = world.AllReduceByMpi(values.span()); });
      if (has_mpi && round >= 0) mpi.Add(mpi_time);
    }
    const double us = own.Median() * 1000, mpi_us = mpi.Median() * 1000;
    return {Bytes(bytes), Fixed(us, 1), Fixed(static_cast<double>(bytes) / us / 1000, 2),
            mpi.empty() ? "-" : Fixed(mpi_us, 1), mpi.empty() ? "-" : Fixed(mpi_us / us, 2)};
  }
};

const RegisterVerb<BenchComm> kBenchComm("bench-comm");

}  // namespace
}  // namespace trainer
