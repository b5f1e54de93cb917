#include "trainer/analysis/communication/all_reduce_bench.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ranges>

#include "communication/all_reduce_buffer.h"
#include "scaling/measured_cluster.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Sums buffers of one size, by our all-reduce and MPI's in turns. On a slow link the rounds end
// after some seconds; rank 0 decides that for all.
AllReduceTiming MeasureSums(World& world, size_t bytes, int rounds) {
  constexpr int kWarm = 2, kLeast = 3;
  constexpr double kMostMs = 3000;
  Communicator& group = world.group();
  AllReduceBuffer values(group, bytes);
  AllReduceTiming timed;
  timed.bytes = bytes;
  double spent = 0;
  for (int round = 0; round < kWarm + rounds; ++round) {
    values.Write(round);
    if (!SyncRanks(group, round < kWarm + kLeast || spent < kMostMs)) break;
    const double time = TimeMs([&] { group.AllReduce(values.span()); });
    values.Check(round);
    spent += time;
    if (round >= kWarm) timed.own.Add(time);
    values.Write(round);
    SyncRanks(group);
    const std::optional<double> mpi = world.AllReduceByMpi(values.span());
    if (!mpi) continue;
    values.Check(round);
    spent += *mpi * 1000;
    if (round >= kWarm) timed.mpi.Add(*mpi * 1000);
  }
  return timed;
}

// Keeps one core busy without using memory.
double Spin(int64_t steps) {
  double value = 1;
  for (int64_t i = 0; i < steps; ++i) value = value * 0.999 + 0.001;
  return value;
}

// Measures the fraction of its speed that a rank loses while its gradients are sent to other
// machines: the same computation is timed alone and during the all-reduce of `sum`, and takes about
// 0.6 of its time. Returns 0 on a single machine.
double MeasureOverlapCost(World& world, const AllReduceTiming& sum) {
  constexpr int kRounds = 9;
  constexpr int64_t kProbe = 1'000'000;
  if (world.topology().nodes() < 2) return 0;
  Communicator& group = world.group();
  AllReduceBuffer values(group, sum.bytes), last(group, 64);
  double sink = 0;
  float steps = 0;
  const double probe = TimeMs([&] { sink += Spin(kProbe); });
  steps = static_cast<float>(kProbe * 0.6 * sum.own.Median() / std::max(1e-3, probe));
  group.Broadcast({&steps, 1});
  const auto spin = [&] { sink += Spin(static_cast<int64_t>(steps)); };
  TimingSamples alone, overlapped;
  for (int round = 0; round < kRounds; ++round) {
    SyncRanks(group);
    alone.Add(TimeMs(spin));
    SyncRanks(group);
    group.OnGradientReady(0, values.span());
    group.OnGradientReady(1, last.span());  // not adjacent in memory, so the first is sent at once
    overlapped.Add(TimeMs(spin));
    group.WaitGradient(1);
  }
  if (sink == 0) return 0;  // keeps the compiler from removing the work
  constexpr double kMost = 0.95;
  return std::clamp(1 - alone.Median() / overlapped.Median(), 0.0, kMost);
}

// Returns the medians of our all-reduce, in seconds, and the arrangement of the ranks.
AllReduceResults SummarizeTimings(World& world, const std::vector<AllReduceTiming>& timings) {
  AllReduceResults results;
  results.ranks = world.group().rank().size;
  results.machines = world.topology().nodes();
  results.ranks_per_machine = world.topology().local_size();
  for (const AllReduceTiming& timed : timings) {
    results.sums.push_back({static_cast<double>(timed.bytes), timed.own.Median() / 1000});
  }
  return results;
}

// Returns the latency and the bandwidth that are fitted to the results: of the network if there are
// several machines, else of the memory that the ranks share.
std::string ClusterText(const AllReduceResults& results) {
  const ClusterModel cluster = FitCluster("measured", results);
  if (results.machines > 1) {
    return Wrap(Join("between machines: ", Fixed(cluster.link.Latency(1) * 1e6, 1), " us, ",
                     Fixed(cluster.link.BytesPerSecond() * 1e-9, 3),
                     " GB/s in each direction; a sum that runs during computation slows a rank "
                     "down by ",
                     Fixed(100 * results.overlap_cost, 0), " %"),
                0) +
           "\n";
  }
  return Join("inside a machine: ", Fixed(cluster.inside.latency * 1e6, 1),
              " us, all ranks together: ", Fixed(cluster.inside.bytes_per_second * 1e-9, 1),
              " GB/s\n");
}

}  // namespace

std::vector<double> AllReduceBenchReport::MpiSeconds() const {
  std::vector<double> seconds;
  for (const AllReduceTiming& timed : timings) {
    if (!timed.mpi.empty()) seconds.push_back(timed.mpi.Median() / 1000);
  }
  return seconds;
}

AllReduceBenchReport BenchAllReduce(World& world, const AllReduceBenchOptions& options) {
  constexpr size_t kMaxOverlapped = 4 << 20;  // bytes
  AllReduceBenchReport report;
  report.wire = world.SetCompression(options.wire);
  for (size_t bytes = 4; bytes <= options.max_bytes; bytes *= 4) {
    report.timings.push_back(MeasureSums(world, bytes, options.rounds));
  }
  report.results = SummarizeTimings(world, report.timings);
  for (const AllReduceTiming& timed : std::views::reverse(report.timings)) {
    if (timed.bytes > kMaxOverlapped) continue;
    report.results.overlap_cost = MeasureOverlapCost(world, timed);
    break;
  }
  report.ranks = world.Describe();
  return report;
}

std::string ToText(const AllReduceBenchReport& report) {
  Table table({"size", "sum, us", "GB/s", "MPI_Allreduce, us", "ratio"});
  for (const AllReduceTiming& timed : report.timings) {
    const double us = timed.own.Median() * 1000, mpi_us = timed.mpi.Median() * 1000;
    table.Add({Bytes(timed.bytes), Fixed(us, 1),
               Fixed(static_cast<double>(timed.bytes) / us / 1000, 3),
               timed.mpi.empty() ? "-" : Fixed(mpi_us, 1),
               timed.mpi.empty() ? "-" : Fixed(mpi_us / us, 2)});
  }
  std::string text = Wrap(report.ranks, 0) + "\n";
  if (!report.wire.empty()) text += Wrap(report.wire, 0) + "\n";
  return text + table.ToString() + ClusterText(report.results);
}

}  // namespace trainer
