#include <algorithm>
#include <iostream>
#include <optional>
#include <ranges>

#include "bench_values.h"
#include "link_file.h"
#include "net_sums.h"
#include "rank_flags.h"
#include "shared_flags.h"
#include "stopwatch.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/parallel/launch.h"
#include "trainer/run/ranks/compression.h"
#include "trainer/run/ranks/join.h"

namespace trainer {
namespace {

// What was measured of one size, in milliseconds.
struct Timed {
  size_t bytes = 0;
  Samples own, mpi;
};

// Sums of one size, ours and MPI's in turns. On a slow link the rounds end after some seconds.
Timed MeasureSums(World& world, size_t bytes, int rounds) {
  constexpr int kWarm = 2, kLeast = 3;
  constexpr double kMostMs = 3000;
  Communicator& group = world.group();
  BenchValues values(group, bytes);
  Timed timed;
  timed.bytes = bytes;
  double spent = 0;
  for (int round = 0; round < kWarm + rounds; ++round) {
    values.Write(round);
    if (!Meet(group, round < kWarm + kLeast || spent < kMostMs)) break;
    const double time = TimeMs([&] { group.Sum(values.span()); });
    values.Check(round);
    spent += time;
    if (round >= kWarm) timed.own.Add(time);
    values.Write(round);
    Meet(group);
    const std::optional<double> mpi = world.AllReduceByMpi(values.span());
    if (!mpi) continue;
    values.Check(round);
    spent += *mpi * 1000;
    if (round >= kWarm) timed.mpi.Add(*mpi * 1000);
  }
  return timed;
}

// Work for one core that leaves the memory alone.
double Spin(int64_t steps) {
  double value = 1;
  for (int64_t i = 0; i < steps; ++i) value = value * 0.999 + 0.001;
  return value;
}

// Which part of its speed a rank loses while its gradients are on the way to other machines: what
// computes within the time of a sum takes longer when one is under way.
double MeasureOverlapCost(World& world, const Timed& sum) {
  constexpr int kRounds = 9;
  constexpr int64_t kProbe = 1'000'000;
  if (world.seat().machines < 2) return 0;
  Communicator& group = world.group();
  BenchValues values(group, sum.bytes), last(group, 64);
  double sink = 0;
  float steps = 0;
  const double probe = TimeMs([&] { sink += Spin(kProbe); });
  steps = static_cast<float>(kProbe * 0.6 * sum.own.Median() / std::max(1e-3, probe));
  group.Broadcast({&steps, 1});
  const auto spin = [&] { sink += Spin(static_cast<int64_t>(steps)); };
  Samples alone, beside;
  for (int round = 0; round < kRounds; ++round) {
    Meet(group);
    alone.Add(TimeMs(spin));
    Meet(group);
    group.OnGradientReady(0, values.span());
    group.OnGradientReady(1, last.span());  // no neighbour, so that the first is sent
    beside.Add(TimeMs(spin));
    group.WaitFor(1);
  }
  if (sink == 0) return 0;  // the work is not left out
  constexpr double kMost = 0.95;
  return std::clamp(1 - alone.Median() / beside.Median(), 0.0, kMost);
}

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
            "slow link, a size gets fewer rounds than --rounds. With --solver, the gradients of "
            "its net are summed as well: in buckets, as in training, and with one MPI_Allreduce "
            "per parameter. --json writes the results to a file for 'trainer plan --ranks'.",
        .examples =
            "trainer bench-comm --ranks=2\n"
            "mpirun -np 2 trainer bench-comm --mib=64\n"
            "mpirun -np 2 trainer bench-comm --solver=s.prototxt\n"
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
    const std::string wire =
        world->SetWire(RequestedCompression(RankOptionsOf(flags)).value_or(WireType::kF32));
    const size_t most = static_cast<size_t>(flags.Whole("mib")) << 20;
    constexpr size_t kOverlapped = 4 << 20;  // bytes, at most
    std::vector<Timed> all;
    for (size_t bytes = 4; bytes <= most; bytes *= 4) {
      all.push_back(MeasureSums(*world, bytes, flags.Whole("rounds")));
    }
    MeasuredSums measured = SumsOf(*world, all);
    for (const Timed& timed : std::views::reverse(all)) {
      if (timed.bytes > kOverlapped) continue;
      measured.overlap_cost = MeasureOverlapCost(*world, timed);
      break;
    }
    std::optional<NetSums> of_net;
    if (flags.Has("solver")) of_net = SumGradients(*world, SolverOf(flags), flags.Whole("rounds"));
    world->Finish();
    if (world->group().replica().rank != 0) return 0;
    Print(*world, wire, all, measured);
    if (of_net) std::cout << Wrap(of_net->ToString(), 0) << "\n";
    if (flags.Has("json")) WriteSums(flags.Text("json"), measured, MpiSeconds(all));
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
        {.name = "solver", .value = "FILE", .help = "also sum the gradients of this solver's net"},
        LevelFlag(),
        StageFlag(),
        SetFlag(),
        {.name = "json",
         .value = "FILE",
         .help = "write the results to FILE, for 'trainer plan --link=FILE'"}};
    const std::vector<Flag> more = RankFlags();
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  static std::vector<double> MpiSeconds(const std::vector<Timed>& all) {
    std::vector<double> seconds;
    for (const Timed& timed : all) {
      if (!timed.mpi.empty()) seconds.push_back(timed.mpi.Median() / 1000);
    }
    return seconds;
  }

  static MeasuredSums SumsOf(World& world, const std::vector<Timed>& all) {
    MeasuredSums measured;
    measured.ranks = world.group().replica().size;
    measured.machines = world.seat().machines;
    measured.ranks_per_machine = world.seat().locals;
    for (const Timed& timed : all) {
      measured.sums.push_back({static_cast<double>(timed.bytes), timed.own.Median() / 1000});
    }
    return measured;
  }

  // `wire`: a sentence of the form of gradients between machines, or "".
  static void Print(World& world, const std::string& wire, const std::vector<Timed>& all,
                    const MeasuredSums& measured) {
    Table table({"size", "sum, us", "GB/s", "MPI_Allreduce, us", "ratio"});
    for (const Timed& timed : all) {
      const double us = timed.own.Median() * 1000, mpi_us = timed.mpi.Median() * 1000;
      table.Add({Bytes(timed.bytes), Fixed(us, 1),
                 Fixed(static_cast<double>(timed.bytes) / us / 1000, 3),
                 timed.mpi.empty() ? "-" : Fixed(mpi_us, 1),
                 timed.mpi.empty() ? "-" : Fixed(mpi_us / us, 2)});
    }
    std::cout << Wrap(world.Describe(), 0) << "\n";
    if (!wire.empty()) std::cout << Wrap(wire, 0) << "\n";
    std::cout << table.ToString();
    const Cluster cluster = ClusterOf("measured", measured);
    if (world.seat().machines > 1) {
      std::cout << Wrap(Join("between machines: ", Fixed(cluster.link.Latency(1) * 1e6, 1), " us, ",
                             Fixed(cluster.link.BytesPerSecond() * 1e-9, 3),
                             " GB/s in each direction; a sum that runs during computation slows a "
                             "rank down by ",
                             Fixed(100 * measured.overlap_cost, 0), " %"),
                        0)
                << "\n";
    } else {
      std::cout << "inside a machine: " << Fixed(cluster.inside.latency * 1e6, 1)
                << " us, all ranks together: " << Fixed(cluster.inside.bytes_per_second * 1e-9, 1)
                << " GB/s\n";
    }
  }
};

const RegisterVerb<BenchComm> kBenchComm("bench-comm");

}  // namespace
}  // namespace trainer
